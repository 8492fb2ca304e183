//! Look-ups of callers whose access rule has kinds. Kinds out of scope are answered as kinds
//! without a profile.

use entail::api::v1;
use tonic::transport::Channel;

use super::scope::{
    A, B, BOTH, FAR, RulesServer, X, look_up, policies_of, renamed, shown, with_kinds,
};
use super::scope_streams::begin;
use super::server::{PATH, batch_of, by_path};
use super::watch::update;

const C: &str = "CPolicy.p.example";

/// A profile with an error, so that its kind is UNKNOWN.
const REFUSED: &str = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: cpolicy}
spec:
  policy: {group: p.example, kind: CPolicy}
  effectiveTarget: Nonsense
  strategies: [PatchDefaults]
";

#[tokio::test(flavor = "multi_thread")]
async fn kinds_out_of_scope_are_answered_as_kinds_without_a_profile() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("a.test").await;
    let plain = look_up(&own, by_path(PATH)).await.unwrap();
    let result = plain.result.clone().unwrap();
    assert_eq!(result.policies.len(), 1);
    assert_eq!(result.policies[0].kind, "APolicy");
    assert!(plain.kinds.is_empty(), "{:?}", plain.kinds);
    // The kinds that the caller requests, and those with which `all.test` gets an equal reply.
    let (x, none): (&str, &[&str]) = (X, &[]);
    let cases: [(&[&str], &[&str]); 6] = [
        (none, &[A]),
        (&[A], &[A]),
        (&[B], &[x]),
        (&[A, B], &[A, x]),
        (&[B, A, B], &[x, A, x]),
        (&[B, "Nope.example"], &[x, "Nope.example"]),
    ];
    for path in [PATH, FAR, "gateways/default/gw", "gateways/default/none"] {
        for (requested, equivalent) in cases {
            let etags = [String::new(), result.etag.clone()];
            for if_none_match in etags {
                let request = |kinds: &[&str]| v1::GetEffectivePoliciesRequest {
                    if_none_match: if_none_match.clone(),
                    ..with_kinds(path, kinds)
                };
                let actual = look_up(&own, request(requested)).await;
                let expected = look_up(&all, request(equivalent)).await;
                let expected = renamed(&expected, x, B);
                assert_eq!(shown(&actual), expected, "{path}: {requested:?}");
            }
        }
    }
    let known = v1::GetEffectivePoliciesRequest {
        if_none_match: result.etag.clone(),
        ..by_path(PATH)
    };
    let known = look_up(&own, known).await.unwrap().result.unwrap();
    assert!(known.not_modified && known.policies.is_empty());
    let nothing = look_up(&own, with_kinds(PATH, &[B])).await.unwrap();
    assert!(nothing.result.unwrap().policies.is_empty());
    assert_eq!((nothing.kinds.len(), &*nothing.kinds[0].kind), (1, B));
    assert_eq!(nothing.kinds[0].state(), v1::kind_state::State::Unknown);

    // A rule with only an unknown kind permits no kind, not every kind.
    let stranger = server.caller("x.test").await;
    let actual = look_up(&stranger, by_path(PATH)).await.unwrap();
    let expected = look_up(&all, with_kinds(PATH, &[x])).await.unwrap();
    assert!(actual.result.as_ref().unwrap().policies.is_empty());
    assert_eq!(actual.result, expected.result);
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_contain_only_kinds_in_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("a.test").await;
    let batch = async |channel: &Channel, kinds: &[&str]| {
        let request = v1::BatchGetEffectivePoliciesRequest {
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            ..batch_of([PATH, FAR, BOTH, "gateways/default/none", PATH])
        };
        let mut client = policies_of(channel);
        let reply = client.batch_get_effective_policies(request);
        reply.await.unwrap().into_inner()
    };
    let x = X;
    let cases: [(&[&str], &[&str]); 4] =
        [(&[], &[A]), (&[A], &[A]), (&[B], &[x]), (&[B, A], &[x, A])];
    for (requested, equivalent) in cases {
        let actual = batch(&own, requested).await;
        assert!(!shown(&actual).contains("\"BPolicy\""), "{requested:?}");
        let expected = batch(&all, equivalent).await;
        assert_eq!(shown(&actual), renamed(&expected, x, B), "{requested:?}");
    }
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_kinds_are_reported_only_in_scope() {
    let rules = "- {names: [c.test], services: [policies, insight], kinds: [CPolicy.p.example]}\n\
                - {names: [a.test], services: [policies, insight], kinds: [APolicy.p.example]}\n";
    let server = RulesServer::start(rules, |settings| {
        let file = settings.inputs.manifests[0].join("refused.yaml");
        std::fs::write(file, REFUSED).unwrap();
        settings.inputs.allow_partial = true;
    })
    .await;
    let kinds = async |name: &str| {
        let channel = server.caller(name).await;
        let actual = look_up(&channel, by_path(PATH)).await.unwrap().kinds;
        let mut stream = begin(&channel, &[PATH], &[]).await;
        let watched = update(&mut stream).await.pop().unwrap().kinds;
        assert_eq!(actual, watched, "{name}");
        actual.into_iter().map(|kind| kind.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds("all.test").await, [C]);
    assert_eq!(kinds("c.test").await, [C]);
    assert!(kinds("a.test").await.is_empty());
    server.tls.stop().await;
}
