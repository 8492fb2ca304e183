//! Handles requests: finds the rule, looks up its policy, and forwards the request.

use std::sync::Arc;
use std::time::Duration;

use entail_client::Mirror;
use entail_client::v1::KindState;
use entail_client::v1::kind_state::State;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{CONNECTION, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Version};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::policy::{Compiled, KIND};
use crate::retry::{Body, Payload, Retry, full};
use crate::rules::{Rule, Table, is_unambiguous};

/// Maximum size in bytes of a request body that is buffered for retries.
const MAX_BUFFERED: u64 = 64 * 1024;

/// Response header with the number of retries.
const RETRIES: HeaderName = HeaderName::from_static("x-retries");
/// Response header with the state of the applied policies: `live`, or `stale` for the last known.
const POLICIES: HeaderName = HeaderName::from_static("x-policies");
/// With this header, a backend processes a request once even if it receives it several times.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Headers of a connection, which are not forwarded (RFC 9110, 7.6.1).
const HOP_BY_HOP: [&str; 8] = [
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The proxy.
pub struct Proxy {
    mirror: Mirror<Compiled>,
    table: Table,
    client: Client<HttpConnector, Body>,
}

/// Why a request is not forwarded.
enum Rejection {
    /// The backend may interpret the target differently from the routing table.
    AmbiguousTarget,
    /// No rule matches the request.
    NoRule,
    /// The policy of the rule is not known or cannot be applied.
    PolicyUnavailable(String),
    /// The rate limit of the rule is exceeded; the time until the next token.
    RateLimited(Duration),
    /// The body of the request failed.
    Body(hyper::Error),
}

impl Proxy {
    pub fn new(mirror: Mirror<Compiled>, table: Table) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self {
            mirror,
            table,
            client,
        }
    }

    /// Handles a request and returns the response, also for errors.
    pub async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let forwarded = self.forward(request).await;
        forwarded.unwrap_or_else(Rejection::into_response)
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>, Rejection> {
        let path = request.uri().path();
        if request.method() == Method::CONNECT || !is_unambiguous(path) {
            return Err(Rejection::AmbiguousTarget);
        }
        let rule = self.table.find(path).ok_or(Rejection::NoRule)?;
        let (compiled, state) = self.policy(rule)?;
        let Ok(policy) = compiled.as_ref() else {
            let message = "the policy of this route cannot be applied";
            return Err(Rejection::PolicyUnavailable(message.to_owned()));
        };
        // The limit counts requests, not attempts: retries are invisible to the client.
        rule.bucket
            .take(policy.limit)
            .map_err(Rejection::RateLimited)?;

        let (parts, body) = request.into_parts();
        let payload = payload(&parts, body, &policy.retry).await?;
        let parts = for_backend(rule, parts)?;
        let (outcome, retries) = policy.retry.send(&self.client, &parts, payload).await;
        let mut response = match outcome {
            Ok(response) => response.map(BodyExt::boxed),
            Err(failure) => {
                tracing::warn!(
                    rule.path,
                    retries,
                    "the backend does not respond: {failure}"
                );
                text(failure.status(), "the backend does not respond")
            }
        };
        // The HTTP version belongs to the connection.
        *response.version_mut() = Version::HTTP_11;
        let headers = response.headers_mut();
        remove_hop_by_hop(headers);
        headers.insert(RETRIES, retries.into());
        headers.insert(POLICIES, HeaderValue::from_static(state));
        Ok(response)
    }

    /// Looks up the policy of a rule in the mirror, and its state for the response header. If the
    /// policy is not known, no request passes, because there might be a limit.
    fn policy(&self, rule: &Rule) -> Result<(Arc<Compiled>, &'static str), Rejection> {
        // Every `LookupError` becomes 503. `NotReady` is temporary. `NotFound`: the rule is in the
        // routing table, so it was deleted or is newer than the copy, which is temporary, too; 404
        // could be cached. `NotSubscribed` is an error in the settings of the mirror.
        let is_connected = self.mirror.is_connected();
        let result = self.mirror.look_up(&rule.path, |compiled, info| {
            let state = policy_state(&info.kinds, is_connected)?;
            Ok((Arc::clone(compiled), state))
        });
        result.map_err(|error| Rejection::PolicyUnavailable(error.to_string()))?
    }
}

/// Reports whether the answers of this proxy depend on a kind: its policy kind, and the kinds that
/// paths consist of, which are those of the Gateway API and of Kubernetes. A server also reports the
/// states of other policy kinds.
fn is_relevant(kind: &str) -> bool {
    kind == KIND || kind.ends_with(".gateway.networking.k8s.io") || !kind.contains('.')
}

/// Returns `live` or `stale`, or an error if the state of a relevant kind is not known.
fn policy_state(kinds: &[KindState], is_connected: bool) -> Result<&'static str, Rejection> {
    for kind in kinds.iter().filter(|kind| is_relevant(&kind.kind)) {
        match kind.state() {
            // The last known policies still apply.
            State::Complete | State::Stale => {}
            // The policies of the kind are not known: an empty answer does not mean "no limit".
            // States of a later version are unspecified, and fail closed as well.
            State::Forbidden | State::Unknown | State::Unspecified => {
                let message = format!("the policies of {} are not known", kind.kind);
                return Err(Rejection::PolicyUnavailable(message));
            }
        }
    }
    // A stale copy applies without a time limit. To limit its age, compare `synced_at` with the
    // current time, if the server reads a cluster.
    let is_live = is_connected && !kinds.iter().any(|kind| is_relevant(&kind.kind));
    Ok(if is_live { "live" } else { "stale" })
}

/// Returns the request body to send, buffered if the request may be retried.
///
/// A proxy must not retry a request that is not idempotent (RFC 9110, 9.2.2), even if the policy
/// allows it: POST is retried only with an `idempotency-key`. Only bodies of a known, small size are
/// buffered.
async fn payload(parts: &Parts, body: Incoming, retry: &Retry) -> Result<Payload, Rejection> {
    let may_retry = parts.method.is_idempotent() || parts.headers.contains_key(IDEMPOTENCY_KEY);
    let is_small = body.size_hint().exact().is_some_and(|n| n <= MAX_BUFFERED);
    if retry.retries == 0 || !may_retry || !is_small {
        return Ok(Payload::Streamed(body));
    }
    let buffered = body.collect().await.map_err(Rejection::Body)?;
    Ok(Payload::Buffered(buffered.to_bytes()))
}

/// Returns the head of the request to the backend.
fn for_backend(rule: &Rule, mut parts: Parts) -> Result<Parts, Rejection> {
    parts.uri = rule
        .backend_uri(&parts.uri)
        .map_err(|_| Rejection::AmbiguousTarget)?;
    parts.version = Version::HTTP_11;
    remove_hop_by_hop(&mut parts.headers);
    Ok(parts)
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // The `connection` header names further headers of the connection.
    let named = headers.get_all(CONNECTION).iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> = named
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    headers.remove(CONNECTION);
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

impl Rejection {
    fn into_response(self) -> Response<Body> {
        let (mut response, retry_after) = match self {
            Rejection::AmbiguousTarget => (text(StatusCode::BAD_REQUEST, "ambiguous target"), None),
            Rejection::NoRule => (text(StatusCode::NOT_FOUND, "no matching route"), None),
            Rejection::Body(error) => (text(StatusCode::BAD_REQUEST, &error.to_string()), None),
            Rejection::PolicyUnavailable(message) => {
                (text(StatusCode::SERVICE_UNAVAILABLE, &message), Some(1))
            }
            Rejection::RateLimited(wait) => {
                // `retry-after` has whole seconds: round up.
                let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
                let response = text(StatusCode::TOO_MANY_REQUESTS, "too many requests");
                (response, Some(seconds))
            }
        };
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// Returns a response of the proxy itself.
fn text(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(full(Bytes::from(format!("{text}\n"))));
    *response.status_mut() = status;
    response
}
