//! Random policies of Kuadrant's kinds.

use serde_json::{Map, Value, json};

use super::worlds::{Builder, Target};
use crate::rng::Rng;

/// The places of named rules of an AuthPolicy.
const AUTH_MAPS: [&str; 7] = [
    "patterns",
    "rules.authentication",
    "rules.metadata",
    "rules.authorization",
    "rules.response.success.headers",
    "rules.response.success.filters",
    "rules.callbacks",
];

/// The fields of an AuthPolicy that are one rule each.
const AUTH_FIELDS: [&str; 3] = [
    "when",
    "rules.response.unauthenticated",
    "rules.response.unauthorized",
];

/// Adds policies of all kinds and the issuers that TLSPolicies name.
pub fn add(builder: &mut Builder) {
    builder.objects.push(json!({
        "apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer",
        "metadata": {"name": "issuer"}, "spec": {"selfSigned": {}},
    }));
    let merged = [
        ("AuthPolicy", "v1", 5),
        ("RateLimitPolicy", "v1", 5),
        ("TokenRateLimitPolicy", "v1alpha1", 4),
    ];
    for (kind, version, most) in merged {
        for number in 0..builder.rng.within(0, most) {
            let grpc = kind != "TokenRateLimitPolicy";
            if let Some(target) = target_of_merged(builder, grpc) {
                let spec = merged_spec(&mut builder.rng, kind, number);
                push(builder, kind, version, number, &target, spec);
            }
        }
    }
    for kind in ["DNSPolicy", "TLSPolicy"] {
        for number in 0..builder.rng.within(0, 3) {
            if let Some(target) = builder.one("Gateway") {
                let spec = direct_spec(&mut builder.rng, kind);
                push(builder, kind, "v1", number, &target, spec);
            }
        }
    }
}

fn target_of_merged(builder: &mut Builder, grpc: bool) -> Option<Target> {
    let kinds: &[&str] = if grpc {
        &["Gateway", "Gateway", "HTTPRoute", "HTTPRoute", "GRPCRoute"]
    } else {
        &["Gateway", "HTTPRoute"]
    };
    let kind = builder.rng.pick(kinds);
    builder.one(kind)
}

fn push(
    builder: &mut Builder,
    kind: &str,
    version: &str,
    number: usize,
    target: &Target,
    mut spec: Value,
) {
    let rng = &mut builder.rng;
    let mut reference = json!({
        "group": "gateway.networking.k8s.io", "kind": target.kind, "name": target.name,
    });
    if rng.percent(3) {
        reference["sectionName"] = json!("absent");
    } else if rng.percent(40) {
        reference["sectionName"] = json!(rng.choose(&target.sections));
    } else if rng.percent(2) {
        reference["name"] = json!("absent");
    }
    spec["targetRef"] = reference;
    // Few instants, so that several policies have the same age.
    let second = rng.below(5);
    let mut metadata = json!({
        "name": format!("{}{number}", kind.to_lowercase()),
        "namespace": target.namespace,
        "creationTimestamp": format!("2026-01-01T00:00:0{second}Z"),
    });
    if rng.percent(2) {
        metadata["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        metadata["finalizers"] = json!(["example.com/wait"]);
    }
    builder.objects.push(json!({
        "apiVersion": format!("kuadrant.io/{version}"), "kind": kind,
        "metadata": metadata, "spec": spec,
    }));
}

/// The rules of a policy: bare, as defaults, or as overrides.
fn merged_spec(rng: &mut Rng, kind: &str, number: usize) -> Value {
    let mut rules = if kind == "AuthPolicy" {
        auth_rules(rng, number)
    } else {
        limit_rules(rng, number)
    };
    let block = rng.choose(&["", "defaults", "overrides"]);
    if block.is_empty() {
        return rules;
    }
    let strategy = rng.choose(&["", "atomic", "merge", "merge"]);
    if !strategy.is_empty() {
        rules["strategy"] = json!(strategy);
    }
    json!({block: rules})
}

fn limit_rules(rng: &mut Rng, number: usize) -> Value {
    let mut limits = Map::new();
    for name in ["x", "y", "a.b"] {
        if rng.percent(50) {
            limits.insert(name.to_owned(), limit(rng, number));
        }
    }
    if limits.is_empty() {
        limits.insert("x".to_owned(), limit(rng, number));
    }
    let mut rules = json!({"limits": limits});
    if rng.percent(25) {
        rules["when"] = json!([{"predicate": format!("request.method != 'M{number}'")}]);
    }
    rules
}

fn limit(rng: &mut Rng, number: usize) -> Value {
    // Now and then two policies have equal rules.
    let most = if rng.percent(20) { 100 } else { number };
    json!({"rates": [{"limit": most, "window": "10s"}]})
}

fn auth_rules(rng: &mut Rng, number: usize) -> Value {
    let mut rules = json!({});
    for place in AUTH_MAPS {
        for name in ["x", "y", "a.b"] {
            if rng.percent(15) {
                put(
                    &mut rules,
                    &place.split('.').chain([name]).collect::<Vec<_>>(),
                    auth_rule(number),
                );
            }
        }
    }
    for place in AUTH_FIELDS {
        if rng.percent(15) {
            let value = if place == "when" {
                json!([{"predicate": format!("request.method != 'M{number}'")}])
            } else {
                json!({"code": 400 + number})
            };
            put(&mut rules, &place.split('.').collect::<Vec<_>>(), value);
        }
    }
    // The CRD demands a rule beside patterns and conditions.
    if rules.get("rules").is_none() {
        put(
            &mut rules,
            &["rules", "authentication", "x"],
            auth_rule(number),
        );
    }
    rules
}

fn auth_rule(number: usize) -> Value {
    json!({"plain": {"value": format!("policy {number}")}})
}

/// Sets a value at a path of fields.
fn put(rules: &mut Value, path: &[&str], value: Value) {
    match path {
        [] => *rules = value,
        [first, rest @ ..] => {
            if !rules.is_object() {
                *rules = json!({});
            }
            if let Some(fields) = rules.as_object_mut() {
                put(fields.entry(*first).or_insert(Value::Null), rest, value);
            }
        }
    }
}

fn direct_spec(rng: &mut Rng, kind: &str) -> Value {
    if kind == "DNSPolicy" {
        let addresses = if rng.percent(5) {
            json!(["10.0.0.0/99"])
        } else {
            json!(["10.0.0.0/8"])
        };
        return json!({"excludeAddresses": addresses, "providerRefs": [{"name": "dns"}]});
    }
    let name = if rng.percent(5) { "absent" } else { "issuer" };
    json!({"issuerRef": {"group": "cert-manager.io", "kind": "ClusterIssuer", "name": name}})
}
