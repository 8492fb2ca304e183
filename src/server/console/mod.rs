//! The console: a page in the browser, and gRPC-web for it, over HTTP/1.1 on loopback.
//!
//! The page asks `PolicyInsightService` like every other caller, with the same limits, and with a token if one is required.
//! What the browser of somebody else can do is bounded by the browser: requests that another site makes are refused.

mod assets;
mod origin;
mod pieces;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic_web::GrpcWebLayer;
use tower::{Layer, ServiceExt};

use crate::server::Limits;
use crate::server::access::peer::Peer;
use crate::server::admission::bounds::Bound;
use crate::server::transport::connection::{AcceptConfig, Acceptor, serve_each};
use crate::server::transport::fast_path::FastPathService;
use crate::server::transport::http1::{Http1Limits, serve_connection};
use crate::server::transport::http2::Lifetime;
use assets::Asset;
use pieces::PiecedBody;

/// Maximum number of connections. A browser opens six.
pub(super) const CONNECTIONS: usize = 64;
/// A token of a cluster has a few KB.
const LIMITS: Http1Limits = Http1Limits {
    headers_within: Duration::from_secs(30),
    header_bytes: 32 * 1024,
};
/// What the page may load and who may embed it: nothing from elsewhere, and nobody.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The headers of all responses.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (header::CACHE_CONTROL, "no-cache"),
];

/// Answers the requests of all connections.
#[derive(Clone)]
struct Handler {
    services: FastPathService,
    /// Whether the page may follow the effective policies: `EffectivePolicyService` does not review the rights of a caller.
    follows: bool,
}

/// Serves on the connections of a listener until `stop` is cancelled and they are closed.
pub(super) async fn serve(
    listener: (Acceptor, AcceptConfig),
    services: FastPathService,
    (limits, follows): (&Limits, bool),
    stop: CancellationToken,
) {
    let handler = Handler { services, follows };
    let (limits, of_each) = (limits.clone(), stop.clone());
    let connections = serve_each(listener, &stop, move |connection| {
        let lifetime = Lifetime::of(&connection, &limits);
        let (handler, peer) = (handler.clone(), connection.peer().clone());
        let table = Arc::clone(connection.table());
        let service = service_fn(move |request| {
            let (handler, peer, table) = (handler.clone(), peer.clone(), Arc::clone(&table));
            async move {
                let response = handler.answer(request, peer.clone()).await;
                if response.status() == StatusCode::FORBIDDEN {
                    table.record(Bound::ForeignSite, peer.connection());
                }
                Ok::<_, Infallible>(response)
            }
        });
        serve_connection(connection, service, LIMITS, (lifetime, of_each.clone()))
    });
    let mut connections = connections.await;
    while connections.join_next().await.is_some() {}
}

impl Handler {
    async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Response<Body> {
        peer.connection().called();
        let mut response = match self.routed(request, peer).await {
            Ok(response) => response,
            Err((status, message)) => refusal(status, message),
        };
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    async fn routed(
        &self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> Result<Response<Body>, (StatusCode, &'static str)> {
        let forbidden = |why| (StatusCode::FORBIDDEN, why);
        origin::check_host(request.headers()).map_err(forbidden)?;
        let path = request.uri().path();
        if let Some(asset) = Asset::find(path) {
            return match *request.method() {
                Method::GET | Method::HEAD => Ok(asset.response(request.headers())),
                _ => Err((StatusCode::METHOD_NOT_ALLOWED, "use GET")),
            };
        }
        // The page itself tells nothing, so that links to it may be followed from anywhere.
        origin::check_site(request.headers()).map_err(forbidden)?;
        let is_insight = path.starts_with("/entail.v1.PolicyInsightService/");
        let is_policies = path.starts_with("/entail.v1.EffectivePolicyService/");
        if !(is_insight || is_policies && self.follows) {
            return Err((StatusCode::NOT_FOUND, "there is no such page"));
        }
        let mut request = request;
        request.extensions_mut().insert(peer);
        let services = self.services.clone();
        let services = services.map_response(|response| response.map(PiecedBody::new));
        let mut web = GrpcWebLayer::new().layer(services);
        match web.call(request).await {
            Ok(response) => Ok(response),
            Err(never) => match never {},
        }
    }
}

fn refusal(status: StatusCode, message: &'static str) -> Response<Body> {
    let mut response = Response::new(text(Bytes::from_static(message.as_bytes())));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// A body that is known as a whole.
fn text(bytes: Bytes) -> Body {
    Body::new(http_body_util::Full::new(bytes))
}

/// The value of a header, if it is text.
fn value(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
