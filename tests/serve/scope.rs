//! Look-ups of callers whose access rule has prefixes or kinds. Paths and kinds out of scope are
//! answered as if they did not exist.

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

/// A path of the second Gateway, whose name starts with the name of the first.
pub const FAR: &str = "gateways/default/gw2/listeners/http/routes/HTTPRoute/default/far/rules/#0";
/// A path of a route that is attached to both Gateways.
pub const BOTH: &str = "gateways/default/gw/listeners/http/routes/HTTPRoute/default/both/rules/pay";
pub const A: &str = "APolicy.p.example";
pub const B: &str = "BPolicy.p.example";
/// A kind that does not exist.
pub const X: &str = "XPolicy.p.example";

/// Manifests in addition to those of `world()`. No name contains `gwx` or `fax`.
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

/// The access rules that the tests share.
const RULES: &str = "
- {names: [gw.test], services: [policies, envoy, insight], prefixes: [gateways/default/gw]}
- {names: [deep.test], services: [policies, insight], prefixes: [ROUTE, gateways/default/gw/listeners/gone]}
- {names: [a.test], services: [policies, envoy, insight], kinds: [APolicy.p.example]}
- {names: [x.test], services: [policies, envoy, insight], kinds: [XPolicy.p.example]}
";

/// A TLS server with access rules and the larger set of manifests.
pub struct RulesServer {
    ca: Ca,
    pub tls: TlsServer,
}

impl RulesServer {
    /// Starts a server. Adds a last rule that permits `all.test` everything.
    pub async fn start(rules: &str, adjust: impl FnOnce(&mut ServeSettings)) -> Self {
        let ca = Ca::new();
        let tls = TlsServer::start(&ca, |settings| {
            let file = settings
                .tls
                .as_ref()
                .unwrap()
                .cert
                .with_file_name("callers");
            let all = "- {names: [all.test], services: [policies, envoy, insight]}\n";
            std::fs::write(&file, format!("callers:\n{rules}\n{all}")).unwrap();
            settings.callers = Some(file);
            larger(settings);
            adjust(settings);
        });
        let tls = tls.await;
        tls.until(&ca, &ca.sign(&["all.test"]), true).await;
        Self { ca, tls }
    }

    /// Starts a server with the access rules that the tests share.
    pub async fn shared(adjust: impl FnOnce(&mut ServeSettings)) -> Self {
        let route = PATH.strip_suffix("/rules/#0").unwrap();
        Self::start(&RULES.replace("ROUTE", route), adjust).await
    }

    /// Connects as a caller with these names in its certificate.
    pub async fn named(&self, names: &[&str]) -> Channel {
        let own = self.ca.sign(names);
        self.tls.connect(&self.ca, Some(&own)).await.unwrap()
    }

    /// Connects as a caller with this name.
    pub async fn caller(&self, name: &str) -> Channel {
        self.named(&[name]).await
    }

    /// Connects as a caller with this name, and as `all.test`, which may see everything.
    pub async fn beside_all(&self, name: &str) -> (Channel, Channel) {
        (self.caller(name).await, self.caller("all.test").await)
    }
}

/// Adds the second Gateway and its policies to the manifests.
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

/// The debug text of a reply or status, with headers and details, but without the `date` header.
pub fn shown(actual: &impl Debug) -> String {
    let text = format!("{actual:?}");
    let Some((before, rest)) = text.split_once("\"date\": \"") else {
        return text;
    };
    let (_, after) = rest.split_once('"').unwrap();
    format!("{before}{after}")
}

/// The debug text with a name replaced by another one of the same length.
pub fn renamed(actual: &impl Debug, from: &str, to: &str) -> String {
    assert_eq!(from.len(), to.len());
    shown(actual).replace(from, to)
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

/// Requests for a path: the one of the fast path, and variants with other fields.
fn request_variants(path: &str) -> Vec<v1::GetEffectivePoliciesRequest> {
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

/// A request for a prefix of the path `FAR`, in parts; `depth` is the number of steps below the
/// Gateway.
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
async fn a_path_out_of_scope_is_answered_as_if_its_gateway_did_not_exist() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    let gateway = "gateways/default/gw2";
    let mut requested: Vec<_> = [gateway, FAR]
        .into_iter()
        .flat_map(request_variants)
        .collect();
    requested.extend(request_variants("gateways/default/gw2/listeners/none"));
    requested.extend(request_variants(&BOTH.replace("gw/", "gw2/")));
    requested.extend((0..4).map(|depth| by_parts("gw2", depth)));
    let mut absent: Vec<_> = requested.clone();
    for request in &mut absent {
        use v1::get_effective_policies_request::Target;
        match request.target.as_mut().unwrap() {
            Target::Path(path) => *path = path.replace("gw2", "gwx"),
            Target::Ref(parts) => parts.gateway = parts.gateway.replace("gw2", "gwx"),
        }
    }
    for (requested, absent) in requested.into_iter().zip(absent) {
        // The reply to one caller does not affect the reply to another.
        let unrestricted = look_up(&all, requested.clone()).await;
        let refused = look_up(&own, requested.clone()).await.unwrap_err();
        let missing = look_up(&all, absent.clone()).await.unwrap_err();
        let (code, text, metadata) = reason(&missing);
        assert_eq!((code, &*text), (Code::NotFound, "GatewayNotFound"));
        assert!(!metadata.contains_key("nearest"), "{metadata:?}");
        let expected = renamed(&missing, "gwx", "gw2");
        assert_eq!(renamed(&refused, "gwx", "gw2"), expected, "{requested:?}");
        assert_eq!(
            reason(&refused).2.len(),
            metadata.len(),
            "{requested:?}: {refused:?}"
        );
        let nowhere = look_up(&own, absent).await.unwrap_err();
        assert_eq!(shown(&nowhere), shown(&missing));
        let repeated = look_up(&all, requested).await;
        assert_eq!(repeated.is_ok(), unrestricted.is_ok());
    }
    assert!(look_up(&all, by_path(FAR)).await.is_ok());
    for request in request_variants(PATH) {
        let (actual, expected) = (
            look_up(&own, request.clone()).await,
            look_up(&all, request).await,
        );
        assert_eq!(actual.unwrap(), expected.unwrap());
    }
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_out_of_scope_are_answered_as_absent() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    for (there, absent) in [("default", "nowhere"), ("elsewhere", "nobodyyyy")] {
        let path = |name: &str| by_path(&format!("namespaces/{name}"));
        assert!(look_up(&all, path(there)).await.is_ok(), "{there}");
        let refused = look_up(&own, path(there)).await.unwrap_err();
        let missing = look_up(&all, path(absent)).await.unwrap_err();
        assert_eq!(shown(&refused), renamed(&missing, absent, there), "{there}");
    }
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mesh_paths_out_of_scope_are_answered_as_absent() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
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
    server.tls.stop().await;
}

/// The reason why a route is not attached would reveal that the route exists.
#[tokio::test(flavor = "multi_thread")]
async fn a_route_out_of_scope_is_answered_as_absent() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    let routes = PATH.split("/default/r/").next().unwrap();
    let [there, nowhere] = ["far", "fax"].map(|name| by_path(&format!("{routes}/default/{name}")));
    let actual = look_up(&own, there.clone()).await.unwrap_err();
    let expected = look_up(&own, nowhere).await.unwrap_err();
    assert_eq!(shown(&actual).replace("/far", "/fax"), shown(&expected));
    let all = look_up(&all, there).await.unwrap_err();
    assert_ne!(reason(&all).1, reason(&actual).1);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_names_are_invalid_and_the_nearest_path_is_in_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    for path in [
        "gateways/default/gw2/listners/x",
        "gateways/default",
        "?",
        "",
    ] {
        let actual = look_up(&own, by_path(path)).await.unwrap_err();
        let expected = look_up(&all, by_path(path)).await.unwrap_err();
        assert_eq!(actual.code(), Code::InvalidArgument, "{path}");
        assert_eq!(shown(&actual), shown(&expected));
    }
    let routes = PATH.split("/default/r/").next().unwrap();
    let absent = by_path(&format!("{routes}/default/none"));
    let actual = look_up(&own, absent.clone()).await.unwrap_err();
    assert_eq!(
        reason(&actual).2["nearest"],
        "gateways/default/gw/listeners/http"
    );
    let expected = look_up(&all, absent).await.unwrap_err();
    assert_eq!(shown(&actual), shown(&expected));

    let deep = server.caller("deep.test").await;
    let near = look_up(&deep, by_path(&PATH.replace("#0", "none"))).await;
    let near = reason(&near.unwrap_err());
    assert_eq!(near.2["nearest"], PATH.strip_suffix("/rules/#0").unwrap());
    for path in [
        "gateways/default/gw/listeners/gone",
        "gateways/default/gw/listeners/gone/routes/HTTPRoute/default/r",
    ] {
        // The nearest path is that of the Gateway, which is out of scope.
        let all = look_up(&all, by_path(path)).await.unwrap_err();
        assert_eq!(reason(&all).2["nearest"], "gateways/default/gw");
        let actual = look_up(&deep, by_path(path)).await.unwrap_err();
        assert_eq!(actual.code(), Code::NotFound);
        assert!(!reason(&actual).2.contains_key("nearest"), "{actual:?}");
        let batch = policies_of(&deep)
            .batch_get_effective_policies(batch_of([path]))
            .await;
        let error = batch.unwrap().into_inner().results.remove(0).error.unwrap();
        assert_eq!((error.code, &*error.nearest), (5, ""));
    }
    // A path above a prefix is out of scope.
    let above = look_up(&deep, by_path("gateways/default/gw")).await;
    let missing = look_up(&all, by_path("gateways/default/zz")).await;
    assert_eq!(
        shown(&above.unwrap_err()),
        renamed(&missing.unwrap_err(), "default/zz", "default/gw")
    );
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_path_of_a_batch_is_checked_against_the_scope() {
    let server = RulesServer::shared(|_| {}).await;
    let (own, all) = server.beside_all("gw.test").await;
    let batch = async |channel: &Channel, gateway: &str, kinds: &[&str]| {
        let mut requests = request_variants(&FAR.replace("gw2", gateway));
        requests.extend(request_variants(PATH));
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
        let actual = batch(&own, "gw2", kinds).await;
        let expected = batch(&all, "gwx", kinds).await;
        let error = actual.results[0].error.as_ref().unwrap();
        let found = (error.code, &*error.reason, &*error.nearest);
        assert_eq!(found, (5, "GatewayNotFound", ""));
        assert!(actual.results[5].error.is_none());
        assert_eq!(
            shown(&actual),
            renamed(&expected, "gwx", "gw2"),
            "{kinds:?}"
        );
    }
    server.tls.stop().await;
}
