//! Tests of request routing, with the requests of `tests/matching`. They restate the conformance
//! tests of the Gateway API, and cover the details of its specification.

use std::path::Path;
use std::time::Duration;

use entail::api::v1;
use entail::app::load_values;
use entail::cli::RemoteBackend;
use entail::insight::{LocalBackend, QueryBackend};
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
    isolation: Option<bool>,
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
            ..Default::default()
        }
    }

    /// Resolves the request; returns the reply if it differs from the expected one.
    fn check(&self, backend: &mut dyn QueryBackend) -> Option<String> {
        let reply = match backend.resolve(self.message()) {
            Ok(reply) => reply,
            Err(error) => return Some(error.to_string()),
        };
        let found: Vec<_> = reply.resolved.iter().collect();
        let is_expected = found.len() == self.want.len()
            && found
                .iter()
                .zip(&self.want)
                .all(|(found, expected)| expected.matches(found));
        let has_reasons = reply.unresolved.iter().all(|miss| !miss.reason.is_empty());
        let has_result = !found.is_empty() || !reply.unresolved.is_empty();
        let is_consistent = self.none == self.want.is_empty() && has_reasons && has_result;
        (!is_expected || !is_consistent).then(|| format!("{found:#?}\n{:#?}", reply.unresolved))
    }
}

impl ExpectedRoute {
    fn matches(&self, found: &v1::ResolvedRequest) -> bool {
        let parts = found.r#ref.clone().unwrap_or_default();
        let policies = found.policies.as_ref();
        let same =
            |expected: &Option<String>, found: &str| expected.as_deref().is_none_or(|e| e == found);
        same(&self.gateway, &parts.gateway)
            && same(&self.service, &parts.service)
            && same(&self.listener, &parts.listener)
            && self.listener_set == parts.listener_set
            && self.route == parts.route
            && self.rule == parts.rule
            && self.r#match == found.match_index
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
            if let Some(found) = request.check(&mut *backend) {
                wrong.push(format!("{}: {}\n{found}", world.name, request.name));
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
