//! `WatchEffectivePolicies` and `ResolveRequest` for callers whose access rule has prefixes or
//! kinds.

use std::collections::BTreeSet;

use entail::api::v1;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::follow::marker;
use super::scope::{A, B, BOTH, FAR, RulesServer, X, look_up, policies_of, renamed, shown};
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

/// The paths of an update with their effective policies.
fn answers(update: &Update) -> BTreeSet<String> {
    let bodies = bodies(update);
    let paths = update.iter().flat_map(|message| &message.paths);
    let actual = paths.map(|path| {
        let body = bodies.iter().find(|body| body.number == path.body).unwrap();
        format!(
            "{} {:?} {} {:?}",
            path.path, path.rule_indexes, body.etag, body.policies
        )
    });
    actual.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_follow_the_intersection_of_rule_and_request() {
    let server = RulesServer::shared(|_| {}).await;
    let all = server.caller("all.test").await;
    let (gw, gw2, route) = (
        "gateways/default/gw",
        "gateways/default/gw2",
        PATH.strip_suffix("/rules/#0").unwrap(),
    );
    let listener = "gateways/default/gw/listeners/http";
    // The prefixes that a caller requests, and those with which `all.test` gets an equal reply.
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
    for (name, requested, equivalent) in cases {
        let own = server.caller(name).await;
        let actual = first(&own, requested, &[]).await;
        let expected = first(&all, equivalent, &[]).await;
        assert!(
            actual[0].reset && !names(&actual).is_empty(),
            "{requested:?}"
        );
        assert_eq!(
            answers(&actual),
            answers(&expected),
            "{name}: {requested:?}"
        );
        let last = actual.last().unwrap();
        let roots = last.client_roots.clone().unwrap_or_default();
        assert!(roots.roots.is_empty(), "{roots:?}");
        assert!(!shown(&actual).contains("gw2"), "{actual:?}");
    }
    let roots = first(&all, &[], &[]).await.pop().unwrap().client_roots;
    assert_eq!(roots.unwrap().roots.len(), 1);
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_with_nothing_in_scope_is_complete_and_empty() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    for prefix in [
        "gateways/default/gw2",
        FAR,
        "namespaces/default",
        "mesh/*/services/default/t",
    ] {
        let actual = first(&own, &[prefix], &[]).await;
        assert!(actual[0].reset, "{prefix}: {actual:?}");
        assert!(
            names(&actual).is_empty() && bodies(&actual).is_empty(),
            "{prefix}: {actual:?}"
        );
        let roots = actual.last().unwrap().client_roots.clone();
        assert!(roots.unwrap_or_default().roots.is_empty());
    }
    // Malformed path names are still invalid.
    for prefix in ["gateways/default/gw2/listners/x", "?"] {
        let refused = async |channel: &Channel| {
            let request = following(&[prefix], &[]);
            let stream = policies_of(channel).watch_effective_policies(request).await;
            stream.unwrap_err()
        };
        let actual: Status = refused(&own).await;
        assert_eq!(actual.code(), Code::InvalidArgument);
        assert_eq!(shown(&actual), shown(&refused(&all).await));
    }
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_contain_only_kinds_in_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("a.test").await;
    let x = X;
    let cases: [(&[&str], &[&str]); 4] =
        [(&[], &[A]), (&[A], &[A]), (&[B], &[x]), (&[A, B], &[A, x])];
    for (requested, equivalent) in cases {
        let actual = first(&own, &[], requested).await;
        let expected = first(&all, &[], equivalent).await;
        assert!(!names(&actual).is_empty());
        assert_eq!(answers(&actual), answers(&expected), "{requested:?}");
        let kinds = |update: &Update| format!("{:?}", update.last().unwrap().kinds);
        assert_eq!(
            kinds(&actual),
            kinds(&expected).replace(x, B),
            "{requested:?}"
        );
    }
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_out_of_scope_are_not_sent() {
    let server = RulesServer::shared(|_| {}).await;
    let own = server.caller("gw.test").await;
    let mut stream = begin(&own, &[], &[]).await;
    update(&mut stream).await;
    let put = |name: &str, text: &str| {
        let folder = server.tls.file("..");
        std::fs::write(folder.join(".temporary"), text).unwrap();
        std::fs::rename(folder.join(".temporary"), folder.join(name)).unwrap();
    };
    let others = policies(7).replace("name: p}", "name: q}");
    put("others.yaml", &others.replace("name: gw}", "name: gw2}"));
    // Wait until the first change is published before the second is written.
    let all = server.caller("all.test").await;
    for attempt in 0.. {
        let reply = look_up(&all, by_path(FAR)).await.unwrap();
        if marker(&reply.result.unwrap().policies[0]) == 7 {
            break;
        }
        assert!(attempt < 500, "the change is never served");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    put("policies.yaml", &policies(3));
    let mut actual = Update::new();
    while !bodies(&actual)
        .iter()
        .any(|body| body.policies.iter().any(|policy| marker(policy) == 3))
    {
        actual.extend(update(&mut stream).await);
    }
    let spec = shown(&actual);
    assert!(
        !spec.contains("gw2") && !spec.contains("marker\\\":7"),
        "{actual:?}"
    );
    let seen: BTreeSet<&str> = names(&actual).into_iter().collect();
    assert!(
        seen.contains(PATH)
            && seen
                .iter()
                .all(|path| format!("{path}/").starts_with("gateways/default/gw/")),
        "{seen:?}"
    );
    server.tls.stop().await;
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
async fn requests_resolve_to_rules_in_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    let deep = server.caller("deep.test").await;
    let paths = |reply: &v1::ResolveRequestResponse| {
        let resolved = reply.resolved.iter().map(|entry| entry.path.clone());
        let unresolved = reply.unresolved.iter().map(|entry| entry.path.clone());
        (resolved.collect::<Vec<_>>(), unresolved.collect::<Vec<_>>())
    };
    let unrestricted = resolve(&all, request_to("two.example", "/", "")).await;
    assert_eq!(paths(&unrestricted).0, [PATH, FAR]);
    let actual = resolve(&own, request_to("two.example", "/", "")).await;
    assert_eq!(actual.resolved, unrestricted.resolved[..1]);
    assert!(actual.unresolved.is_empty());

    let unrestricted = resolve(&all, request_to("one.example", "/both", "")).await;
    assert_eq!(
        (unrestricted.resolved.len(), unrestricted.unresolved.len()),
        (1, 1),
        "{unrestricted:?}"
    );
    let actual = resolve(&own, request_to("one.example", "/both", "")).await;
    assert_eq!(paths(&actual), (vec![BOTH.to_owned()], Vec::new()));
    assert_eq!(actual.resolved, unrestricted.resolved);
    for gateway in ["default/gw2", "default/gwx"] {
        for host in ["one.example", "two.example"] {
            let actual = resolve(&own, request_to(host, "/", gateway)).await;
            assert_eq!(paths(&actual), (Vec::new(), Vec::new()), "{gateway}");
            assert_eq!(
                (&actual.version, &actual.kinds),
                (&unrestricted.version, &unrestricted.kinds)
            );
        }
    }
    let mesh = v1::ResolveRequestRequest {
        service: "default/t".to_owned(),
        client_namespace: "elsewhere".to_owned(),
        ..request_to("", "/", "")
    };
    assert_eq!(resolve(&all, mesh.clone()).await.resolved.len(), 1);
    assert_eq!(paths(&resolve(&own, mesh).await), (Vec::new(), Vec::new()));

    // Only one route of the Gateway is in scope.
    let actual = resolve(&deep, request_to("two.example", "/", "")).await;
    assert_eq!(paths(&actual), (vec![PATH.to_owned()], Vec::new()));
    let actual = resolve(&deep, request_to("two.example", "/both", "")).await;
    assert_eq!(paths(&actual), (Vec::new(), Vec::new()));
    let mut client = policies_of(&own);
    let wrong = client.resolve_request(request_to("a..b", "/", "default/gw2"));
    assert_eq!(wrong.await.unwrap_err().code(), Code::InvalidArgument);
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_rule_does_not_match_is_told_of_rules_in_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    let asked = |rule: &str| v1::ResolveRequestRequest {
        why_not: rule.to_owned(),
        ..request_to("one.example", "/", "")
    };
    let paths = |reply: v1::ResolveRequestResponse| -> Vec<String> {
        reply.why_not.into_iter().map(|miss| miss.path).collect()
    };
    let listener = |gateway: &str| format!("gateways/default/{gateway}/listeners/http");
    let both = asked("httproute/default/both#pay");
    assert_eq!(
        paths(resolve(&all, both.clone()).await),
        [listener("gw"), listener("gw2")]
    );
    assert_eq!(paths(resolve(&own, both).await), [listener("gw")]);
    let refused = |request| async {
        policies_of(&own)
            .resolve_request(request)
            .await
            .unwrap_err()
    };
    let far = refused(asked("httproute/default/far#0")).await;
    let absent = refused(asked("httproute/default/fax#0")).await;
    assert_eq!(far.code(), Code::NotFound);
    assert_eq!(far.message().replace("far", "fax"), absent.message());
    // Which routes have a rule with a name depends on those that are out of scope.
    assert_eq!(paths(resolve(&all, asked("rule/pay")).await).len(), 2);
    for rule in ["rule/pay", "rule/nothing"] {
        assert_eq!(refused(asked(rule)).await.code(), Code::InvalidArgument);
    }
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resolved_requests_contain_only_kinds_in_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("a.test").await;
    let x = X;
    let cases: [(&[&str], &[&str]); 4] =
        [(&[], &[A]), (&[A], &[A]), (&[B], &[x]), (&[A, B], &[A, x])];
    for (requested, equivalent) in cases {
        let request = |kinds: &[&str]| v1::ResolveRequestRequest {
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            ..request_to("two.example", "/", "")
        };
        let actual = resolve(&own, request(requested)).await;
        assert_eq!(actual.resolved.len(), 2);
        let expected = resolve(&all, request(equivalent)).await;
        assert_eq!(shown(&actual), renamed(&expected, x, B), "{requested:?}");
    }
    server.tls.stop().await;
}
