//! Policies on Services without a waypoint, and waypoints that are not in the input.

use std::process::{Command, Output};

/// Two Services, one of which names a waypoint that is missing, each with a policy.
const MANIFESTS: &str = "
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop, labels: {istio.io/use-waypoint: waypoint}}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: stock, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: cart, namespace: shop}
spec: {action: DENY, targetRefs: [{group: '', kind: Service, name: cart}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: stock, namespace: shop}
spec: {action: DENY, targetRefs: [{group: '', kind: Service, name: stock}]}
";

/// The waypoint and its class.
const WAYPOINT: &str = "---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: istio-waypoint}
spec: {controllerName: istio.io/mesh-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: waypoint, namespace: shop}
spec: {gatewayClassName: istio-waypoint, listeners: [{name: mesh, port: 15008, protocol: HBONE}]}
";

fn entail(manifests: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mesh.yaml");
    std::fs::write(&file, manifests).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(args).arg("--manifests").arg(&file);
    command.output().unwrap()
}

fn printed(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    // Lines are wrapped.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn lint_and_status_name_a_service_without_a_waypoint() {
    let complete = format!("{MANIFESTS}{WAYPOINT}");
    let words =
        "Service `shop/stock` has no waypoint, so the policy does not apply to its requests";
    let lint = printed(&entail(&complete, &["lint"]));
    assert!(lint.contains(words), "{lint}");
    assert_eq!(lint.matches("[NoWaypoint]").count(), 1, "{lint}");
    let status = printed(&entail(&complete, &["status"]));
    assert_eq!(status.matches(words).count(), 1, "{status}");
    let cart = entail(&complete, &["get", "service/shop/cart"]);
    assert_eq!(cart.status.code(), Some(0), "{cart:?}");
    assert!(printed(&cart).contains("shop/cart"), "{cart:?}");
}

#[test]
fn a_missing_waypoint_is_not_known() {
    let output = entail(MANIFESTS, &["get", "mesh/web/services/shop/cart"]);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    for words in [
        "AuthorizationPolicy.security.istio.io is UNKNOWN: Gateway `shop/waypoint`",
        "Add a missing Gateway or GatewayClass",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
