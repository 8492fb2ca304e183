//! What is not known on a path is part of look-ups, streams, mirrors and explanations.

use std::time::Duration;

use entail::api::v1;
use entail_client::{Mirror, MirrorSettings};

use super::admin::http_request;
use super::follow::put;
use super::scope::{RulesServer, insight_of};
use super::server::{PATH, Running, by_path, start};

/// A policy below a Gateway whose GatewayClass does not exist, and a policy without a profile.
const OBJECTS: &str = "
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: jwt}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}]
  cors: {allowOrigins: ['*']}
---
apiVersion: foo.example/v1
kind: FooPolicy
metadata: {name: foo}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: gw}}
";

/// Kind, reason, and policies of the entries in which something is not known.
type Unknowns = Vec<(String, String, Vec<String>)>;

fn unknowns(policies: &[v1::EffectivePolicy]) -> Unknowns {
    let entries = policies.iter().filter_map(|policy| {
        let unknown = policy.unknown.as_ref()?;
        let names = unknown.policies.iter().map(|policy| policy.name.clone());
        Some((policy.kind.clone(), unknown.reason.clone(), names.collect()))
    });
    entries.collect()
}

fn expected() -> Unknowns {
    let entry = |kind: &str, reason: &str, policy: &str| {
        (kind.to_owned(), reason.to_owned(), vec![policy.to_owned()])
    };
    vec![
        entry("FooPolicy", "NoProfile", "foo"),
        entry("SecurityPolicy", "ControllerUnknown", "jwt"),
    ]
}

async fn running() -> Running {
    let running = start(|_| {}).await;
    put(&running, "unknown.yaml", OBJECTS);
    for _ in 0..1000 {
        let reply = running.get(by_path(PATH)).await.unwrap();
        if !unknowns(&reply.result.unwrap().policies).is_empty() {
            return running;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the objects are never served");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_interface_tells_what_is_not_known_on_a_path() {
    let running = running().await;
    let reply = running.get(by_path(PATH)).await.unwrap();
    let result = reply.result.unwrap();
    assert_eq!(unknowns(&result.policies), expected());
    let security = result.policies.iter().find(|p| p.kind == "SecurityPolicy");
    assert_eq!(security.unwrap().spec_json, None);

    let explained = running
        .insight()
        .explain(v1::ExplainRequest {
            name: PATH.to_owned(),
            ..Default::default()
        })
        .await
        .unwrap()
        .into_inner();
    let kinds = explained.paths.iter().flat_map(|path| &path.kinds);
    let policies: Vec<v1::EffectivePolicy> = kinds.filter_map(|kind| kind.policy.clone()).collect();
    assert_eq!(unknowns(&policies), expected());

    let mirror = Mirror::follow(MirrorSettings {
        server: running.address.clone(),
        ..MirrorSettings::default()
    })
    .unwrap();
    mirror.ready().await;
    assert_eq!(unknowns(&mirror.get(PATH).unwrap().policies), expected());

    let listed = running
        .insight()
        .list_policies(v1::ListPoliciesRequest::default())
        .await
        .unwrap()
        .into_inner();
    let state = |kind: &str| {
        let found = listed.kinds.iter().find(|state| state.kind == kind);
        found.map(|state| (state.state(), state.reason.as_str()))
    };
    let unknown = v1::kind_state::State::Unknown;
    assert_eq!(state("FooPolicy.foo.example"), Some((unknown, "NoProfile")));
    let security = "SecurityPolicy.gateway.envoyproxy.io";
    assert_eq!(state(security), Some((unknown, "ControllerUnknown")));
    running.stop().await;
}

/// A Gateway with parameters, and a route with a filter in a backendRef.
const MORE: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: given}
spec:
  controllerName: given.example/gateway
  parametersRef: {group: given.example, kind: Proxy, name: all, namespace: default}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: own}
spec:
  gatewayClassName: given
  infrastructure: {parametersRef: {group: given.example, kind: Proxy, name: own}}
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: own}
spec:
  parentRefs: [{name: own}]
  hostnames: [own.example]
  rules:
  - backendRefs:
    - {name: s, port: 80, filters: [{type: ExtensionRef, extensionRef: {group: f.example, kind: Auth, name: a}}]}
---
apiVersion: p.example/v1
kind: APolicy
metadata: {name: own}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: own}], defaults: {marker: 5}}
";

const OWN: &str = "gateways/default/own/listeners/http/routes/HTTPRoute/default/own/rules/#0";

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_backend_refs_are_reported() {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("admin.sock");
    let admin = socket.clone();
    let running = start(|settings| {
        std::fs::write(settings.inputs.manifests[0].join("more.yaml"), MORE).unwrap();
        settings.admin_socket = Some(admin);
    })
    .await;
    let backend = format!("{OWN}/backends/Service/default/s");
    let of = async |path: &str| {
        let reply = running.get(by_path(path)).await.unwrap();
        unknowns(&reply.result.unwrap().policies)
    };
    let filter = (
        "Auth".to_owned(),
        "FilterUnknown".to_owned(),
        vec!["a".to_owned()],
    );
    let filters = [filter];
    assert_eq!(of(&backend).await, filters);
    assert_eq!(of(&format!("{backend}/ports/80")).await, filters);
    assert_eq!(of(OWN).await, []);
    // Another rule with the same backend.
    assert_eq!(of(&format!("{PATH}/backends/Service/default/s")).await, []);
    let stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let (_, metrics) = tokio::task::spawn_blocking(|| http_request(stream, "GET", "/metrics", ""))
        .await
        .unwrap();
    let counted = "entail_unknown_answers{kind=\"Auth.f.example\",reason=\"FilterUnknown\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_reported() {
    let running = start(|settings| {
        std::fs::write(settings.inputs.manifests[0].join("more.yaml"), MORE).unwrap();
    })
    .await;
    let parameters = |unread: &[v1::UnreadParameters]| {
        let each = unread.iter();
        let texts =
            each.map(|one| format!("{} {} {}/{}", one.object, one.kind, one.namespace, one.name));
        texts.collect::<Vec<_>>()
    };
    let both = [
        "Gateway/default/own Proxy.given.example default/own",
        "GatewayClass/given Proxy.given.example default/all",
    ];
    let mut insight = running.insight();
    let explain = |name: &str| v1::ExplainRequest {
        name: name.to_owned(),
        ..Default::default()
    };
    let explained = insight.explain(explain(OWN)).await.unwrap().into_inner();
    assert_eq!(parameters(&explained.unread_parameters), both);
    let other = insight.explain(explain(PATH)).await.unwrap().into_inner();
    assert_eq!(parameters(&other.unread_parameters), [""; 0]);
    let listed = insight.list_policies(v1::ListPoliciesRequest::default());
    let listed = listed.await.unwrap().into_inner();
    assert_eq!(parameters(&listed.unread_parameters), both);
    let resolved = running
        .policies()
        .resolve_request(v1::ResolveRequestRequest {
            host: "own.example".to_owned(),
            path: "/".to_owned(),
            method: "GET".to_owned(),
            ..Default::default()
        })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(parameters(&resolved.unread_parameters), both);
    let findings = insight.list_findings(v1::ListFindingsRequest::default());
    let findings = findings.await.unwrap().into_inner().findings;
    let notes = findings
        .iter()
        .filter(|found| found.reason == "ParametersNotRead");
    let notes: Vec<&str> = notes.map(|found| found.object.as_str()).collect();
    assert_eq!(notes, ["GatewayClass/given", "Gateway/default/own"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_name_what_is_not_known_on_paths_in_scope() {
    let rules = "
- {names: [near.test], services: [insight], prefixes: [gateways/default/gw]}
- {names: [far.test], services: [insight], prefixes: [gateways/default/gw2]}
- {names: [kind.test], services: [insight], kinds: [APolicy.p.example]}";
    let server = RulesServer::start(rules, |settings| {
        let near = OBJECTS.replace("FooPolicy", "BarPolicy");
        let far = OBJECTS
            .replace("name: gw}", "name: gw2}")
            .replace("name: r}", "name: far}");
        let both = format!(
            "{near}---{}",
            far.replace("metadata: {name: jwt}", "metadata: {name: jw2}")
        );
        std::fs::write(settings.inputs.manifests[0].join("unknown.yaml"), both).unwrap();
    })
    .await;
    let security = "SecurityPolicy.gateway.envoyproxy.io";
    for (caller, expected) in [
        ("near.test", vec!["BarPolicy.foo.example", security]),
        ("far.test", vec!["FooPolicy.foo.example", security]),
        ("kind.test", vec![]),
        (
            "all.test",
            vec!["BarPolicy.foo.example", "FooPolicy.foo.example", security],
        ),
    ] {
        let channel = server.caller(caller).await;
        let mut insight = insight_of(&channel);
        let listed = insight
            .list_policies(v1::ListPoliciesRequest::default())
            .await;
        let found = insight
            .list_findings(v1::ListFindingsRequest::default())
            .await;
        let (listed, found) = (listed.unwrap().into_inner(), found.unwrap().into_inner());
        for kinds in [&listed.kinds, &found.kinds] {
            let names: Vec<&str> = kinds.iter().map(|state| state.kind.as_str()).collect();
            assert_eq!(names, expected, "{caller}");
        }
        // Nothing tells of policies that are on no path in scope.
        let hidden = match caller {
            "near.test" => "jw2",
            "far.test" => "jwt",
            _ => continue,
        };
        assert!(
            !format!("{listed:?} {found:?}").contains(hidden),
            "{caller}"
        );
    }
}

/// A rule that delegates to another Route, below a controller that follows it; but how a deep merge goes is not known.
const DELEGATING: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: kgateway}
spec: {controllerName: kgateway.dev/kgateway}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: k}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: parent, annotations: {kgateway.dev/inherited-policy-priority: DeepMergePreferChild}}
spec:
  parentRefs: [{name: k}]
  hostnames: [k.example]
  rules: [{backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: child}
spec: {rules: [{backendRefs: [{name: s, port: 80}]}]}
";

const OF_CHILD: &str = "
apiVersion: gateway.kgateway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: of-child}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child}], timeouts: {request: 1s}}
";

#[tokio::test(flavor = "multi_thread")]
async fn policies_of_child_routes_come_and_go() {
    let path = "gateways/default/k/listeners/http/routes/HTTPRoute/default/parent/rules/#0";
    let running = start(|settings| {
        let file = settings.inputs.manifests[0].join("delegating.yaml");
        std::fs::write(file, DELEGATING).unwrap();
    })
    .await;
    let of_child = (
        "TrafficPolicy".to_owned(),
        "DelegationNotFollowed".to_owned(),
        vec!["of-child".to_owned()],
    );
    let becomes = async |expected: Unknowns| {
        for _ in 0..1000 {
            let reply = running.get(by_path(path)).await.unwrap();
            if unknowns(&reply.result.unwrap().policies) == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never served: {expected:?}");
    };
    becomes(Vec::new()).await;
    put(&running, "of-child.yaml", OF_CHILD);
    becomes(vec![of_child.clone()]).await;

    let resolved = running
        .policies()
        .resolve_request(v1::ResolveRequestRequest {
            host: "k.example".to_owned(),
            path: "/".to_owned(),
            method: "GET".to_owned(),
            ..Default::default()
        })
        .await
        .unwrap()
        .into_inner();
    // The other Gateway takes the request, too.
    let child = format!("{path}/routes/HTTPRoute/default/child/rules/#0");
    let rule = resolved.resolved.iter().find(|rule| rule.path == child);
    let rule = rule.unwrap();
    let result = rule.policies.as_ref().unwrap();
    assert_eq!(unknowns(&result.policies), [of_child]);

    put(&running, "of-child.yaml", "# none any more\n");
    becomes(Vec::new()).await;
    running.stop().await;
}

/// A policy that lets requests pass if its authority is missing, and a Backend that is another.
const FAILS_OPEN: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: envoy}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: open}
spec: {gatewayClassName: envoy, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: auth}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: open}]
  cors: {allowOrigins: ['*']}
  extAuth:
    failOpen: true
    http: {backendRefs: [{group: gateway.envoyproxy.io, kind: Backend, name: authority, port: 80}]}
";

fn backend(name: &str) -> String {
    format!(
        "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: Backend\nmetadata: {{name: {name}}}\n\
         spec: {{endpoints: [{{ip: {{address: 10.0.0.1, port: 80}}}}]}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_that_fails_open_is_unknown_until_it_can_be_checked() {
    let path = "gateways/default/open/listeners/http";
    let running = start(|settings| {
        let file = settings.inputs.manifests[0].join("open.yaml");
        std::fs::write(file, FAILS_OPEN).unwrap();
    })
    .await;
    let becomes = async |expected: (&[&str], Vec<String>)| {
        for _ in 0..1000 {
            let reply = running.get(by_path(path)).await.unwrap();
            let policies = reply.result.unwrap().policies;
            let found = policies.iter().find(|p| p.kind == "SecurityPolicy");
            let spec = found.unwrap().spec_json.as_deref().unwrap_or("{}");
            let spec: serde_json::Map<_, _> = serde_json::from_str(spec).unwrap();
            let reasons = unknowns(&policies).into_iter().map(|(_, reason, _)| reason);
            if spec.keys().eq(expected.0) && reasons.eq(expected.1.iter().cloned()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never served: {expected:?}");
    };
    becomes((&["cors", "extAuth"], vec!["ReferenceNotChecked".to_owned()])).await;
    put(&running, "backend.yaml", &backend("other"));
    becomes((&["cors"], Vec::new())).await;
    put(&running, "backend.yaml", &backend("authority"));
    becomes((&["cors", "extAuth"], Vec::new())).await;
    put(&running, "backend.yaml", "# none any more\n");
    becomes((&["cors", "extAuth"], vec!["ReferenceNotChecked".to_owned()])).await;
    running.stop().await;
}
