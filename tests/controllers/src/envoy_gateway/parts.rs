//! Which fields of the intermediate representation belong to which policy kind.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Fields of a representation, each with one value for each match and hostname of a rule.
pub type Fields = BTreeMap<String, Vec<Value>>;

/// The fields of a rule that belong to a kind.
pub fn rule(kind: &str, routes: &[Map<String, Value>]) -> Fields {
    let mut fields = Fields::new();
    for (index, route) in routes.iter().map(in_force).enumerate() {
        let route = &route;
        let mut add = |name: String, value: Value| {
            let values = fields.entry(name).or_default();
            values.resize(index, Value::Null);
            values.push(value);
        };
        match kind {
            "BackendTrafficPolicy" => backend_traffic(route, &mut add),
            "SecurityPolicy" => {
                nested(route, "security", &mut add);
                if let Some(value) = route.get("authorization") {
                    add("authorization".to_owned(), value.clone());
                }
            }
            "EnvoyExtensionPolicy" => nested(route, "envoyExtensions", &mut add),
            "BackendTLSPolicy" => {
                let tls: Vec<Value> = settings(route)
                    .map(|setting| setting["tls"].clone())
                    .collect();
                if tls.iter().any(|value| !value.is_null()) {
                    add("tls".to_owned(), tls.into());
                }
            }
            _ => {
                if let Some(value) = route.get("directResponse") {
                    add("directResponse".to_owned(), value.clone());
                }
            }
        }
    }
    for values in fields.values_mut() {
        values.resize(routes.len(), Value::Null);
    }
    fields
}

/// The representation of a rule without the fields of policies in place of which the proxy is
/// configured with those of the route: the next translation prefers `timeout`, `retry` and `cors` of
/// the rule itself.
fn in_force(route: &Map<String, Value>) -> Map<String, Value> {
    let mut route = route.clone();
    for (own, path) in [
        (
            "timeout",
            &["traffic", "timeout", "http", "requestTimeout"][..],
        ),
        ("retry", &["traffic", "retry"]),
        ("cors", &["security", "cors"]),
    ] {
        if is_http(&route) && route.contains_key(own) {
            remove(&mut route, path);
        }
    }
    route
}

/// Only the representation of HTTP routes has the field.
fn is_http(route: &Map<String, Value>) -> bool {
    route.contains_key("isHTTP2")
}

/// Removes a field and the objects above it that are empty then.
pub fn remove(object: &mut Map<String, Value>, path: &[impl AsRef<str>]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let first = first.as_ref();
    if let Some(inner) = object.get_mut(first).filter(|_| !rest.is_empty()) {
        let Some(inner) = inner.as_object_mut() else {
            return;
        };
        remove(inner, rest);
        if !inner.is_empty() {
            return;
        }
    }
    object.remove(first);
}

fn nested(route: &Map<String, Value>, name: &str, add: &mut impl FnMut(String, Value)) {
    for (field, value) in route
        .get(name)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        add(field.clone(), value.clone());
    }
}

fn backend_traffic(route: &Map<String, Value>, add: &mut impl FnMut(String, Value)) {
    nested(route, "traffic", add);
    let mut fields = vec!["useClientProtocol", "statName"];
    if !is_http(route) {
        fields.extend([
            "tcpKeepalive",
            "loadBalancer",
            "timeout",
            "circuitBreaker",
            "healthCheck",
            "proxyProtocol",
            "backendConnection",
            "dns",
        ]);
    }
    for field in fields {
        if let Some(value) = route.get(field) {
            add(field.to_owned(), value.clone());
        }
    }
    // The type of routing decides which addresses a backend has.
    let addresses: Vec<Value> = settings(route)
        .map(|setting| setting["endpoints"].clone())
        .collect();
    add("endpoints".to_owned(), addresses.into());
}

fn settings(route: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let destination = route.get("destination").unwrap_or(&Value::Null);
    destination["settings"].as_array().into_iter().flatten()
}

/// The fields of a listener that a ClientTrafficPolicy sets.
pub fn listener(ir: &Map<String, Value>) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in ir {
        let other = [
            "name",
            "address",
            "port",
            "externalPort",
            "hostnames",
            "metadata",
            "tlsOverlaps",
        ];
        if !other.contains(&name.as_str()) {
            fields.insert(name.clone(), vec![value.clone()]);
        }
    }
    fields
}
