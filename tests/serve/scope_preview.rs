//! Changes that callers with a scope ask about before anyone makes them.

use std::collections::BTreeSet;

use entail::api::v1;
use tonic::Status;
use tonic::transport::Channel;

use super::scope::{A, B, Rows, insight_of, shown};
use super::scope_insight::{as_absent, body, own};

async fn preview(
    channel: &Channel,
    manifests: &str,
    deletes: &[&str],
) -> Result<v1::PreviewChangeResponse, Status> {
    let (manifests, deletes) = (manifests.to_owned(), own(deletes));
    let request = v1::PreviewChangeRequest { manifests, deletes };
    body(insight_of(channel).preview_change(request).await)
}

/// A policy that is to come, on a Gateway.
fn coming(kind: &str, gateway: &str) -> String {
    format!(
        "apiVersion: p.example/v1\nkind: {kind}\nmetadata: {{name: new, namespace: default}}\nspec:\n  targetRefs: \
         [{{group: gateway.networking.k8s.io, kind: Gateway, name: {gateway}}}]\n  defaults: {{more: 5}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn previews_tell_of_paths_in_scope() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    let there = "gateways/default/gw2";
    let policy = coming("APolicy", "gw2");
    let wide = preview(&all, &policy, &[]).await.unwrap();
    assert!(shown(&wide).contains(there), "{wide:?}");
    let told = preview(&own, &policy, &[]).await;
    assert!(!shown(&told).contains(there), "{told:?}");

    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: new, namespace: default}\n\
                 spec: {parentRefs: [{name: gw2}], rules: [{}]}\n";
    let wide = preview(&all, route, &[]).await.unwrap();
    assert!(shown(&wide.paths_added).contains(there), "{wide:?}");
    let told = preview(&own, route, &[]).await;
    assert!(!shown(&told).contains(there), "{told:?}");
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_out_of_scope_is_not_there() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    for (kind, there, absent) in [
        ("apolicy", "default/q", "default/x"),
        ("httproute", "default/far", "default/fax"),
        ("gateway", "default/gw2", "default/gwx"),
    ] {
        let name = |name: &str| format!("{kind}/{name}");
        assert!(preview(&all, "", &[&name(there)]).await.is_ok());
        let told = preview(&own, "", &[&name(there)]).await;
        let missing = preview(&all, "", &[&name(absent)]).await;
        as_absent(&told, &missing, (there, absent));
    }
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn previews_tell_of_kinds_in_scope() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("a.test").await;
    let both = format!(
        "{}---\n{}",
        coming("APolicy", "gw"),
        coming("BPolicy", "gw")
    );
    let kinds = |told: v1::PreviewChangeResponse| {
        let kinds = told.changes.into_iter().map(|change| change.kind);
        kinds.collect::<BTreeSet<_>>()
    };
    let wide = kinds(preview(&all, &both, &[]).await.unwrap());
    assert_eq!(wide, BTreeSet::from([A.to_owned(), B.to_owned()]));
    let told = kinds(preview(&own, &both, &[]).await.unwrap());
    assert_eq!(told, BTreeSet::from([A.to_owned()]));
    rows.secured.stop().await;
}
