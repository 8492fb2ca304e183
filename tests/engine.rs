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
use entail::snapshot::{Publisher, Snapshot, Work};
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
