//! Retries: conditions, number and backoff.

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

/// A request or response body, from memory or from a connection.
pub type Body = BoxBody<Bytes, hyper::Error>;

/// The retry settings of a rule.
#[derive(Debug, Default)]
pub struct Retry {
    /// Maximum number of retries after the first attempt.
    pub retries: u32,
    /// Statuses of responses after which to retry.
    statuses: BTreeSet<u16>,
    /// Whether to retry if the connection to the backend fails.
    on_connect_failure: bool,
    /// Whether to retry if the backend resets the connection or does not respond in time.
    on_reset: bool,
    /// Timeout of an attempt, up to the response headers.
    per_try_timeout: Option<Duration>,
    /// Maximum delay before the first retry; it doubles with each further retry.
    base_interval: Duration,
    /// Upper bound of the maximum delay.
    max_interval: Duration,
}

/// The `retry` field of the spec. Unknown fields can only add retries, so they are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetrySpec {
    /// The defaults are those of the CRD, which the API server applies and manifests lack.
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

/// The request body that is sent to the backend.
#[derive(Debug)]
pub enum Payload {
    /// Buffered in memory: it can be sent again.
    Buffered(Bytes),
    /// Streamed from the client: it can be sent once.
    Streamed(Incoming),
}

/// Why an attempt has no response.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    #[error("failed to connect: {0}")]
    Connect(String),
    #[error("connection failed: {0}")]
    Reset(String),
    #[error("timed out")]
    Timeout,
}

impl RetrySpec {
    pub fn compile(self) -> Retry {
        let back_off = self.per_retry.back_off;
        let base_interval = back_off
            .base_interval
            .map_or(Duration::from_millis(25), |span| span.0);
        let max_interval = back_off
            .max_interval
            .map_or(base_interval.saturating_mul(10), |span| span.0);
        let mut retry = Retry {
            retries: self.num_retries.unwrap_or(2),
            per_try_timeout: self.per_retry.timeout.map(|span| span.0),
            base_interval,
            max_interval,
            ..Retry::default()
        };
        match self.retry_on {
            Some(on) => {
                for trigger in &on.triggers {
                    retry.add_trigger(trigger, &on.http_status_codes);
                }
            }
            None => {
                retry.on_connect_failure = true;
                retry.statuses.insert(503);
            }
        }
        retry
    }
}

impl Retry {
    /// Adds a trigger. Triggers of gRPC and HTTP/2 are ignored: this proxy implements neither.
    fn add_trigger(&mut self, trigger: &str, codes: &[u16]) {
        match trigger {
            "5xx" => self.statuses.extend(500..=599),
            "gateway-error" => self.statuses.extend(502..=504),
            "retriable-4xx" => self.statuses.extend([409]),
            "retriable-status-codes" => self.statuses.extend(codes),
            _ => {}
        }
        self.on_reset |= matches!(trigger, "5xx" | "gateway-error" | "reset");
        self.on_connect_failure |= self.on_reset || trigger == "connect-failure";
    }

    fn should_retry(&self, outcome: &Result<Response<Incoming>, AttemptError>) -> bool {
        match outcome {
            Ok(response) => self.statuses.contains(&response.status().as_u16()),
            Err(AttemptError::Connect(_)) => self.on_connect_failure,
            Err(AttemptError::Reset(_) | AttemptError::Timeout) => self.on_reset,
        }
    }

    /// Returns the delay before a retry: a random time below an exponentially growing bound, so that
    /// clients do not retry at the same time.
    fn backoff(&self, retry: u32) -> Duration {
        let bound = self
            .base_interval
            .saturating_mul(2_u32.saturating_pow(retry.saturating_sub(1)));
        let random = RandomState::new().build_hasher().finish();
        bound
            .min(self.max_interval)
            .mul_f64(random as f64 / u64::MAX as f64)
    }

    /// Sends a request with retries. Returns the result of the last attempt and the number of
    /// retries.
    pub async fn send(
        &self,
        client: &Client<HttpConnector, Body>,
        parts: &Parts,
        mut payload: Payload,
    ) -> (Result<Response<Incoming>, AttemptError>, u32) {
        let mut retries = 0;
        loop {
            let (body, buffered) = match payload {
                Payload::Buffered(bytes) => (full(bytes.clone()), Some(bytes)),
                Payload::Streamed(body) => (body.boxed(), None),
            };
            let request = Request::from_parts(parts.clone(), body);
            let outcome = self.attempt(client, request).await;
            match buffered {
                Some(bytes) if retries < self.retries && self.should_retry(&outcome) => {
                    payload = Payload::Buffered(bytes);
                }
                _ => return (outcome, retries),
            }
            retries += 1;
            tokio::time::sleep(self.backoff(retries)).await;
        }
    }

    async fn attempt(
        &self,
        client: &Client<HttpConnector, Body>,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, AttemptError> {
        let sent = client.request(request);
        let result = match self.per_try_timeout {
            Some(limit) => tokio::time::timeout(limit, sent)
                .await
                .map_err(|_| AttemptError::Timeout)?,
            None => sent.await,
        };
        result.map_err(|error| {
            // The outer error only names the phase of the request.
            let cause = root_cause(&error).to_string();
            if error.is_connect() {
                AttemptError::Connect(cause)
            } else {
                AttemptError::Reset(cause)
            }
        })
    }
}

impl AttemptError {
    /// The status of the response to the client.
    pub fn status(&self) -> StatusCode {
        match self {
            AttemptError::Connect(_) | AttemptError::Reset(_) => StatusCode::BAD_GATEWAY,
            AttemptError::Timeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

fn root_cause<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    error.source().map_or(error, root_cause)
}

/// Returns a body with the given bytes.
pub fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}
