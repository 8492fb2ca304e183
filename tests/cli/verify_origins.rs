//! `entail verify` with dumps of proxies whose routes tell their rules, and with kgateway the policies that set fields. The
//! facts are those of kgateway's `traffic_policy_multi_level_inheritance_override_enabled.yaml`, and of Istio's
//! `pilot/pkg/config/kube/gateway/conversion.go`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const MANIFESTS: &str = r#"
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: c}, spec: {controllerName: CONTROLLER}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: infra}
spec: {gatewayClassName: c, listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: top, namespace: infra}
spec:
  parentRefs: [{name: web}]
  rules:
  - backendRefs: [{name: svc, port: 80}]
  - name: pay
    matches: [{path: {value: /pay}}]
    backendRefs: [{name: svc, port: 80}]
  - matches: [{path: {value: /a}}]
    backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child, namespace: a}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: child, namespace: a}
spec: {rules: [{matches: [{path: {value: /a/1}}]}]}
---
{apiVersion: v1, kind: Service, metadata: {name: svc, namespace: infra}, spec: {ports: [{port: 80}]}}
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: all, namespace: infra}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  csrf: {percentageEnabled: 100}
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: top, namespace: infra}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: top}]
  timeouts: {request: 1s}
  compression: {responseCompression: {}}
  rateLimit: {local: {tokenBucket: {maxTokens: 1}}}
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: child, namespace: a}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child}]
  rateLimit: {local: {tokenBucket: {maxTokens: 2}}}
  extProc: {extensionRef: {name: ext}}
  statPrefix: a
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: deny, namespace: infra}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}], action: DENY, rules: [{}]}
"#;

const BELOW: &str = "gateways/infra/web/listeners/http/routes/HTTPRoute/infra/top/rules";

/// An Envoy route of kgateway.
fn kgateway(number: u32, name: &str, source: Option<[&str; 3]>, origins: &Value) -> Value {
    let mut metadata = json!({"merge.TrafficPolicy.gateway.kgateway.dev": origins});
    if let Some([namespace, name, rule]) = source {
        metadata["dev.kgateway.route_source"] = json!({
            "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": namespace,
            "name": name, "rule": rule, "match": "_match-0",
        });
    }
    json!({
        "name": format!("listener~80~any-route-{number}-{name}-0-matcher-0"),
        "match": {"prefix": "/"}, "route": {"cluster": "c"},
        "metadata": {"filter_metadata": metadata},
    })
}

fn of(policies: &[&str]) -> Value {
    let ids = policies
        .iter()
        .map(|name| format!("gateway.kgateway.dev/TrafficPolicy/{name}"));
    ids.collect()
}

fn dump(node: Value, routes: &[Value], above: &Value) -> Value {
    json!({"configs": [
        {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"node": {"id": "x", "metadata": node}}},
        {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "dynamic_route_configs": [{"route_config": {
            "name": "listener~80",
            "virtual_hosts": [{"name": "listener~80~any", "domains": ["*"], "routes": routes}],
            "metadata": {"filter_metadata": {"merge.TrafficPolicy.gateway.kgateway.dev": above}},
        }}]},
    ]})
}

/// What a proxy of kgateway has.
fn proxy(with_source: bool) -> Value {
    let source = |source| with_source.then_some(source);
    let top = json!({
        "timeouts": of(&["infra/top"]), "rateLimit.local": of(&["infra/top"]), "compression": of(&["infra/top"]),
    });
    let child = json!({
        "timeouts": of(&["infra/top"]), "rateLimit.local": of(&["a/child"]), "extProc": of(&["a/child"]),
        "compression": of(&["infra/top"]),
    });
    let mut routes = vec![
        kgateway(
            0,
            "httproute-child-a-0",
            source(["a", "child", "_rule-0"]),
            &child,
        ),
        kgateway(
            2,
            "httproute-top-infra-0",
            source(["infra", "top", "_rule-0"]),
            &top,
        ),
    ];
    // The name of a route does not tell that of its rule.
    if with_source {
        routes.push(kgateway(
            1,
            "httproute-top-infra-1",
            source(["infra", "top", "pay"]),
            &top,
        ));
    }
    let role = json!({"role": "kgateway-kube-gateway-api~infra~web"});
    dump(role, &routes, &json!({"csrf": of(&["infra/all"])}))
}

fn verify(dump: &Value, controller: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("dump.json", &dump.to_string());
    write("world.yaml", &MANIFESTS.replace("CONTROLLER", controller));
    let path = |name: &str| Path::new(folder.path()).join(name);
    Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["verify", "--config-dump"])
        .arg(path("dump.json"))
        .arg("--manifests")
        .arg(path("world.yaml"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The findings, as verdict, field or kind, expected, actual, and the end of the first path.
fn findings(dump: &Value, controller: &str) -> (Value, Vec<String>) {
    let output = verify(dump, controller, &["-o", "json"]);
    let text = String::from_utf8_lossy(&output.stderr);
    let value: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {text}"));
    let told = value["findings"].as_array().unwrap().iter().map(|finding| {
        let text = |name: &str| finding[name].as_str().unwrap_or("-").to_owned();
        let field = [
            text("kind").split('.').next().unwrap().to_owned(),
            text("field"),
        ]
        .join(" ");
        let path = finding["places"][0]["path"]
            .as_str()
            .unwrap()
            .replace(BELOW, "");
        let parts = [
            text("verdict"),
            field,
            text("expected"),
            text("actual"),
            path,
        ];
        parts.join("|")
    });
    (value["summary"].clone(), told.collect())
}

const KGATEWAY: &str = "kgateway.dev/kgateway";
const STAT_PREFIX: &str =
    "cannot-tell|TrafficPolicy statPrefix|-|-|/#2/routes/HTTPRoute/a/child/rules/#0";

#[test]
fn a_proxy_of_kgateway_has_the_policies_that_should_be_in_effect() {
    let (summary, found) = findings(&proxy(true), KGATEWAY);
    assert_eq!(found, [STAT_PREFIX]);
    let number = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(
        (number("rules"), number("same"), number("sameInPart")),
        (3, 13, 13)
    );
}

#[test]
fn routes_of_older_versions_are_found_by_their_names() {
    let (summary, found) = findings(&proxy(false), KGATEWAY);
    let pay = "missing| |-|-|/pay";
    assert_eq!(found, [pay, STAT_PREFIX]);
    assert_eq!(summary["rules"], 3);
}

#[test]
fn other_policies_and_rules_in_a_proxy_of_kgateway_are_found() {
    let routes = "/configs/1/dynamic_route_configs/0/route_config/virtual_hosts/0/routes";
    let merge = "metadata/filter_metadata/merge.TrafficPolicy.gateway.kgateway.dev";
    for (at, value, expected) in [
        (
            format!("{routes}/0/{merge}/extProc"),
            of(&["a/other"]),
            "differs|TrafficPolicy extProc|of a/child|of a/other|/#2/routes/HTTPRoute/a/child/rules/#0",
        ),
        (
            format!("{routes}/0/{merge}/timeouts"),
            json!([]),
            "missing|TrafficPolicy timeouts|of infra/top|-|/#2/routes/HTTPRoute/a/child/rules/#0",
        ),
        (
            format!("{routes}/1/{merge}/timeouts"),
            of(&["infra/all", "infra/top"]),
            "differs|TrafficPolicy timeouts|of infra/top|of infra/all, infra/top|/#0",
        ),
        (
            format!("{routes}/2/metadata/filter_metadata/dev.kgateway.route_source/rule"),
            json!("gone"),
            "missing| |-|-|/pay\nextra| |-|-|HTTPRoute/infra/top/gone",
        ),
    ] {
        let mut dump = proxy(true);
        *dump.pointer_mut(&at).unwrap() = value;
        let (_, found) = findings(&dump, KGATEWAY);
        let mut expected: Vec<&str> = expected.split('\n').collect();
        expected.push(STAT_PREFIX);
        assert_eq!(found, expected, "{at}");
    }
    // A value of a virtual host counts where the route has none.
    let mut dump = proxy(true);
    *dump
        .pointer_mut("/configs/1/dynamic_route_configs/0/route_config/metadata")
        .unwrap() = json!(null);
    let (_, found) = findings(&dump, KGATEWAY);
    assert_eq!(
        found,
        ["missing|TrafficPolicy csrf|of infra/all|-|/#0", STAT_PREFIX]
    );
    // Status 500: nothing of the rule is compared.
    let mut dump = proxy(true);
    let route = dump.pointer_mut(&format!("{routes}/1")).unwrap();
    route["direct_response"] = json!({"status": 500});
    let (_, found) = findings(&dump, KGATEWAY);
    assert_eq!(found, ["cannot-tell|TrafficPolicy |-|-|/#0", STAT_PREFIX]);
}

#[test]
fn a_proxy_of_istio_tells_its_rules() {
    let route = |name: &str| json!({"name": name, "route": {"cluster": "c"}, "metadata": {"filter_metadata": {"istio": {"config": "/apis/x"}}}});
    let node =
        json!({"NAMESPACE": "infra", "LABELS": {"gateway.networking.k8s.io/gateway-name": "web"}});
    let routes = [
        route("infra.top.0"),
        route("pay"),
        route("infra.top.2"),
        route("infra.other.0"),
    ];
    let (summary, found) = findings(
        &dump(node, &routes, &Value::Null),
        "istio.io/gateway-controller",
    );
    let policy = "cannot-tell|AuthorizationPolicy |-|-|/#0";
    let listener = "cannot-tell|AuthorizationPolicy |-|-|gateways/infra/web/listeners/http";
    assert_eq!(found, ["extra| |-|-|istio/infra.other.0", policy, listener]);
    assert_eq!(summary["rules"], 3);
}

#[test]
fn a_dump_that_does_not_tell_its_gateway_is_refused() {
    let mut dump = proxy(true);
    *dump
        .pointer_mut("/configs/0/bootstrap/node/metadata")
        .unwrap() = json!({"role": "other~a"});
    let output = verify(&dump, KGATEWAY, &[]);
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("which Gateway the proxy serves"), "{text}");
}
