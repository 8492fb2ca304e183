//! `PolicyInsightService` for callers whose access rule has prefixes or kinds.

use std::collections::BTreeSet;
use std::fmt::Debug;

use entail::api::v1;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use super::scope::{
    A, B, BOTH, FAR, RulesServer, X, insight_of, larger, look_up, reason, renamed, shown,
};
use super::server::{PATH, by_path, start};

/// Owned kinds of a request.
pub fn to_strings(kinds: &[&str]) -> Vec<String> {
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

/// The message of a reply.
pub fn body<T>(reply: Result<Response<T>, Status>) -> Result<T, Status> {
    reply.map(Response::into_inner)
}

async fn explain(
    channel: &Channel,
    name: &str,
    kinds: &[&str],
) -> Result<v1::ExplainResponse, Status> {
    let (name, kinds) = (name.to_owned(), to_strings(kinds));
    let request = v1::ExplainRequest {
        name,
        kinds,
        ..Default::default()
    };
    body(insight_of(channel).explain(request).await)
}

async fn paths(channel: &Channel, name: &str) -> Result<v1::ListPathsResponse, Status> {
    let request = v1::ListPathsRequest {
        name: name.to_owned(),
        ..Default::default()
    };
    body(insight_of(channel).list_paths(request).await)
}

async fn listed(channel: &Channel, kinds: &[&str]) -> v1::ListPoliciesResponse {
    let request = v1::ListPoliciesRequest {
        kinds: to_strings(kinds),
        ..Default::default()
    };
    body(insight_of(channel).list_policies(request).await).unwrap()
}

async fn findings(channel: &Channel, kinds: &[&str]) -> Vec<v1::Finding> {
    let request = v1::ListFindingsRequest {
        kinds: to_strings(kinds),
        ..Default::default()
    };
    let reply = body(insight_of(channel).list_findings(request).await);
    reply.unwrap().findings
}

async fn list_affected(channel: &Channel, name: &str) -> Result<v1::ListAffectedResponse, Status> {
    use v1::list_affected_request::Subject;
    let subject = match name.strip_prefix("object ") {
        Some(object) => Subject::Object(object.to_owned()),
        None => Subject::Policy(name.to_owned()),
    };
    let request = v1::ListAffectedRequest {
        subject: Some(subject),
        ..Default::default()
    };
    body(insight_of(channel).list_affected(request).await)
}

async fn topology(channel: &Channel) -> v1::GetTopologyResponse {
    let mut insight = insight_of(channel);
    body(
        insight
            .get_topology(v1::GetTopologyRequest::default())
            .await,
    )
    .unwrap()
}

async fn status(channel: &Channel) -> v1::GetServerStatusResponse {
    let mut insight = insight_of(channel);
    body(
        insight
            .get_server_status(v1::GetServerStatusRequest {})
            .await,
    )
    .unwrap()
}

/// Asserts that the reply for a name out of scope equals the reply for a name that does not exist.
pub fn as_absent<T: Debug>(
    actual: &Result<T, Status>,
    absent: &Result<T, Status>,
    names: (&str, &str),
) {
    let expected = renamed(absent, names.1, names.0);
    assert_eq!(shown(&actual), expected, "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_contain_only_paths_in_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    for path in ["gateways/default/gw2", FAR] {
        assert!(explain(&all, path, &[]).await.is_ok());
        for kinds in [&[][..], &[A], &[X]] {
            let actual = explain(&own, path, kinds).await;
            let absent = explain(&all, &path.replace("gw2", "gwx"), kinds).await;
            assert_eq!(actual.as_ref().unwrap_err().code(), Code::NotFound);
            as_absent(&actual, &absent, ("gw2", "gwx"));
        }
    }
    let wrong = explain(&own, "gateways/default/gw2/listners/x", &[]).await;
    assert_eq!(wrong.unwrap_err().code(), Code::InvalidArgument);
    // The explanation of an object has the paths in scope; an object without any does not exist.
    let objects = [
        ("HTTPRoute/default/far", ("far", "fax")),
        ("httproute/default/far##0", ("far", "fax")),
        ("Gateway/default/gw2", ("gw2", "gwx")),
        ("Gateway/default/gw2#http", ("gw2", "gwx")),
        ("Service/default/t", ("default/t", "default/u")),
    ];
    for (object, (there, absent)) in objects {
        assert!(explain(&all, object, &[]).await.is_ok(), "{object}");
        let actual = explain(&own, object, &[]).await;
        // The suggestions of an error are what the caller sees.
        let missing = explain(&own, &object.replace(there, absent), &[]).await;
        assert_eq!(actual.as_ref().unwrap_err().code(), Code::NotFound);
        as_absent(&actual, &missing, (there, absent));
    }
    let both = |actual: &v1::ExplainResponse| {
        let paths = actual.paths.iter().flat_map(|path| path.paths.clone());
        paths.collect::<BTreeSet<_>>()
    };
    let unrestricted = explain(&all, "HTTPRoute/default/both", &[]).await.unwrap();
    assert_eq!(both(&unrestricted).len(), 2);
    let actual = explain(&own, "HTTPRoute/default/both", &[]).await.unwrap();
    assert_eq!(both(&actual), BTreeSet::from([BOTH.to_owned()]));
    assert!(!shown(&actual).contains("gw2"), "{actual:?}");
    let deep = server.caller("deep.test").await;
    let actual = explain(&deep, "Gateway/default/gw", &[]).await.unwrap();
    assert_eq!(both(&actual), BTreeSet::from([PATH.to_owned()]));
    let gone = "gateways/default/gw/listeners/gone";
    let gone = explain(&deep, gone, &[]).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    assert!(!reason(&gone).2.contains_key("nearest"), "{gone:?}");
    let path = explain(&own, PATH, &[]).await.unwrap();
    assert_eq!(path, explain(&all, PATH, &[]).await.unwrap());
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_paths_in_scope_are_listed() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    let unrestricted = paths(&all, "").await.unwrap().paths;
    assert!(unrestricted.iter().any(|path| path == FAR));
    let (gw, below) = ("gateways/default/gw", "gateways/default/gw/");
    let is_own = |path: &&String| *path == gw || path.starts_with(below);
    let expected: Vec<String> = unrestricted.iter().filter(is_own).cloned().collect();
    assert!(expected.len() > 4 && expected.len() < unrestricted.len());
    assert_eq!(paths(&own, "").await.unwrap().paths, expected);
    // The same with pages.
    let mut request = v1::ListPathsRequest {
        page_size: 1,
        ..Default::default()
    };
    let mut found = Vec::new();
    loop {
        let page = insight_of(&own).list_paths(request.clone()).await;
        let page = page.unwrap().into_inner();
        found.extend(page.paths);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
        assert!(found.len() <= expected.len(), "{found:?}");
    }
    assert_eq!(found, expected);
    let of_both = paths(&own, "HTTPRoute/default/both").await.unwrap().paths;
    assert!(of_both.iter().any(|path| path == BOTH));
    assert!(
        of_both.iter().all(|path| path.starts_with(below)),
        "{of_both:?}"
    );
    for (name, (there, absent)) in [
        ("gateways/default/gw2", ("gw2", "gwx")),
        (FAR, ("gw2", "gwx")),
        ("HTTPRoute/default/far", ("far", "fax")),
        ("Gateway/default/gw2", ("gw2", "gwx")),
    ] {
        assert!(!paths(&all, name).await.unwrap().paths.is_empty());
        let actual = paths(&own, name).await;
        let missing = paths(&own, &name.replace(there, absent)).await;
        as_absent(&actual, &missing, (there, absent));
    }
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_with_prefixes_permits_no_listings_of_objects() {
    let server = RulesServer::shared(|settings| {
        let file = settings.inputs.manifests[0].join("z.yaml");
        std::fs::write(file, "a: [").unwrap();
        settings.inputs.allow_partial = true;
    })
    .await;
    let (own, all) = server.beside_all("gw.test").await;
    assert_eq!(listed(&all, &[]).await.policies.len(), 6);
    assert!(!findings(&all, &[]).await.is_empty());
    for kinds in [&[][..], &[A], &[X]] {
        let actual = listed(&own, kinds).await;
        assert!(actual.policies.is_empty() && actual.next_page_token.is_empty());
        assert!(findings(&own, kinds).await.is_empty());
    }
    for name in [
        "apolicy/default/p",
        "apolicy/default/q",
        "bpolicy/default/q",
    ] {
        assert!(list_affected(&all, name).await.is_ok());
        let actual = list_affected(&own, name).await;
        assert_eq!(
            actual.as_ref().unwrap_err().code(),
            Code::NotFound,
            "{name}"
        );
        let (start, last) = name.split_at(name.len() - 1);
        let missing = list_affected(&all, &format!("{start}x")).await;
        as_absent(&actual, &missing, (&format!("default/{last}"), "default/x"));
    }
    let far = list_affected(&own, "object HTTPRoute/default/far").await;
    let missing = list_affected(&own, "object HTTPRoute/default/fax").await;
    as_absent(&far, &missing, ("far", "fax"));
    let problems = status(&all).await.problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(status(&own).await.problems.is_empty());
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topology_contains_only_nodes_on_paths_in_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    let names = |actual: &v1::GetTopologyResponse| {
        let names = actual.nodes.iter().map(|node| node.name.clone());
        names.collect::<BTreeSet<_>>()
    };
    let (unrestricted, actual) = (topology(&all).await, topology(&own).await);
    let there = [
        "Gateway/default/gw",
        "Gateway/default/gw#http",
        "HTTPRoute/default/r",
    ];
    let more = ["HTTPRoute/default/both", "Service/default/s"];
    for name in there.into_iter().chain(more) {
        assert!(
            names(&actual).contains(name),
            "{name}: {:?}",
            names(&actual)
        );
    }
    let hidden = ["gw2", "default/far", "Service/default/t", "elsewhere"];
    for name in hidden {
        let is_hidden =
            |actual: &v1::GetTopologyResponse| names(actual).iter().any(|node| node.contains(name));
        assert!(
            is_hidden(&unrestricted) && !is_hidden(&actual),
            "{name}: {actual:?}"
        );
    }
    // The policies of the other Gateway, and those with a missing target.
    for name in ["\"q\"", "\"lost\"", "nowhere"] {
        assert!(!shown(&actual).contains(name), "{name}: {actual:?}");
    }
    let deep = topology(&server.caller("deep.test").await).await;
    assert!(names(&deep).contains("HTTPRoute/default/r"), "{deep:?}");
    assert!(!shown(&deep).contains("both"), "{deep:?}");
    let ids: BTreeSet<u32> = actual.nodes.iter().map(|node| node.id).collect();
    let indexes: BTreeSet<u32> = (0..).take(actual.nodes.len()).collect();
    assert_eq!(ids, indexes);
    assert!(!actual.edges.is_empty());
    let ends = actual.edges.iter().flat_map(|edge| [edge.from, edge.to]);
    assert!(ends.into_iter().all(|id| ids.contains(&id)), "{actual:?}");
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_with_kinds_permits_only_these_kinds() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("a.test").await;
    let cases: [(&[&str], &[&str]); 4] =
        [(&[], &[A]), (&[A], &[A]), (&[B], &[X]), (&[A, B], &[A, X])];
    for (requested, equivalent) in cases {
        for name in [PATH, "HTTPRoute/default/both", "gateway/default/gw2"] {
            let actual = explain(&own, name, requested).await;
            let expected = explain(&all, name, equivalent).await;
            let (actual, expected) = (shown(&actual), renamed(&expected, X, B));
            assert_eq!(actual, expected, "{name}: {requested:?}");
        }
        let (actual, expected) = (
            listed(&own, requested).await,
            listed(&all, equivalent).await,
        );
        assert_eq!(shown(&actual), renamed(&expected, X, B), "{requested:?}");
        let (actual, mut expected) = (
            findings(&own, requested).await,
            findings(&all, equivalent).await,
        );
        // Findings without an object summarize all objects, so callers with rules do not see them.
        expected.retain(|finding| !finding.object.is_empty());
        assert_eq!(actual, expected, "{requested:?}");
    }
    assert_eq!(listed(&own, &[]).await.policies.len(), 3);
    assert!(!findings(&own, &[]).await.is_empty() && !findings(&all, &[B]).await.is_empty());
    let actual = list_affected(&own, "bpolicy/default/p").await;
    assert_eq!(actual.as_ref().unwrap_err().code(), Code::NotFound);
    assert!(list_affected(&own, "apolicy/default/p").await.is_ok());
    let affecting = list_affected(&own, "object HTTPRoute/default/r")
        .await
        .unwrap();
    let kinds: Vec<_> = affecting
        .policies
        .iter()
        .map(|policy| &*policy.kind)
        .collect();
    assert_eq!(kinds, [A]);
    let actual = topology(&own).await;
    let attached = actual.nodes.iter().flat_map(|node| &node.policies);
    assert!(attached.clone().count() > 0 && attached.into_iter().all(|policy| policy.kind == A));
    assert_eq!(actual.nodes.len(), topology(&all).await.nodes.len());
    let actual: Vec<String> = status(&own)
        .await
        .kinds
        .into_iter()
        .map(|kind| kind.kind)
        .collect();
    assert!(
        actual.iter().any(|kind| kind == A) && !actual.iter().any(|kind| kind == B),
        "{actual:?}"
    );
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_over_plain_tcp_see_everything() {
    let running = start(larger).await;
    let channel = running.channel().await;
    for path in [PATH, FAR, BOTH, "namespaces/default"] {
        let actual = look_up(&channel, by_path(path)).await;
        assert!(actual.is_ok(), "{path}: {actual:?}");
    }
    let actual = look_up(&channel, by_path(FAR))
        .await
        .unwrap()
        .result
        .unwrap();
    assert_eq!(actual.policies.len(), 2);
    assert_eq!(listed(&channel, &[]).await.policies.len(), 6);
    assert!(
        paths(&channel, "")
            .await
            .unwrap()
            .paths
            .iter()
            .any(|path| path == FAR)
    );
    running.stop().await;
}
