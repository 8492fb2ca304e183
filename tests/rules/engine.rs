//! Tests that an update does work in proportion to the change. They count work; the benches measure
//! time.

#[path = "../../benches/promises/bench_world.rs"]
#[allow(dead_code, reason = "the bench uses all of it")]
pub mod bench_world;

use std::collections::BTreeMap;
use std::sync::Arc;

use entail::snapshot::{BuildStats, Snapshot, SnapshotBuilder};
use entail::source::manifests::read_objects;
use entail_core::effective::World;
use entail_core::model::{Change, GroupKind, Object, ObjectKey, PathName};
use entail_core::store::{ProfileSources, Store};
use serde_json::{Value, json};

use bench_world::{BenchWorld, generate, unused_profile, version};

/// Applies an object. Returns whether the snapshot changes, and the work that was done.
fn apply_object(
    snapshot_builder: &mut SnapshotBuilder,
    made: &mut BenchWorld,
    object: Object,
) -> (bool, BuildStats) {
    let before = snapshot_builder.stats();
    let changed = made.apply(object);
    let differs = snapshot_builder.update(made.store.clone(), &changed);
    let after = snapshot_builder.stats();
    let work = BuildStats {
        merged: after.merged - before.merged,
        encoded: after.encoded - before.encoded,
        replaced: after.replaced - before.replaced,
        rebuilds: after.rebuilds - before.rebuilds,
        ..after
    };
    (differs, work)
}

pub fn bytes(snapshot: &Snapshot, name: &str) -> bytes::Bytes {
    let path = PathName::parse(name).unwrap();
    snapshot.reply(snapshot.look_up(&path).unwrap()).result
}

#[test]
fn one_route_policy_among_ten_thousand_routes_merges_only_answers_of_its_route() {
    let mut made = generate("many");
    let mut snapshot_builder = made.snapshot_builder();
    let first = snapshot_builder.snapshot(version());
    assert!(first.paths() > 100_000, "{}", first.paths());
    let (object, key) = made.edited("HTTPRoute", 7);
    let route = object.body.value()["spec"]["targetRefs"][0]["name"].clone();
    let below = format!(
        "/routes/HTTPRoute/{}/{}",
        key.namespace,
        route.as_str().unwrap()
    );
    let (differs, work) = apply_object(&mut snapshot_builder, &mut made, object.clone());
    assert!(differs);
    // The answers of the route, and of its rules and backends with policies, are merged.
    assert!((1..=8).contains(&work.merged), "{work:?}");
    assert!((1..=16).contains(&work.replaced), "{work:?}");
    let second = snapshot_builder.snapshot(version());
    let (mut same, mut others) = (0, 0);
    for name in bench_world::names(&first, usize::MAX) {
        let (before, after) = (bytes(&first, &name), bytes(&second, &name));
        if before.as_ptr() == after.as_ptr() {
            same += 1;
        } else {
            others += 1;
            assert!(name.contains(&below), "{name}");
        }
    }
    assert!(others >= 1 && same > 100 * others, "{same} {others}");
    // Applying the same object again changes nothing.
    let (differs, work) = apply_object(&mut snapshot_builder, &mut made, object);
    assert_eq!((differs, work.merged, work.encoded), (false, 0, 0));
}

#[test]
fn changes_of_a_status_merge_nothing() {
    let mut made = generate("1k");
    let mut snapshot_builder = made.snapshot_builder();
    let gateway = |kind: &str| GroupKind::new("gateway.networking.k8s.io", kind);
    let policy = made.edited("HTTPRoute", 1).1.kind;
    for kind in [gateway("HTTPRoute"), gateway("Gateway"), policy] {
        let (_, entry) = made.store.of_kind(&kind).next().unwrap();
        let mut object = Object::clone(&entry.object);
        object.body.edit(|body| {
            body["status"] = json!({"conditions": [{"type": "Accepted", "status": "True"}]});
            body["metadata"]["resourceVersion"] = json!("77");
        });
        let (differs, work) = apply_object(&mut snapshot_builder, &mut made, object);
        assert_eq!(
            (differs, work.merged, work.encoded),
            (false, 0, 0),
            "{kind}"
        );
    }
}

/// A change of an object.
type Edit = fn(&mut Object);

#[test]
fn changes_that_no_answer_depends_on_merge_nothing() {
    let mut made = generate("1k");
    let mut snapshot_builder = made.snapshot_builder();
    let gateway = |kind: &str| GroupKind::new("gateway.networking.k8s.io", kind);
    let edit = |made: &BenchWorld, kind: &GroupKind, edit: Edit| {
        let (_, entry) = made.store.of_kind(kind).next().unwrap();
        let mut object = Object::clone(&entry.object);
        edit(&mut object);
        object
    };
    let note = |object: &mut Object| {
        let applied = "kubectl.kubernetes.io/last-applied-configuration";
        let annotations = &mut object.annotations;
        annotations.insert(applied, "{}");
    };
    let route = |object: &mut Object| {
        object.body.edit(|body| {
            body["spec"]["rules"][0]["matches"] = json!([{"path": {"value": "/new"}}]);
        });
    };
    let service = |object: &mut Object| {
        object
            .body
            .edit(|body| body["spec"]["selector"] = json!({"app": "new"}));
    };
    let without_effect: [(GroupKind, Edit); 3] = [
        (gateway("HTTPRoute"), route),
        (gateway("Gateway"), note),
        (GroupKind::new("", "Service"), service),
    ];
    for (kind, change) in without_effect {
        let object = edit(&made, &kind, change);
        let (differs, work) = apply_object(&mut snapshot_builder, &mut made, object);
        let effect = (differs, work.merged, work.rebuilds);
        assert_eq!(effect, (false, 0, 0), "{kind}");
    }
    // The snapshot contains the new objects.
    let snapshot = snapshot_builder.snapshot(version());
    let object = edit(&made, &gateway("HTTPRoute"), |_| ());
    let stored = snapshot.world().store().get(&object.key).unwrap();
    assert_eq!(stored.object.body, object.body);
    // A change of paths causes no rebuild.
    let listener = |object: &mut Object| {
        let listener = json!({"name": "another", "port": 9999, "protocol": "HTTP"});
        object.body.edit(|body| {
            let listeners = body["spec"]["listeners"].as_array_mut().unwrap();
            listeners.push(listener);
        });
    };
    let rule = |object: &mut Object| {
        object.body.edit(|body| {
            body["spec"]["rules"].as_array_mut().unwrap().pop();
        });
    };
    let with_effect: [(GroupKind, Edit); 2] =
        [(gateway("HTTPRoute"), rule), (gateway("Gateway"), listener)];
    for (kind, change) in with_effect {
        let object = edit(&made, &kind, change);
        let (differs, work) = apply_object(&mut snapshot_builder, &mut made, object);
        assert_eq!((differs, work.rebuilds), (true, 0), "{kind}");
        // The policies of the Gateway and of its other listeners are attached again, and say what they said.
        assert!(kind != GroupKind::gateway() || work.merged == 0);
    }
}

/// A mesh path needs no ReferenceGrant, so that its backend can be in a namespace in which nothing else is. Once this
/// exists, it is nearer than the route for a kind that targets both and does not merge.
#[test]
fn a_namespace_on_paths_that_stay_is_followed() {
    let object = |version: &str, kind: &str, (namespace, name): (&str, &str), spec: Value| {
        json!({"apiVersion": version, "kind": kind, "spec": spec,
               "metadata": {"name": name, "namespace": namespace}})
    };
    let kind = |group: &str, kind: &str| json!({"group": group, "kind": kind});
    let group = "gateway.networking.k8s.io";
    let targets = json!([kind("", "Namespace"), kind(group, "HTTPRoute")]);
    let profile = json!({"preset": "direct", "policy": kind("f.io", "Foo"), "targets": targets});
    let profile = object(
        "entail.dev/v1alpha1",
        "PolicyProfile",
        ("", "foos.f.io"),
        profile,
    );
    let backend = json!({"group": "e.io", "kind": "External", "namespace": "b", "name": "x"});
    let route = json!({
        "parentRefs": [{"group": "", "kind": "Service", "name": "s"}],
        "rules": [{"backendRefs": [backend]}],
    });
    let target = json!({"group": group, "kind": "HTTPRoute", "name": "r"});
    let mut store = Store::default();
    apply(
        &mut store,
        &json!([
            profile,
            object(
                "v1",
                "Service",
                ("a", "s"),
                json!({"ports": [{"port": 80}]})
            ),
            object(&format!("{group}/v1"), "HTTPRoute", ("a", "r"), route),
            object(
                "f.io/v1",
                "Foo",
                ("a", "p"),
                json!({"targetRef": target, "limit": 1})
            ),
        ]),
    );
    let profiles = ProfileSources::shipped();
    let world = World::from_store(store.clone(), &profiles);
    assert!(world.problems().is_empty(), "{:?}", world.problems());
    let mut snapshot_builder = SnapshotBuilder::new(world);
    let first = snapshot_builder.snapshot(version());
    let config = object("v1", "Service", ("b", "c"), json!({}));
    let changed = apply(&mut store, &json!([config]));
    snapshot_builder.update(store.clone(), &changed);
    let full = || Snapshot::build(World::from_store(store.clone(), &profiles), version());
    let ours = snapshot_builder.snapshot(version());
    assert_same(&ours, &full(), usize::MAX);
    let name = "mesh/*/services/a/s/routes/HTTPRoute/a/r/rules/#0/backends/External.e.io/b/x";
    assert_ne!(bytes(&ours, name), bytes(&first, name));
    let deletes: Vec<ObjectKey> = changed.into_keys().collect();
    let changed = store.apply(Change {
        deletes,
        ..Change::default()
    });
    snapshot_builder.update(store.clone(), &changed);
    let ours = snapshot_builder.snapshot(version());
    assert_eq!(bytes(&ours, name), bytes(&first, name));
    assert_eq!(snapshot_builder.stats().rebuilds, 0);
}

/// Also if changes without effect follow that snapshot.
#[test]
fn a_rebuild_merges_only_answers_that_the_last_snapshot_does_not_have() {
    let mut made = generate("1k");
    let mut snapshot_builder = made.snapshot_builder();
    let all = snapshot_builder.stats().merged;
    let gateway_api = |kind: &str| GroupKind::new("gateway.networking.k8s.io", kind);
    for number in 0..3 {
        let _published = snapshot_builder.snapshot(version());
        let mut route = nth(&made, &gateway_api("HTTPRoute"), 0);
        route.body.edit(|body| {
            let path = format!("/new{number}");
            body["spec"]["rules"][0]["matches"] = json!([{"path": {"value": path}}]);
        });
        let (differs, _) = apply_object(&mut snapshot_builder, &mut made, route);
        assert!(!differs);
        let profile = unused_profile(number);
        let (differs, work) = apply_object(&mut snapshot_builder, &mut made, profile);
        assert_eq!((differs, work.rebuilds), (true, 1));
        assert!(work.merged * 20 < all, "{work:?} of {all}");
    }
}

/// The object of a kind with a number in its order.
fn nth(made: &BenchWorld, kind: &GroupKind, number: usize) -> Object {
    let mut objects = made.store.of_kind(kind);
    Object::clone(&objects.nth(number).unwrap().1.object)
}

/// Gives a route another first backend port, no rule more or less, or a rule more.
fn edit_rules(route: &mut Object, number: usize) {
    route.body.edit(|body| {
        let rules = body["spec"]["rules"].as_array_mut().unwrap();
        match (number % 3, rules.len()) {
            (0, 2..) => {
                rules.pop();
            }
            (1, _) => rules.push(json!({"name": format!("added-{number}")})),
            _ => rules[0]["name"] = json!(format!("named-{number}")),
        }
    });
}

#[test]
fn one_route_among_ten_thousand_changes_only_its_own_paths() {
    let mut made = generate("many");
    let mut snapshot_builder = made.snapshot_builder();
    let routes = GroupKind::new("gateway.networking.k8s.io", "HTTPRoute");
    let size = |builder: &mut SnapshotBuilder| {
        let snapshot = builder.snapshot(version());
        let engine = snapshot.engine();
        (engine.trie().len(), engine.automaton().len())
    };
    for number in [3, 5_000, 9_999] {
        let mut edited = nth(&made, &routes, number);
        edit_rules(&mut edited, number);
        let mut added = edited.clone();
        added.key.name = format!("added-{number}").into();
        let name = added.key.name.to_string();
        added
            .body
            .edit(|body| body["metadata"]["name"] = json!(name));
        let deleted = added.key.clone();
        for change in [
            (vec![Arc::new(edited)], Vec::new()),
            (vec![Arc::new(added)], Vec::new()),
            (Vec::new(), vec![deleted]),
        ] {
            let (before, nodes) = (snapshot_builder.stats(), size(&mut snapshot_builder));
            let changed = made.store.apply(Change {
                upserts: change.0,
                deletes: change.1,
                ..Change::default()
            });
            assert!(snapshot_builder.update(made.store.clone(), &changed));
            let (after, now) = (snapshot_builder.stats(), size(&mut snapshot_builder));
            assert_eq!(after.rebuilds, before.rebuilds);
            let merged = after.merged - before.merged;
            let replaced = after.replaced - before.replaced;
            assert!(merged <= 20 && replaced <= 40, "{merged} {replaced}");
            let (nodes, states) = (now.0 - nodes.0, now.1 - nodes.1);
            assert!(nodes <= 60 && states <= 40, "{nodes} {states}");
        }
    }
    let ours = snapshot_builder.snapshot(version());
    let full = made.snapshot_builder().snapshot(version());
    assert_same(&ours, &full, usize::MAX);
}

/// Compares the answers and counts of two snapshots.
/// Asserts that two snapshots have the same paths and answers; of so many paths.
pub fn assert_same(ours: &Snapshot, full: &Snapshot, names: usize) {
    assert_eq!(ours.paths(), full.paths());
    assert_eq!(ours.distinct_answers(), full.distinct_answers());
    let all = bench_world::names(full, names);
    assert!(!all.is_empty());
    for name in all {
        assert_eq!(bytes(ours, &name), bytes(full, &name), "{name}");
    }
}

#[test]
fn twenty_thousand_edits_of_routes_leave_little_behind() {
    let mut made = generate("many");
    let mut snapshot_builder = made.snapshot_builder();
    let routes = GroupKind::new("gateway.networking.k8s.io", "HTTPRoute");
    let trie = |snapshot: &Snapshot| {
        let trie = snapshot.engine().trie();
        (trie.len(), trie.unreachable())
    };
    let first = trie(&snapshot_builder.snapshot(version()));
    assert_eq!(first.1, 0);
    let all: Vec<Arc<Object>> = {
        let routes = made.store.of_kind(&routes);
        routes.map(|(_, entry)| Arc::clone(&entry.object)).collect()
    };
    let mut most = 0;
    for number in 0..20_000 {
        let original = &all[number * 7 % all.len()];
        let mut change = Change::default();
        let mut route = Object::clone(original);
        match number % 5 {
            0 => change.deletes.push(route.key.clone()),
            _ => {
                edit_rules(&mut route, number);
                change.upserts.push(Arc::new(route));
            }
        }
        let changed = made.store.apply(change);
        snapshot_builder.update(made.store.clone(), &changed);
        if number % 500 == 0 {
            most = most.max(trie(&snapshot_builder.snapshot(version())).0);
        }
    }
    // What is left behind is at most half of what is in use, and some thousands.
    assert!(most < first.0 * 2, "{most} trie nodes of {first:?}");
    let rebuilds = snapshot_builder.stats().rebuilds;
    assert!((1..40).contains(&rebuilds), "{rebuilds}");
    let full = made.snapshot_builder().snapshot(version());
    assert_same(&snapshot_builder.snapshot(version()), &full, 20_000);
}

#[test]
fn changes_of_paths_merge_only_new_answers() {
    let mut made = generate("1k");
    let mut snapshot_builder = made.snapshot_builder();
    let kind = GroupKind::new("gateway.networking.k8s.io", "HTTPRoute");
    let (_, entry) = made.store.of_kind(&kind).next().unwrap();
    let mut object = Object::clone(&entry.object);
    // A copy of a route in its namespace: all answers but its own are reused.
    object.key.name = "another".into();
    object
        .body
        .edit(|body| body["metadata"]["name"] = json!("another"));
    let before = snapshot_builder.stats();
    let (differs, work) = apply_object(&mut snapshot_builder, &mut made, object.clone());
    assert!(differs);
    assert!(work.merged * 20 < before.merged, "{work:?} of {before:?}");
    let changed = made.store.apply(Change {
        deletes: vec![object.key],
        ..Change::default()
    });
    snapshot_builder.update(made.store.clone(), &changed);
    assert_eq!(snapshot_builder.stats().merged - before.merged, work.merged);
}

#[test]
fn a_rebuild_shares_the_policies_that_did_not_change() {
    let mut made = generate("1k");
    let mut snapshot_builder = made.snapshot_builder();
    // Keeps the policies before the change in memory, so that their addresses are not used again.
    let _before = snapshot_builder.snapshot(version());
    let addresses = |world: &World| -> BTreeMap<ObjectKey, usize> {
        let policies = world.kinds().iter().flat_map(|kind| kind.policies());
        let addresses = policies.map(|(_, policy)| {
            let address = std::ptr::from_ref(policy).addr();
            (policy.key.clone(), address)
        });
        addresses.collect()
    };
    let before = addresses(snapshot_builder.world());
    let (policy, edited) = made.edited("HTTPRoute", 7);
    let changed = made.store.apply(Change {
        upserts: vec![Arc::new(unused_profile(0)), Arc::new(policy)],
        ..Change::default()
    });
    snapshot_builder.update(made.store.clone(), &changed);
    assert_eq!(snapshot_builder.stats().rebuilds, 1);
    let after = addresses(snapshot_builder.world());
    assert!(after.len() > 100 && before.keys().eq(after.keys()));
    let mut differs = after.keys().filter(|key| before[*key] != after[*key]);
    assert_eq!((differs.next(), differs.next()), (Some(&edited), None));
}

#[test]
fn deleted_objects_leave_no_data() {
    let mut made = generate("1k");
    let mut snapshot_builder = made.snapshot_builder();
    assert!(snapshot_builder.stats().parts > 100);
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
    snapshot_builder.update(made.store.clone(), &changed);
    let work = snapshot_builder.stats();
    assert_eq!((work.parts, work.bodies), (0, 0));
    let snapshot = Arc::new(snapshot_builder.snapshot(version()));
    assert_eq!(snapshot.paths(), 0);
}

/// Reads the objects of documents.
pub fn objects(documents: &serde_json::Value) -> Vec<Arc<Object>> {
    let documents = documents.as_array().unwrap().iter();
    let read = |document: &serde_json::Value| {
        let parsed = read_objects(&document.to_string(), "test");
        parsed.objects.into_iter().map(|read| Arc::new(read.object))
    };
    documents.flat_map(read).collect()
}

/// Applies documents to a store.
pub fn apply(store: &mut Store, documents: &serde_json::Value) -> entail_core::store::ChangeSet {
    store.apply(Change {
        upserts: objects(documents),
        ..Change::default()
    })
}

#[test]
fn own_fields_and_strategies_of_targets_are_followed() {
    let group = "gateway.networking.k8s.io";
    let object = |kind: &str, name: &str, annotation: &str, spec: serde_json::Value| {
        json!({"apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec,
               "metadata": {"name": name, "namespace": "a",
                            "annotations": {"example.com/strategy": annotation}}})
    };
    let gateway = |annotation: &str| {
        let listeners = json!([{"name": "l", "port": 80, "protocol": "HTTP"}]);
        let spec = json!({"gatewayClassName": "c", "listeners": listeners});
        object("Gateway", "g", annotation, spec)
    };
    let route = |own: u32| {
        let spec = json!({"parentRefs": [{"name": "g"}], "own": own, "rules": [{}]});
        object("HTTPRoute", "r", "", spec)
    };
    let policy = |kind: &str, name: &str, rules: serde_json::Value| {
        let target = json!({"group": group, "kind": kind, "name": name});
        let mut spec = json!({"targetRef": target});
        spec.as_object_mut()
            .unwrap()
            .extend(rules.as_object().unwrap().clone());
        json!({"apiVersion": "example.com/v1", "kind": "P", "spec": spec,
               "metadata": {"name": name, "namespace": "a"}})
    };
    let profile = json!({"apiVersion": "entail.dev/v1alpha1", "kind": "PolicyProfile",
        "metadata": {"name": "ps.example.com"},
        "spec": {"policy": {"group": "example.com", "kind": "P"},
                 "strategies": ["PatchDefaults", "PatchOverrides"],
                 "strategy": {"annotation": "example.com/strategy", "default": "PatchDefaults",
                              "values": {"low": "PatchDefaults", "high": "PatchOverrides"}},
                 "effectiveTarget": "Route",
                 "ownFields": [{"object": "spec.own", "policy": "own"}]}});
    let mut store = Store::default();
    apply(
        &mut store,
        &json!([
            profile,
            policy("Gateway", "g", json!({"x": 1})),
            policy("HTTPRoute", "r", json!({"x": 2})),
            gateway("low"),
            route(1),
        ]),
    );
    let profiles = ProfileSources::shipped();
    let world = World::from_store(store.clone(), &profiles);
    assert!(world.problems().is_empty(), "{:?}", world.problems());
    let mut snapshot_builder = SnapshotBuilder::new(world);
    let name = "gateways/a/g/listeners/l/routes/HTTPRoute/a/r";
    let mut before = bytes(&snapshot_builder.snapshot(version()), name);
    for edited in [route(2), gateway("high"), gateway("low")] {
        let changed = apply(&mut store, &json!([edited]));
        assert!(snapshot_builder.update(store.clone(), &changed), "{edited}");
        let updated = bytes(&snapshot_builder.snapshot(version()), name);
        let full = Snapshot::build(World::from_store(store.clone(), &profiles), version());
        assert_eq!(updated, bytes(&full, name), "{edited}");
        assert_ne!(updated, before, "{edited}");
        before = updated;
    }
}

/// A reference of a policy.
pub fn target_of(kind: &str, name: &str, section: Option<&str>) -> Value {
    json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": name, "sectionName": section})
}

/// A policy of Kuadrant on a Gateway.
fn auth(gateway: &str) -> Value {
    json!({"apiVersion": "kuadrant.io/v1", "kind": "AuthPolicy",
        "metadata": {"name": "deny", "namespace": "a"},
        "spec": {"targetRef": target_of("Gateway", gateway, None),
                 "rules": {"authorization": {"deny": {"opa": {"rego": "allow = false"}}}}}})
}

/// A policy of Envoy Gateway, merged or not, with a module or without.
fn extension(target: &Value, merging: Option<&str>, wasm: bool) -> Value {
    let mut spec = json!({"targetRefs": [target], "lua": [{"type": "Inline", "inline": "x"}]});
    if let Some(merging) = merging {
        spec["mergeType"] = json!(merging);
    }
    if wasm {
        spec["wasm"] = json!([{"name": "w"}]);
    }
    json!({"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "EnvoyExtensionPolicy",
           "metadata": {"name": "e", "namespace": "a"}, "spec": spec})
}

/// The Routes `r` and `other` of a Gateway `g`, which has a policy of Kuadrant.
fn two_routes_of_envoy_gateway() -> Value {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "spec": spec,
               "metadata": {"name": name, "namespace": "a"}})
    };
    let class = "gateway.envoyproxy.io/gatewayclass-controller";
    let listeners = json!([{"name": "l", "port": 80, "protocol": "HTTP"}]);
    let route = json!({"parentRefs": [{"name": "g"}], "rules": [{}]});
    json!([
        object("GatewayClass", "c", json!({"controllerName": class})),
        object(
            "Gateway",
            "g",
            json!({"gatewayClassName": "c", "listeners": listeners}),
        ),
        object("HTTPRoute", "r", route.clone()),
        object("HTTPRoute", "other", route),
        auth("g"),
    ])
}

#[test]
fn policies_that_take_the_place_of_what_enforces_others_are_followed() {
    let mut store = Store::default();
    apply(&mut store, &two_routes_of_envoy_gateway());
    let profiles = ProfileSources::shipped();
    let mut snapshot_builder = SnapshotBuilder::new(World::from_store(store.clone(), &profiles));
    let mut follow = |edited: Value, acts: [bool; 2]| {
        let changed = apply(&mut store, &json!([edited]));
        snapshot_builder.update(store.clone(), &changed);
        let updated = snapshot_builder.snapshot(version());
        let full = Snapshot::build(World::from_store(store.clone(), &profiles), version());
        for (route, acts) in ["r", "other"].iter().zip(acts) {
            let name = format!("gateways/a/g/listeners/l/routes/HTTPRoute/a/{route}/rules/#0");
            let found = bytes(&updated, &name);
            assert_eq!(found, bytes(&full, &name), "{route}: {edited}");
            let is_there = String::from_utf8_lossy(&found).contains("allow = false");
            assert_eq!(is_there, acts, "{route}: {edited}");
        }
    };
    let (of_route, of_listener, of_gateway) = (
        target_of("HTTPRoute", "r", None),
        target_of("Gateway", "g", Some("l")),
        target_of("Gateway", "g", None),
    );
    // The target of the other policy, whether it is merged and has `wasm`, and on which routes the AuthPolicy acts.
    for (target, merging, wasm, acts) in [
        (&of_route, None, false, [false, true]),
        (&of_route, Some("StrategicMerge"), false, [true, true]),
        (&of_route, Some("StrategicMerge"), true, [false, true]),
        (&of_route, Some("JSONMerge"), false, [true, true]),
        (&of_listener, None, false, [false, false]),
        (&of_gateway, None, false, [true, true]),
    ] {
        follow(extension(target, merging, wasm), acts);
    }
    // Also while no policy of the kind is attached.
    for (edited, acts) in [
        (extension(&of_listener, None, false), [false, false]),
        (auth("nowhere"), [false, false]),
        (extension(&of_gateway, None, false), [false, false]),
        (auth("g"), [true, true]),
        (auth("nowhere"), [false, false]),
        (extension(&of_route, None, false), [false, false]),
        (auth("g"), [false, true]),
    ] {
        follow(edited, acts);
    }
}

/// A Gateway `g` with a listener, and a profile of the kind P, which Routes and Gateways can be targets of.
fn small_world() -> Value {
    let listeners = json!([{"name": "l", "port": 80, "protocol": "HTTP"}]);
    json!([
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "g", "namespace": "a"},
         "spec": {"gatewayClassName": "c", "listeners": listeners}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "a"},
         "spec": {"ports": [{"port": 80}]}},
        {"apiVersion": "entail.dev/v1alpha1", "kind": "PolicyProfile", "metadata": {"name": "ps.example.com"},
         "spec": {"policy": {"group": "example.com", "kind": "P"}, "effectiveTarget": "Backend"}},
    ])
}

fn small_route(name: &str, gateway: &str, backends: &[Value]) -> Value {
    json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name, "namespace": "a"},
           "spec": {"parentRefs": [{"name": gateway}], "rules": [{"backendRefs": backends}]}})
}

fn small_policy(name: &str, kind: &str, target: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "P", "metadata": {"name": name, "namespace": "a"},
           "spec": {"targetRef": {"group": "gateway.networking.k8s.io", "kind": kind, "name": target}, "x": name}})
}

#[test]
fn a_gateway_that_only_a_backend_ref_names_is_a_target_while_it_is_named() {
    let service = json!({"name": "s", "port": 80});
    let ghost = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "ghost"});
    let mut store = Store::default();
    apply(&mut store, &small_world());
    apply(
        &mut store,
        &json!([
            small_policy("p", "Gateway", "ghost"),
            small_route("r", "g", std::slice::from_ref(&service))
        ]),
    );
    let profiles = ProfileSources::shipped();
    let mut followed = SnapshotBuilder::new(World::from_store(store.clone(), &profiles));
    for backends in [vec![service.clone(), ghost], vec![service]] {
        let before = followed.outcomes();
        let changed = apply(&mut store, &json!([small_route("r", "g", &backends)]));
        followed.update(store.clone(), &changed);
        let fresh = SnapshotBuilder::new(World::from_store(store.clone(), &profiles));
        assert_eq!(followed.outcomes(), fresh.outcomes());
        assert_ne!(followed.outcomes(), before);
    }
    assert_eq!(followed.stats().rebuilds, 0);
}

#[test]
fn routes_that_come_and_go_with_their_policies_leave_no_answers() {
    let service = json!({"name": "s", "port": 80});
    let mut store = Store::default();
    apply(&mut store, &small_world());
    apply(
        &mut store,
        &json!([
            small_route("stays", "g", std::slice::from_ref(&service)),
            small_policy("stays", "HTTPRoute", "stays")
        ]),
    );
    let profiles = ProfileSources::shipped();
    let mut followed = SnapshotBuilder::new(World::from_store(store.clone(), &profiles));
    let first = followed.stats();
    for number in 0..50 {
        let name = format!("preview-{number}");
        let come = json!([
            small_route(&name, "g", std::slice::from_ref(&service)),
            small_policy(&name, "HTTPRoute", &name)
        ]);
        let changed = apply(&mut store, &come);
        followed.update(store.clone(), &changed);
        assert!(followed.stats().parts > first.parts);
        let deletes = objects(&come)
            .iter()
            .map(|object| object.key.clone())
            .collect();
        let changed = store.apply(Change {
            deletes,
            ..Change::default()
        });
        followed.update(store.clone(), &changed);
    }
    let last = followed.stats();
    assert_eq!(
        (last.parts, last.bodies, last.rebuilds),
        (first.parts, first.bodies, 0)
    );
}

#[test]
fn nodes_that_only_detached_routes_named_are_dropped_in_the_end() {
    let backend = |name: &str| json!({"name": name, "port": 80});
    let mut store = Store::default();
    apply(&mut store, &small_world());
    apply(
        &mut store,
        &json!([small_route("r", "nothing", &[backend("one")])]),
    );
    let profiles = ProfileSources::shipped();
    let mut followed = SnapshotBuilder::new(World::from_store(store.clone(), &profiles));
    for number in 0..5_000 {
        let backends = [backend(&format!("b-{}", number % 2))];
        let changed = apply(&mut store, &json!([small_route("r", "nothing", &backends)]));
        followed.update(store.clone(), &changed);
    }
    let nodes = followed.world().topology().len();
    assert!(nodes < 10_000, "{nodes} nodes");
    assert!(
        (1..=3).contains(&followed.stats().rebuilds),
        "{:?}",
        followed.stats()
    );
}

fn config(name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "a"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// Policies on two rules, of which one names a ConfigMap that is missing.
fn policies_with_references() -> Value {
    let policy = |rule: &str, name: &str| {
        let group = "gateway.networking.k8s.io";
        let target = json!({"group": group, "kind": "HTTPRoute", "name": "r", "sectionName": rule});
        json!({"apiVersion": "example.com/v1", "kind": "P",
               "metadata": {"name": format!("p-{rule}"), "namespace": "a"},
               "spec": {"targetRefs": [target], "config": {"name": name}}})
    };
    json!([
        {"apiVersion": "entail.dev/v1alpha1", "kind": "PolicyProfile", "metadata": {"name": "ps"},
         "spec": {"policy": {"group": "example.com", "kind": "P"}, "strategies": ["AtomicDefaults"],
                  "effectiveTarget": "RouteRule",
                  "references": [{"path": "config", "kind": "ConfigMap"}]}},
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
         "metadata": {"name": "g", "namespace": "a"},
         "spec": {"gatewayClassName": "c", "listeners": [{"name": "l", "port": 80, "protocol": "HTTP"}]}},
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
         "metadata": {"name": "r", "namespace": "a"},
         "spec": {"parentRefs": [{"name": "g"}], "rules": [{"name": "x"}, {"name": "y"}]}},
        policy("x", "one"),
        policy("y", "two"),
        config("two"),
        config("other"),
    ])
}

#[test]
fn referenced_objects_are_followed_without_a_rebuild() {
    let mut store = Store::default();
    apply(&mut store, &policies_with_references());
    let profiles = ProfileSources::shipped();
    let mut snapshot_builder = SnapshotBuilder::new(World::from_store(store.clone(), &profiles));
    let name = |rule: &str| format!("gateways/a/g/listeners/l/routes/HTTPRoute/a/r/rules/{rule}");
    let mut before = snapshot_builder.snapshot(version());
    let gone = |name: &str| Change {
        deletes: objects(&json!([config(name)]))
            .iter()
            .map(|o| o.key.clone())
            .collect(),
        ..Change::default()
    };
    let comes = |name: &str| Change {
        upserts: objects(&json!([config(name)])),
        ..Change::default()
    };
    for (change, moved, merged) in [
        (comes("one"), true, 1),
        (comes("three"), false, 0),
        (gone("one"), true, 1),
        (gone("three"), false, 0),
    ] {
        let work = snapshot_builder.stats();
        let changed = store.apply(change);
        assert_eq!(snapshot_builder.update(store.clone(), &changed), moved);
        let now = snapshot_builder.stats();
        assert_eq!(
            (now.merged - work.merged, now.rebuilds - work.rebuilds),
            (merged, 0)
        );
        let after = snapshot_builder.snapshot(version());
        let full = Snapshot::build(World::from_store(store.clone(), &profiles), version());
        for rule in ["x", "y"] {
            let name = name(rule);
            assert_eq!(bytes(&after, &name), bytes(&full, &name), "{name}");
            let differs = bytes(&after, &name) != bytes(&before, &name);
            assert_eq!(differs, moved && rule == "x", "{name}");
        }
        before = after;
    }
}

/// A policy that its own controller rejected, below a Gateway whose class is not there.
fn rejected_policy(gateway: &str) -> Value {
    let group = "gateway.networking.k8s.io";
    let gateways = ["g", "h"].map(|name| {
        json!({"apiVersion": format!("{group}/v1"), "kind": "Gateway", "metadata": {"name": name, "namespace": "a"},
               "spec": {"gatewayClassName": "c", "listeners": []}})
    });
    let policy = |name: &str, gateway: &str, status: Value| {
        let target = json!({"group": group, "kind": "Gateway", "name": gateway});
        json!({"apiVersion": "example.com/v1", "kind": "P", "metadata": {"name": name, "namespace": "a"},
               "spec": {"targetRefs": [target], "v": 1}, "status": status})
    };
    let condition = json!({"type": "Accepted", "status": "False", "reason": "TooBad"});
    let rejected = json!({"ancestors": [{"conditions": [condition]}]});
    let mut documents = gateways.to_vec();
    documents.extend([
        json!({"apiVersion": "entail.dev/v1alpha1", "kind": "PolicyProfile", "metadata": {"name": "ps"},
               "spec": {"preset": "most-specific-whole", "policy": {"group": "example.com", "kind": "P"},
                        "effectiveTarget": "RouteRule", "controllers": ["one"], "trustStatus": true}}),
        policy("rejected", gateway, rejected),
        policy("other", "g", Value::Null),
    ]);
    json!(documents)
}

#[test]
fn rejected_policies_that_may_apply_are_followed_above_the_effective_level() {
    let profiles = ProfileSources::shipped();
    let mut store = Store::default();
    apply(&mut store, &rejected_policy("h"));
    let mut snapshot_builder = SnapshotBuilder::new(World::from_store(store.clone(), &profiles));
    for gateway in ["g", "h", "g"] {
        let changed = apply(&mut store, &rejected_policy(gateway));
        snapshot_builder.update(store.clone(), &changed);
        let now = snapshot_builder.snapshot(version());
        let full = Snapshot::build(World::from_store(store.clone(), &profiles), version());
        for name in ["gateways/a/g", "gateways/a/h"] {
            assert_eq!(bytes(&now, name), bytes(&full, name), "{gateway}: {name}");
        }
    }
}

#[test]
fn unreadable_policies_that_come_with_a_rebuild_are_named_above_the_effective_level() {
    let profiles = ProfileSources::shipped();
    let mut store = Store::default();
    apply(&mut store, &rejected_policy("g"));
    let class = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
                       "metadata": {"name": "c"}, "spec": {"controllerName": "one"}});
    apply(&mut store, &json!([class]));
    let mut snapshot_builder = SnapshotBuilder::new(World::from_store(store.clone(), &profiles));
    for number in 0..2 {
        let _published = snapshot_builder.snapshot(version());
        let rebuilds = snapshot_builder.stats().rebuilds;
        let mut upserts = vec![Arc::new(unused_profile(number))];
        let name = |name: &str| ObjectKey::new(GroupKind::parse("P.example.com"), "a", name);
        let mut policy = Object::clone(&store.get(&name("rejected")).unwrap().object);
        policy.unreadable = (number == 0).then(|| "it is too large".into());
        upserts.push(Arc::new(policy));
        let changed = store.apply(Change {
            upserts,
            ..Change::default()
        });
        snapshot_builder.update(store.clone(), &changed);
        assert_eq!(snapshot_builder.stats().rebuilds, rebuilds + 1);
        let now = snapshot_builder.snapshot(version());
        let full = Snapshot::build(World::from_store(store.clone(), &profiles), version());
        let path = "gateways/a/g";
        assert_eq!(bytes(&now, path), bytes(&full, path), "{number}");
        let is_named = |name: &[u8]| bytes(&full, path).windows(name.len()).any(|w| w == name);
        assert_eq!(is_named(b"PolicyUnreadable"), number == 0);
    }
}

#[test]
fn a_policy_for_all_clients_is_merged_with_one_for_clients_of_its_namespace() {
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
    let mut store = Store::default();
    apply(&mut store, &first);
    let profiles = ProfileSources::shipped();
    let mut snapshot_builder = SnapshotBuilder::new(World::from_store(store.clone(), &profiles));
    let changed = apply(&mut store, &json!([policy("prod", "theirs")]));
    assert!(snapshot_builder.update(store.clone(), &changed));
    let updated = snapshot_builder.snapshot(version());
    let full = Snapshot::build(World::from_store(store, &profiles), version());
    for client in ["*", "team"] {
        let name = format!("mesh/{client}/services/prod/svc/routes/HTTPRoute/prod/r");
        assert_eq!(bytes(&updated, &name), bytes(&full, &name), "{name}");
        assert!(
            bytes(&updated, &name).windows(6).any(|w| w == b"theirs"),
            "{name}"
        );
    }
}

#[test]
fn a_kind_with_an_internal_error_is_unknown() {
    use entail::api::v1;
    use entail::insight::{AccessScope, list_paths};
    use entail_core::model::InternalError;

    let snapshot = generate("1k").snapshot_builder().snapshot(version());
    let kinds = || {
        let request = v1::ListPathsRequest::default();
        let reply = list_paths(&snapshot, &request, &AccessScope::default()).unwrap();
        reply.kinds
    };
    assert_eq!(kinds(), []);
    let kind = &snapshot.world().kinds()[0];
    kind.fail(InternalError::pretended("a track"));
    let states = kinds();
    assert_eq!(states.len(), 1);
    assert_eq!(states[0].kind, kind.profile().policy.to_string());
    assert_eq!(states[0].state(), v1::kind_state::State::Unknown);
}
