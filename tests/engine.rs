//! Work in proportion to what changed, by counts: times are the benches'.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

#[path = "../benches/promises/made.rs"]
#[allow(dead_code, reason = "the bench uses all of it")]
mod made;
#[path = "../benches/world/mod.rs"]
mod world;

use std::sync::Arc;

use entail::model::{Change, GroupKind, Object, PathName};
use entail::resolve::World;
use entail::snapshot::{Publisher, Snapshot, Work};
use entail::source::manifests::read_objects;
use entail::store::{Profiles, Store};
use serde_json::json;

use made::{Made, made, version};

/// What a step did.
fn done(publisher: &mut Publisher, made: &mut Made, object: Object) -> (bool, Work) {
    let before = publisher.work();
    let changed = made.apply(object);
    let differs = publisher.follow(made.store.clone(), &changed);
    let after = publisher.work();
    let work = Work {
        merged: after.merged - before.merged,
        encoded: after.encoded - before.encoded,
        replaced: after.replaced - before.replaced,
        ..after
    };
    (differs, work)
}

fn bytes(snapshot: &Snapshot, name: &str) -> bytes::Bytes {
    let path = PathName::parse(name).unwrap();
    snapshot.reply(snapshot.look_up(&path).unwrap()).result
}

#[test]
fn one_route_policy_among_ten_thousand_routes_merges_its_own_stacks() {
    let mut made = made("many");
    let mut publisher = made.publisher();
    let first = publisher.snapshot(version());
    assert!(first.paths() > 100_000, "{}", first.paths());
    let (object, key) = made.edited("HTTPRoute", 7);
    let route = object.body["spec"]["targetRefs"][0]["name"].clone();
    let below = format!(
        "/routes/HTTPRoute/{}/{}",
        key.namespace,
        route.as_str().unwrap()
    );
    let (differs, work) = done(&mut publisher, &mut made, object.clone());
    assert!(differs);
    // The route's own stack, and those of its rules and backends that have policies, too.
    assert!((1..=8).contains(&work.merged), "{work:?}");
    assert!((1..=16).contains(&work.replaced), "{work:?}");
    let second = publisher.snapshot(version());
    let (mut same, mut others) = (0, 0);
    for name in made::names(&first, usize::MAX) {
        let (before, after) = (bytes(&first, &name), bytes(&second, &name));
        if before.as_ptr() == after.as_ptr() {
            same += 1;
        } else {
            others += 1;
            assert!(name.contains(&below), "{name}");
        }
    }
    assert!(others >= 1 && same > 100 * others, "{same} {others}");
    // The same again is no change.
    let (differs, work) = done(&mut publisher, &mut made, object);
    assert_eq!((differs, work.merged, work.encoded), (false, 0, 0));
}

#[test]
fn a_status_merges_nothing() {
    let mut made = made("1k");
    let mut publisher = made.publisher();
    let gateway = |kind: &str| GroupKind::new("gateway.networking.k8s.io", kind);
    let policy = made.edited("HTTPRoute", 1).1.kind;
    for kind in [gateway("HTTPRoute"), gateway("Gateway"), policy] {
        let (_, entry) = made.store.of_kind(&kind).next().unwrap();
        let mut object = Object::clone(&entry.object);
        object.body["status"] = json!({"conditions": [{"type": "Accepted", "status": "True"}]});
        object.body["metadata"]["resourceVersion"] = json!("77");
        let (differs, work) = done(&mut publisher, &mut made, object);
        assert_eq!(
            (differs, work.merged, work.encoded),
            (false, 0, 0),
            "{kind}"
        );
    }
}

#[test]
fn what_moves_paths_merges_only_new_stacks() {
    let mut made = made("1k");
    let mut publisher = made.publisher();
    let kind = GroupKind::new("gateway.networking.k8s.io", "HTTPRoute");
    let (_, entry) = made.store.of_kind(&kind).next().unwrap();
    let mut object = Object::clone(&entry.object);
    // Another copy of a route in its namespace: whole stacks but its own are known.
    object.key.name = "another".into();
    object.body["metadata"]["name"] = json!("another");
    let before = publisher.work();
    let (differs, work) = done(&mut publisher, &mut made, object.clone());
    assert!(differs);
    assert!(work.merged * 20 < before.merged, "{work:?} of {before:?}");
    let changed = made.store.apply(Change {
        deletes: vec![object.key],
        ..Change::default()
    });
    publisher.follow(made.store.clone(), &changed);
    assert_eq!(publisher.work().merged - before.merged, work.merged);
}

#[test]
fn nothing_is_left_of_what_is_gone() {
    let mut made = made("1k");
    let mut publisher = made.publisher();
    assert!(publisher.work().parts > 100);
    let kinds: Vec<GroupKind> = made.store.kinds().cloned().collect();
    let deletes = kinds
        .iter()
        .flat_map(|kind| made.store.of_kind(kind))
        .map(|(_, entry)| entry.object.key.clone());
    let change = Change {
        deletes: deletes.collect(),
        ..Change::default()
    };
    let changed = made.store.apply(change);
    publisher.follow(made.store.clone(), &changed);
    let work = publisher.work();
    assert_eq!((work.parts, work.bodies), (0, 0));
    let snapshot = Arc::new(publisher.snapshot(version()));
    assert_eq!(snapshot.paths(), 0);
}

/// Objects of documents.
fn objects(documents: &serde_json::Value) -> Vec<Arc<Object>> {
    let documents = documents.as_array().unwrap().iter();
    let read = |document: &serde_json::Value| {
        let parsed = read_objects(&document.to_string(), "test").unwrap();
        parsed.objects.into_iter().map(|read| Arc::new(read.object))
    };
    documents.flat_map(read).collect()
}

#[test]
fn a_policy_for_everybody_joins_one_for_its_own_clients() {
    let policy = |namespace: &str, name: &str| {
        json!({"apiVersion": "example.com/v1", "kind": "P",
               "metadata": {"name": name, "namespace": namespace},
               "spec": {"targetRefs": [{"kind": "Service", "name": "svc", "namespace": "prod"}], name: 1}})
    };
    let first = json!([
        {"apiVersion": "entail.dev/v1alpha1", "kind": "PolicyProfile", "metadata": {"name": "ps"},
         "spec": {"policy": {"group": "example.com", "kind": "P"}, "crossNamespace": "Clients",
                  "strategies": ["PatchDefaults"], "effectiveTarget": "Every"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc", "namespace": "prod"},
         "spec": {"ports": [{"port": 80}]}},
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
         "metadata": {"name": "r", "namespace": "prod"},
         "spec": {"parentRefs": [{"group": "", "kind": "Service", "name": "svc"}], "rules": [{}]}},
        policy("team", "mine"),
    ]);
    let apply = |store: &mut Store, documents: &serde_json::Value| {
        store.apply(Change {
            upserts: objects(documents),
            ..Change::default()
        })
    };
    let mut store = Store::default();
    apply(&mut store, &first);
    let profiles = Profiles::shipped();
    let mut publisher = Publisher::new(World::full(store.clone(), &profiles));
    let changed = apply(&mut store, &json!([policy("prod", "theirs")]));
    assert!(publisher.follow(store.clone(), &changed));
    let ours = publisher.snapshot(version());
    let full = Snapshot::build(World::full(store, &profiles), version());
    for client in ["*", "team"] {
        let name = format!("mesh/{client}/services/prod/svc/routes/HTTPRoute/prod/r");
        assert_eq!(bytes(&ours, &name), bytes(&full, &name), "{name}");
        assert!(
            bytes(&ours, &name).windows(6).any(|w| w == b"theirs"),
            "{name}"
        );
    }
}
