//! Gateways, ListenerSets and GatewayClasses that change, with what is below them, and Routes that are also backends: found
//! by reading, before random worlds reached it, and by these. Each step is compared with a world that is read from scratch.

use entail::snapshot::{Snapshot, SnapshotBuilder};
use entail_core::effective::World;
use entail_core::model::Change;
use entail_core::store::{ProfileSources, Store};
use serde_json::{Value, json};

use crate::engine::bench_world::version;
use crate::engine::{apply, assert_same, bytes, objects, target_of};

/// A world that is followed in place.
struct FollowedWorld {
    store: Store,
    profiles: ProfileSources,
    builder: SnapshotBuilder,
}

impl FollowedWorld {
    fn new(documents: &Value) -> Self {
        let mut store = Store::default();
        apply(&mut store, documents);
        let profiles = ProfileSources::shipped();
        let world = World::from_store(store.clone(), &profiles);
        assert!(world.problems().is_empty(), "{:?}", world.problems());
        Self {
            store,
            profiles,
            builder: SnapshotBuilder::new(world),
        }
    }

    fn apply(&mut self, documents: &Value) {
        let changed = apply(&mut self.store, documents);
        self.builder.update(self.store.clone(), &changed);
        self.check();
    }

    fn delete(&mut self, documents: &Value) {
        let gone = objects(documents);
        let changed = self.store.apply(Change {
            deletes: gone.iter().map(|object| object.key.clone()).collect(),
            ..Change::default()
        });
        self.builder.update(self.store.clone(), &changed);
        self.check();
    }

    fn check(&mut self) {
        let full = World::from_store(self.store.clone(), &self.profiles);
        let full = Snapshot::build(full, version());
        assert_same(&self.builder.snapshot(version()), &full, usize::MAX);
        assert_eq!(self.builder.stats().rebuilds, 0);
    }
}

/// An object of a kind in namespace `a`.
fn object(version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": "a", "labels": {"app": name}});
    json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
}

fn gateway_api(kind: &str, name: &str, spec: &Value) -> Value {
    object("gateway.networking.k8s.io/v1", kind, name, spec)
}

/// A Gateway with HTTP listeners: name and port of each.
fn gateway(name: &str, listeners: &[(&str, u16)]) -> Value {
    let spec = json!({
        "gatewayClassName": "c", "listeners": http(listeners),
        "allowedListeners": {"namespaces": {"from": "All"}},
    });
    gateway_api("Gateway", name, &spec)
}

fn http(listeners: &[(&str, u16)]) -> Value {
    let listeners = listeners
        .iter()
        .map(|(name, port)| json!({"name": name, "port": port, "protocol": "HTTP"}));
    listeners.collect()
}

/// A class of Envoy Gateway.
fn class() -> Value {
    let mut class = gateway_api(
        "GatewayClass",
        "c",
        &json!({"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"}),
    );
    class["metadata"] = json!({"name": "c"});
    class
}

fn route(name: &str, gateways: &[&str], rule: &Value) -> Value {
    let parents = gateways.iter().map(|name| json!({"name": name}));
    let parents: Value = parents.collect();
    gateway_api(
        "HTTPRoute",
        name,
        &json!({"parentRefs": parents, "rules": [rule]}),
    )
}

/// A profile of a kind that merges, with policies on whatever they name.
fn profile() -> Value {
    let spec =
        json!({"policy": {"group": "example.com", "kind": "P"}, "effectiveTarget": "Backend"});
    let mut profile = object(
        "entail.dev/v1alpha1",
        "PolicyProfile",
        "ps.example.com",
        &spec,
    );
    profile["metadata"] = json!({"name": "ps.example.com"});
    profile
}

fn policy(name: &str, kind: &str, target: &str) -> Value {
    let spec = json!({"targetRef": target_of(kind, target, None), "x": name});
    object("example.com/v1", "P", name, &spec)
}

/// A policy of Envoy Gateway on a Gateway or a section of it.
fn of_envoy(kind: &str, name: &str, section: Option<&str>, fields: &Value) -> Value {
    let mut spec = json!({"targetRefs": [target_of("Gateway", "gw", section)]});
    let own = fields.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(own);
    object("gateway.envoyproxy.io/v1alpha1", kind, name, &spec)
}

/// What a route below the new Gateway is, without its policy, must not be what it is with it.
#[test]
fn a_policy_that_went_and_comes_back_acts_below_a_gateway_that_came_meanwhile() {
    let own = policy("own", "HTTPRoute", "r");
    let mut world = FollowedWorld::new(&json!([
        profile(),
        gateway("g", &[("l", 80)]),
        route("r", &["g", "g2"], &json!({})),
        policy("above", "Gateway", "g2"),
        policy("base", "Gateway", "g"),
    ]));
    world.apply(&json!([own]));
    world.delete(&json!([own]));
    world.apply(&json!([gateway("g2", &[("l", 80)])]));
    world.apply(&json!([own]));
    world.delete(&json!([gateway("g2", &[])]));
}

#[test]
fn a_listener_of_another_port_has_the_policies_that_were_kept_out_of_it() {
    let on = |name: &str, section| {
        of_envoy(
            "ClientTrafficPolicy",
            name,
            section,
            &json!({"timeout": {"http": {"requestReceivedTimeout": "1s"}}}),
        )
    };
    let mut world = FollowedWorld::new(&json!([
        class(),
        gateway("gw", &[("a", 80), ("b", 80), ("c", 80)]),
        on("all", None),
        on("one", Some("a")),
        route("r", &["gw"], &json!({})),
    ]));
    for listeners in [
        &[("a", 80), ("b", 81), ("c", 80)][..],
        &[("b", 80), ("c", 80)],
        &[("a", 80), ("b", 80)],
        &[("d", 80), ("b", 80)],
    ] {
        world.apply(&json!([gateway("gw", listeners)]));
    }
}

#[test]
fn a_policy_acts_on_a_listener_set_that_is_also_a_backend() {
    let named = |name: &str, listeners| {
        let spec = json!({"parentRef": {"name": "g"}, "listeners": http(listeners)});
        gateway_api("ListenerSet", name, &spec)
    };
    let set = |listeners| named("set", listeners);
    let backend =
        json!({"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": "set"});
    let mut world = FollowedWorld::new(&json!([
        profile(),
        gateway("g", &[("l", 80)]),
        set(&[("m", 81)]),
        named("other", &[]),
        route("r", &["g"], &json!({"backendRefs": [backend]})),
        policy("above", "Gateway", "g"),
    ]));
    let own = policy("own", "ListenerSet", "set");
    world.apply(&json!([set(&[("m", 81), ("n", 82)]), own]));
    world.delete(&json!([set(&[])]));
    world.apply(&json!([set(&[("n", 81)])]));
}

/// All paths through a Route are below it, but for those on which it is a backend.
#[test]
fn the_first_policy_on_a_route_acts_where_the_route_is_a_backend() {
    let backend =
        |name| json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": name});
    let naming = |name, backends: &[Value]| route(name, &["g"], &json!({"backendRefs": backends}));
    let mut world = FollowedWorld::new(&json!([
        profile(),
        gateway("g", &[("l", 80)]),
        naming("r", &[backend("nowhere"), backend("own")]),
        route("own", &["g"], &json!({})),
        policy("above", "Gateway", "g"),
    ]));
    world.apply(&json!([policy("nowhere", "HTTPRoute", "nowhere")]));
    world.apply(&json!([policy("own", "HTTPRoute", "own")]));
    world.delete(&json!([policy("own", "HTTPRoute", "own")]));
}

/// The states of routes have no own fields as long as the kind has no policy.
#[test]
fn the_first_policy_of_a_kind_on_a_new_listener_meets_the_own_fields_of_routes() {
    let on = |section| {
        let fields = json!({"timeout": {"http": {"requestTimeout": "9s"}}});
        of_envoy("BackendTrafficPolicy", "p", Some(section), &fields)
    };
    let mut world = FollowedWorld::new(&json!([
        class(),
        gateway("gw", &[("a", 80)]),
        route("r", &["gw"], &json!({"timeouts": {"request": "1s"}})),
        on("a"),
    ]));
    world.apply(&json!([on("b")]));
    world.apply(&json!([route(
        "r2",
        &["gw"],
        &json!({"timeouts": {"request": "2s"}})
    )]));
    world.apply(&json!([gateway("gw", &[("a", 80), ("b", 81)])]));
}

/// The strategy of a policy on a listener is that of the annotation of the Gateway.
#[test]
fn an_annotation_of_a_gateway_decides_for_the_policies_of_its_listeners() {
    let mut profile = profile();
    profile["spec"] = json!({
        "policy": {"group": "example.com", "kind": "P"}, "effectiveTarget": "Route",
        "strategies": ["PatchDefaults", "PatchOverrides"],
        "strategy": {"annotation": "example.com/strategy", "default": "PatchDefaults",
                     "values": {"low": "PatchDefaults", "high": "PatchOverrides"}},
    });
    let mut on_listener = policy("listener", "Gateway", "g");
    on_listener["spec"]["targetRef"]["sectionName"] = json!("l");
    let annotated = |value: &str| {
        let mut gateway = gateway("g", &[("l", 80)]);
        gateway["metadata"]["annotations"] = json!({"example.com/strategy": value});
        gateway
    };
    let mut world = FollowedWorld::new(&json!([
        profile,
        annotated("low"),
        route("r", &["g"], &json!({})),
        on_listener,
        policy("route", "HTTPRoute", "r"),
    ]));
    let name = "gateways/a/g/listeners/l/routes/HTTPRoute/a/r";
    let before = bytes(&world.builder.snapshot(version()), name);
    world.apply(&json!([annotated("high")]));
    assert_ne!(bytes(&world.builder.snapshot(version()), name), before);
}
