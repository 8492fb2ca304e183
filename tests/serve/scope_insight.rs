//! What people with a scope are told, and that they are told nothing else.

use std::collections::BTreeSet;
use std::fmt::Debug;

use entail::api::v1;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use super::scope::{A, B, BOTH, FAR, Rows, X, insight_of, larger, look_up, reason, renamed, shown};
use super::server::{PATH, by_path, start};

pub fn own(kinds: &[&str]) -> Vec<String> {
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

pub fn body<T>(reply: Result<Response<T>, Status>) -> Result<T, Status> {
    reply.map(Response::into_inner)
}

async fn explain(
    channel: &Channel,
    name: &str,
    kinds: &[&str],
) -> Result<v1::ExplainResponse, Status> {
    let (name, kinds) = (name.to_owned(), own(kinds));
    let request = v1::ExplainRequest { name, kinds };
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
        kinds: own(kinds),
        ..Default::default()
    };
    body(insight_of(channel).list_policies(request).await).unwrap()
}

async fn findings(channel: &Channel, kinds: &[&str]) -> Vec<v1::Finding> {
    let request = v1::ListFindingsRequest { kinds: own(kinds) };
    let reply = body(insight_of(channel).list_findings(request).await);
    reply.unwrap().findings
}

async fn reach(channel: &Channel, name: &str) -> Result<v1::ListAffectedResponse, Status> {
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
    body(insight.get_topology(v1::GetTopologyRequest {}).await).unwrap()
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

/// What is told of something out of scope is what is told of something that is not there.
pub fn as_absent<T: Debug>(
    told: &Result<T, Status>,
    absent: &Result<T, Status>,
    names: (&str, &str),
) {
    let expected = renamed(absent, names.1, names.0);
    assert_eq!(shown(&told), expected, "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_are_of_paths_in_scope() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    for path in ["gateways/default/gw2", FAR] {
        assert!(explain(&all, path, &[]).await.is_ok());
        for kinds in [&[][..], &[A], &[X]] {
            let told = explain(&own, path, kinds).await;
            let absent = explain(&all, &path.replace("gw2", "gwx"), kinds).await;
            assert_eq!(told.as_ref().unwrap_err().code(), Code::NotFound);
            as_absent(&told, &absent, ("gw2", "gwx"));
        }
    }
    let wrong = explain(&own, "gateways/default/gw2/listners/x", &[]).await;
    assert_eq!(wrong.unwrap_err().code(), Code::InvalidArgument);
    // Objects: the paths in scope, and nothing if there is none.
    let objects = [
        ("HTTPRoute/default/far", ("far", "fax")),
        ("httproute/default/far##0", ("far", "fax")),
        ("Gateway/default/gw2", ("gw2", "gwx")),
        ("Gateway/default/gw2#http", ("gw2", "gwx")),
        ("Service/default/t", ("default/t", "default/u")),
    ];
    for (object, (there, absent)) in objects {
        assert!(explain(&all, object, &[]).await.is_ok(), "{object}");
        let told = explain(&own, object, &[]).await;
        let missing = explain(&all, &object.replace(there, absent), &[]).await;
        assert_eq!(told.as_ref().unwrap_err().code(), Code::NotFound);
        as_absent(&told, &missing, (there, absent));
    }
    let both = |told: &v1::ExplainResponse| {
        let paths = told.paths.iter().flat_map(|path| path.paths.clone());
        paths.collect::<BTreeSet<_>>()
    };
    let wide = explain(&all, "HTTPRoute/default/both", &[]).await.unwrap();
    assert_eq!(both(&wide).len(), 2);
    let told = explain(&own, "HTTPRoute/default/both", &[]).await.unwrap();
    assert_eq!(both(&told), BTreeSet::from([BOTH.to_owned()]));
    assert!(!shown(&told).contains("gw2"), "{told:?}");
    let deep = rows.caller("deep.test").await;
    let told = explain(&deep, "Gateway/default/gw", &[]).await.unwrap();
    assert_eq!(both(&told), BTreeSet::from([PATH.to_owned()]));
    let gone = "gateways/default/gw/listeners/gone";
    let gone = explain(&deep, gone, &[]).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    assert!(!reason(&gone).2.contains_key("nearest"), "{gone:?}");
    let path = explain(&own, PATH, &[]).await.unwrap();
    assert_eq!(path, explain(&all, PATH, &[]).await.unwrap());
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_are_listed_in_scope() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    let wide = paths(&all, "").await.unwrap().paths;
    assert!(wide.iter().any(|path| path == FAR));
    let (gw, below) = ("gateways/default/gw", "gateways/default/gw/");
    let is_own = |path: &&String| *path == gw || path.starts_with(below);
    let expected: Vec<String> = wide.iter().filter(is_own).cloned().collect();
    assert!(expected.len() > 4 && expected.len() < wide.len());
    assert_eq!(paths(&own, "").await.unwrap().paths, expected);
    // Page by page as well.
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
        let told = paths(&own, name).await;
        let missing = paths(&all, &name.replace(there, absent)).await;
        as_absent(&told, &missing, (there, absent));
    }
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_with_prefixes_sees_no_objects_for_themselves() {
    let rows = Rows::shared(|settings| {
        let file = settings.inputs.manifests[0].join("z.yaml");
        std::fs::write(file, "a: [").unwrap();
        settings.inputs.allow_partial = true;
    })
    .await;
    let (own, all) = rows.beside_all("gw.test").await;
    assert_eq!(listed(&all, &[]).await.policies.len(), 6);
    assert!(!findings(&all, &[]).await.is_empty());
    for kinds in [&[][..], &[A], &[X]] {
        let told = listed(&own, kinds).await;
        assert!(told.policies.is_empty() && told.next_page_token.is_empty());
        assert!(findings(&own, kinds).await.is_empty());
    }
    for name in [
        "apolicy/default/p",
        "apolicy/default/q",
        "bpolicy/default/q",
    ] {
        assert!(reach(&all, name).await.is_ok());
        let told = reach(&own, name).await;
        assert_eq!(told.as_ref().unwrap_err().code(), Code::NotFound, "{name}");
        let (start, last) = name.split_at(name.len() - 1);
        let missing = reach(&all, &format!("{start}x")).await;
        as_absent(&told, &missing, (&format!("default/{last}"), "default/x"));
    }
    let far = reach(&own, "object HTTPRoute/default/far").await;
    let missing = reach(&all, "object HTTPRoute/default/fax").await;
    as_absent(&far, &missing, ("far", "fax"));
    assert_eq!(status(&all).await.problems.len(), 1);
    assert!(status(&own).await.problems.is_empty());
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topology_has_what_is_on_paths_in_scope() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    let names = |told: &v1::GetTopologyResponse| {
        let names = told.nodes.iter().map(|node| node.name.clone());
        names.collect::<BTreeSet<_>>()
    };
    let (wide, told) = (topology(&all).await, topology(&own).await);
    let there = [
        "Gateway/default/gw",
        "Gateway/default/gw#http",
        "HTTPRoute/default/r",
    ];
    let more = ["HTTPRoute/default/both", "Service/default/s"];
    for name in there.into_iter().chain(more) {
        assert!(names(&told).contains(name), "{name}: {:?}", names(&told));
    }
    let hidden = ["gw2", "default/far", "Service/default/t", "elsewhere"];
    for name in hidden {
        let is_hidden =
            |told: &v1::GetTopologyResponse| names(told).iter().any(|node| node.contains(name));
        assert!(is_hidden(&wide) && !is_hidden(&told), "{name}: {told:?}");
    }
    // The policies of the other Gateway, and the one without a target.
    for name in ["\"q\"", "\"lost\"", "nowhere"] {
        assert!(!shown(&told).contains(name), "{name}: {told:?}");
    }
    let deep = topology(&rows.caller("deep.test").await).await;
    assert!(names(&deep).contains("HTTPRoute/default/r"), "{deep:?}");
    assert!(!shown(&deep).contains("both"), "{deep:?}");
    let ids: BTreeSet<u32> = told.nodes.iter().map(|node| node.id).collect();
    let places: BTreeSet<u32> = (0..).take(told.nodes.len()).collect();
    assert_eq!(ids, places);
    assert!(!told.edges.is_empty());
    let ends = told.edges.iter().flat_map(|edge| [edge.from, edge.to]);
    assert!(ends.into_iter().all(|id| ids.contains(&id)), "{told:?}");
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_with_kinds_are_told_of_these_kinds() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("a.test").await;
    let cases: [(&[&str], &[&str]); 4] =
        [(&[], &[A]), (&[A], &[A]), (&[B], &[X]), (&[A, B], &[A, X])];
    for (asked, same) in cases {
        for name in [PATH, "HTTPRoute/default/both", "gateway/default/gw2"] {
            let told = explain(&own, name, asked).await;
            let expected = explain(&all, name, same).await;
            let (told, expected) = (shown(&told), renamed(&expected, X, B));
            assert_eq!(told, expected, "{name}: {asked:?}");
        }
        let (told, expected) = (listed(&own, asked).await, listed(&all, same).await);
        assert_eq!(shown(&told), renamed(&expected, X, B), "{asked:?}");
        let (told, expected) = (findings(&own, asked).await, findings(&all, same).await);
        assert_eq!(told, expected, "{asked:?}");
    }
    assert_eq!(listed(&own, &[]).await.policies.len(), 3);
    assert!(!findings(&own, &[]).await.is_empty() && !findings(&all, &[B]).await.is_empty());
    let told = reach(&own, "bpolicy/default/p").await;
    assert_eq!(told.as_ref().unwrap_err().code(), Code::NotFound);
    assert!(reach(&own, "apolicy/default/p").await.is_ok());
    let affecting = reach(&own, "object HTTPRoute/default/r").await.unwrap();
    let kinds: Vec<_> = affecting
        .policies
        .iter()
        .map(|policy| &*policy.kind)
        .collect();
    assert_eq!(kinds, [A]);
    let told = topology(&own).await;
    let held = told.nodes.iter().flat_map(|node| &node.policies);
    assert!(held.clone().count() > 0 && held.into_iter().all(|policy| policy.kind == A));
    assert_eq!(told.nodes.len(), topology(&all).await.nodes.len());
    let told: Vec<String> = status(&own)
        .await
        .kinds
        .into_iter()
        .map(|kind| kind.kind)
        .collect();
    assert!(
        told.iter().any(|kind| kind == A) && !told.iter().any(|kind| kind == B),
        "{told:?}"
    );
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_plain_tcp_all_is_seen() {
    let running = start(larger).await;
    let channel = running.channel().await;
    for path in [PATH, FAR, BOTH, "namespaces/default"] {
        let told = look_up(&channel, by_path(path)).await;
        assert!(told.is_ok(), "{path}: {told:?}");
    }
    let told = look_up(&channel, by_path(FAR))
        .await
        .unwrap()
        .result
        .unwrap();
    assert_eq!(told.policies.len(), 2);
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
