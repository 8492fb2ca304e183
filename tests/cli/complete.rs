//! `--assume-complete`: references to objects that the manifests do not hold.

use std::path::Path;
use std::process::{Command, Output};

/// A policy with a Secret, and another with a Secret that is not among the manifests.
const WORLD: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: c}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: ns}
spec: {gatewayClassName: c, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: ns}
spec: {parentRefs: [{name: gw}], rules: [{name: one}, {name: two}]}
---
apiVersion: v1
kind: Secret
metadata: {name: there, namespace: ns}
stringData: {.htpasswd: hunter2}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: one, namespace: ns}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r, sectionName: one}]
  basicAuth: {users: {name: there}}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: two, namespace: ns}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r, sectionName: two}]
  basicAuth: {users: {name: elsewhere}}
";

fn status(file: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command
        .arg("status")
        .args(args)
        .arg("--manifests")
        .arg(file);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn write(folder: &tempfile::TempDir) -> std::path::PathBuf {
    let file = folder.path().join("world.yaml");
    std::fs::write(&file, WORLD).unwrap();
    file
}

#[test]
fn a_secret_may_be_elsewhere_unless_the_manifests_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder);
    let found = text(&status(&file, &[]).stdout);
    assert!(found.contains("2 in force"), "{found}");
    for args in [
        &["--assume-complete", "Secret"][..],
        &["--assume-complete", "ConfigMap,Secret"],
        &[
            "--assume-complete",
            "ConfigMap",
            "--assume-complete",
            "Secret",
        ],
    ] {
        let output = status(&file, args);
        let found = text(&output.stdout);
        assert!(found.contains("1 in force"), "{found}");
        assert!(found.contains("1 not accepted"), "{found}");
        assert!(
            found.contains("`Secret/ns/elsewhere` does not exist"),
            "{found}"
        );
        assert!(!found.contains("Secret/ns/there"), "{found}");
    }
    // Of another kind, nothing more is known than before.
    let found = text(&status(&file, &["--assume-complete", "ConfigMap"]).stdout);
    assert!(found.contains("2 in force"), "{found}");
}

#[test]
fn only_names_of_secrets_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder);
    for format in ["table", "json", "yaml"] {
        let output = status(&file, &["--assume-complete", "Secret", "--output", format]);
        let printed = text(&output.stdout) + &text(&output.stderr);
        assert!(!printed.contains("hunter2"), "{printed}");
    }
}

#[test]
fn usage_errors_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(&folder);
    for kind in ["secret", "", "Secret.", "Secret,,"] {
        let output = status(&file, &["--assume-complete", kind]);
        assert_eq!(output.status.code(), Some(2), "{kind}");
        assert!(text(&output.stderr).contains("Kind.group"), "{kind}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(["status", "--kube", "--assume-complete", "Secret"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(
        message.contains("`--assume-complete` and `--kube`"),
        "{message}"
    );
}

/// A selector that keeps one of two objects tells which it lost.
#[test]
fn a_selector_tells_which_objects_it_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("world.yaml");
    let world = "
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: c}, spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: gw, namespace: ns}, spec: {gatewayClassName: c, listeners: [{name: http, port: 80, protocol: HTTP}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: a, namespace: ns, labels: {x: y}}, spec: {parentRefs: [{name: gw}], rules: [{name: one}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: b, namespace: ns, labels: {x: y}}, spec: {parentRefs: [{name: gw}], rules: [{name: one}]}}
---
{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: SecurityPolicy, metadata: {name: old, namespace: ns, creationTimestamp: '2026-01-01T00:00:00Z'}, spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}], cors: {}}}
---
{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: SecurityPolicy, metadata: {name: new, namespace: ns, creationTimestamp: '2026-01-02T00:00:00Z'}, spec: {targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {x: y}}], cors: {}}}
";
    std::fs::write(&file, world).unwrap();
    let found = text(&status(&file, &[]).stdout).replace("\n     ", "");
    let lost =
        "spec.targetSelectors[0]: `HTTPRoute/ns/a`: conflicts with the established policy `ns/old`";
    assert!(found.contains(lost), "{found}");
    assert!(found.contains("2 in force"), "{found}");
}
