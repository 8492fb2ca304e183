//! Which listeners take which routes, and the statuses that the controller of a gateway writes.
//!
//! The rules are those of the Gateway API for what the worlds contain. They are stated here again,
//! so that the statuses do not come from the program that is compared.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::worlds::CONTROLLERS;

/// Writes the statuses of Gateways and routes.
pub fn write_statuses(objects: &mut [Value]) {
    let gateways: Vec<Value> = objects.iter().filter(is("Gateway")).cloned().collect();
    for object in objects {
        let kind = text(object, "/kind").to_owned();
        if kind == "Gateway" {
            let listeners: Vec<Value> = array(object, "/spec/listeners")
                .map(listener_status)
                .collect();
            object["status"] = json!({
                "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}],
                "listeners": listeners,
            });
        } else if kind == "HTTPRoute" || kind == "GRPCRoute" {
            let parents: Vec<Value> = array(object, "/spec/parentRefs")
                .filter_map(|parent| parent_status(object, parent, &gateways))
                .collect();
            object["status"] = json!({"parents": parents});
        }
    }
}

fn is(kind: &'static str) -> impl Fn(&&Value) -> bool {
    move |object| text(object, "/kind") == kind
}

fn condition(kind: &str, holds: bool) -> Value {
    let status = if holds { "True" } else { "False" };
    json!({
        "type": kind, "status": status, "reason": kind, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn listener_status(listener: &Value) -> Value {
    json!({
        "name": listener["name"], "attachedRoutes": 1, "supportedKinds": [],
        "conditions": [condition("Programmed", true)],
    })
}

fn parent_status(route: &Value, parent: &Value, gateways: &[Value]) -> Option<Value> {
    let gateway = gateways.iter().find(|gateway| is_parent(parent, gateway))?;
    let class = text(gateway, "/spec/gatewayClassName");
    let controllers: BTreeMap<&str, &str> = CONTROLLERS.into_iter().collect();
    let accepted = array(gateway, "/spec/listeners")
        .any(|listener| covers(parent, listener) && admits(gateway, listener, route));
    Some(json!({
        "parentRef": parent, "controllerName": controllers.get(class)?,
        "conditions": [condition("Accepted", accepted)],
    }))
}

fn is_parent(parent: &Value, gateway: &Value) -> bool {
    text(parent, "/kind") == "Gateway"
        && parent["name"] == gateway["metadata"]["name"]
        && parent["namespace"] == gateway["metadata"]["namespace"]
}

fn covers(parent: &Value, listener: &Value) -> bool {
    let section = parent.get("sectionName");
    let port = parent.get("port");
    section.is_none_or(|section| *section == listener["name"])
        && port.is_none_or(|port| *port == listener["port"])
}

/// Whether a route joins a listener of a Gateway through any of its references.
pub fn joins(gateway: &Value, listener: &str, route: &Value) -> bool {
    let found = array(gateway, "/spec/listeners").find(|l| text(l, "/name") == listener);
    found.is_some_and(|listener| {
        array(route, "/spec/parentRefs").any(|parent| {
            is_parent(parent, gateway)
                && covers(parent, listener)
                && admits(gateway, listener, route)
        })
    })
}

/// Whether a listener takes a route: by protocol, namespace and hostnames.
fn admits(gateway: &Value, listener: &Value, route: &Value) -> bool {
    let protocol = text(listener, "/protocol") != "TLS";
    let everywhere = text(listener, "/allowedRoutes/namespaces/from") == "All";
    let same = gateway["metadata"]["namespace"] == route["metadata"]["namespace"];
    let hosts: Vec<&str> = array(route, "/spec/hostnames")
        .filter_map(Value::as_str)
        .collect();
    let listener_host = listener.get("hostname").and_then(Value::as_str);
    let meets = hosts.is_empty()
        || listener_host.is_none_or(|host| hosts.iter().any(|other| intersect(host, other)));
    protocol && (everywhere || same) && meets
}

/// Whether two hostnames, each of which may begin with `*`, have a host in common.
fn intersect(a: &str, b: &str) -> bool {
    match (a.strip_prefix('*'), b.strip_prefix('*')) {
        (Some(a), Some(b)) => a.ends_with(b) || b.ends_with(a),
        (Some(a), None) => b.ends_with(a),
        (None, Some(b)) => a.ends_with(b),
        (None, None) => a == b,
    }
}

/// The text at a JSON pointer, or an empty one.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The items of the list at a JSON pointer.
pub fn array<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}
