//! Filters of kinds without a profile, in rules and in backendRefs (specification 2.7).

use std::collections::BTreeSet;

use entail_core::effective::World as Entail;
use entail_core::model::UnknownReason;
use entail_core::topology::ResolvedPath;
use serde_json::{Value, json};

use super::objects::{Objects, key, short};
use super::rng::Rng;
use super::support::entail_of;
use super::trail::trail;
use super::worlds::World;

/// A kind that Envoy Gateway documents as a part of routing, and its controller.
const ROUTING: (&str, &str) = ("gateway.envoyproxy.io", "HTTPRouteFilter");
const CONTROLLER: &str = "gateway.envoyproxy.io/gatewayclass-controller";

const KINDS: [(&str, &str); 3] = [("f.example", "Auth"), ("f.example", "Limit"), ROUTING];

/// Adds filters to the rules and backendRefs of some worlds, without a change to their other objects.
pub fn add(seed: u64, objects: &mut [Value]) {
    let mut rng = Rng::new(seed ^ 0x00F1_17E2);
    if !rng.percent(40) {
        return;
    }
    for object in objects {
        let kind = object["kind"].as_str().unwrap().to_owned();
        if kind == "GatewayClass" && rng.percent(30) {
            object["spec"]["controllerName"] = json!(CONTROLLER);
        }
        if kind != "HTTPRoute" && kind != "GRPCRoute" {
            continue;
        }
        for rule in object["spec"]["rules"].as_array_mut().into_iter().flatten() {
            add_to(&mut rng, 25, rule);
            for backend in rule["backendRefs"].as_array_mut().into_iter().flatten() {
                add_to(&mut rng, 40, backend);
            }
        }
    }
}

fn add_to(rng: &mut Rng, chance: usize, holder: &mut Value) {
    for (group, kind) in KINDS {
        if !rng.percent(chance) {
            continue;
        }
        if holder["filters"].is_null() {
            holder["filters"] = json!([{"type": "RequestHeaderModifier"}]);
        }
        let reference = json!({"group": group, "kind": kind, "name": "f"});
        let filters = holder["filters"].as_array_mut().unwrap();
        filters.push(json!({"type": "ExtensionRef", "extensionRef": reference}));
    }
}

/// (e) The kinds that filters make unknown on every path.
pub fn unknown(world: &World) -> Vec<String> {
    let documents = world.documents();
    let objects = Objects::new(&documents, &|_, _| false);
    let entail = entail_of(&documents);
    let mut wrong = Vec::new();
    entail.topology().visit(&mut |path, resolved| {
        let (expected, told) = (expected(&objects, path), told(&entail, resolved));
        if expected != told {
            wrong.push(format!(
                "seed {}: {path}: {expected:?}, not {told:?}",
                world.seed
            ));
        }
    });
    wrong
}

/// The kinds of the filters on a path, by the documents alone.
fn expected(objects: &Objects, path: &str) -> BTreeSet<String> {
    let trail = trail(objects, path);
    let mut found = BTreeSet::new();
    // Several where rules delegate (1.8).
    let rules = trail.steps.iter().filter(|step| step.level == "RouteRule");
    let rules = rules.map(|step| {
        let route = objects.get(&step.object).unwrap();
        (route, &route.body["spec"]["rules"][step.rule.unwrap()])
    });
    let rules: Vec<_> = rules.collect();
    let Some((route, spec)) = rules.last() else {
        return found;
    };
    let mut holders: Vec<&Value> = rules.iter().map(|(_, rule)| *rule).collect();
    if let Some(backend) = trail.steps.iter().find(|step| step.level == "Backend") {
        let references = spec["backendRefs"].as_array().into_iter().flatten();
        holders.extend(references.filter(|reference| {
            let part = |name: &str| reference[name].as_str();
            let namespace = part("namespace").unwrap_or(&route.namespace);
            let kind = part("kind").unwrap_or("Service");
            let named = key(
                part("group").unwrap_or(""),
                kind,
                namespace,
                part("name").unwrap(),
            );
            named == backend.object
        }));
    }
    let class = trail.class.map(|class| format!("GatewayClass/{class}"));
    let class = class.and_then(|class| objects.get(&class));
    let routes = class.is_some_and(|class| class.body["spec"]["controllerName"] == CONTROLLER);
    for holder in holders {
        for filter in holder["filters"].as_array().into_iter().flatten() {
            let named = &filter["extensionRef"];
            let part = |name: &str| named[name].as_str().unwrap_or_default();
            let kind = (part("group"), part("kind"));
            let ours = KINDS.contains(&kind) && !(routes && kind == ROUTING);
            found.extend(ours.then(|| short(kind.0, kind.1)));
        }
    }
    found
}

fn told(entail: &Entail, resolved: &ResolvedPath) -> BTreeSet<String> {
    let kinds = entail.kinds().iter().filter(|kind| kind.is_unprofiled());
    let unknown = kinds.filter(|kind| {
        let chain = entail.attachment_chain(kind, resolved);
        let answer = chain.map(|chain| entail.answer(kind, &chain));
        let unknown = answer.and_then(|answer| answer.unknown);
        unknown.is_some_and(|unknown| unknown.reason == UnknownReason::FilterUnknown)
    });
    unknown
        .map(|kind| kind.profile().policy.to_string())
        .collect()
}
