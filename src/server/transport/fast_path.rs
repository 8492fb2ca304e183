//! The fast path of `GetEffectivePolicies`, around the router and the codec: a request frame that
//! contains only a path is answered with a frame of stored bytes. All other requests are forwarded
//! to the services unchanged.
//!
//! Every request passes through here, so this module also admits requests, enforces deadlines, and
//! records metrics and a tracing span per request.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::service::Routes;
use tonic::{Code, Status};
use tracing::Span;
use tracing::field::Empty;

use crate::api::path_only_request;
use crate::insight::get_stored;
use crate::server::Limits;
use crate::server::access::peer::{AccessError, Peer};
use crate::server::admission::concurrency::{ConcurrencyLimiter, Overload, RequestPermits};
use crate::server::admission::deadline::Deadline;
use crate::server::transport::body::{
    BufferedBody, FramedBody, ReplayBody, ReplyBody, RequestDrain,
};
use crate::server::transport::request_counters::{
    RequestCounters, RpcMethod, RpcService, code, code_name,
};
use crate::snapshot::SnapshotCell;

type RoutesFuture = <Routes as Service<Request<Body>>>::Future;

/// The method of the fast path.
const GET: &str = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";
/// The method that opens a stream.
const WATCH: &str = "/entail.v1.EffectivePolicyService/WatchEffectivePolicies";
const CONTENT: HeaderValue = HeaderValue::from_static("application/grpc");

/// All services, with the fast path in front.
#[derive(Clone, Debug)]
pub(in crate::server) struct FastPathService(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    snapshots: Arc<SnapshotCell>,
    /// Maximum size of a reply message, in bytes.
    reply_bytes: usize,
    /// Maximum timeout of a request.
    timeout: Duration,
    services: Routes,
    request_counters: Arc<RequestCounters>,
    concurrency: Arc<ConcurrencyLimiter>,
}

/// A request in progress. Completes with the headers of the reply.
pub(in crate::server) struct ResponseFuture {
    service_handle: FastPathService,
    method: RpcMethod,
    /// When the headers of the request arrived.
    arrived: Instant,
    /// The span of the request; disabled unless the log filter enables level `debug`.
    span: Span,
    state: State,
    deadline: Deadline,
    permits: PermitState,
}

/// The permits of a request.
enum PermitState {
    /// The request holds permits until its reply.
    Acquired { _permits: RequestPermits },
    /// The permits were returned while the request waits for its message, so that a client which
    /// never sends one does not use up the limits.
    Released,
    /// The request needs no permits.
    None,
}

enum State {
    /// Waits for the message of the request.
    PendingRequest(PendingRequest),
    /// Forwarded to the services.
    Forwarded(RoutesFuture),
    /// Rejected; the rest of the request is read first.
    Rejection(Rejection, RequestDrain),
}

/// Reason to reject a request.
#[derive(Clone, Copy, Debug)]
enum Rejection {
    /// Access control denies the call.
    Denied(AccessError),
    /// A limit for concurrent requests is reached.
    Overload(Overload),
}

/// A request whose message is being received.
struct PendingRequest {
    request: Request<Body>,
    read: BufferedBody,
    /// Whether the method is the one of the fast path.
    is_get: bool,
}

impl PermitState {
    fn acquired(permits: RequestPermits) -> Self {
        Self::Acquired { _permits: permits }
    }
}

impl FastPathService {
    /// Creates the fast path in front of the services.
    pub fn new(
        snapshots: Arc<SnapshotCell>,
        limits: &Limits,
        services: Routes,
        (request_counters, concurrency): (Arc<RequestCounters>, Arc<ConcurrencyLimiter>),
    ) -> Self {
        Self(Arc::new(Shared {
            snapshots,
            reply_bytes: limits.reply_bytes,
            timeout: limits.request_timeout,
            services,
            request_counters,
            concurrency,
        }))
    }

    fn forward(&self, request: Request<Body>) -> State {
        State::Forwarded(self.0.services.clone().call(request))
    }

    /// Returns the frame of the reply to a request frame, if the fast path can answer it. The frame
    /// of the reply is the only allocation.
    fn answer(&self, frame: &[u8], peer: &Peer) -> Option<Bytes> {
        let path = path_only_request(frame).filter(|path| peer.may_look_up(path))?;
        let snapshots = &self.0.snapshots;
        let reply = snapshots.with(|snapshot| get_stored(snapshot, path))??;
        reply.to_frame(self.0.reply_bytes)
    }

    /// Authorizes a request and acquires its permits. Requests without a [`Peer`] are denied; the
    /// HTTP/2 layer adds one to every request.
    fn admit(
        &self,
        request: &Request<Body>,
        service: RpcService,
    ) -> Result<Option<RequestPermits>, Rejection> {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.ok_or(Rejection::Denied(AccessError::Denied))?;
        peer.authorize(service).map_err(Rejection::Denied)?;
        // Streams acquire separate permits when they open.
        if request.uri().path() == WATCH {
            return Ok(None);
        }
        self.0
            .concurrency
            .admit(service, peer)
            .map_err(Rejection::Overload)
    }

    /// Returns the first state of an admitted request.
    fn begin(&self, request: Request<Body>, is_get: bool, permits: &PermitState) -> State {
        if matches!(permits, PermitState::None) {
            return self.forward(request);
        }
        State::PendingRequest(PendingRequest {
            is_get: is_get && request.method() == Method::POST,
            request,
            read: BufferedBody::default(),
        })
    }
}

impl Service<Request<Body>> for FastPathService {
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // The services are ready as well: tonic's routes never wait.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        // One of two clock reads per request; each takes some 25 ns.
        let arrived = Instant::now();
        let is_get = request.uri().path() == GET;
        let method = if is_get {
            RpcMethod::GET
        } else {
            RpcMethod::of(request.uri().path())
        };
        let span = request_span(method, &request);
        let deadline = Deadline::of(request.headers(), self.0.timeout);
        let admitted = self.admit(&request, method.service());
        let admitted =
            admitted.map(|permits| permits.map_or(PermitState::None, PermitState::acquired));
        let (permits, state) = match admitted {
            Ok(permits) => {
                // The services may create their future, and events, in the call.
                let state = span.in_scope(|| self.begin(request, is_get, &permits));
                (permits, state)
            }
            Err(rejection) => (
                PermitState::None,
                State::Rejection(rejection, RequestDrain::of(request)),
            ),
        };
        ResponseFuture {
            service_handle: self.clone(),
            method,
            arrived,
            span,
            state,
            deadline,
            permits,
        }
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<ReplyBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // Cloning and entering a disabled span is free.
        let span = this.span.clone();
        let _entered = span.enter();
        let reply = if this.deadline.has_passed() {
            deadline_exceeded()
        } else if let Poll::Ready(reply) = this.step(context) {
            reply
        } else {
            ready!(this.deadline.poll(context));
            deadline_exceeded()
        };
        this.finish(code(reply.headers()));
        Poll::Ready(Ok(reply))
    }
}

/// Returns the span of a request. It costs one comparison of levels unless the log filter enables
/// it.
fn request_span(method: RpcMethod, request: &Request<Body>) -> Span {
    tracing::debug_span!(
        "request",
        service = method.service().name(),
        method = method.name(),
        peer = request
            .extensions()
            .get::<Peer>()
            .map_or("unknown", Peer::transport),
        code = Empty,
    )
}

impl ResponseFuture {
    /// Records the reply in the metrics and in the span. A request whose client is gone before the
    /// reply is not recorded.
    fn finish(&self, code: Code) {
        let latency = self.arrived.elapsed();
        let counters = &self.service_handle.0.request_counters;
        counters.record(self.method, code, latency);
        if !self.span.is_disabled() {
            self.span.record("code", code_name(code));
            tracing::debug!(seconds = latency.as_secs_f64(), "request finished");
        }
    }

    /// Advances the request until its reply or until it has to wait.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<Response<ReplyBody>> {
        loop {
            match &mut self.state {
                State::PendingRequest(pending) => {
                    if pending.poll(context).is_pending() {
                        self.permits = PermitState::Released;
                        return Poll::Pending;
                    }
                    if let Err(rejection) = self.reacquire_permits() {
                        self.reject(rejection);
                    } else if let Some(reply) = self.answer() {
                        return Poll::Ready(reply);
                    }
                }
                State::Forwarded(future) => {
                    let Ok(reply) = ready!(Pin::new(future).poll(context));
                    return Poll::Ready(FramedBody::unwrap(reply));
                }
                State::Rejection(rejection, drain) => {
                    ready!(drain.poll(context));
                    return Poll::Ready(rejection.reply());
                }
            }
        }
    }

    /// Acquires permits again if they were returned while the request waited.
    fn reacquire_permits(&mut self) -> Result<(), Rejection> {
        if let (PermitState::Released, State::PendingRequest(pending)) =
            (&self.permits, &self.state)
        {
            let service = self.method.service();
            let admitted = self.service_handle.admit(&pending.request, service)?;
            self.permits = admitted.map_or(PermitState::None, PermitState::acquired);
        }
        Ok(())
    }

    /// Returns the reply to a received request if the fast path can answer it; otherwise forwards
    /// the request to the services.
    fn answer(&mut self) -> Option<Response<ReplyBody>> {
        let State::PendingRequest(pending) = &mut self.state else {
            return None;
        };
        if let Some(frame) = pending.stored(&self.service_handle) {
            let mut reply = Response::new(ReplyBody::Stored(Some(frame)));
            reply.headers_mut().insert(CONTENT_TYPE, CONTENT);
            return Some(reply);
        }
        self.state = self.service_handle.forward(pending.take());
        None
    }

    fn reject(&mut self, rejection: Rejection) {
        if let State::PendingRequest(pending) = &mut self.state {
            self.state = State::Rejection(rejection, RequestDrain::of(pending.take()));
        }
    }
}

impl Rejection {
    fn reply(self) -> Response<ReplyBody> {
        match self {
            Self::Denied(error) => failed(error.status()),
            Self::Overload(overload) => overload.reply(),
        }
    }
}

fn failed(status: Status) -> Response<ReplyBody> {
    let reply: Response<Body> = status.into_http();
    reply.map(ReplyBody::Forwarded)
}

/// Returns the reply to a request whose deadline has passed.
fn deadline_exceeded() -> Response<ReplyBody> {
    failed(Status::deadline_exceeded(
        "the request exceeded its deadline or the timeout of the server",
    ))
}

impl AccessError {
    /// Returns the gRPC status.
    pub fn status(self) -> Status {
        match self {
            Self::Unauthenticated => Status::unauthenticated(
                "the client certificate of this connection is no longer trusted: reconnect with another one",
            ),
            Self::Denied => Status::permission_denied(
                "the names in the client certificate do not permit calls to this service",
            ),
        }
    }
}

impl PendingRequest {
    /// Ready when the message has been received, or as much of it as is buffered.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.read.poll(self.request.body_mut(), context)
    }

    /// Returns the frame of the reply if the fast path can answer the request.
    fn stored(&self, service_handle: &FastPathService) -> Option<Bytes> {
        let frame = self.read.whole().filter(|_| self.is_get)?;
        service_handle.answer(frame, self.request.extensions().get::<Peer>()?)
    }

    /// Takes the request, with the buffered part of its body put back.
    fn take(&mut self) -> Request<Body> {
        let request = std::mem::take(&mut self.request);
        let read = std::mem::take(&mut self.read);
        request.map(|rest| Body::new(ReplayBody { read, rest }))
    }
}
