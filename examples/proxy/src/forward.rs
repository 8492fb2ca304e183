//! What happens to a request.

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
use crate::rules::{Rule, Table, is_plain};

/// The largest body of a request that is kept for sending it again.
const MAX_KEPT: u64 = 64 * 1024;

/// How often the request was repeated.
const RETRIES: HeaderName = HeaderName::from_static("x-retries");
/// Whether the policies that were applied are `live`, or `stale`: the last that were heard of.
const POLICIES: HeaderName = HeaderName::from_static("x-policies");
/// By this a client promises that its request is carried out once, however often it comes.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Headers that are about a connection, not about what is sent over it (RFC 9110, 7.6.1).
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

/// Why a request is not passed on.
enum Refusal {
    /// Backends may read its target otherwise than the table.
    Unclear,
    /// No rule takes it.
    NoRule,
    /// What holds on its rule is not known, or cannot be applied.
    Unknown(String),
    /// The limit of its rule is reached; there is a token after this time.
    Limited(Duration),
    /// The client's body broke off.
    Broken(hyper::Error),
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

    /// Answers a request, whatever becomes of it.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let forwarded = self.forward(request).await;
        forwarded.unwrap_or_else(Refusal::into_response)
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let path = request.uri().path();
        if request.method() == Method::CONNECT || !is_plain(path) {
            return Err(Refusal::Unclear);
        }
        let rule = self.table.find(path).ok_or(Refusal::NoRule)?;
        let (compiled, standing) = self.what_holds(rule)?;
        let Ok(policy) = compiled.as_ref() else {
            let why = "the policy of this route cannot be applied";
            return Err(Refusal::Unknown(why.to_owned()));
        };
        // Requests are counted, not attempts: a client cannot know of retries.
        rule.bucket.take(policy.limit).map_err(Refusal::Limited)?;

        let (parts, body) = request.into_parts();
        let payload = payload(&parts, body, &policy.retry).await?;
        let parts = for_backend(rule, parts)?;
        let (outcome, retries) = policy.retry.send(&self.client, &parts, payload).await;
        let mut response = match outcome {
            Ok(response) => response.map(BodyExt::boxed),
            Err(failure) => {
                tracing::warn!(rule.path, retries, "the backend does not answer: {failure}");
                text(failure.status(), "the backend does not answer")
            }
        };
        // Each connection has a version of its own.
        *response.version_mut() = Version::HTTP_11;
        let headers = response.headers_mut();
        remove_hop_by_hop(headers);
        headers.insert(RETRIES, retries.into());
        headers.insert(POLICIES, HeaderValue::from_static(standing));
        Ok(response)
    }

    /// What holds on a rule, and how sure that is. It asks nobody and waits for nobody. Where it is
    /// not known no request passes, because there might be a limit.
    fn what_holds(&self, rule: &Rule) -> Result<(Arc<Compiled>, &'static str), Refusal> {
        // Each miss is 503. Nothing heard of entail since the start (`NotReady`): it will pass.
        // Entail knows no such rule (`NotFound`), and yet we were configured with it: it is gone or
        // newer than the copy, and soon the two agree again. 404 would be believed, and cached. A
        // rule that is not followed at all (`NotSubscribed`) is ours to mend.
        let is_connected = self.mirror.is_connected();
        let found = self.mirror.look_up(&rule.path, |compiled, known| {
            Ok((Arc::clone(compiled), standing(&known.kinds, is_connected)?))
        });
        found.map_err(|miss| Refusal::Unknown(miss.to_string()))?
    }
}

/// Whether an answer rests on a kind: the policy that is asked for, or what paths are made of, which
/// are the kinds of the Gateway API and of Kubernetes itself. Servers tell of others, too.
fn is_of_ours(kind: &str) -> bool {
    kind == KIND || kind.ends_with(".gateway.networking.k8s.io") || !kind.contains('.')
}

/// What the copy is worth.
fn standing(kinds: &[KindState], is_connected: bool) -> Result<&'static str, Refusal> {
    for kind in kinds.iter().filter(|kind| is_of_ours(&kind.kind)) {
        match kind.state() {
            // The last good state is better than none.
            State::Complete | State::Stale => {}
            // Nothing is known of the kind, so an empty answer does not mean "no limit". States that
            // are yet to be invented are read so as well.
            State::Forbidden | State::Unknown | State::Unspecified => {
                let why = format!("entail knows nothing of {}", kind.kind);
                return Err(Refusal::Unknown(why));
            }
        }
    }
    // However old a copy is, its policies go on to hold. Others may want to stop one day: compare
    // `synced_at` with the clock, if the server's source is a cluster.
    let live = is_connected && !kinds.iter().any(|kind| is_of_ours(&kind.kind));
    Ok(if live { "live" } else { "stale" })
}

/// The body as it is sent: kept if the request may be repeated.
///
/// A proxy must not repeat what is not idempotent (RFC 9110, 9.2.2), whatever a policy says: POST is
/// repeated only under an `idempotency-key`. And what is repeated has to be held in memory, so its
/// length has to be known and small.
async fn payload(parts: &Parts, body: Incoming, retry: &Retry) -> Result<Payload, Refusal> {
    let may_repeat = parts.method.is_idempotent() || parts.headers.contains_key(IDEMPOTENCY_KEY);
    let is_small = body.size_hint().exact().is_some_and(|n| n <= MAX_KEPT);
    if retry.retries == 0 || !may_repeat || !is_small {
        return Ok(Payload::Once(body));
    }
    let kept = body.collect().await.map_err(Refusal::Broken)?;
    Ok(Payload::Kept(kept.to_bytes()))
}

/// The head of the request that the backend gets.
fn for_backend(rule: &Rule, mut parts: Parts) -> Result<Parts, Refusal> {
    parts.uri = rule.backend_uri(&parts.uri).map_err(|_| Refusal::Unclear)?;
    parts.version = Version::HTTP_11;
    remove_hop_by_hop(&mut parts.headers);
    Ok(parts)
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // `connection` names further ones.
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

impl Refusal {
    fn into_response(self) -> Response<Body> {
        let (mut response, retry_after) = match self {
            Refusal::Unclear => (text(StatusCode::BAD_REQUEST, "the target is unclear"), None),
            Refusal::NoRule => (text(StatusCode::NOT_FOUND, "there is no such route"), None),
            Refusal::Broken(error) => (text(StatusCode::BAD_REQUEST, &error.to_string()), None),
            Refusal::Unknown(why) => (text(StatusCode::SERVICE_UNAVAILABLE, &why), Some(1)),
            Refusal::Limited(wait) => {
                // Whole seconds, and not too early.
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

/// A response of the proxy itself.
fn text(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(full(Bytes::from(format!("{text}\n"))));
    *response.status_mut() = status;
    response
}
