//! Names as kubectl takes them, and what the commands say of wrong ones.

use std::process::{Command, Output};

const BAKERY: &str = "examples/bakery";

/// A Gateway, a route on it, and objects that no path goes through.
const WORLD: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: c}
spec: {controllerName: example.com/c}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: ns}
spec: {gatewayClassName: c, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost, namespace: ns}
spec:
  parentRefs: [{name: gx}, {name: gw, sectionName: b}]
  rules: [{backendRefs: [{name: behind, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: alone, namespace: ns}
spec: {rules: [{}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: far, namespace: ns}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: foreign, namespace: other, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: set, namespace: ns}
spec: {parentRef: {name: gw}, listeners: [{name: x, port: 81, protocol: HTTP}]}
---
apiVersion: v1
kind: Service
metadata: {name: unused, namespace: ns}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: behind, namespace: ns}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: foreign, namespace: other}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: data, namespace: ns}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: geese.pond.io}
spec:
  group: pond.io
  scope: Namespaced
  names: {kind: Goose, plural: geese, shortNames: [gs]}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: pond.io/v1
kind: Goose
metadata: {name: grey, namespace: ns}
";

fn entail(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(args).output().unwrap()
}

fn standard(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The output of a command that succeeds.
fn printed(args: &str) -> String {
    let args: Vec<&str> = args.split_whitespace().collect();
    let output = entail(&args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    standard(&output)
}

/// The error of a command about `WORLD` that fails with exit code 1.
fn refused(name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world.yaml");
    std::fs::write(&world, WORLD).unwrap();
    let output = entail(&["get", name, "--manifests", world.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    let line = error
        .lines()
        .find_map(|line| line.strip_prefix("entail: error: "));
    line.unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn every_form_of_a_name_has_one_answer() {
    let expected = printed(&format!("get httproute/baker/bread --manifests {BAKERY}"));
    assert!(
        expected.contains("routes/HTTPRoute/baker/bread/rules/menu\n"),
        "{expected}"
    );
    for name in [
        "httproute baker/bread",
        "HTTPRoutes/baker/bread",
        "httproutes.gateway.networking.k8s.io/baker/bread",
        "httproutes.v1.gateway.networking.k8s.io baker/bread",
        "httproute/bread -n baker",
        "-n baker httproutes bread",
        "--namespace baker httproute bread",
    ] {
        assert_eq!(
            printed(&format!("get {name} --manifests {BAKERY}")),
            expected,
            "{name}"
        );
        assert_eq!(
            printed(&format!("get --manifests {BAKERY} {name}")),
            expected,
            "{name}"
        );
    }
    let gateway = printed(&format!(
        "get gateway/platform/storefront --manifests {BAKERY}"
    ));
    assert_eq!(
        printed(&format!(
            "get gtw storefront -n platform --manifests {BAKERY}"
        )),
        gateway
    );
    let service = printed(&format!("get service/baker/loaves --manifests {BAKERY}"));
    assert_eq!(
        printed(&format!("get svc loaves -n baker --manifests {BAKERY}")),
        service
    );
}

#[test]
fn kinds_of_policies_have_the_same_names() {
    let args = |kind: &str| format!("get httproute/baker/bread --kind {kind} --manifests {BAKERY}");
    let expected = printed(&args("RetryPolicy.policies.bakery.example"));
    assert!(expected.contains("attempts: 5"), "{expected}");
    for kind in [
        "retrypolicy",
        "RetryPolicy",
        "retrypolicies",
        "retrypolicies.policies.bakery.example",
    ] {
        assert_eq!(printed(&args(kind)), expected, "{kind}");
    }
    let expected = printed(&format!(
        "status retrypolicy/baker/be-patient --manifests {BAKERY}"
    ));
    for name in [
        "retrypolicies be-patient -n baker",
        "-n baker retrypolicy/be-patient",
    ] {
        assert_eq!(
            printed(&format!("status {name} --manifests {BAKERY}")),
            expected,
            "{name}"
        );
    }
}

#[test]
fn an_error_says_whether_the_kind_or_the_object_is_missing_and_what_is_near() {
    for (name, expected) in [
        (
            "htproute/ns/far",
            "`htproute/ns/far`: no kind has the name `htproute`: did you mean `httproute`?",
        ),
        (
            "httproute/ns/farr",
            "`httproute/ns/farr` does not exist: did you mean `httproute/ns/far`?",
        ),
        (
            "httproute/far",
            "`httproute/far` does not exist: did you mean `httproute/ns/far`?",
        ),
        (
            "httproute/sn/far",
            "`httproute/sn/far` does not exist: did you mean `httproute/ns/far`?",
        ),
        ("svc/ns/zzzzzzzz", "`svc/ns/zzzzzzzz` does not exist"),
        (
            "gateway/ns/gw#b",
            "`Gateway/ns/gw` has no section `b`; it has `a`",
        ),
    ] {
        assert_eq!(refused(name), expected);
    }
}

#[test]
fn an_error_says_why_no_path_goes_through_an_object() {
    for (name, expected) in [
        (
            "httproute/ns/lost",
            "`httproute/ns/lost` exists, but none of its parents takes it: parentRefs[0] (Gateway ns/gx): the Gateway does not \
             exist (GatewayNotFound); parentRefs[1] (Gateway ns/gw, sectionName b): it has no listener with this sectionName \
             and port (NoMatchingParent)",
        ),
        (
            "httproute/ns/alone",
            "`httproute/ns/alone` exists, but it is attached to nothing: it has no parentRefs",
        ),
        (
            "listenerset/ns/set",
            "`listenerset/ns/set` exists, but its Gateway ns/gw does not take it: the Gateway's allowedListeners do not \
             admit the ListenerSet (ListenerSetNotAllowed)",
        ),
        (
            "service/ns/unused",
            "`service/ns/unused` exists, but no rule of a Route names it as a backend, and no Route as its parent",
        ),
        (
            "service/other/foreign",
            "`service/other/foreign` exists, but no path leads to it: HTTPRoute/ns/far names it, but no ReferenceGrant permits \
             the reference (RefNotPermitted)",
        ),
        (
            "configmap/ns/data",
            "`configmap/ns/data` exists, but paths go through Gateways, listeners, Routes and backends, and no rule names this \
             ConfigMap as a backend",
        ),
    ] {
        assert_eq!(refused(name), expected);
    }
    let behind = refused("service/ns/behind");
    assert!(
        behind.contains("HTTPRoute/ns/lost names it, and none of its parents takes it"),
        "{behind}"
    );
    for name in ["geese/ns/grey", "gs/ns/grey", "goose.pond.io/ns/grey"] {
        let error = refused(name);
        assert!(
            error.starts_with(&format!("`{name}` exists, but paths go through")),
            "{error}"
        );
    }
}

#[test]
fn a_policy_is_no_path_but_has_a_status() {
    let output = entail(&["get", "retrypolicy/baker/be-patient", "--manifests", BAKERY]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error.contains("it is a policy, which paths do not go through"),
        "{error}"
    );
    assert!(
        error.contains("`entail status retrypolicy/baker/be-patient`"),
        "{error}"
    );
}

#[test]
fn a_namespace_shows_the_policies_attached_to_it_and_what_they_reach() {
    for command in ["get", "explain"] {
        let text = printed(&format!("{command} namespace/baker --manifests {BAKERY}"));
        assert!(text.contains("namespaces/baker"), "{text}");
        assert!(
            text.contains("retrypolicy/baker/be-patient: in force in part, reaches 6 paths"),
            "{text}"
        );
        assert!(text.contains("cachepolicy/baker/still-warm"), "{text}");
        assert_eq!(
            printed(&format!("{command} ns baker --manifests {BAKERY}")),
            text
        );
    }
    let text = printed(&format!("explain namespace/kitchen --manifests {BAKERY}"));
    assert!(
        text.contains("attached to the Namespace\n  none\n"),
        "{text}"
    );
    assert!(text.contains("retrypolicy/kitchen/do-not-burn"), "{text}");
}

#[test]
fn a_missing_file_is_unreadable_input_for_every_command() {
    for args in [
        "get",
        "get httproute/a/b",
        "explain httproute/a/b",
        "explain httproute/a/b --why-not retrypolicy/a/b",
        "resolve --host x",
        "status",
        "reach retrypolicy/a/b",
        "lint",
        "topology",
        "preview --delete httproute/a/b",
        "verify --config-dump Cargo.toml",
    ] {
        let args: Vec<&str> = args
            .split(' ')
            .chain(["--manifests", "does/not/exist"])
            .collect();
        assert_eq!(entail(&args).status.code(), Some(3), "{args:?}");
    }
    for args in [
        vec!["diff", "does/not/exist", BAKERY],
        vec!["diff", BAKERY, "does/not/exist"],
        vec!["test", "does/not/exist"],
        vec!["get", "--manifests", BAKERY, "--profiles", "does/not/exist"],
        vec!["preview", "-f", "does/not/exist", "--manifests", BAKERY],
    ] {
        assert_eq!(entail(&args).status.code(), Some(3), "{args:?}");
    }
}
