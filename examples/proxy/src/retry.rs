//! Retries: when, how often, and after which pause.

use std::collections::BTreeSet;
use std::error::Error;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use serde::Deserialize;

use crate::policy::Span;

/// A body of whatever origin.
pub type Body = BoxBody<Bytes, hyper::Error>;

/// When an attempt is repeated, and how often.
#[derive(Debug, Default)]
pub struct Retry {
    /// Beside the first attempt.
    pub retries: u32,
    statuses: BTreeSet<u16>,
    /// If the backend cannot be connected to.
    on_no_connection: bool,
    /// If it does not answer, or not in time.
    on_no_answer: bool,
    /// How long an attempt may take, to the head of its response.
    per_try: Option<Duration>,
    /// The first pause is at most this long, each further one at most twice as long.
    pause: Duration,
    longest_pause: Duration,
}

/// `retry` of the spec. A field that is not known here only means fewer retries: it is ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetrySpec {
    /// Defaults are those of the CRD: the API server writes them, files go without.
    num_retries: Option<u32>,
    retry_on: Option<RetryOnSpec>,
    #[serde(default)]
    per_retry: PerRetrySpec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RetryOnSpec {
    #[serde(default)]
    triggers: Vec<String>,
    #[serde(default)]
    http_status_codes: Vec<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PerRetrySpec {
    timeout: Option<Span>,
    #[serde(default)]
    back_off: BackOffSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BackOffSpec {
    base_interval: Option<Span>,
    max_interval: Option<Span>,
}

/// What is sent to the backend.
#[derive(Debug)]
pub enum Payload {
    /// Kept: it can be sent again.
    Kept(Bytes),
    /// As it comes: it can be sent once.
    Once(Incoming),
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("no connection: {0}")]
    Unconnected(String),
    #[error("no response: {0}")]
    Unanswered(String),
    #[error("no response in time")]
    Late,
}

impl RetrySpec {
    pub fn compile(self) -> Retry {
        let back_off = self.per_retry.back_off;
        let pause = back_off
            .base_interval
            .map_or(Duration::from_millis(25), |span| span.0);
        let longest_pause = back_off
            .max_interval
            .map_or(pause.saturating_mul(10), |span| span.0);
        let mut retry = Retry {
            retries: self.num_retries.unwrap_or(2),
            per_try: self.per_retry.timeout.map(|span| span.0),
            pause,
            longest_pause,
            ..Retry::default()
        };
        match self.retry_on {
            Some(on) => {
                for trigger in &on.triggers {
                    retry.set_off_by(trigger, &on.http_status_codes);
                }
            }
            None => {
                retry.on_no_connection = true;
                retry.statuses.insert(503);
            }
        }
        retry
    }
}

impl Retry {
    /// Adds a trigger. Those that are left out are about gRPC or HTTP/2, of which this proxy knows
    /// nothing.
    fn set_off_by(&mut self, trigger: &str, codes: &[u16]) {
        match trigger {
            "5xx" => self.statuses.extend(500..=599),
            "gateway-error" => self.statuses.extend(502..=504),
            "retriable-4xx" => self.statuses.extend([409]),
            "retriable-status-codes" => self.statuses.extend(codes),
            _ => {}
        }
        self.on_no_answer |= matches!(trigger, "5xx" | "gateway-error" | "reset");
        self.on_no_connection |= self.on_no_answer || trigger == "connect-failure";
    }

    fn is_due(&self, outcome: &Result<Response<Incoming>, Failure>) -> bool {
        match outcome {
            Ok(response) => self.statuses.contains(&response.status().as_u16()),
            Err(Failure::Unconnected(_)) => self.on_no_connection,
            Err(Failure::Unanswered(_) | Failure::Late) => self.on_no_answer,
        }
    }

    /// A random time below a bound that doubles: clients of a backend that comes back must not all
    /// come back at once.
    fn pause_before(&self, retry: u32) -> Duration {
        let doubled = self
            .pause
            .saturating_mul(2_u32.saturating_pow(retry.saturating_sub(1)));
        let random = RandomState::new().build_hasher().finish();
        doubled
            .min(self.longest_pause)
            .mul_f64(random as f64 / u64::MAX as f64)
    }

    /// Sends a request until there is no reason to send it again, and says how often it was
    /// repeated.
    pub async fn send(
        &self,
        client: &Client<HttpConnector, Body>,
        parts: &Parts,
        mut payload: Payload,
    ) -> (Result<Response<Incoming>, Failure>, u32) {
        let mut retries = 0;
        loop {
            let (body, kept) = match payload {
                Payload::Kept(bytes) => (full(bytes.clone()), Some(bytes)),
                Payload::Once(body) => (body.boxed(), None),
            };
            let request = Request::from_parts(parts.clone(), body);
            let outcome = self.attempt(client, request).await;
            match kept {
                Some(bytes) if retries < self.retries && self.is_due(&outcome) => {
                    payload = Payload::Kept(bytes);
                }
                _ => return (outcome, retries),
            }
            retries += 1;
            tokio::time::sleep(self.pause_before(retries)).await;
        }
    }

    async fn attempt(
        &self,
        client: &Client<HttpConnector, Body>,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Failure> {
        let sent = client.request(request);
        let answered = match self.per_try {
            Some(limit) => tokio::time::timeout(limit, sent)
                .await
                .map_err(|_| Failure::Late)?,
            None => sent.await,
        };
        answered.map_err(|error| {
            // The error itself only says where it happened.
            let cause = root_cause(&error).to_string();
            if error.is_connect() {
                Failure::Unconnected(cause)
            } else {
                Failure::Unanswered(cause)
            }
        })
    }
}

impl Failure {
    /// What the client is told.
    pub fn status(&self) -> StatusCode {
        match self {
            Failure::Unconnected(_) | Failure::Unanswered(_) => StatusCode::BAD_GATEWAY,
            Failure::Late => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

fn root_cause<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    error.source().map_or(error, root_cause)
}

/// A body of bytes that are at hand.
pub fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}
