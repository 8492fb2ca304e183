//! Random edits of routes and Services: what controllers, people and rollouts do all day.

use serde_json::{Value, json};

use super::profiles::EXTERNAL;
use super::rng::Rng;

const ROUTES: [&str; 5] = ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"];
const NAMESPACES: [&str; 3] = ["a-b", "a", "shop"];

/// Whether a document is a route of the Gateway API.
pub fn is_route(document: &Value) -> bool {
    let version = document["apiVersion"].as_str().unwrap_or_default();
    version.starts_with("gateway.networking.k8s.io/")
        && ROUTES.iter().any(|kind| document["kind"] == *kind)
}

/// Whether a document is a Service.
pub fn is_service(document: &Value) -> bool {
    document["kind"] == "Service" && document["apiVersion"] == "v1"
}

/// A copy of a route with another name; now and then of another kind or in another namespace.
pub fn copied(rng: &mut Rng, route: &Value, number: usize) -> Value {
    let mut copy = route.clone();
    let name = route["metadata"]["name"].as_str().unwrap();
    // Some come before the others in the order of names.
    let prefix = rng.pick(&["", "", "a-", "z-"]);
    copy["metadata"]["name"] = json!(format!("{prefix}{name}-{number}"));
    if rng.percent(20) {
        copy["kind"] = json!(rng.pick(&ROUTES));
    }
    if rng.percent(30) {
        copy["metadata"]["namespace"] = json!(rng.pick(&NAMESPACES));
    }
    copy
}

/// Makes worlds in which a listener has many routes, and such without what is left to rebuilds.
pub fn prepare(rng: &mut Rng, documents: &mut Vec<Value>) {
    let routes: Vec<Value> = documents.iter().filter(|d| is_route(d)).cloned().collect();
    if !routes.is_empty() && rng.percent(50) {
        for number in 0..rng.within(3, 25) {
            let route = rng.choose(&routes);
            documents.push(copied(rng, &route, number));
        }
    }
    if rng.percent(70) {
        let is_plain = |parent: &Value| {
            let kind = parent["kind"].as_str().unwrap_or("Gateway");
            matches!(kind, "Gateway" | "ListenerSet")
        };
        documents.retain(|document| {
            let parents = document["spec"]["parentRefs"].as_array();
            !is_route(document) || parents.is_none_or(|all| all.iter().all(is_plain))
        });
        // A profile that merges what objects say themselves makes each change of that a change of all.
        for document in documents.iter_mut().filter(|d| is_route(d)) {
            let spec = document["spec"].as_object_mut().unwrap();
            spec.remove("own");
            for rule in spec
                .get_mut("rules")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                rule.as_object_mut().unwrap().remove("own");
            }
        }
    }
}

/// Edits a route; returns what was done.
pub fn edit_route(rng: &mut Rng, route: &mut Value, others: &[Value]) -> &'static str {
    let other = |rng: &mut Rng, is: fn(&Value) -> bool| {
        let found: Vec<&Value> = others.iter().filter(|d| is(d)).collect();
        (!found.is_empty()).then(|| rng.choose(&found).clone())
    };
    match rng.below(12) {
        0 => edit_rules(rng, route, |_, rules| {
            rules.pop();
        }),
        1 => {
            let from = other(rng, is_route);
            let rule = from.and_then(|from| from["spec"]["rules"].as_array()?.first().cloned());
            edit_rules(rng, route, |rng, rules| {
                let at = rng.below(rules.len() + 1);
                rules.insert(at, rule.unwrap_or(json!({})));
            })
        }
        2 => edit_rules(rng, route, |_, rules| {
            let by = 1.min(rules.len());
            rules.rotate_left(by);
        }),
        3 => edit_rules(rng, route, |rng, rules| {
            let at = rng.below(rules.len().max(1));
            let Some(rule) = rules.get_mut(at).and_then(Value::as_object_mut) else {
                return;
            };
            if rule.remove("name").is_none() || rng.percent(50) {
                rule.insert("name".to_owned(), json!(format!("rule-{}", rng.below(3))));
            }
        }),
        4..=6 => {
            let service = other(rng, is_service);
            edit_rules(rng, route, |rng, rules| edit_backends(rng, rules, service))
        }
        7 | 8 => {
            let Some(from) = other(rng, is_route) else {
                return "nothing to";
            };
            edit_parents(rng, route, &from);
            "parents of"
        }
        _ => edit_fields(rng, route),
    }
}

/// Edits hostnames, labels or the age of a route.
fn edit_fields(rng: &mut Rng, route: &mut Value) -> &'static str {
    match rng.below(3) {
        0 => {
            let hosts = [
                "*.example.com",
                "shop.example.com",
                "a.shop.example.com",
                "other.org",
            ];
            match rng.percent(30) {
                true => {
                    route["spec"].as_object_mut().unwrap().remove("hostnames");
                }
                false => route["spec"]["hostnames"] = json!([rng.pick(&hosts)]),
            }
            "hostnames of"
        }
        1 => {
            route["metadata"]["labels"]["color"] = json!(rng.pick(&["red", "blue", "green"]));
            "labels of"
        }
        _ => {
            let minute = rng.below(5);
            route["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:0{minute}:00Z"));
            "age of"
        }
    }
}

fn edit_rules(
    rng: &mut Rng,
    route: &mut Value,
    edit: impl FnOnce(&mut Rng, &mut Vec<Value>),
) -> &'static str {
    if route["spec"]["rules"].is_null() {
        route["spec"]["rules"] = json!([]);
    }
    edit(rng, route["spec"]["rules"].as_array_mut().unwrap());
    "rules of"
}

fn edit_backends(rng: &mut Rng, rules: &mut [Value], service: Option<Value>) {
    let at = rng.below(rules.len().max(1));
    let Some(rule) = rules.get_mut(at) else {
        return;
    };
    if rule["backendRefs"].is_null() {
        rule["backendRefs"] = json!([]);
    }
    let backends = rule["backendRefs"].as_array_mut().unwrap();
    if !backends.is_empty() && rng.percent(40) {
        backends.remove(rng.below(backends.len()));
        return;
    }
    if !backends.is_empty() && rng.percent(30) {
        let at = rng.below(backends.len());
        backends[at]["port"] = json!(if rng.percent(50) { 80 } else { 90 });
        return;
    }
    let port = if rng.percent(70) { 80 } else { 90 };
    backends.push(match service.filter(|_| rng.percent(75)) {
        Some(service) => json!({
            "name": service["metadata"]["name"], "namespace": service["metadata"]["namespace"], "port": port,
        }),
        // One that may not exist, or that exists because of the reference.
        None if rng.percent(40) => json!({"name": "missing", "port": 80}),
        None => json!({
            "group": EXTERNAL.0, "kind": EXTERNAL.1, "name": rng.pick(&["ext0", "ext1"]),
            "namespace": rng.pick(&NAMESPACES), "port": 443,
        }),
    });
}

fn edit_parents(rng: &mut Rng, route: &mut Value, from: &Value) {
    let theirs = from["spec"]["parentRefs"].clone();
    let own = &mut route["spec"]["parentRefs"];
    match rng.below(4) {
        0 => *own = theirs,
        1 if own.as_array().is_some_and(|own| !own.is_empty()) => {
            own.as_array_mut().unwrap().pop();
        }
        2 => {
            for parent in own.as_array_mut().into_iter().flatten() {
                match rng.percent(50) {
                    true => parent["sectionName"] = json!(format!("l{}", rng.below(3))),
                    false => {
                        parent.as_object_mut().unwrap().remove("sectionName");
                    }
                }
            }
        }
        _ => {
            let more = theirs.as_array().into_iter().flatten().cloned();
            match own.as_array_mut() {
                Some(own) => own.extend(more),
                None => *own = more.collect(),
            }
        }
    }
}

/// Edits a Service; returns what was done.
pub fn edit_service(rng: &mut Rng, service: &mut Value) -> &'static str {
    match rng.below(4) {
        0 => {
            service["metadata"]["labels"]["color"] = json!(rng.pick(&["red", "blue"]));
            "labels of"
        }
        1 => {
            service["metadata"]["annotations"]["note"] = json!(rng.below(9).to_string());
            "annotations of"
        }
        _ => {
            let all = [
                json!({"name": "web", "port": 80}),
                json!({"name": "admin", "port": 90}),
                json!({"name": "web", "port": 90}),
            ];
            service["spec"]["ports"] = json!(rng.some(&all, 60));
            "ports of"
        }
    }
}
