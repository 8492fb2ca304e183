//! Routes of a declared kind (specification 1.9) against the Routes that they generate: both have the same answers.

use std::collections::BTreeMap;

use entail_core::effective::World as Entail;
use entail_core::model::PathName;
use serde_json::{Value, json};

use super::compare::paths;
use super::objects::GATEWAY;
use super::support::entail_of;
use super::worlds::World;

const GROUP: &str = "routes.example.com";
const KIND: &str = "Made";

/// Replaces the HTTPRoutes of a world by Routes that generate them, and tells what changes.
pub fn compared(world: &World) -> Vec<String> {
    // A Route that delegates is not replaced by one that could.
    let delegates = |profile: &Value| !profile["spec"]["delegation"].is_null();
    if world.profiles.iter().any(delegates) {
        return Vec::new();
    }
    let before = world.documents();
    let mut after = before.clone();
    after.iter_mut().for_each(declare);
    let expected = answers(&entail_of(&before));
    let told = answers(&entail_of(&after));
    let names = expected.keys().chain(told.keys());
    let differ = names.filter(|name| expected.get(*name) != told.get(*name));
    let text = |answer: Option<&Vec<String>>| answer.map_or(String::new(), |a| a.join("\n"));
    differ
        .map(|name| {
            let (expected, told) = (text(expected.get(name)), text(told.get(name)));
            format!(
                "seed {}: {name}\n{expected}\nbut of the declared kind\n{told}",
                world.seed
            )
        })
        .collect()
}

/// Makes an HTTPRoute one of a declared kind, which profiles declare, and grants permit what they permit for HTTPRoutes.
pub fn declare(document: &mut Value) {
    let declared = json!([{
        "group": GROUP, "kind": KIND, "like": "HTTPRoute", "generates": true,
    }]);
    match document["kind"].as_str() {
        Some("PolicyProfile") => document["spec"]["routeKinds"] = declared,
        Some("HTTPRoute") => {
            document["apiVersion"] = json!(format!("{GROUP}/v1"));
            document["kind"] = json!(KIND);
        }
        Some("ReferenceGrant") => {
            let from = document["spec"]["from"].as_array_mut().unwrap();
            let routes = from.iter().filter(|from| from["kind"] == "HTTPRoute");
            let mut added: Vec<Value> = routes.cloned().collect();
            for from in &mut added {
                from["group"] = json!(GROUP);
                from["kind"] = json!(KIND);
            }
            from.extend(added);
        }
        _ => {}
    }
}

/// The answers of all kinds on each path, as if the Routes were HTTPRoutes.
fn answers(entail: &Entail) -> BTreeMap<String, Vec<String>> {
    let named = |text: String| {
        let key = format!("group: \"{GROUP}\", kind: \"{KIND}\"");
        text.replace(&key, &format!("group: \"{GATEWAY}\", kind: \"HTTPRoute\""))
            .replace(&format!("{KIND}.{GROUP}"), "HTTPRoute")
    };
    let answers = |path: &String| {
        let resolved = entail.locate(&PathName::parse(path).unwrap()).unwrap();
        let kinds = entail.kinds().iter();
        let told = kinds.filter_map(|kind| {
            let chain = entail.attachment_chain(kind, &resolved)?;
            let (answer, losses) = (entail.answer(kind, &chain), entail.losses(kind, &chain));
            let losses: Vec<String> = losses.iter().map(ToString::to_string).collect();
            Some(named(format!(
                "{}: {answer:?} {losses:?}",
                kind.profile().policy
            )))
        });
        told.collect()
    };
    let paths = paths(entail).into_iter();
    paths
        .map(|path| (named(path.clone()), answers(&path)))
        .collect()
}
