//! From the generator's objects to entail's world, and from a disagreement to a text.

use std::sync::{Arc, LazyLock};

use entail::source::manifests::{KindScopes, Problem, ProblemKind, read_objects};
use entail_core::effective::World as Entail;
use entail_core::model::{Change, GroupKind, Object};
use entail_core::store::{ProfileSources, Store};
use serde_json::{Value, json};

use super::objects::group_of;
use super::profiles::GROUP;
use super::worlds::World;

/// Read once: it takes longer than a world.
pub static SHIPPED: LazyLock<ProfileSources> = LazyLock::new(ProfileSources::shipped);

/// The objects of a document. A policy of the generator without a namespace is of a cluster-scoped kind.
pub fn objects_of(document: &Value) -> Vec<Object> {
    let parsed = read_objects(&document.to_string(), "oracle");
    let is_unread = |problem: &&Problem| problem.kind != ProblemKind::WrongType;
    assert_eq!(parsed.problems.iter().find(is_unread), None);
    let mut objects: Vec<Object> = parsed.objects.into_iter().map(|read| read.object).collect();
    if group_of(document) == GROUP && document["metadata"]["namespace"].is_null() {
        for object in &mut objects {
            let scopes = KindScopes::new([object.key.kind.clone()].into());
            scopes.assign_namespace(object);
        }
    }
    objects
}

/// entail's world of these documents, in this order.
pub fn entail_of(documents: &[Value]) -> Entail {
    world_of(scoped_objects(documents))
}

/// The objects of these documents, in this order.
pub fn scoped_objects(documents: &[Value]) -> Vec<Object> {
    let mut objects: Vec<Object> = documents.iter().flat_map(objects_of).collect();
    let profiles = documents.iter().filter(|d| d["kind"] == "PolicyProfile");
    let cluster = profiles.filter(|d| d["spec"]["scope"] == "Cluster");
    let kind = |profile: &Value| {
        let policy = &profile["spec"]["policy"];
        let part = |name: &str| policy[name].as_str().unwrap_or_default().to_owned();
        GroupKind::new(part("group"), part("kind"))
    };
    let mut scopes = KindScopes::new(cluster.map(kind).collect());
    scopes.update_from_crds(&objects);
    for object in &mut objects {
        scopes.assign_namespace(object);
    }
    objects
}

/// entail's world of objects.
pub fn world_of(objects: Vec<Object>) -> Entail {
    let mut store = Store::default();
    store.apply(Change {
        upserts: objects.into_iter().map(Arc::new).collect(),
        ..Change::default()
    });
    Entail::from_store(store, &SHIPPED)
}

/// Profiles that the generator takes for valid and entail refuses.
pub fn refused_profiles(world: &World) -> Vec<String> {
    let mut store = Store::default();
    for document in world.documents() {
        let parsed = read_objects(&document.to_string(), "oracle");
        let upserts = parsed
            .objects
            .into_iter()
            .map(|read| Arc::new(read.object))
            .collect();
        store.apply(Change {
            upserts,
            ..Change::default()
        });
    }
    let problems = SHIPPED.resolve(&store).problems;
    problems
        .iter()
        .map(|p| format!("seed {}: {p:?}", world.seed))
        .collect()
}

/// A disagreement as a conformance case: what the oracle expects, and what entail says.
pub fn case(world: &World, kind: &str, expect: &Value, entail: &Value) -> String {
    let of_kind = |profile: &&Value| profile["spec"]["policy"]["kind"] == kind;
    let profiles: Vec<_> = world.profiles.iter().filter(of_kind).collect();
    let other = |object: &Value| {
        let name = object["kind"].as_str().unwrap();
        name != kind && name.len() == 2 && name.starts_with('P')
    };
    let objects: Vec<_> = world.objects.iter().filter(|o| !other(o)).collect();
    let lines = |items: &[&Value]| items.iter().map(|i| format!("- {i}\n")).collect::<String>();
    format!(
        "name: oracle/seed-{}\nprofiles:\n{}objects:\n{}expect: {expect}\n# entail says: {entail}\n",
        world.seed,
        lines(&profiles),
        lines(&objects),
    )
}

/// The expectation of an answer, as a case has it.
pub fn expect_answer(kind: &str, path: &str, spec: &Option<Value>, origins: &Value) -> Value {
    json!({"effective": [{
        "path": path, "policies": {kind: spec}, "origins": {kind: origins},
    }]})
}
