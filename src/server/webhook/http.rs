//! HTTP/1.1 on the connections of the webhook: API servers do not use HTTP/2 for webhooks.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use tokio_util::sync::CancellationToken;

use super::reviewer::{ReviewError, Reviewer, SMALL_REVIEW};
use super::shares::AddressShares;
use crate::server::access::peer::Peer;
use crate::server::admission::bounds::Bound;
use crate::server::transport::connection::{AcceptConfig, Acceptor, serve_each};
use crate::server::transport::http1::{Http1Limits, serve_connection};
use crate::server::transport::http2::Lifetime;
use crate::server::transport::request_counters::RpcService;
use crate::server::{BoundCounters, Limits};

/// The path that reviews are posted to.
const PATH: &str = "/admit";
/// Maximum size of a review, which has two versions of an object. API servers accept objects of 3 MiB.
const MAX_REVIEW: u64 = 8 * 1024 * 1024;
/// Maximum number of reviews larger than [`SMALL_REVIEW`] that are in memory at once.
const LARGE_REVIEWS: usize = 4;
/// Maximum number of larger reviews of one address.
const LARGE_PER_ADDRESS: usize = 3;
/// API servers close idle connections after 90 s.
const LIMITS: Http1Limits = Http1Limits {
    headers_within: Duration::from_secs(120),
    header_bytes: 16 * 1024,
};

/// Answers the requests of all connections.
struct Handler {
    reviewer: Arc<Reviewer>,
    /// Time for a review to arrive.
    arrival: Duration,
    /// The large reviews that are read.
    large: Arc<AddressShares>,
    bounds: Arc<BoundCounters>,
}

/// Why a request is not answered with a review.
struct Refusal(StatusCode, String);

/// Serves on the connections of a listener until `stop` is cancelled, and then up to a time for requests in progress.
pub(super) async fn serve(
    listener: (Acceptor, AcceptConfig),
    reviewer: Arc<Reviewer>,
    (limits, bounds): (&Limits, Arc<BoundCounters>),
    (stop, drain): (CancellationToken, Duration),
) {
    let handler = Arc::new(Handler {
        reviewer,
        arrival: limits.request_arrival,
        large: AddressShares::new(LARGE_REVIEWS, LARGE_PER_ADDRESS),
        bounds,
    });
    let (limits, of_each) = (limits.clone(), stop.clone());
    let serving = serve_each(listener, &stop, move |connection| {
        let lifetime = Lifetime::of(&connection, &limits);
        let (handler, peer) = (Arc::clone(&handler), connection.peer().clone());
        let service = service_fn(move |request| {
            let (handler, peer) = (Arc::clone(&handler), peer.clone());
            async move { Ok::<_, Infallible>(handler.answer(request, &peer).await) }
        });
        serve_connection(connection, service, LIMITS, (lifetime, of_each.clone()))
    });
    let mut serving = serving.await;
    let all = async { while serving.join_next().await.is_some() {} };
    if tokio::time::timeout(drain, all).await.is_err() {
        tracing::warn!("admission reviews were still in progress at the end");
    }
}

impl Handler {
    async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Response<String> {
        peer.connection().called();
        // A connection with a request in progress gives way last.
        let _busy = peer.requests().try_acquire();
        match self.review(request, peer).await {
            Ok(answer) => response(StatusCode::OK, "application/json", answer),
            Err(Refusal(status, message)) => {
                let counters = self.reviewer.counters();
                match status.is_server_error() {
                    true => counters.record_not_read(),
                    false => counters.record_malformed(),
                }
                response(status, "text/plain; charset=utf-8", message + "\n")
            }
        }
    }

    async fn review(&self, request: Request<Incoming>, peer: &Peer) -> Result<String, Refusal> {
        if peer.authorize(RpcService::Other).is_err() {
            let message = "the client certificate is not trusted any more";
            return Err(refusal(StatusCode::FORBIDDEN, message));
        }
        if request.uri().path() != PATH {
            return Err(refusal(
                StatusCode::NOT_FOUND,
                "reviews are posted to /admit",
            ));
        }
        if request.method() != Method::POST {
            return Err(refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                "reviews are posted",
            ));
        }
        let length = request.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let Some(length) = length else {
            return Err(refusal(StatusCode::LENGTH_REQUIRED, "no content length"));
        };
        if length > MAX_REVIEW {
            let message = "the review is larger than 8 MiB";
            return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        // Held until the answer, because the review is in memory until then.
        let address = peer.connection().address();
        let _large = match length > SMALL_REVIEW as u64 {
            true => Some(self.large.begin(address).ok_or_else(|| {
                let message = "too many large reviews at once";
                refusal(StatusCode::SERVICE_UNAVAILABLE, message)
            })?),
            false => None,
        };
        let time = request.uri().query().and_then(time_limit);
        let body = tokio::time::timeout(self.arrival, read(request.into_body(), length)).await;
        let body = body.map_err(|_| {
            self.bounds.record(Bound::RequestArrival, &address);
            refusal(StatusCode::REQUEST_TIMEOUT, "the review is late")
        })?;
        let body = body.map_err(|error| refusal(StatusCode::BAD_REQUEST, &error))?;
        let reviewed = self.reviewer.review(body, address, time).await;
        reviewed.map_err(|error| match error {
            ReviewError::Malformed(why) => refusal(StatusCode::BAD_REQUEST, &why),
            ReviewError::NotRead(why) => refusal(StatusCode::SERVICE_UNAVAILABLE, &why),
        })
    }
}

fn refusal(status: StatusCode, message: &str) -> Refusal {
    Refusal(status, message.to_owned())
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// Reads a body of a known length. hyper ends it at that length.
async fn read(mut body: Incoming, length: u64) -> Result<Bytes, String> {
    let mut text = BytesMut::with_capacity(usize::try_from(length).unwrap_or_default());
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| error.to_string())?;
        if let Ok(data) = frame.into_data() {
            text.extend_from_slice(&data);
        }
    }
    Ok(text.freeze())
}

/// The time to answer in: three quarters of the `timeout` that an API server adds to the address, such as `10s`.
fn time_limit(query: &str) -> Option<Duration> {
    let mut values = query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("timeout="));
    let seconds: u32 = values.next()?.strip_suffix('s')?.parse().ok()?;
    Some(Duration::from_secs(seconds.into()) * 3 / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_limit_is_a_part_of_that_of_the_api_server() {
        for (query, millis) in [
            ("timeout=2s", Some(1_500)),
            ("x=1&timeout=10s", Some(7_500)),
            ("timeout=1m0s", None),
            ("timeout=", None),
            ("", None),
        ] {
            let limit = time_limit(query).map(|limit| limit.as_millis());
            assert_eq!(limit, millis, "{query}");
        }
    }
}
