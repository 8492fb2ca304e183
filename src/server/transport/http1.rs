//! HTTP/1.1 on a connection of the webhook or of the console.

use std::convert::Infallible;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio_util::sync::CancellationToken;

use crate::server::admission::bounds::Bound;
use crate::server::admission::connections::EndReason;
use crate::server::transport::connection::Connection;
use crate::server::transport::http2::Lifetime;

/// What a connection may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct Http1Limits {
    /// Time until the headers of the next request have arrived.
    pub headers_within: Duration,
    /// Maximum size of the headers of a request, in bytes.
    pub header_bytes: usize,
}

/// Serves on a connection until the caller closes it, it has to end, or `stop` is cancelled.
pub(in crate::server) async fn serve_connection<S, B>(
    connection: Connection,
    service: S,
    limits: Http1Limits,
    (lifetime, stop): (Lifetime, CancellationToken),
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (table, entry) = (
        Arc::clone(connection.table()),
        Arc::clone(connection.peer().connection()),
    );
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.headers_within)
        .max_buf_size(limits.header_bytes);
    let mut serving = pin!(http.serve_connection(TokioIo::new(connection), service));
    let result = tokio::select! {
        result = &mut serving => Some(result),
        reason = lifetime.end() => {
            match reason {
                EndReason::Silent => table.record(Bound::ConnectionSetup, &entry),
                EndReason::CertificateExpired => table.record(Bound::CertificateExpired, &entry),
                EndReason::Evicted | EndReason::Unread | EndReason::Age => {}
            }
            if !matches!(reason, EndReason::CertificateExpired | EndReason::Age) {
                return;
            }
            serving.as_mut().graceful_shutdown();
            // A caller that does not read its reply does not keep the connection.
            tokio::time::timeout(lifetime.grace(), serving).await.ok()
        }
        // Whoever cancels it bounds the time to drain.
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            Some(serving.await)
        }
    };
    if let Some(Err(error)) = result {
        if error.is_parse_too_large() {
            table.record(Bound::RequestHeaders, &entry);
        }
        tracing::debug!(%error, "connection over HTTP/1.1 failed");
    }
}
