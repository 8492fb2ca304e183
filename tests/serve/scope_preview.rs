//! `PreviewChange` for callers whose access rule has prefixes or kinds.

use std::collections::BTreeSet;

use entail::api::v1;
use tonic::Status;
use tonic::transport::Channel;

use super::scope::{A, B, RulesServer, insight_of, shown};
use super::scope_insight::{as_absent, body, to_strings};

async fn preview(
    channel: &Channel,
    manifests: &str,
    deletes: &[&str],
) -> Result<v1::PreviewChangeResponse, Status> {
    let (manifests, deletes) = (manifests.to_owned(), to_strings(deletes));
    let request = v1::PreviewChangeRequest { manifests, deletes };
    body(insight_of(channel).preview_change(request).await)
}

/// A manifest of a new policy on a Gateway.
fn new_policy(kind: &str, gateway: &str) -> String {
    format!(
        "apiVersion: p.example/v1\nkind: {kind}\nmetadata: {{name: new, namespace: default}}\nspec:\n  targetRefs: \
         [{{group: gateway.networking.k8s.io, kind: Gateway, name: {gateway}}}]\n  defaults: {{more: 5}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn previews_contain_only_paths_in_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    let there = "gateways/default/gw2";
    let policy = new_policy("APolicy", "gw2");
    let unrestricted = preview(&all, &policy, &[]).await.unwrap();
    assert!(shown(&unrestricted).contains(there), "{unrestricted:?}");
    let actual = preview(&own, &policy, &[]).await;
    assert!(!shown(&actual).contains(there), "{actual:?}");

    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: new, namespace: default}\n\
                 spec: {parentRefs: [{name: gw2}], rules: [{}]}\n";
    let unrestricted = preview(&all, route, &[]).await.unwrap();
    assert!(
        shown(&unrestricted.paths_added).contains(there),
        "{unrestricted:?}"
    );
    let actual = preview(&own, route, &[]).await;
    assert!(!shown(&actual).contains(there), "{actual:?}");
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_to_delete_out_of_scope_do_not_exist() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    for (kind, there, absent) in [
        ("apolicy", "default/q", "default/x"),
        ("httproute", "default/far", "default/fax"),
        ("gateway", "default/gw2", "default/gwx"),
    ] {
        let name = |name: &str| format!("{kind}/{name}");
        assert!(preview(&all, "", &[&name(there)]).await.is_ok());
        let actual = preview(&own, "", &[&name(there)]).await;
        let missing = preview(&own, "", &[&name(absent)]).await;
        as_absent(&actual, &missing, (there, absent));
    }
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn previews_contain_only_kinds_in_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("a.test").await;
    let both = format!(
        "{}---\n{}",
        new_policy("APolicy", "gw"),
        new_policy("BPolicy", "gw")
    );
    let kinds = |actual: v1::PreviewChangeResponse| {
        let kinds = actual.changes.into_iter().map(|change| change.kind);
        kinds.collect::<BTreeSet<_>>()
    };
    let unrestricted = kinds(preview(&all, &both, &[]).await.unwrap());
    assert_eq!(unrestricted, BTreeSet::from([A.to_owned(), B.to_owned()]));
    let actual = kinds(preview(&own, &both, &[]).await.unwrap());
    assert_eq!(actual, BTreeSet::from([A.to_owned()]));
    server.tls.stop().await;
}
