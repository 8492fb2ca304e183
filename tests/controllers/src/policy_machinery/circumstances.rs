//! The circumstances of a difference, read from the objects of the world alone.

use std::collections::BTreeSet;

use serde_json::Value;

use super::admission::{array, joins, text};
use super::answers::object;
use super::verdict::{ListenerVerdict, PathKey};
use super::worlds::World;

/// Whether the path leads through a ListenerSet.
pub fn through_listener_set(key: &PathKey) -> bool {
    key.listener.contains('/')
}

/// Whether two rules of a route have the same name for Kuadrant: one explicit, one generated.
pub fn rule_name_taken(world: &World, key: &PathKey) -> bool {
    let Some(route) = object(&world.objects, &key.route_kind, &key.route) else {
        return false;
    };
    let mut names = BTreeSet::new();
    let all = array(route, "/spec/rules")
        .enumerate()
        .map(|(index, rule)| {
            let name = rule.get("name").and_then(Value::as_str);
            name.map_or_else(|| format!("rule-{}", index + 1), str::to_owned)
        });
    all.into_iter().any(|name| !names.insert(name))
}

/// Whether the listener of the path does not take the route.
pub fn not_admitted(world: &World, key: &PathKey) -> bool {
    let gateway = object(&world.objects, "Gateway", &key.gateway);
    let route = object(&world.objects, &key.route_kind, &key.route);
    match (gateway, route) {
        (Some(gateway), Some(route)) => !joins(gateway, &key.listener, route),
        _ => false,
    }
}

/// The policies of a kind that target the Gateway or the route of a path, or a section of them.
pub fn policies_on(world: &World, kind: &str, key: &PathKey) -> Vec<String> {
    let all = world.objects.iter();
    all.filter(|object| text(object, "/kind") == kind)
        .filter(|policy| {
            targets(policy, "Gateway", &key.gateway) || targets(policy, &key.route_kind, &key.route)
        })
        .map(|policy| {
            let namespace = text(policy, "/metadata/namespace");
            format!("{namespace}/{}", text(policy, "/metadata/name"))
        })
        .collect()
}

/// Whether a policy targets an object or a section of it.
fn targets(policy: &Value, kind: &str, name: &str) -> bool {
    text(policy, "/spec/targetRef/kind") == kind
        && name.split_once('/')
            == Some((
                text(policy, "/metadata/namespace"),
                text(policy, "/spec/targetRef/name"),
            ))
}

/// Whether another policy of the kind has the same reference and the same age.
pub fn equal_age(world: &World, kind: &str, policy: &str) -> bool {
    let Some(this) = object(&world.objects, kind, policy) else {
        return false;
    };
    let place = |object: &Value| {
        let age = text(object, "/metadata/creationTimestamp").to_owned();
        let namespace = text(object, "/metadata/namespace").to_owned();
        (object.pointer("/spec/targetRef").cloned(), age, namespace)
    };
    world
        .objects
        .iter()
        .any(|other| text(other, "/kind") == kind && other != this && place(other) == place(this))
}

/// Whether a policy that is being deleted names the listener.
pub fn deleted_on_listener(world: &World, listener: &ListenerVerdict) -> bool {
    world.objects.iter().any(|policy| {
        let namespace = text(policy, "/metadata/namespace");
        let gateway = format!("{namespace}/{}", text(policy, "/spec/targetRef/name"));
        text(policy, "/kind") == listener.kind
            && !text(policy, "/metadata/deletionTimestamp").is_empty()
            && gateway == listener.gateway
            && text(policy, "/spec/targetRef/sectionName") == listener.listener
    })
}

/// The Gateways, as `namespace/name`, that an HTTPRoute names in several references.
pub fn repeated_parents(route: &Value) -> BTreeSet<String> {
    let mut gateways = BTreeSet::new();
    let parents = array(route, "/spec/parentRefs")
        .filter(|parent| text(route, "/kind") == "HTTPRoute" && text(parent, "/kind") == "Gateway");
    parents
        .map(|parent| format!("{}/{}", text(parent, "/namespace"), text(parent, "/name")))
        .filter(|name| !gateways.insert(name.clone()))
        .collect()
}
