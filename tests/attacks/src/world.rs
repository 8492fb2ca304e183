//! The quiet world: some hundred routes with policies, in which the neighbour looks up paths.

use std::fmt::Write;

/// The number of HTTPRoutes, each with two rules and a policy.
pub const ROUTES: usize = 300;
/// The file with the ordinary policy, which is edited.
pub const ORDINARY: &str = "ordinary.yaml";

/// Returns the files of the world.
pub fn files() -> Vec<(String, String)> {
    vec![
        ("profiles.yaml".to_owned(), PROFILES.to_owned()),
        ("routes.yaml".to_owned(), routes()),
        ("policies.yaml".to_owned(), policies()),
        (ORDINARY.to_owned(), ordinary(0)),
    ]
}

/// The name of a path; `rule` is 0 or 1.
pub fn path(route: usize, rule: usize) -> String {
    format!("gateways/quiet/web/listeners/http/routes/HTTPRoute/quiet/r{route}/rules/#{rule}")
}

/// The policy of the Gateway: all answers have its marker.
pub fn ordinary(marker: u64) -> String {
    format!(
        "apiVersion: quiet.example/v1\nkind: RetryPolicy\nmetadata: {{name: ordinary, namespace: quiet}}\n\
         spec:\n  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: web}}]\n  \
         defaults: {{strategy: merge, marker: {marker}}}\n"
    )
}

/// A tenant's Namespace-wide kinds use these profiles, which the operator has installed: blocks with
/// conditions, and named rules.
const PROFILES: &str = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: retrypolicies.quiet.example}
spec:
  preset: gep713
  policy: {group: quiet.example, kind: RetryPolicy}
  targets:
  - {group: gateway.networking.k8s.io, kind: Gateway}
  - {group: gateway.networking.k8s.io, kind: HTTPRoute}
  effectiveTarget: RouteRule
  strategy: {values: {atomic: Atomic, merge: Patch}}
---
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: limitpolicies.quiet.example}
spec:
  preset: kuadrant-rfc0009
  policy: {group: quiet.example, kind: LimitPolicy}
  targets:
  - {group: gateway.networking.k8s.io, kind: Gateway}
  - {group: gateway.networking.k8s.io, kind: HTTPRoute}
  - {group: gateway.networking.k8s.io, kind: TCPRoute}
  effectiveTarget: RouteRule
  ruleMaps: [limits]
";

fn routes() -> String {
    let mut text = String::from(
        "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: quiet}
spec: {controllerName: quiet.example/gateway}
---
apiVersion: v1
kind: Namespace
metadata: {name: quiet}
---
apiVersion: v1
kind: Namespace
metadata: {name: hostile}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: quiet}
spec:
  gatewayClassName: quiet
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: quiet}
spec: {ports: [{port: 80}]}
",
    );
    for route in 0..ROUTES {
        let rules = ["a", "b"].map(|name| {
            format!(
                "{{matches: [{{path: {{value: /{name}}}}}], backendRefs: [{{name: s, port: 80}}]}}"
            )
        });
        write!(
            text,
            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: r{route}, \
             namespace: quiet}}\nspec:\n  parentRefs: [{{name: web}}]\n  hostnames: \
             [h{route}.quiet.example]\n  rules: [{}]\n",
            rules.join(", ")
        )
        .unwrap();
    }
    text
}

fn policies() -> String {
    let mut text = String::new();
    for route in 0..ROUTES {
        write!(
            text,
            "---\napiVersion: quiet.example/v1\nkind: RetryPolicy\nmetadata: {{name: p{route}, namespace: \
             quiet}}\nspec:\n  targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: \
             r{route}}}]\n  defaults: {{strategy: merge, attempts: {route}, codes: [500, 502, 503], note: \
             '{}'}}\n",
            "n".repeat(200)
        )
        .unwrap();
    }
    text
}
