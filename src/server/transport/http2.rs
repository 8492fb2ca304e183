//! HTTP/2 on the connections of a listener. The services are called when the headers of a request
//! arrive, before a task is spawned for it, so admission counts every request that has started.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::task::JoinSet;
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::Service;

use crate::server::Limits;
use crate::server::access::peer::Peer;
use crate::server::transport::connection::Connection;

/// Maximum number of bytes of a stream that wait for the socket, beyond the last chunk.
const SEND_BUFFER: usize = 64 * 1024;

/// The services, called by one connection: adds the caller to each request.
struct ConnectionService<S> {
    services: S,
    peer: Peer,
}

/// Serves on connections until `stop` is cancelled and they are closed.
pub(in crate::server) async fn serve<S, B>(
    incoming: impl Stream<Item = Connection>,
    services: S,
    limits: &Limits,
    stop: CancellationToken,
) where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = tonic::Status> + Send + 'static,
{
    let http = http(limits);
    let times = (limits.connection_age, limits.connection_grace);
    let mut connections = JoinSet::new();
    {
        let mut incoming = pin!(incoming);
        loop {
            let connection = tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                next = incoming.next() => next,
            };
            let Some(connection) = connection else { break };
            let services = ConnectionService {
                services: services.clone(),
                peer: connection.peer().clone(),
            };
            let serving = http.serve_connection(TokioIo::new(connection), services);
            connections.spawn(serve_connection_until(serving, times, stop.clone()));
        }
    }
    while connections.join_next().await.is_some() {}
}

/// Serves on a connection until the caller closes it, it reaches its maximum age, or `stop` is
/// cancelled.
async fn serve_connection_until<S, B>(
    serving: http2::Connection<TokioIo<Connection>, ConnectionService<S>, TokioExecutor>,
    (age, grace): (Duration, Duration),
    stop: CancellationToken,
) where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = tonic::Status> + Send + 'static,
{
    let mut serving = pin!(serving);
    let result = tokio::select! {
        result = &mut serving => Some(result),
        // `Server::run` bounds the time to drain.
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            Some(serving.await)
        }
        () = tokio::time::sleep(age) => {
            serving.as_mut().graceful_shutdown();
            tokio::time::timeout(grace, serving).await.ok()
        }
    };
    if let Some(Err(error)) = result {
        tracing::debug!(%error, "connection failed");
    }
}

fn http(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(limits.header_bytes)
        .keep_alive_interval(Some(limits.keepalive))
        .keep_alive_timeout(limits.keepalive_timeout);
    http
}

impl<S, B> hyper::service::Service<Request<Incoming>> for ConnectionService<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone,
{
    type Response = Response<B>;
    type Error = Infallible;
    type Future = S::Future;

    fn call(&self, request: Request<Incoming>) -> S::Future {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.peer.clone());
        // The services are always ready: admission happens in the call.
        self.services.clone().call(request)
    }
}
