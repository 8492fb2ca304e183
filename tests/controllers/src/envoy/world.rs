//! Random worlds: a Gateway with a few listeners, and HTTPRoutes and GRPCRoutes of all forms of matches.

use serde_json::{Value, json};

use crate::rng::Rng;

/// The namespaces. As text, `shop-b/x` is before `shop/x`; by namespace it is the other way round.
const NAMESPACES: [&str; 2] = ["shop", "shop-b"];
const LISTENER_HOSTS: [&str; 5] = ["", "*.test", "*.a.test", "a.test", "b.a.test"];
const ROUTE_HOSTS: [&str; 8] = [
    "a.test",
    "b.a.test",
    "c.b.a.test",
    "*.a.test",
    "*.b.a.test",
    "*.test",
    "other.org",
    "*.org",
];
const TIMES: [&str; 3] = [
    "2026-01-01T00:00:00Z",
    "2026-01-02T00:00:00Z",
    "2026-01-02T00:00:00Z",
];
const PATHS: [&str; 10] = [
    "/",
    "/a",
    "/a/",
    "/a/b",
    "/a/b/",
    "/ab",
    "/a/b/c",
    "/s.One",
    "/s.One/Get",
    "/A",
];
const PATTERNS: [&str; 9] = [
    "/a.*",
    "/a|/b",
    "/[a-z]+",
    "/a/b.*",
    "/a/[^/]+",
    "/s\\.One/.*",
    ".*",
    "/(a|b)/b",
    "/",
];
/// Values of headers and query parameters.
pub const VALUES: [&str; 5] = ["1", "2", "1,2", "x y", "a%20b"];
const VALUE_PATTERNS: [&str; 6] = ["[0-9]+", ".*", "1|2", "1.*", "1", "x.+"];
/// Names of headers, in lower case.
pub const HEADERS: [&str; 3] = ["x-one", "x-two", "x-three"];
/// Names of query parameters.
pub const PARAMETERS: [&str; 3] = ["q", "r", "a%20b"];
/// Methods of HTTP.
pub const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];
/// Services of calls.
pub const SERVICES: [&str; 3] = ["s.One", "s.Two", "a"];
/// Methods of calls.
pub const CALLS: [&str; 3] = ["Get", "List", "b"];

/// Returns the objects of a random world.
pub fn world(rng: &mut Rng) -> Vec<Value> {
    let mut objects = vec![json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "eg"},
        "spec": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"},
    })];
    for namespace in NAMESPACES {
        objects.push(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        );
    }
    let listeners = listeners(rng);
    objects.push(json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": "edge", "namespace": "shop", "creationTimestamp": TIMES[0]},
        "spec": {"gatewayClassName": "eg", "listeners": listeners},
    }));
    for number in 0..rng.within(2, 6) {
        let is_call = rng.percent(30);
        objects.push(route(rng, number, is_call, listeners.len()));
    }
    objects
}

fn listeners(rng: &mut Rng) -> Vec<Value> {
    let mut listeners = Vec::new();
    for port in [8080, 8081] {
        for hostname in rng.some(&LISTENER_HOSTS, 35) {
            let mut listener = json!({
                "name": format!("l{}", listeners.len()), "port": port, "protocol": "HTTP",
                "allowedRoutes": {"namespaces": {"from": "All"}},
            });
            if !hostname.is_empty() {
                listener["hostname"] = hostname.into();
            }
            listeners.push(listener);
        }
    }
    if listeners.is_empty() {
        let from = json!({"namespaces": {"from": "All"}});
        listeners
            .push(json!({"name": "l0", "port": 8080, "protocol": "HTTP", "allowedRoutes": from}));
    }
    listeners
}

fn route(rng: &mut Rng, number: usize, is_call: bool, listeners: usize) -> Value {
    let mut parents = Vec::new();
    if rng.percent(30) {
        parents.push(json!({"name": "edge", "namespace": "shop"}));
    } else {
        for listener in 0..listeners {
            if parents.is_empty() && listener + 1 == listeners || rng.percent(50) {
                let section = format!("l{listener}");
                parents.push(json!({"name": "edge", "namespace": "shop", "sectionName": section}));
            }
        }
    }
    let rules: Vec<Value> = (0..rng.within(1, 3)).map(|_| rule(rng, is_call)).collect();
    let hostnames = match rng.percent(25) {
        true => Vec::new(),
        false => rng.some(&ROUTE_HOSTS, 30),
    };
    let kind = if is_call { "GRPCRoute" } else { "HTTPRoute" };
    // Some routes differ in their namespace alone.
    let name = format!("r{}", number / 2);
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind,
        "metadata": {
            "name": name, "namespace": NAMESPACES[number % 2], "creationTimestamp": rng.pick(&TIMES),
        },
        "spec": {"parentRefs": parents, "hostnames": hostnames, "rules": rules},
    })
}

fn rule(rng: &mut Rng, is_call: bool) -> Value {
    let matches: Vec<Value> = (0..rng.within(0, 3))
        .map(|_| {
            if is_call {
                call_match(rng)
            } else {
                http_match(rng)
            }
        })
        .collect();
    match matches.is_empty() {
        true => json!({}),
        false => json!({"matches": matches}),
    }
}

fn http_match(rng: &mut Rng) -> Value {
    let mut one = json!({});
    if rng.percent(85) {
        one["path"] = match rng.below(10) {
            0..3 => json!({"type": "Exact", "value": rng.pick(&PATHS)}),
            3..7 => json!({"type": "PathPrefix", "value": rng.pick(&PATHS)}),
            _ => json!({"type": "RegularExpression", "value": rng.pick(&PATTERNS)}),
        };
    }
    if rng.percent(25) {
        one["method"] = rng.pick(&METHODS).into();
    }
    add_fields(rng, &mut one, "headers", &HEADERS);
    add_fields(rng, &mut one, "queryParams", &PARAMETERS);
    one
}

fn call_match(rng: &mut Rng) -> Value {
    let mut one = json!({});
    let mut method = json!({});
    let is_pattern = rng.percent(30);
    if rng.percent(70) {
        let patterns = ["s\\..*", "s.One|s.Two", "[a-z]+"];
        let service = if is_pattern {
            rng.pick(&patterns)
        } else {
            rng.pick(&SERVICES)
        };
        method["service"] = service.into();
    }
    if rng.percent(60) {
        let patterns = ["G.*", "Get|List", "[a-z]"];
        method["method"] = if is_pattern {
            rng.pick(&patterns)
        } else {
            rng.pick(&CALLS)
        }
        .into();
    }
    if method != json!({}) {
        method["type"] = if is_pattern {
            "RegularExpression"
        } else {
            "Exact"
        }
        .into();
        one["method"] = method;
    }
    add_fields(rng, &mut one, "headers", &HEADERS);
    one
}

/// Adds conditions on headers or query parameters.
fn add_fields(rng: &mut Rng, one: &mut Value, field: &str, names: &[&str]) {
    if !rng.percent(35) {
        return;
    }
    let mut fields = Vec::new();
    for name in rng.some(names, 45) {
        let is_pattern = rng.percent(35);
        let name = if rng.percent(20) {
            name.to_uppercase()
        } else {
            name.to_owned()
        };
        let mut condition = json!({"name": name});
        if is_pattern {
            condition["type"] = "RegularExpression".into();
            condition["value"] = rng.pick(&VALUE_PATTERNS).into();
        } else {
            condition["value"] = rng.pick(&VALUES).into();
        }
        fields.push(condition);
        // Another condition on the same header, in another case.
        if field == "headers" && rng.percent(5) {
            let name = name.to_uppercase();
            if name != fields[fields.len() - 1]["name"] {
                fields.push(json!({"name": name, "value": rng.pick(&VALUES)}));
            }
        }
    }
    if !fields.is_empty() {
        one[field] = fields.into();
    }
}
