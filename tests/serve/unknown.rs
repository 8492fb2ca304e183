//! What is not known on a path is part of look-ups, streams, mirrors and explanations.

use std::time::Duration;

use entail::api::v1;
use entail_client::{Mirror, MirrorSettings};

use super::follow::put;
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
            kinds: Vec::new(),
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
