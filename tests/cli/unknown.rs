//! Commands say first what is not known, and exit with status 3.

use std::path::Path;
use std::process::{Command, Output};

/// A Gateway whose GatewayClass is missing, a filter and a policy of kinds without a profile.
const MANIFESTS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra}
spec: {gatewayClassName: mine, listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec:
  parentRefs: [{name: gw, namespace: infra}]
  rules:
  - name: pay
    filters: [{type: ExtensionRef, extensionRef: {group: traefik.io, kind: Middleware, name: auth}}]
  - name: browse
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: cors, namespace: shop}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}], cors: {allowOrigins: ['*']}}
---
apiVersion: foo.example.com/v1
kind: FooPolicy
metadata: {name: foo, namespace: infra}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]}
";

const SECURITY: &str = "SecurityPolicy.gateway.envoyproxy.io is UNKNOWN";
const FOO: &str = "FooPolicy.foo.example.com is UNKNOWN";
const FILTER: &str = "Middleware.traefik.io is UNKNOWN";

fn entail(file: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(args).arg("--manifests").arg(file);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    // Lines are wrapped.
    String::from_utf8_lossy(bytes).replace('\n', " ")
}

#[test]
fn commands_begin_with_what_is_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.yaml");
    std::fs::write(&file, MANIFESTS).unwrap();
    let all = [SECURITY, FOO, FILTER];
    for (args, expected) in [
        (vec!["get"], &all[..]),
        (vec!["get", "httproute/shop/shop"], &all),
        (vec!["explain", "httproute/shop/shop"], &all),
        (vec!["status"], &all),
        (vec!["lint"], &all),
        (vec!["resolve", "--host", "any.example"], &all),
        (vec!["reach", "securitypolicy/shop/cors"], &all),
        (vec!["get", "--kind", "SecurityPolicy"], &[SECURITY]),
    ] {
        let output = entail(&file, &args);
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        let printed = text(&output.stdout);
        assert!(printed.starts_with("INCOMPLETE: "), "{args:?}: {printed}");
        for line in expected {
            assert!(printed.contains(line), "{args:?} lacks {line}: {printed}");
        }
        assert!(printed.contains("--assume-class"), "{args:?}: {printed}");
    }
    let output = entail(&file, &["get", "-o", "json"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains(SECURITY));
    let whole: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        whole["paths"]
            .as_array()
            .is_some_and(|paths| !paths.is_empty())
    );
}

#[test]
fn a_kind_without_a_profile_is_unknown_wherever_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.yaml");
    let other = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: other, namespace: infra}\n\
                 spec: {gatewayClassName: x, listeners: [{name: http, port: 80, protocol: HTTP}]}\n";
    std::fs::write(&file, format!("{MANIFESTS}{other}")).unwrap();
    for command in ["get", "explain"] {
        let output = entail(
            &file,
            &[command, "gateway/infra/other", "--kind", "FooPolicy"],
        );
        assert_eq!(output.status.code(), Some(3), "{command}");
        assert!(text(&output.stdout).contains(FOO), "{command}: {output:?}");
    }
    // Nothing unknown refers to this Gateway.
    let output = entail(&file, &["get", "gateway/infra/other"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn options_say_what_a_controller_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.yaml");
    std::fs::write(&file, MANIFESTS).unwrap();
    let get = ["get", "httproute/shop/shop", "--kind", "SecurityPolicy"];
    for more in [
        &[
            "--assume-class",
            "mine=gateway.envoyproxy.io/gatewayclass-controller",
        ][..],
        &[
            "--assume-class",
            "mine=my.example.com/gw",
            "--controller",
            "my.example.com/gw=gateway.envoyproxy.io",
        ],
    ] {
        let output = entail(&file, &[&get[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{more:?}: {output:?}");
        assert!(text(&output.stdout).contains("allowOrigins"), "{more:?}");
    }
    // Another controller is known not to act on it.
    let output = entail(
        &file,
        &[
            &get[..],
            &["--assume-class", "mine=istio.io/gateway-controller"],
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(!text(&output.stdout).contains("allowOrigins"));
    let output = entail(&file, &[&get[..], &["--assume-class", "mine"]].concat());
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_comparison_says_what_is_not_known_on_either_side() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
    let class = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: mine}\n\
                 spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}\n";
    std::fs::write(&before, MANIFESTS).unwrap();
    std::fs::write(&after, format!("{MANIFESTS}{class}")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    let output = command
        .arg("diff")
        .arg(&before)
        .arg(&after)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    let printed = text(&output.stdout);
    assert!(
        printed.contains(SECURITY) && printed.contains("allowOrigins"),
        "{printed}"
    );
}

#[test]
fn a_comparison_says_what_is_not_known_on_paths_of_one_side() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    // Without the Route, no path that both sides have is in doubt.
    let documents: Vec<&str> = MANIFESTS.split("---\n").collect();
    let is_route = |document: &&&str| document.contains("kind: HTTPRoute");
    let others: Vec<&str> = documents.iter().filter(|d| !is_route(d)).copied().collect();
    assert!(others.len() < documents.len());
    let whole = file("whole.yaml", MANIFESTS);
    let without = file("without.yaml", &others.join("---\n"));
    let filter = "{type: ExtensionRef, extensionRef: {group: x.example, kind: Auth, name: a}}";
    let known = |rules: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {{name: mine}}\n\
             spec: {{controllerName: gateway.envoyproxy.io/gatewayclass-controller}}\n---\n{}---\n\
             apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n\
             metadata: {{name: more, namespace: infra}}\nspec: {{parentRefs: [{{name: gw}}], rules: [{rules}]}}\n",
            others.join("---\n")
        )
    };
    let one = file("one.yaml", &known("{name: one}"));
    let two = known(&format!(
        "{{name: one}}, {{name: two, filters: [{filter}]}}"
    ));
    let two = file("two.yaml", &two);
    let security = "SecurityPolicy.gateway.envoyproxy.io is UNKNOWN";
    for (from, to, unknown) in [
        (&without, &whole, security),
        (&whole, &without, security),
        (&one, &two, "Auth.x.example is UNKNOWN"),
        (&two, &one, "Auth.x.example is UNKNOWN"),
    ] {
        for format in ["table", "markdown", "json"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
            command.args(["diff", "-o", format]).args([from, to]);
            let output = command.output().unwrap();
            let printed = [&output.stdout, &output.stderr]
                .map(|bytes| text(bytes))
                .concat();
            assert_eq!(output.status.code(), Some(3), "{printed}");
            let named = unknown.strip_suffix(" is UNKNOWN").unwrap();
            assert!(printed.contains(named), "{printed}");
            assert!(format != "table" || printed.contains(unknown), "{printed}");
        }
    }
}

/// A Gateway with parameters, as of Envoy Gateway, and a filter kind that is a part of its routing.
const PARAMETERS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: eg}
spec:
  controllerName: gateway.envoyproxy.io/gatewayclass-controller
  parametersRef: {group: gateway.envoyproxy.io, kind: EnvoyProxy, name: proxy, namespace: infra}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra}
spec: {gatewayClassName: eg, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: infra}
spec:
  parentRefs: [{name: gw}]
  rules:
  - filters: [{type: ExtensionRef, extensionRef: {group: gateway.envoyproxy.io, kind: HTTPRouteFilter, name: f}}]
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: HTTPRouteFilter
metadata: {name: f, namespace: infra}
spec: {urlRewrite: {}}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: cors, namespace: infra}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}], cors: {allowOrigins: ['*']}}
";

#[test]
fn parameters_are_noted_once_and_beside_the_answer() {
    const NOTE: &str =
        "GatewayClass/eg is configured by EnvoyProxy.gateway.envoyproxy.io infra/proxy";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.yaml");
    std::fs::write(&file, PARAMETERS).unwrap();
    for args in [
        &["explain", "httproute/infra/shop"][..],
        &["status"],
        &["resolve", "--host", "any.example"],
    ] {
        let output = entail(&file, args);
        assert_eq!(output.status.code(), Some(0), "{args:?} {output:?}");
        let printed = String::from_utf8_lossy(&output.stdout);
        let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(printed.matches(NOTE).count(), 1, "{args:?}: {printed}");
        // A routing filter of the project is no policy.
        assert!(!printed.contains("HTTPRouteFilter"), "{args:?}: {printed}");
        let output = entail(&file, &[args, &["-o", "json"]].concat());
        let whole: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let parameters = &whole["unreadParameters"];
        assert_eq!(parameters[0]["object"], "GatewayClass/eg", "{args:?}");
        assert_eq!(parameters[0]["name"], "proxy", "{args:?}");
    }
    let printed = text(&entail(&file, &["lint"]).stdout);
    assert!(printed.contains("E010 note: configured by"), "{printed}");
    assert!(printed.contains("[ParametersNotRead]"), "{printed}");
    assert!(printed.contains(": GatewayClass/eg "), "{printed}");
    let output = entail(&file, &["get"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!text(&output.stdout).contains("EnvoyProxy"), "{output:?}");
}

#[test]
fn a_class_whose_controller_no_profile_lists_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("class.yaml");
    let of = |controller: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {{name: c}}\n\
             spec: {{controllerName: {controller}}}\n"
        )
    };
    let finding = "E015 note: no profile lists controller `konghq.com/kic-gateway-controller`";
    for (controller, args, is_reported) in [
        ("konghq.com/kic-gateway-controller", &[][..], true),
        (
            "konghq.com/kic-gateway-controller",
            &[
                "--controller",
                "konghq.com/kic-gateway-controller=kuadrant.io",
            ],
            false,
        ),
        ("gateway.envoyproxy.io/gatewayclass-controller", &[], false),
    ] {
        std::fs::write(&file, of(controller)).unwrap();
        let output = entail(&file, &[&["lint"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let printed = text(&output.stdout);
        let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            printed.contains(finding),
            is_reported,
            "{args:?}: {printed}"
        );
    }
}

/// A Route of kgateway that delegates to another, which has a policy. How a deep merge goes is not known.
const DELEGATION: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: kgateway}
spec: {controllerName: kgateway.dev/kgateway}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: parent, namespace: infra, annotations: {kgateway.dev/inherited-policy-priority: DeepMergePreferChild}}
spec:
  parentRefs: [{name: gw}]
  rules:
  - name: shop
    matches: [{path: {value: /shop}}]
    backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child, namespace: shop}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: child, namespace: shop}
spec:
  rules:
  - matches: [{path: {value: /shop}}]
    backendRefs: [{name: shop, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: timeouts, namespace: shop}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child}], timeouts: {request: 1s}}
";

#[test]
fn rules_that_delegate_are_not_known() {
    const TRAFFIC: &str = "TrafficPolicy.gateway.kgateway.dev is UNKNOWN: a rule of the path delegates to HTTPRoute/shop/child";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.yaml");
    std::fs::write(&file, DELEGATION).unwrap();
    for args in [
        &["get"][..],
        &["get", "httproute/infra/parent"],
        &["explain", "httproute/infra/parent"],
        &["status"],
        &["lint"],
        &["reach", "trafficpolicy/shop/timeouts"],
        &["resolve", "--host", "any.example", "--path", "/shop"],
    ] {
        let output = entail(&file, args);
        assert_eq!(output.status.code(), Some(3), "{args:?} {output:?}");
        let printed = text(&output.stdout);
        assert!(printed.contains(TRAFFIC), "{args:?}: {printed}");
    }
    let printed = text(&entail(&file, &["reach", "trafficpolicy/shop/timeouts"]).stdout);
    let because = "is not known to be in force: rules of Routes delegate to or from its targets";
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains(because), "{printed}");
    // The child Route, a rule of it and its backend are on a path, where nothing is known.
    for name in [
        "httproute/shop/child",
        "httproute/shop/child#0",
        "service/shop/shop",
    ] {
        for command in ["get", "explain"] {
            let output = entail(&file, &[command, name]);
            assert_eq!(output.status.code(), Some(3), "{command} {name}");
            let printed = text(&output.stdout);
            assert!(printed.contains(TRAFFIC), "{command} {name}: {printed}");
        }
    }
}

#[test]
fn policies_of_parent_and_child_routes_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.yaml");
    let policy = "---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: parent, namespace: infra}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: parent}], timeouts: {request: 9s}, csrf: {percentageEnabled: 1}}
";
    let path = "gateways/infra/gw/listeners/http/routes/HTTPRoute/infra/parent/rules/shop/routes/HTTPRoute/shop/child/rules/#0";
    let at = |preference: &str, args: &[&str]| {
        let text = DELEGATION.replace("DeepMergePreferChild", preference) + policy;
        std::fs::write(&file, text).unwrap();
        entail(&file, args)
    };
    for (preference, request) in [
        ("ShallowMergePreferChild", "1s"),
        ("ShallowMergePreferParent", "9s"),
    ] {
        for args in [
            &["get", path][..],
            &["get", "httproute/shop/child"],
            &["explain", "httproute/shop/child#0"],
            &["resolve", "--host", "any.example", "--path", "/shop/x"],
        ] {
            let output = at(preference, args);
            assert_eq!(output.status.code(), Some(0), "{args:?} {output:?}");
            let printed = text(&output.stdout);
            assert!(
                printed.contains(&format!("request: {request}")),
                "{args:?}: {printed}"
            );
            assert!(
                printed.contains("percentageEnabled: 1"),
                "{args:?}: {printed}"
            );
        }
    }
    let printed = text(&at("ShallowMergePreferParent", &["explain", path]).stdout);
    assert!(printed.contains("precedes its child Routes"), "{printed}");
    let lint = at("ShallowMergePreferParent", &["lint"]);
    assert!(
        !text(&lint.stdout).contains("DelegationNotFollowed"),
        "{lint:?}"
    );
    // The rule that delegates takes no request of its own.
    let output = at(
        "ShallowMergePreferChild",
        &["get", "httproute/infra/parent#shop"],
    );
    let printed = text(&output.stdout);
    assert!(
        printed.contains("inherited only; takes effect at a lower level"),
        "{printed}"
    );
}

#[test]
fn rules_that_lead_back_and_children_in_vain_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.yaml");
    let back = "    backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: parent, namespace: infra}]";
    let circle = DELEGATION
        .replace("    backendRefs: [{name: shop, port: 80}]", back)
        .replace("  parentRefs: [{name: gw}]\n", "  parentRefs: [{name: gw}, {group: gateway.networking.k8s.io, kind: HTTPRoute, name: child, namespace: shop}]\n");
    std::fs::write(&file, circle).unwrap();
    let printed = text(&entail(&file, &["lint"]).stdout);
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        printed.contains("which is not followed: a child Route delegates back"),
        "{printed}"
    );
    for name in [
        "httproute/shop/child",
        "gateways/infra/gw/listeners/http/routes/HTTPRoute/infra/parent/rules/shop/routes/HTTPRoute/shop/child",
    ] {
        let output = entail(&file, &["get", name]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let printed = text(&output.stderr);
        assert!(printed.contains("not followed"), "{name}: {printed}");
    }
    let hosts = DELEGATION.replace(
        "shop}\nspec:\n  rules:",
        "shop}\nspec:\n  hostnames: [a.example]\n  rules:",
    );
    std::fs::write(&file, hosts).unwrap();
    let printed = text(&entail(&file, &["lint"]).stdout);
    assert!(printed.contains("[ChildRouteHasHostnames]"), "{printed}");
}

/// A policy whose authority is in a namespace of which nothing is known.
const FAILS_OPEN: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: envoy}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra}
spec: {gatewayClassName: envoy, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: infra}
spec: {parentRefs: [{name: gw}], rules: [{name: one}]}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: auth, namespace: infra}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  extAuth: {failOpen: true, grpc: {backendRefs: [{name: authority, namespace: auth, port: 80}]}}
";

#[test]
fn references_that_fail_open_and_cannot_be_checked_are_told() {
    const SECURITY: &str = "SecurityPolicy.gateway.envoyproxy.io is UNKNOWN: it is not known whether \
                            `Service/auth/authority` exists, to which infra/auth refers";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("infra.yaml");
    std::fs::write(&file, FAILS_OPEN).unwrap();
    for args in [
        &["get", "httproute/infra/r"][..],
        &["explain", "httproute/infra/r"],
        &["status"],
        &["lint"],
    ] {
        let output = entail(&file, args);
        assert_eq!(output.status.code(), Some(3), "{args:?} {output:?}");
        let printed = text(&output.stdout);
        assert!(printed.contains(SECURITY), "{args:?}: {printed}");
    }
    // The values are shown all the same: they hold if the Service exists.
    let printed = text(&entail(&file, &["get", "httproute/infra/r"]).stdout);
    assert!(printed.contains("name: authority"), "{printed}");
    // With the Service and the permission nothing is left to tell.
    let permitted = "---\napiVersion: v1\nkind: Service\nmetadata: {name: authority, namespace: auth}\n\
        spec: {ports: [{port: 80}]}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: ReferenceGrant\n\
        metadata: {name: all, namespace: auth}\nspec:\n  from: [{group: gateway.envoyproxy.io, \
        kind: SecurityPolicy, namespace: infra}]\n  to: [{group: '', kind: Service}]\n";
    std::fs::write(&file, format!("{FAILS_OPEN}{permitted}")).unwrap();
    let output = entail(&file, &["get", "httproute/infra/r"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains("name: authority"));
}

/// A listener that selects Routes by labels of their Namespaces.
const SELECTING: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: infra}
spec:
  gatewayClassName: mine
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {LABEL: shop}}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec: {parentRefs: [{name: gw, namespace: infra}], rules: [{}]}
";

#[test]
fn namespaces_whose_labels_are_not_known_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    let selecting = SELECTING.replace("LABEL", "team");
    let namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    for (manifests, is_named) in [
        (selecting.clone(), true),
        (format!("{selecting}{namespace}"), false),
        // Every Namespace has this label.
        (
            SELECTING.replace("LABEL", "kubernetes.io/metadata.name"),
            false,
        ),
    ] {
        std::fs::write(&file, manifests).unwrap();
        for command in ["get", "lint", "status"] {
            let output = entail(&file, &[command]);
            let printed = text(&output.stdout);
            let line = "INCOMPLETE: Namespace is UNKNOWN: the manifests do not contain the Namespace `shop`";
            assert_eq!(printed.contains(line), is_named, "{command}: {printed}");
            assert_eq!(
                output.status.code() == Some(3),
                is_named,
                "{command}: {output:?}"
            );
            for accepted in [
                &["--allow-partial"][..],
                &["--assume-complete", "Namespace"],
            ] {
                let output = entail(&file, &[&[command], accepted].concat());
                assert_ne!(output.status.code(), Some(3), "{command}: {output:?}");
            }
        }
    }
}

#[test]
fn input_that_cannot_be_read_is_said_first() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("a.yaml"),
        SELECTING.replace("LABEL", "kubernetes.io/metadata.name"),
    )
    .unwrap();
    std::fs::write(folder.path().join("b.yaml"), "a: [").unwrap();
    for args in [
        &["get"][..],
        &["get", "httproute/shop/shop"],
        &["status"],
        &["explain", "httproute/shop/shop"],
    ] {
        let output = entail(folder.path(), args);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let printed = text(&output.stdout);
        assert!(
            printed.starts_with("INCOMPLETE: all kinds are STALE: some input"),
            "{args:?}: {printed}"
        );
    }
}

#[test]
fn objects_that_are_no_policies_are_not_missing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    std::fs::write(&file, MANIFESTS).unwrap();
    for args in [
        &["status", "httproute/shop/shop"][..],
        &["reach", "gateway/infra/gw"],
        &[
            "explain",
            "httproute/shop/shop",
            "--why-not",
            "gateway/infra/gw",
        ],
    ] {
        let errors = text(&entail(&file, args).stderr);
        assert!(
            errors.contains("exists, but is no policy of a kind that has a profile"),
            "{args:?}: {errors}"
        );
    }
    let typo = text(&entail(&file, &["status", "--kind", "SecurtyPolicy"]).stdout);
    assert!(typo.contains("did you mean `SecurityPolicy`?"), "{typo}");
}

#[test]
fn a_folder_without_manifests_is_told_from_one_without_policies() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.yaml.tmpl"), MANIFESTS).unwrap();
    let errors = text(&entail(folder.path(), &["get"]).stderr);
    assert!(errors.contains("there are no manifests"), "{errors}");
}

#[test]
fn no_policy_of_an_unknown_kind_is_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    std::fs::write(&file, MANIFESTS).unwrap();
    let output = entail(&file, &["get", "httproute/shop/shop", "--kind", "Timeout"]);
    assert_eq!(output.status.code(), Some(3));
    let printed = text(&output.stdout);
    assert!(printed.contains("no policy is known"), "{printed}");
}
