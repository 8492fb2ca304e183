//! Objects that cannot be read: keys with a meaning to the parser, very deep ones, wrong types.

use std::fmt::Write;
use std::sync::Arc;

use super::write;
use crate::run::{Attack, Outcome};
use crate::target::Target;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("h-magic-keys", |target| Box::pin(magic_keys(target))),
    ("h-wrong-types", |target| Box::pin(wrong_types(target))),
    ("h-deep-130", |target| Box::pin(deep(target, 130))),
    ("h-deep-10000", |target| Box::pin(deep(target, 10_000))),
];

/// Keys by which libraries smuggle values through a map.
const KEYS: &[&str] = &[
    "$serde_json::private::RawValue",
    "$serde_json::private::Number",
    "$__serde_private_Datetime",
    "<<",
    "__proto__",
];

/// A marker that is replaced by a value.
const HOLE: &str = "HOLE";

/// Objects with a hole at each place of interest.
const OBJECTS: &[&str] = &[
    "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: HOLE, spec: {}}",
    "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: NAME}, spec: HOLE}",
    "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: NAME}, spec: {gatewayClassName: \
     HOLE, listeners: HOLE}}",
    "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: NAME}, spec: {gatewayClassName: \
     quiet, listeners: [HOLE, {name: HOLE, port: HOLE, protocol: HOLE, allowedRoutes: HOLE, tls: HOLE}]}}",
    "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: NAME, annotations: HOLE, labels: \
     HOLE}, spec: {parentRefs: HOLE}}",
    "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: NAME}, spec: {parentRefs: [HOLE], \
     hostnames: HOLE, rules: HOLE}}",
    "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: NAME}, spec: {parentRefs: [{name: \
     own}], hostnames: [HOLE], rules: [HOLE, {name: HOLE, matches: HOLE, filters: HOLE, backendRefs: HOLE}, {matches: \
     [HOLE, {path: HOLE, headers: HOLE, method: HOLE}, {path: {type: HOLE, value: HOLE}}]}]}}",
    "{apiVersion: v1, kind: Service, metadata: {name: NAME}, spec: {ports: HOLE, selector: HOLE}}",
    "{apiVersion: v1, kind: Service, metadata: {name: NAME}, spec: {ports: [HOLE, {port: HOLE, name: HOLE}]}}",
    "{apiVersion: v1, kind: Namespace, metadata: {name: NAME, labels: HOLE, annotations: HOLE}}",
    "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: NAME, labels: HOLE}, spec: \
     {group: HOLE, names: HOLE, versions: HOLE}}",
    "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: NAME}, spec: {group: \
     NAME.example, names: {kind: HOLE}, versions: [HOLE, {name: v1, schema: {openAPIV3Schema: HOLE}}]}}",
    "{apiVersion: quiet.example/v1, kind: RetryPolicy, metadata: {name: NAME, namespace: hostile}, spec: HOLE}",
    "{apiVersion: quiet.example/v1, kind: RetryPolicy, metadata: {name: NAME, namespace: hostile, creationTimestamp: \
     HOLE, generation: HOLE}, spec: {targetRefs: HOLE, defaults: HOLE}, status: HOLE}",
    "{apiVersion: quiet.example/v1, kind: RetryPolicy, metadata: {name: NAME, namespace: hostile}, spec: {targetRefs: \
     [HOLE, {group: HOLE, kind: HOLE, name: HOLE, sectionName: HOLE}], defaults: {strategy: HOLE, a: HOLE}}}",
    "{apiVersion: entail.dev/v1alpha1, kind: PolicyProfile, metadata: {name: NAME}, spec: HOLE}",
    "{apiVersion: entail.dev/v1alpha1, kind: PolicyProfile, metadata: {name: NAME}, spec: {policy: {group: \
     NAME.example, kind: HOLE}, targets: HOLE, strategies: HOLE, effectiveTarget: HOLE, reducers: HOLE, limits: HOLE}}",
    "{apiVersion: entail.dev/v1alpha1, kind: PolicyProfile, metadata: {name: NAME}, spec: {preset: gep713, policy: \
     {group: NAME.example, kind: HostilePolicy}, targets: [HOLE], ruleMaps: [HOLE], order: HOLE, rules: HOLE}}",
    "{apiVersion: HOLE, kind: Gateway, metadata: {name: NAME}}",
    "{apiVersion: gateway.networking.k8s.io/v1, kind: HOLE, metadata: {name: NAME}}",
    "HOLE",
];

/// All objects with all values in their holes, one document each.
fn documents(values: &[String]) -> String {
    let mut text = String::new();
    for (at, object) in OBJECTS.iter().enumerate() {
        for (number, value) in values.iter().enumerate() {
            let object = object.replace("NAME", &format!("bad-{at}-{number}"));
            writeln!(text, "---\n{}", object.replace(HOLE, value)).unwrap();
        }
    }
    text
}

async fn magic_keys(target: Arc<Target>) -> Outcome {
    let values: Vec<String> = KEYS
        .iter()
        .flat_map(|key| {
            ["1", "'1'", "'{'", "'1e999'", "null", "[]", "'{\"a\": 1}'"].map(|v| (key, v))
        })
        .map(|(key, value)| format!("{{'{key}': {value}}}"))
        .collect();
    write(&target, "magic.yaml", &documents(&values)).await
}

async fn wrong_types(target: Arc<Target>) -> Outcome {
    let values = [
        "1",
        "-1",
        "1.5",
        "1e999",
        "18446744073709551616",
        "true",
        "null",
        "''",
        "a",
        "[]",
        "[[]]",
        "[null]",
        "{}",
        "{a: 1}",
        "{a: {b: [1]}}",
        "[1, a]",
        "'\\0'",
        "2026-01-01",
    ];
    write(
        &target,
        "wrong.yaml",
        &documents(&values.map(str::to_owned)),
    )
    .await
}

async fn deep(target: Arc<Target>, levels: usize) -> Outcome {
    let lists = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let maps = format!("{}1{}", "{\"a\": ".repeat(levels), "}".repeat(levels));
    let note = write(
        &target,
        "deep.yaml",
        &documents(&[lists.clone(), maps.clone()]),
    )
    .await?;
    let json = format!(
        "{{\"apiVersion\": \"quiet.example/v1\", \"kind\": \"RetryPolicy\", \"metadata\": {{\"name\": \"deep\"}}, \
         \"spec\": {maps}}}"
    );
    let more = write(&target, "deep.json", &json).await?;
    Ok(format!("YAML: {note}; JSON: {more}"))
}
