//! What `lint` and `reach` say of what policies offer and lose.

use std::process::{Command, Output};

/// A Gateway with two listeners of one port, and a route with a rule.
const WORLD: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: c}
spec: {controllerName: example.com/c}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: ns}
spec:
  gatewayClassName: c
  listeners:
  - {name: a, port: 80, protocol: HTTP, hostname: a.test}
  - {name: b, port: 80, protocol: HTTP, hostname: b.test}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: ns}
spec: {hostnames: [a.test], parentRefs: [{name: gw}], rules: [{name: one}]}
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: ns}
spec: {ports: [{name: http, port: 80}]}
";

fn profile(settings: &str) -> String {
    format!(
        "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {{name: ps.example.org}}\n\
         spec: {{policy: {{group: example.org, kind: P}}, {settings}}}\n"
    )
}

/// A policy with its target and rules. A policy with a later name is newer.
fn policy(name: &str, target: &str, rules: &str) -> String {
    format!(
        "---\napiVersion: example.org/v1\nkind: P\nmetadata: {{name: {name}, namespace: ns}}\n\
         spec: {{targetRefs: [{{{target}}}], {rules}}}\n"
    )
}

fn entail(settings: &str, policies: &[String], args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let manifests = folder.path().join("world.yaml");
    std::fs::write(&manifests, format!("{WORLD}{}", policies.concat())).unwrap();
    let profiles = folder.path().join("profile.yaml");
    std::fs::write(&profiles, profile(settings)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(args).arg("--manifests").arg(&manifests);
    command.arg("--profiles").arg(&profiles);
    command.output().unwrap()
}

fn printed(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    // Lines are wrapped.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const GATEWAY: &str = "group: gateway.networking.k8s.io, kind: Gateway, name: gw";
const ROUTE: &str = "group: gateway.networking.k8s.io, kind: HTTPRoute, name: r";
const RULE: &str = "group: gateway.networking.k8s.io, kind: HTTPRoute, name: r, sectionName: one";
const SERVICE: &str = "group: '', kind: Service, name: s";

/// Rule 7.6: the policy of a listener is rejected, and keeps that of the Gateway out.
#[test]
fn reach_lists_the_listener_that_a_rejected_policy_keeps() {
    let settings = "preset: direct, effectiveTarget: Listener, conflicts: Port, \
                    targets: [{group: gateway.networking.k8s.io, kind: Gateway}]";
    let listener = format!("{GATEWAY}, sectionName: b");
    let policies = [
        policy("gateway", GATEWAY, "v: 1"),
        policy("listener", &listener, "v: 2"),
    ];
    let output = entail(
        settings,
        &policies,
        &["reach", "p/ns/gateway", "-o", "json"],
    );
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let paths: Vec<(&str, usize, usize)> = answer["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| {
            let count = |name: &str| path[name].as_array().unwrap().len();
            let name = path["path"].as_str().unwrap();
            (name, count("effectiveUnits"), count("overriddenUnits"))
        })
        .collect();
    let expected = [
        ("gateways/ns/gw/listeners/a", 1, 0),
        ("gateways/ns/gw/listeners/b", 0, 1),
    ];
    assert_eq!(paths, expected);
}

/// Rules 9.1 and 5.12: an empty object that another policy filled is lost with all that stands in it.
#[test]
fn lint_names_an_empty_object_that_is_lost_with_what_filled_it() {
    let settings = "class: Inherited, effectiveTarget: RouteRule, strategies: [PatchDefaults], \
                    rules: {path: spec, defaults: [], overrides: []}, exclusive: [{fields: [x, y]}]";
    let policies = [
        policy("gateway", GATEWAY, "m: {e: {v: 1}}, x: 1"),
        policy("route", ROUTE, "m: {e: {}}"),
        policy("rule", RULE, "y: 1"),
    ];
    let lint = printed(&entail(settings, &policies, &["lint"]));
    for (name, unit) in [("gateway", "m.e.v"), ("route", "m.e")] {
        let words = format!("`{unit}` is lost on 1 path");
        assert!(lint.contains(&words), "{name}: {lint}");
    }
}

/// Rule 2.12: a reference that is not accepted is not named again.
#[test]
fn lint_does_not_name_a_waypoint_beside_a_conflict() {
    let settings = "class: Inherited, sameTarget: RejectNewer, strategies: [AtomicDefaults], \
                    rules: {path: spec, defaults: [], overrides: []}, status: {ancestor: Target}, \
                    mesh: true, controllers: [example.com/c], waypoints: {label: way}";
    let policies = [policy("a", SERVICE, "v: 1"), policy("b", SERVICE, "v: 2")];
    let lint = printed(&entail(settings, &policies, &["lint"]));
    assert_eq!(lint.matches("[NoWaypoint]").count(), 1, "{lint}");
    assert_eq!(lint.matches("[Conflicted]").count(), 1, "{lint}");
}
