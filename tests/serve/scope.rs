//! What callers are told whose row names prefixes or kinds: what is out of scope is to them as if it were not there.

use std::collections::BTreeMap;
use std::fmt::Debug;

use entail::api::v1;
use entail::app::ServeSettings;
use entail_client::stubs::effective_policy_service_client::EffectivePolicyServiceClient;
use entail_client::stubs::policy_insight_service_client::PolicyInsightServiceClient;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::server::{PATH, batch_of, by_path, policies};
use super::tls::{Ca, TlsServer};

/// A path of the other Gateway, whose name begins as that of the first.
pub const FAR: &str = "gateways/default/gw2/listeners/http/routes/HTTPRoute/default/far/rules/#0";
/// A path of a route that both Gateways take.
pub const BOTH: &str = "gateways/default/gw/listeners/http/routes/HTTPRoute/default/both/rules/pay";
pub const A: &str = "APolicy.p.example";
pub const B: &str = "BPolicy.p.example";
/// No kind at all.
pub const X: &str = "XPolicy.p.example";

/// What stands beside `world()`. No name contains `gwx` or `fax`.
const MORE: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw2}
spec:
  gatewayClassName: any
  listeners: [{name: http, port: 80, protocol: HTTP, hostname: two.example}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: far}
spec:
  parentRefs: [{name: gw2}]
  rules: [{backendRefs: [{name: t, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: both}
spec:
  parentRefs: [{name: gw}, {name: gw2}]
  rules: [{name: pay, matches: [{path: {value: /both}}], backendRefs: [{name: s, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: near, namespace: elsewhere}
spec:
  parentRefs: [{group: '', kind: Service, namespace: default, name: t}]
  rules: [{name: call}]
---
apiVersion: v1
kind: Service
metadata: {name: t}
spec: {ports: [{port: 80}]}
---
apiVersion: p.example/v1
kind: APolicy
metadata: {name: lost}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: nowhere}], defaults: {marker: 9}}
---
apiVersion: p.example/v1
kind: BPolicy
metadata: {name: lost}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: nowhere}], defaults: {marker: 9}}
";

/// Rows that the tests share.
const ROWS: &str = "
- {names: [gw.test], services: [policies, envoy, insight], prefixes: [gateways/default/gw]}
- {names: [deep.test], services: [policies, insight], prefixes: [ROUTE, gateways/default/gw/listeners/gone]}
- {names: [a.test], services: [policies, envoy, insight], kinds: [APolicy.p.example]}
- {names: [x.test], services: [policies, envoy, insight], kinds: [XPolicy.p.example]}
";

/// A server over the larger world, with rows.
pub struct Rows {
    ca: Ca,
    pub secured: TlsServer,
}

impl Rows {
    /// Starts one. The last row is of `all.test`, who sees everything.
    pub async fn start(rows: &str, adjust: impl FnOnce(&mut ServeSettings)) -> Self {
        let ca = Ca::new();
        let secured = TlsServer::start(&ca, |settings| {
            let file = settings.tls.as_ref().unwrap().cert.with_file_name("rows");
            let all = "- {names: [all.test], services: [policies, envoy, insight]}\n";
            std::fs::write(&file, format!("callers:\n{rows}\n{all}")).unwrap();
            settings.callers = Some(file);
            larger(settings);
            adjust(settings);
        });
        let secured = secured.await;
        secured.until(&ca, &ca.sign(&["all.test"]), true).await;
        Self { ca, secured }
    }

    /// One with the rows that the tests share.
    pub async fn shared(adjust: impl FnOnce(&mut ServeSettings)) -> Self {
        let route = PATH.strip_suffix("/rules/#0").unwrap();
        Self::start(&ROWS.replace("ROUTE", route), adjust).await
    }

    /// A connection of a caller with these names.
    pub async fn named(&self, names: &[&str]) -> Channel {
        let own = self.ca.sign(names);
        self.secured.connect(&self.ca, Some(&own)).await.unwrap()
    }

    pub async fn caller(&self, name: &str) -> Channel {
        self.named(&[name]).await
    }

    /// Connections of a caller and of the one who sees everything.
    pub async fn beside_all(&self, name: &str) -> (Channel, Channel) {
        (self.caller(name).await, self.caller("all.test").await)
    }
}

/// Adds the second Gateway, with policies of its own.
pub fn larger(settings: &mut ServeSettings) {
    let folder = settings.inputs.manifests[0].clone();
    let others = policies(2)
        .replace("name: p}", "name: q}")
        .replace("name: gw}", "name: gw2}");
    std::fs::write(folder.join("more.yaml"), MORE).unwrap();
    std::fs::write(folder.join("others.yaml"), others).unwrap();
}

pub fn policies_of(channel: &Channel) -> EffectivePolicyServiceClient<Channel> {
    EffectivePolicyServiceClient::new(channel.clone())
}

pub fn insight_of(channel: &Channel) -> PolicyInsightServiceClient<Channel> {
    PolicyInsightServiceClient::new(channel.clone())
}

pub async fn look_up(
    channel: &Channel,
    request: v1::GetEffectivePoliciesRequest,
) -> Result<v1::GetEffectivePoliciesResponse, Status> {
    let reply = policies_of(channel).get_effective_policies(request).await;
    Ok(reply?.into_inner())
}

/// All that is told, headers and details as well, but for the header that says when.
pub fn shown(told: &impl Debug) -> String {
    let text = format!("{told:?}");
    let Some((before, rest)) = text.split_once("\"date\": \"") else {
        return text;
    };
    let (_, after) = rest.split_once('"').unwrap();
    format!("{before}{after}")
}

/// The same once a name is replaced by another of its length.
pub fn renamed(told: &impl Debug, from: &str, to: &str) -> String {
    assert_eq!(from.len(), to.len());
    shown(told).replace(from, to)
}

/// Code, reason and metadata of a status.
pub fn reason(status: &Status) -> (Code, String, BTreeMap<String, String>) {
    let info = status.get_details_error_info().unwrap();
    let metadata = info.metadata.into_iter().collect();
    (status.code(), info.reason, metadata)
}

pub fn with_kinds(path: &str, kinds: &[&str]) -> v1::GetEffectivePoliciesRequest {
    v1::GetEffectivePoliciesRequest {
        kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        ..by_path(path)
    }
}

/// All ways to ask for a path: the fast one, and those that are not.
fn ways(path: &str) -> Vec<v1::GetEffectivePoliciesRequest> {
    let etag = |etag: &str| v1::GetEffectivePoliciesRequest {
        if_none_match: etag.to_owned(),
        ..by_path(path)
    };
    vec![
        by_path(path),
        with_kinds(path, &[A]),
        with_kinds(path, &[X, B]),
        etag("0"),
        etag("00000000000000000000000000000000"),
    ]
}

/// The same by parts, as far as the rule of `far` or of another route.
fn by_parts(gateway: &str, depth: usize) -> v1::GetEffectivePoliciesRequest {
    let upto = |at: usize, text: &str| if at <= depth { text } else { "" }.to_owned();
    let parts = v1::PathRef {
        gateway: format!("default/{gateway}"),
        listener: upto(1, "http"),
        route: upto(2, "HTTPRoute/default/far"),
        rule: upto(3, "#0"),
        ..v1::PathRef::default()
    };
    let parts = v1::get_effective_policies_request::Target::Ref(parts);
    v1::GetEffectivePoliciesRequest {
        target: Some(parts),
        ..v1::GetEffectivePoliciesRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_out_of_scope_is_told_as_one_without_its_gateway() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    let gateway = "gateways/default/gw2";
    let mut asked: Vec<_> = [gateway, FAR].into_iter().flat_map(ways).collect();
    asked.extend(ways("gateways/default/gw2/listeners/none"));
    asked.extend(ways(&BOTH.replace("gw/", "gw2/")));
    asked.extend((0..4).map(|depth| by_parts("gw2", depth)));
    let mut absent: Vec<_> = asked.clone();
    for request in &mut absent {
        use v1::get_effective_policies_request::Target;
        match request.target.as_mut().unwrap() {
            Target::Path(path) => *path = path.replace("gw2", "gwx"),
            Target::Ref(parts) => parts.gateway = parts.gateway.replace("gw2", "gwx"),
        }
    }
    for (asked, absent) in asked.into_iter().zip(absent) {
        // What one caller was told is nothing to the next.
        let seen = look_up(&all, asked.clone()).await;
        let refused = look_up(&own, asked.clone()).await.unwrap_err();
        let missing = look_up(&all, absent.clone()).await.unwrap_err();
        let (code, word, metadata) = reason(&missing);
        assert_eq!((code, &*word), (Code::NotFound, "GatewayNotFound"));
        assert!(!metadata.contains_key("nearest"), "{metadata:?}");
        let expected = renamed(&missing, "gwx", "gw2");
        assert_eq!(renamed(&refused, "gwx", "gw2"), expected, "{asked:?}");
        assert_eq!(
            reason(&refused).2.len(),
            metadata.len(),
            "{asked:?}: {refused:?}"
        );
        let nowhere = look_up(&own, absent).await.unwrap_err();
        assert_eq!(shown(&nowhere), shown(&missing));
        let again = look_up(&all, asked).await;
        assert_eq!(again.is_ok(), seen.is_ok());
    }
    assert!(look_up(&all, by_path(FAR)).await.is_ok());
    for request in ways(PATH) {
        let (told, expected) = (
            look_up(&own, request.clone()).await,
            look_up(&all, request).await,
        );
        assert_eq!(told.unwrap(), expected.unwrap());
    }
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_roots_out_of_scope_are_told_as_absent() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    for (there, absent) in [("default", "nowhere"), ("elsewhere", "nobodyyyy")] {
        let path = |name: &str| by_path(&format!("namespaces/{name}"));
        assert!(look_up(&all, path(there)).await.is_ok(), "{there}");
        let refused = look_up(&own, path(there)).await.unwrap_err();
        let missing = look_up(&all, path(absent)).await.unwrap_err();
        assert_eq!(shown(&refused), renamed(&missing, absent, there), "{there}");
    }
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mesh_paths_out_of_scope_are_told_as_absent() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    let client = "mesh/elsewhere/services/default";
    let call = "routes/HTTPRoute/elsewhere/near/rules/call";
    for rest in ["", call] {
        let path = |name: &str| by_path(format!("{client}/{name}/{rest}").trim_end_matches('/'));
        assert!(look_up(&all, path("t")).await.is_ok(), "{rest}");
        let refused = look_up(&own, path("t")).await.unwrap_err();
        let missing = look_up(&all, path("u")).await.unwrap_err();
        assert_eq!(
            shown(&refused),
            renamed(&missing, "default/u", "default/t"),
            "{rest}"
        );
    }
    rows.secured.stop().await;
}

/// Why a route does not join tells that there is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_route_of_others_is_told_as_one_that_is_nowhere() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    let routes = PATH.split("/default/r/").next().unwrap();
    let [there, nowhere] = ["far", "fax"].map(|name| by_path(&format!("{routes}/default/{name}")));
    let told = look_up(&own, there.clone()).await.unwrap_err();
    let expected = look_up(&own, nowhere).await.unwrap_err();
    assert_eq!(shown(&told).replace("/far", "/fax"), shown(&expected));
    let all = look_up(&all, there).await.unwrap_err();
    assert_ne!(reason(&all).1, reason(&told).1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_path_name_stays_wrong_and_nearest_stays_in_scope() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    for path in [
        "gateways/default/gw2/listners/x",
        "gateways/default",
        "?",
        "",
    ] {
        let told = look_up(&own, by_path(path)).await.unwrap_err();
        let expected = look_up(&all, by_path(path)).await.unwrap_err();
        assert_eq!(told.code(), Code::InvalidArgument, "{path}");
        assert_eq!(shown(&told), shown(&expected));
    }
    let routes = PATH.split("/default/r/").next().unwrap();
    let absent = by_path(&format!("{routes}/default/none"));
    let told = look_up(&own, absent.clone()).await.unwrap_err();
    assert_eq!(
        reason(&told).2["nearest"],
        "gateways/default/gw/listeners/http"
    );
    let expected = look_up(&all, absent).await.unwrap_err();
    assert_eq!(shown(&told), shown(&expected));

    let deep = rows.caller("deep.test").await;
    let near = look_up(&deep, by_path(&PATH.replace("#0", "none"))).await;
    let near = reason(&near.unwrap_err());
    assert_eq!(near.2["nearest"], PATH.strip_suffix("/rules/#0").unwrap());
    for path in [
        "gateways/default/gw/listeners/gone",
        "gateways/default/gw/listeners/gone/routes/HTTPRoute/default/r",
    ] {
        // There is no such listener: its Gateway is the nearest, and out of scope.
        let all = look_up(&all, by_path(path)).await.unwrap_err();
        assert_eq!(reason(&all).2["nearest"], "gateways/default/gw");
        let told = look_up(&deep, by_path(path)).await.unwrap_err();
        assert_eq!(told.code(), Code::NotFound);
        assert!(!reason(&told).2.contains_key("nearest"), "{told:?}");
        let batch = policies_of(&deep)
            .batch_get_effective_policies(batch_of([path]))
            .await;
        let error = batch.unwrap().into_inner().results.remove(0).error.unwrap();
        assert_eq!((error.code, &*error.nearest), (5, ""));
    }
    // What stands above a prefix is out of scope, too.
    let above = look_up(&deep, by_path("gateways/default/gw")).await;
    let missing = look_up(&all, by_path("gateways/default/zz")).await;
    assert_eq!(
        shown(&above.unwrap_err()),
        renamed(&missing.unwrap_err(), "default/zz", "default/gw")
    );
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_of_a_batch_are_out_of_scope_each_alone() {
    let rows = Rows::shared(|_| {}).await;
    let (own, all) = rows.beside_all("gw.test").await;
    let batch = async |channel: &Channel, gateway: &str, kinds: &[&str]| {
        let mut requests = ways(&FAR.replace("gw2", gateway));
        requests.extend(ways(PATH));
        requests.extend([by_path("?"), by_parts(gateway, 3), by_path(BOTH)]);
        let request = v1::BatchGetEffectivePoliciesRequest {
            requests,
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        };
        let reply = policies_of(channel)
            .batch_get_effective_policies(request)
            .await;
        reply.unwrap().into_inner()
    };
    for kinds in [&[][..], &[A], &[B, X]] {
        let told = batch(&own, "gw2", kinds).await;
        let expected = batch(&all, "gwx", kinds).await;
        let error = told.results[0].error.as_ref().unwrap();
        let found = (error.code, &*error.reason, &*error.nearest);
        assert_eq!(found, (5, "GatewayNotFound", ""));
        assert!(told.results[5].error.is_none());
        assert_eq!(shown(&told), renamed(&expected, "gwx", "gw2"), "{kinds:?}");
    }
    rows.secured.stop().await;
}
