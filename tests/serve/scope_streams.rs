//! Streams of callers with a scope, and requests that they let resolve.

use std::collections::BTreeSet;

use entail::api::v1;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::follow::marker;
use super::scope::{A, B, BOTH, FAR, Rows, X, look_up, policies_of, renamed, shown};
use super::server::{PATH, by_path, policies};
use super::watch::{Messages, Update, bodies, names, update};

fn following(prefixes: &[&str], kinds: &[&str]) -> v1::WatchEffectivePoliciesRequest {
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    v1::WatchEffectivePoliciesRequest {
        prefixes: own(prefixes),
        kinds: own(kinds),
        ..Default::default()
    }
}

pub async fn begin(channel: &Channel, prefixes: &[&str], kinds: &[&str]) -> Messages {
    let request = following(prefixes, kinds);
    let stream = policies_of(channel).watch_effective_policies(request).await;
    stream.unwrap().into_inner()
}

async fn first(channel: &Channel, prefixes: &[&str], kinds: &[&str]) -> Update {
    update(&mut begin(channel, prefixes, kinds).await).await
}

/// Paths with the policies that hold there.
fn answers(update: &Update) -> BTreeSet<String> {
    let bodies = bodies(update);
    let paths = update.iter().flat_map(|message| &message.paths);
    let told = paths.map(|path| {
        let body = bodies.iter().find(|body| body.number == path.body).unwrap();
        format!(
            "{} {:?} {} {:?}",
            path.path, path.rule_index, body.etag, body.policies
        )
    });
    told.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_follow_what_row_and_request_have_in_common() {
    let rows = Rows::shared(|_| {}).await;
    let all = rows.caller("all.test").await;
    let (gw, gw2, route) = (
        "gateways/default/gw",
        "gateways/default/gw2",
        PATH.strip_suffix("/rules/#0").unwrap(),
    );
    let listener = "gateways/default/gw/listeners/http";
    // Who asks for what, and what somebody without a row asks for who gets the same.
    let cases: [(&str, &[&str], &[&str]); 8] = [
        ("gw.test", &[], &[gw]),
        ("gw.test", &[gw], &[gw]),
        ("gw.test", &[gw2, gw], &[gw]),
        ("gw.test", &[PATH, gw2], &[PATH]),
        ("gw.test", &[listener, PATH], &[listener]),
        ("deep.test", &[], &[route]),
        ("deep.test", &[gw, gw2], &[route]),
        ("deep.test", &[PATH, listener], &[route]),
    ];
    for (name, asked, same) in cases {
        let own = rows.caller(name).await;
        let told = first(&own, asked, &[]).await;
        let expected = first(&all, same, &[]).await;
        assert!(told[0].reset && !names(&told).is_empty(), "{asked:?}");
        assert_eq!(answers(&told), answers(&expected), "{name}: {asked:?}");
        let last = told.last().unwrap();
        let apart = last.clients_apart.clone().unwrap_or_default();
        assert!(apart.roots.is_empty(), "{apart:?}");
        assert!(!shown(&told).contains("gw2"), "{told:?}");
    }
    let apart = first(&all, &[], &[]).await.pop().unwrap().clients_apart;
    assert_eq!(apart.unwrap().roots.len(), 1);
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_anything_in_scope_is_complete_and_empty() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    for prefix in [
        "gateways/default/gw2",
        FAR,
        "namespaces/default",
        "mesh/*/services/default/t",
    ] {
        let told = first(&own, &[prefix], &[]).await;
        assert!(told[0].reset, "{prefix}: {told:?}");
        assert!(
            names(&told).is_empty() && bodies(&told).is_empty(),
            "{prefix}: {told:?}"
        );
        let roots = told.last().unwrap().clients_apart.clone();
        assert!(roots.unwrap_or_default().roots.is_empty());
    }
    // What is no path name is wrong all the same.
    for prefix in ["gateways/default/gw2/listners/x", "?"] {
        let refused = async |channel: &Channel| {
            let request = following(&[prefix], &[]);
            let stream = policies_of(channel).watch_effective_policies(request).await;
            stream.unwrap_err()
        };
        let told: Status = refused(&own).await;
        assert_eq!(told.code(), Code::InvalidArgument);
        assert_eq!(shown(&told), shown(&refused(&all).await));
    }
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_hold_kinds_in_scope() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("a.test").await;
    let x = X;
    let cases: [(&[&str], &[&str]); 4] =
        [(&[], &[A]), (&[A], &[A]), (&[B], &[x]), (&[A, B], &[A, x])];
    for (asked, same) in cases {
        let told = first(&own, &[], asked).await;
        let expected = first(&all, &[], same).await;
        assert!(!names(&told).is_empty());
        assert_eq!(answers(&told), answers(&expected), "{asked:?}");
        let kinds = |update: &Update| format!("{:?}", update.last().unwrap().kinds);
        assert_eq!(kinds(&told), kinds(&expected).replace(x, B), "{asked:?}");
    }
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_out_of_scope_is_not_told() {
    let rows = Rows::shared(|_| {}).await;
    let own = rows.caller("gw.test").await;
    let mut stream = begin(&own, &[], &[]).await;
    update(&mut stream).await;
    let put = |name: &str, text: &str| {
        let folder = rows.secured.file("..");
        std::fs::write(folder.join(".beside"), text).unwrap();
        std::fs::rename(folder.join(".beside"), folder.join(name)).unwrap();
    };
    let others = policies(7).replace("name: p}", "name: q}");
    put("others.yaml", &others.replace("name: gw}", "name: gw2}"));
    // It is published before the next is written.
    let all = rows.caller("all.test").await;
    for attempt in 0.. {
        let reply = look_up(&all, by_path(FAR)).await.unwrap();
        if marker(&reply.result.unwrap().policies[0]) == 7 {
            break;
        }
        assert!(attempt < 500, "the change is never served");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    put("policies.yaml", &policies(3));
    let mut told = Update::new();
    while !bodies(&told)
        .iter()
        .any(|body| body.policies.iter().any(|policy| marker(policy) == 3))
    {
        told.extend(update(&mut stream).await);
    }
    let spec = shown(&told);
    assert!(
        !spec.contains("gw2") && !spec.contains("marker\\\":7"),
        "{told:?}"
    );
    let seen: BTreeSet<&str> = names(&told).into_iter().collect();
    assert!(
        seen.contains(PATH)
            && seen
                .iter()
                .all(|path| format!("{path}/").starts_with("gateways/default/gw/")),
        "{seen:?}"
    );
    rows.secured.stop().await;
}

fn request_to(host: &str, path: &str, gateway: &str) -> v1::ResolveRequestRequest {
    v1::ResolveRequestRequest {
        host: host.to_owned(),
        path: path.to_owned(),
        gateway: gateway.to_owned(),
        ..Default::default()
    }
}

async fn resolve(
    channel: &Channel,
    request: v1::ResolveRequestRequest,
) -> v1::ResolveRequestResponse {
    let reply = policies_of(channel).resolve_request(request).await;
    reply.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_resolve_to_what_is_in_scope() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    let deep = rows.caller("deep.test").await;
    let places = |reply: &v1::ResolveRequestResponse| {
        let resolved = reply.resolved.iter().map(|place| place.path.clone());
        let unresolved = reply.unresolved.iter().map(|place| place.path.clone());
        (resolved.collect::<Vec<_>>(), unresolved.collect::<Vec<_>>())
    };
    let wide = resolve(&all, request_to("two.example", "/", "")).await;
    assert_eq!(places(&wide).0, [PATH, FAR]);
    let told = resolve(&own, request_to("two.example", "/", "")).await;
    assert_eq!(told.resolved, wide.resolved[..1]);
    assert!(told.unresolved.is_empty());

    let wide = resolve(&all, request_to("one.example", "/both", "")).await;
    assert_eq!(
        (wide.resolved.len(), wide.unresolved.len()),
        (1, 1),
        "{wide:?}"
    );
    let told = resolve(&own, request_to("one.example", "/both", "")).await;
    assert_eq!(places(&told), (vec![BOTH.to_owned()], Vec::new()));
    assert_eq!(told.resolved, wide.resolved);
    for gateway in ["default/gw2", "default/gwx"] {
        for host in ["one.example", "two.example"] {
            let told = resolve(&own, request_to(host, "/", gateway)).await;
            assert_eq!(places(&told), (Vec::new(), Vec::new()), "{gateway}");
            assert_eq!((&told.version, &told.kinds), (&wide.version, &wide.kinds));
        }
    }
    let mesh = v1::ResolveRequestRequest {
        service: "default/t".to_owned(),
        client_namespace: "elsewhere".to_owned(),
        ..request_to("", "/", "")
    };
    assert_eq!(resolve(&all, mesh.clone()).await.resolved.len(), 1);
    assert_eq!(places(&resolve(&own, mesh).await), (Vec::new(), Vec::new()));

    // Only one of the Gateway's routes is in scope.
    let told = resolve(&deep, request_to("two.example", "/", "")).await;
    assert_eq!(places(&told), (vec![PATH.to_owned()], Vec::new()));
    let told = resolve(&deep, request_to("two.example", "/both", "")).await;
    assert_eq!(places(&told), (Vec::new(), Vec::new()));
    let mut client = policies_of(&own);
    let wrong = client.resolve_request(request_to("a..b", "/", "default/gw2"));
    assert_eq!(wrong.await.unwrap_err().code(), Code::InvalidArgument);
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resolved_requests_hold_kinds_in_scope() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("a.test").await;
    let x = X;
    let cases: [(&[&str], &[&str]); 4] =
        [(&[], &[A]), (&[A], &[A]), (&[B], &[x]), (&[A, B], &[A, x])];
    for (asked, same) in cases {
        let request = |kinds: &[&str]| v1::ResolveRequestRequest {
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            ..request_to("two.example", "/", "")
        };
        let told = resolve(&own, request(asked)).await;
        assert_eq!(told.resolved.len(), 2);
        let expected = resolve(&all, request(same)).await;
        assert_eq!(shown(&told), renamed(&expected, x, B), "{asked:?}");
    }
    rows.secured.stop().await;
}
