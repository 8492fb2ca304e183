//! Random edits of Gateways, ListenerSets and GatewayClasses.

use serde_json::{Value, json};

use super::edits;
use super::rng::Rng;

/// The namespaces of random worlds.
const NAMESPACES: [&str; 3] = ["a-b", "a", "shop"];
const CLASSES: [&str; 4] = ["gc", "gd", "ge", "none"];
/// One of these takes hostnames from listeners and lets them serve one stream Route each (specification 1.4, 12.5).
const CONTROLLERS: [&str; 4] = [
    "example.com/one",
    "example.com/two",
    "example.com/three",
    "gateway.envoyproxy.io/gatewayclass-controller",
];
const HOSTS: [&str; 4] = ["*.example.com", "shop.example.com", "a.b", "*.b"];

/// Whether a document is a Gateway, a ListenerSet or a GatewayClass.
pub fn is_one(document: &Value) -> bool {
    let kind = document["kind"].as_str().unwrap_or_default();
    matches!(
        kind,
        "Gateway" | "GatewayClass" | "ListenerSet" | "XListenerSet"
    )
}

/// Makes worlds with many Gateways and ListenerSets, and some listeners with many routes.
pub fn prepare(rng: &mut Rng, documents: &mut Vec<Value>) {
    edits::prepare(rng, documents);
    prepare_gateways(rng, documents);
}

/// Adds Gateways and ListenerSets like those of a world, and changes some.
pub fn prepare_gateways(rng: &mut Rng, documents: &mut Vec<Value>) {
    let known: Vec<Value> = documents.iter().filter(|d| is_one(d)).cloned().collect();
    for number in 0..rng.below(5) {
        let original = rng.choose(&known);
        documents.push(copied(rng, &original, number));
    }
    let by_port = rng.percent(30);
    for document in documents.iter_mut() {
        let spec = &mut document["spec"];
        if by_port && (spec["preset"] == "direct" || spec["class"] == "Direct") {
            spec["conflicts"] = json!("Port");
        }
        if edits::is_route(document) && rng.percent(10) {
            name_as_backend(rng, document, &known);
        }
    }
    let is_plain = rng.percent(70);
    for document in documents.iter_mut().filter(|d| is_one(d)) {
        if rng.percent(20) {
            document["spec"]["controllerName"] = json!(rng.pick(&CONTROLLERS));
        }
        if is_plain && let Some(spec) = document["spec"].as_object_mut() {
            spec.remove("own");
        }
        if rng.percent(10) {
            many_listeners(rng, document);
        }
    }
}

/// Lets a route name a Gateway or a ListenerSet as a backend.
fn name_as_backend(rng: &mut Rng, route: &mut Value, known: &[Value]) {
    let metadata = &rng.choose(known)["metadata"];
    let backend = json!({
        "group": "gateway.networking.k8s.io", "kind": rng.pick(&["Gateway", "ListenerSet"]),
        "name": metadata["name"], "namespace": metadata["namespace"],
    });
    if let Some(rule) = route["spec"]["rules"].get_mut(0) {
        rule["backendRefs"] = json!([backend]);
    }
}

/// A copy with another name, now and then in another namespace.
pub fn copied(rng: &mut Rng, document: &Value, number: usize) -> Value {
    let mut copy = document.clone();
    let name = match copy["kind"].as_str() {
        Some("GatewayClass") => rng.pick(&["gc", "gd", "ge"]).to_owned(),
        Some("Gateway") => format!("gw{}", number % 4),
        _ => format!("set{}", number % 4),
    };
    copy["metadata"]["name"] = json!(name);
    if copy["kind"] != "GatewayClass" && rng.percent(40) {
        copy["metadata"]["namespace"] = json!(rng.pick(&NAMESPACES));
    }
    copy
}

/// Adds so many listeners that the edges to them are in a list of their own.
fn many_listeners(rng: &mut Rng, document: &mut Value) {
    let Some(listeners) = document["spec"]["listeners"].as_array_mut() else {
        return;
    };
    for number in 0..rng.within(10, 16) {
        let port = 9000 + rng.below(4);
        listeners.push(json!({"name": format!("m{number}"), "port": port, "protocol": "HTTP"}));
    }
}

/// Edits a document; returns what was done.
pub fn edit(rng: &mut Rng, document: &mut Value, others: &[Value]) -> &'static str {
    if document["kind"] == "GatewayClass" {
        document["spec"]["controllerName"] = json!(rng.pick(&CONTROLLERS));
        return "controller of";
    }
    match rng.below(8) {
        0 => {
            document["metadata"]["labels"]["color"] = json!(rng.pick(&["red", "blue"]));
            "labels of"
        }
        1 => {
            let minute = rng.below(5);
            document["metadata"]["creationTimestamp"] =
                json!(format!("2026-01-01T00:0{minute}:00Z"));
            "age of"
        }
        2 if document["kind"] == "Gateway" => {
            document["spec"]["gatewayClassName"] = json!(rng.pick(&CLASSES));
            "class of"
        }
        3 if document["kind"] == "Gateway" => {
            document["spec"]["allowedListeners"] = json!({"namespaces": admitted(rng)});
            "admission of sets by"
        }
        2 | 3 => {
            let gateways = others.iter().filter(|other| other["kind"] == "Gateway");
            let gateways: Vec<&Value> = gateways.collect();
            if !gateways.is_empty() {
                let metadata = &rng.choose(&gateways)["metadata"];
                document["spec"]["parentRef"] =
                    json!({"name": metadata["name"], "namespace": metadata["namespace"]});
            }
            "parent of"
        }
        _ => edit_listeners(rng, document),
    }
}

fn edit_listeners(rng: &mut Rng, document: &mut Value) -> &'static str {
    let Some(listeners) = document["spec"]["listeners"].as_array_mut() else {
        document["spec"]["listeners"] = json!([]);
        return "listeners of";
    };
    let at = rng.below(listeners.len().max(1));
    match rng.below(4) {
        0 => {
            let name = format!("l{}", rng.below(5));
            let at = rng.below(listeners.len() + 1);
            let port = 8000 + rng.below(4);
            listeners.insert(at, json!({"name": name, "port": port, "protocol": "HTTP"}));
            "a listener more in"
        }
        1 if !listeners.is_empty() => {
            listeners.remove(at);
            "a listener less in"
        }
        2 => {
            listeners.rotate_left(1.min(at));
            "listeners turned in"
        }
        _ => match listeners.get_mut(at) {
            Some(listener) => edit_listener(rng, listener),
            None => "nothing to",
        },
    }
}

fn edit_listener(rng: &mut Rng, listener: &mut Value) -> &'static str {
    match rng.below(5) {
        0 => listener["name"] = json!(format!("l{}", rng.below(4))),
        1 => listener["port"] = json!(8000 + rng.below(3)),
        2 => listener["protocol"] = json!(rng.pick(&["HTTP", "HTTPS", "TLS", "TCP"])),
        3 => listener["hostname"] = json!(rng.pick(&HOSTS)),
        _ => listener["allowedRoutes"] = json!({"namespaces": admitted(rng)}),
    }
    "a listener of"
}

/// The namespaces that a Gateway or listener admits.
fn admitted(rng: &mut Rng) -> Value {
    let from = rng.pick(&["All", "All", "Same", "None", "Selector"]);
    let selector = json!({"matchLabels": {"team": rng.pick(&NAMESPACES)}});
    match from {
        "Selector" => json!({"from": from, "selector": selector}),
        _ => json!({ "from": from }),
    }
}
