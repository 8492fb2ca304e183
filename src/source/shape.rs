//! The form of objects of the Gateway API, as far as answers depend on it: an API server refuses other ones. In manifests
//! they would read as objects without these fields, such as a route for all hosts.

use std::fmt::{self, Arguments};

use entail_core::model::{Encoded, groups};

/// The types of the match of a path.
const PATH_TYPES: [&str; 3] = ["Exact", "PathPrefix", "RegularExpression"];

/// Returns what the API server would refuse of an object; `None` if it takes what is looked at.
pub(super) fn problem_of(object: Encoded<'_>) -> Option<String> {
    let (group, _) = object.get("apiVersion")?.text()?.rsplit_once('/')?;
    if ![groups::GATEWAY, groups::GATEWAY_X].contains(&group) {
        return None;
    }
    let spec = object.get("spec")?;
    match object.get("kind")?.text()? {
        "Gateway" | "ListenerSet" | "XListenerSet" => list(spec, "spec", "listeners", is_object),
        "ReferenceGrant" => {
            list(spec, "spec", "from", is_object).or_else(|| list(spec, "spec", "to", is_object))
        }
        "HTTPRoute" | "GRPCRoute" | "TLSRoute" | "TCPRoute" | "UDPRoute" => route(spec),
        _ => None,
    }
}

fn route(spec: Encoded<'_>) -> Option<String> {
    let of_spec = [
        (
            "parentRefs",
            is_object as fn(Encoded<'_>) -> Option<&'static str>,
        ),
        ("hostnames", is_hostname),
        ("rules", is_object),
    ];
    let mut of_spec = of_spec.into_iter();
    let wrong = of_spec.find_map(|(field, is_item)| list(spec, "spec", field, is_item));
    wrong.or_else(|| {
        let mut rules = spec.items_of("rules").enumerate();
        rules.find_map(|(at, one)| rule(one, format_args!("spec.rules[{at}]")))
    })
}

fn rule(rule: Encoded<'_>, place: Arguments<'_>) -> Option<String> {
    let mut lists = ["matches", "filters", "backendRefs"].into_iter();
    let wrong = lists.find_map(|field| list(rule, place, field, is_object));
    wrong.or_else(|| {
        let mut matches = rule.items_of("matches").enumerate();
        matches.find_map(|(at, one)| path_type(one, format_args!("{place}.matches[{at}]")))
    })
}

fn path_type(one: Encoded<'_>, place: Arguments<'_>) -> Option<String> {
    let path = one.get("path").filter(|path| !path.is_null())?;
    if !path.is_object() {
        return Some(format!("`{place}.path` is not a mapping"));
    }
    let given = path.get("type").filter(|given| !given.is_null())?;
    let given = given.text();
    let is_known = given.is_some_and(|given| PATH_TYPES.contains(&given));
    (!is_known).then(|| {
        let known = PATH_TYPES.join(", ");
        format!("`{place}.path.type` is none of {known}")
    })
}

/// Returns what is wrong with a field that is a list, if something is. `is_item` says what an item would have to be.
fn list(
    of: Encoded<'_>,
    place: impl fmt::Display,
    field: &str,
    is_item: fn(Encoded<'_>) -> Option<&'static str>,
) -> Option<String> {
    let value = of.get(field).filter(|value| !value.is_null())?;
    if !value.is_list() {
        return Some(format!("`{place}.{field}` is not a list"));
    }
    let mut wrong = value.items().enumerate();
    wrong.find_map(|(at, item)| {
        let why = is_item(item)?;
        Some(format!("`{place}.{field}[{at}]` is not {why}"))
    })
}

fn is_object(item: Encoded<'_>) -> Option<&'static str> {
    (!item.is_object()).then_some("a mapping")
}

/// As the API server asks of hostnames: lower case, without scheme and port, and `*` for the first label alone.
fn is_hostname(item: Encoded<'_>) -> Option<&'static str> {
    let is_label = |label: &str| {
        let mut characters = label.chars();
        !label.is_empty()
            && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let is_valid = item.text().is_some_and(|name| {
        let name = name.strip_prefix("*.").unwrap_or(name);
        name.split('.').all(is_label)
    });
    (!is_valid).then_some("a hostname: use lower case, without scheme and port")
}

#[cfg(test)]
mod tests {
    use entail_core::model::Body;
    use serde_json::{Value, json};

    use super::*;

    fn problem(kind: &str, spec: &Value) -> String {
        let version = format!("{}/v1", groups::GATEWAY);
        let object = json!({"apiVersion": version, "kind": kind, "spec": spec});
        problem_of(Body::new(&object).encoded()).unwrap_or_default()
    }

    #[test]
    fn what_an_api_server_refuses_is_named() {
        let of_rule = |rule: Value| json!({"rules": [{}, rule]});
        for (spec, expected) in [
            (
                json!({"hostnames": "a.example.com"}),
                "`spec.hostnames` is not a list",
            ),
            (
                json!({"hostnames": ["http://a"]}),
                "`spec.hostnames[0]` is not a hostname",
            ),
            (
                json!({"hostnames": ["a", 5]}),
                "`spec.hostnames[1]` is not a hostname",
            ),
            (
                json!({"parentRefs": {"name": "gw"}}),
                "`spec.parentRefs` is not a list",
            ),
            (json!({"rules": {}}), "`spec.rules` is not a list"),
            (json!({"rules": ["a"]}), "`spec.rules[0]` is not a mapping"),
            (
                of_rule(json!({"matches": {"path": {}}})),
                "`spec.rules[1].matches` is not a list",
            ),
            (
                of_rule(json!({"backendRefs": {}})),
                "`spec.rules[1].backendRefs` is not a list",
            ),
            (
                of_rule(json!({"matches": [{"path": {"type": "Prefix"}}]})),
                "`spec.rules[1].matches[0].path.type` is none of Exact",
            ),
            (
                of_rule(json!({"matches": [{"path": "/"}]})),
                "`spec.rules[1].matches[0].path` is not a mapping",
            ),
        ] {
            let found = problem("HTTPRoute", &spec);
            assert!(found.starts_with(expected), "{spec}: {found}");
        }
        let listeners = json!({"listeners": {"name": "http"}});
        assert!(problem("Gateway", &listeners).contains("`spec.listeners`"));
        let from = json!({"from": "HTTPRoute", "to": []});
        assert!(problem("ReferenceGrant", &from).contains("`spec.from`"));
    }

    #[test]
    fn what_an_api_server_takes_is_taken() {
        let spec = json!({
            "parentRefs": [{"name": "gw"}], "hostnames": ["*.example.com", "a-1.example"],
            "rules": [{}, {
                "matches": [{"path": {"type": "Exact", "value": "/"}}, {"path": {"value": "/"}}, {}],
                "filters": null, "backendRefs": [{"name": "s", "port": 80}],
            }],
        });
        assert_eq!(problem("HTTPRoute", &spec), "");
        assert_eq!(problem("TCPRoute", &json!({"rules": null})), "");
        assert_eq!(problem("Other", &json!({"rules": {}})), "");
        let other = json!({"apiVersion": "f.io/v1", "kind": "HTTPRoute", "spec": {"rules": {}}});
        assert_eq!(problem_of(Body::new(&other).encoded()), None);
    }
}
