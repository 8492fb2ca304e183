//! Tests of request routing, with the requests of `tests/matching`. They restate the conformance
//! tests of the Gateway API, and cover the details of its specification and the dialects.

use std::path::Path;
use std::time::Duration;

use entail::api::v1;
use entail::app::load_values;
use entail::cli::RemoteBackend;
use entail::insight::{LocalBackend, QueryBackend, QueryError};
use entail::server::Limits;
use entail_client::ClientTls;
use serde::Deserialize;
use serde_json::Value;

use super::served;

use v1::resolve_request_request::{HostnamePrecedence, Protocol};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct World {
    name: String,
    /// The rules of the specification that the requests show; `tests/specification.rs` reads them.
    #[allow(dead_code, reason = "read as text")]
    sections: Vec<String>,
    manifests: Vec<Value>,
    requests: Vec<Request>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Request {
    name: String,
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    gateway: String,
    #[serde(default)]
    listener_set: String,
    #[serde(default)]
    listener: String,
    #[serde(default)]
    port: u32,
    #[serde(default)]
    service: String,
    #[serde(default)]
    client_namespace: String,
    #[serde(default)]
    host: String,
    #[serde(default)]
    sni: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    headers: Vec<Header>,
    #[serde(default)]
    hostname_precedence: String,
    #[serde(default)]
    dialect: String,
    #[serde(default)]
    raw_query: bool,
    #[serde(default)]
    normalized_path: bool,
    isolation: Option<bool>,
    /// The reason of the error, or of the first Gateway without a rule.
    reason: Option<String>,
    /// Whether the answer says that the proxy refuses the request.
    #[serde(default)]
    refused: bool,
    #[serde(default)]
    want: Vec<ExpectedRoute>,
    #[serde(default)]
    none: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    name: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ExpectedRoute {
    gateway: Option<String>,
    #[serde(default)]
    listener_set: String,
    listener: Option<String>,
    service: Option<String>,
    route: String,
    rule: String,
    r#match: Option<u32>,
    dialect: Option<String>,
}

impl Request {
    fn message(&self) -> v1::ResolveRequestRequest {
        let protocol = match &*self.protocol {
            "" | "http" => Protocol::Http,
            "grpc" => Protocol::Grpc,
            "tls" => Protocol::Tls,
            "tcp" => Protocol::Tcp,
            "udp" => Protocol::Udp,
            other => panic!("unknown protocol {other}"),
        };
        let precedence = match &*self.hostname_precedence {
            "" => HostnamePrecedence::Unspecified,
            "Route" => HostnamePrecedence::Route,
            "Intersection" => HostnamePrecedence::Intersection,
            other => panic!("unknown precedence {other}"),
        };
        let headers = self.headers.iter().map(|header| v1::RequestHeader {
            name: header.name.clone(),
            value: header.value.clone(),
        });
        v1::ResolveRequestRequest {
            protocol: protocol.into(),
            gateway: self.gateway.clone(),
            listener_set: self.listener_set.clone(),
            listener: self.listener.clone(),
            port: self.port,
            service: self.service.clone(),
            client_namespace: self.client_namespace.clone(),
            host: self.host.clone(),
            method: self.method.clone(),
            path: self.path.clone(),
            headers: headers.collect(),
            sni: self.sni.clone(),
            hostname_precedence: precedence.into(),
            disable_listener_isolation: self.isolation == Some(false),
            dialect: self.dialect.clone(),
            raw_query: self.raw_query,
            normalized_path: self.normalized_path,
            ..Default::default()
        }
    }

    /// Resolves the request; returns the reply if it differs from the expected one.
    fn check(&self, backend: &mut dyn QueryBackend) -> Option<String> {
        let reply = match backend.resolve(self.message()) {
            Ok(reply) => reply,
            Err(QueryError::Failure(failure)) if self.reason.is_some() => {
                let is_expected = Some(&*failure.reason) == self.reason.as_deref();
                return (!is_expected).then(|| failure.to_string());
            }
            Err(error) => return Some(error.to_string()),
        };
        let actual: Vec<_> = reply.resolved.iter().collect();
        let is_expected = actual.len() == self.want.len()
            && actual
                .iter()
                .zip(&self.want)
                .all(|(actual, expected)| expected.matches(actual));
        let has_reasons = reply.unresolved.iter().all(|miss| !miss.reason.is_empty());
        let has_result = !actual.is_empty() || !reply.unresolved.is_empty();
        let first = reply.unresolved.first().map(|miss| &miss.reason);
        let is_reason = self
            .reason
            .as_ref()
            .is_none_or(|reason| Some(reason) == first);
        let mut refusals = actual.iter().map(|one| &one.refusal);
        let refused = refusals.any(|refusal| !refusal.is_empty())
            || reply.unresolved.iter().any(|miss| !miss.refusal.is_empty());
        let is_consistent = self.none == self.want.is_empty() && has_reasons && has_result;
        let is_consistent = is_consistent && is_reason && refused == self.refused;
        (!is_expected || !is_consistent).then(|| format!("{actual:#?}\n{:#?}", reply.unresolved))
    }
}

impl ExpectedRoute {
    fn matches(&self, actual: &v1::ResolvedRequest) -> bool {
        let parts = actual.r#ref.clone().unwrap_or_default();
        let policies = actual.policies.as_ref();
        let same = |expected: &Option<String>, actual: &str| {
            expected.as_deref().is_none_or(|e| e == actual)
        };
        same(&self.gateway, &parts.gateway)
            && same(&self.service, &parts.service)
            && same(&self.listener, &parts.listener)
            && self.listener_set == parts.listener_set
            && self.route == parts.route
            && self.rule == parts.rule
            && self.r#match == actual.match_index
            && same(&self.dialect, &actual.dialect)
            && policies
                .is_some_and(|policies| policies.error.is_none() && !policies.etag.is_empty())
    }
}

fn worlds() -> Vec<(World, LocalBackend)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/matching");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    let worlds = files.iter().map(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        let world: World =
            serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        let local = load_values(&world.manifests, &[]).unwrap();
        (world, local)
    });
    worlds.collect()
}

/// Checks all requests; `connect` returns the backend for a world.
fn check(mut connect: impl FnMut(LocalBackend) -> Box<dyn QueryBackend>) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (world, local) in worlds() {
        let mut backend = connect(local);
        for request in &world.requests {
            count += 1;
            if let Some(actual) = request.check(&mut *backend) {
                wrong.push(format!("{}: {}\n{actual}", world.name, request.name));
            }
        }
    }
    let details = wrong.join("\n");
    assert!(wrong.is_empty(), "{} of {count}:\n{details}", wrong.len());
    assert!(count > 300, "{count}");
}

#[test]
fn requests_match_the_rules_that_the_gateway_api_specifies() {
    check(|local| Box::new(local));
}

#[test]
fn a_server_resolves_requests_the_same_way() {
    let served = served::serve(Limits::default());
    check(|local| {
        served.subscriptions.publish(local.snapshot);
        let timeout = Duration::from_secs(30);
        Box::new(RemoteBackend::connect(&served.address, &ClientTls::default(), timeout).unwrap())
    });
}
