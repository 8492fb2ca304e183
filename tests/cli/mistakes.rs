//! Commands report mistakes in manifests, options and names, which would read as "no policy".

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const MANIFESTS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: mine}
spec: {controllerName: mine.example.com/gateway}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: shop}
spec: {gatewayClassName: mine, allowedListeners: {namespaces: {from: All}}, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XListenerSet
metadata: {name: more, namespace: shop}
spec: {parentRef: {name: gw}, listeners: [{name: web, port: 81, protocol: HTTP}]}
---
apiVersion: v1
kind: Service
metadata: {name: till, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: gw}, {name: gw, sectionName: https}]
  rules: [{backendRefs: [{name: till, port: 80}, {name: till, port: 81}, {name: tlil, port: 80}, {name: oven, namespace: baker, port: 80}]}]
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: cors, namespace: shop}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}], cors: {allowOrigins: ['*']}}
";

const MINE: &str = "mine.example.com/gateway=gateway.envoyproxy.io";

/// Runs a command in a folder with the manifests, with a text on standard input.
fn run(folder: &Path, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// What a command says, in one line, and its exit code.
fn said(output: &Output) -> (String, Option<i32>) {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    let words = String::from_utf8_lossy(&all);
    let words: Vec<&str> = words.split_whitespace().collect();
    (words.join(" "), output.status.code())
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.yaml"), MANIFESTS).unwrap();
    folder
}

#[track_caller]
fn assert_says(args: &[&str], input: &str, code: i32, expected: &[&str]) {
    let folder = folder();
    let (words, found) = said(&run(folder.path(), args, input));
    assert_eq!(found, Some(code), "{args:?}: {words}");
    for one in expected {
        assert!(words.contains(one), "{args:?} lacks {one}: {words}");
    }
}

#[test]
fn an_alias_that_means_no_profile_leaves_the_controller_unknown() {
    let get = [
        "get",
        "httproute/shop/shop",
        "--manifests",
        "a.yaml",
        "--controller",
    ];
    assert_says(&[&get[..], &[MINE]].concat(), "", 0, &["allowOrigins"]);
    assert_says(
        &[
            &get[..],
            &["mine.example.com/gateway=gateway.envoyproxy.oi"],
        ]
        .concat(),
        "",
        3,
        &[
            "is UNKNOWN",
            "alias ignored",
            "did you mean `gateway.envoyproxy.io`?",
        ],
    );
}

#[test]
fn a_kind_of_which_nobody_asks_is_not_complete_without_a_word() {
    let status = [
        "status",
        "--manifests",
        "a.yaml",
        "--controller",
        MINE,
        "--assume-complete",
    ];
    for (kind, expected) in [
        ("ConfigMaps", "did you mean `ConfigMap`?"),
        ("Nothing", "`--assume-complete Nothing` has no effect"),
    ] {
        assert_says(&[&status[..], &[kind]].concat(), "", 0, &[expected]);
    }
    let output = run(folder().path(), &[&status[..], &["ConfigMap"]].concat(), "");
    assert!(!said(&output).0.contains("has no effect"));
}

#[test]
fn checks_of_nothing_do_not_pass() {
    for (args, input) in [
        (&["lint", "--manifests", "-"][..], ""),
        (&["lint", "--manifests", "-"], "# nothing\n---\n"),
        (&["preview", "--manifests", "a.yaml", "-f", "-"], "\n"),
    ] {
        let (words, code) = said(&run(folder().path(), args, input));
        assert_eq!(code, Some(3), "{args:?}: {words}");
        assert!(words.contains("check the"), "{args:?}: {words}");
    }
}

#[test]
fn a_preview_says_why_a_policy_has_no_effect() {
    let policy = "
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: new, namespace: shop}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shpo}], cors: {allowOrigins: [x]}}
";
    let args = [
        "preview",
        "--manifests",
        "a.yaml",
        "--controller",
        MINE,
        "-f",
        "-",
    ];
    let expected = "SecurityPolicy.gateway.envoyproxy.io/shop/new: this SecurityPolicy is not accepted: TargetNotFound: \
                    spec.targetRefs[0]: `HTTPRoute/shop/shpo` does not exist; did you mean `shop`?";
    assert_says(&args, policy, 0, &[expected]);
    let (other, _) = said(&run(
        folder().path(),
        &[&args[..], &["--kind", "BackendTrafficPolicy"]].concat(),
        policy,
    ));
    assert!(!other.contains("is not accepted"), "{other}");
}

#[test]
fn lint_names_backends_that_routes_name_in_vain() {
    let args = ["lint", "--manifests", "a.yaml", "--controller", MINE];
    assert_says(
        &args,
        "",
        1,
        &[
            "E060 warning: spec.rules[0].backendRefs: `Service/shop/tlil` does not exist",
            "E061 warning: spec.rules[0].backendRefs: `Service/shop/till` has no port 81",
            "`Service/baker/oven` is in another namespace, and no ReferenceGrant there permits it",
            "does not attach to Gateway `shop/gw`: it has no listener with this sectionName and port",
        ],
    );
}

#[test]
fn a_listener_set_has_two_names() {
    for name in [
        "xlistenerset",
        "listenersets",
        "XListenerSet.gateway.networking.x-k8s.io",
    ] {
        let name = format!("{name}/shop/more");
        let args = [
            "explain",
            &name,
            "--manifests",
            "a.yaml",
            "--controller",
            MINE,
        ];
        assert_says(&args, "", 0, &["no policy of any kind applies"]);
    }
}
