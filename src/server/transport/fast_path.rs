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
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use tokio::runtime::Handle;
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
use crate::server::admission::bounds::{Bound, BoundCounters};
use crate::server::admission::concurrency::{ConcurrencyLimiter, Overload, Permit, RequestPermits};
use crate::server::admission::connections::ConnectionEntry;
use crate::server::admission::deadline::{ArrivalTimer, Deadline};
use crate::server::admission::held_bytes::{HeldLimit, Hold};
use crate::server::transport::body::{
    Arriving, BufferedBody, ForwardedReply, FramedBody, ReplayBody, ReplyBody, ReplyBytes,
    RequestDrain, SharedHold,
};
use crate::server::transport::executor::Priority;
use crate::server::transport::request_counters::{RequestCounters, RpcMethod, RpcService, code};
use crate::snapshot::SnapshotCell;
use entail_client::failure::code_name;

type RoutesFuture = <Routes as Service<Request<Body>>>::Future;

/// The method of the fast path.
const GET: &str = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";
/// The method that opens a stream.
const WATCH: &str = "/entail.v1.EffectivePolicyService/WatchEffectivePolicies";
const CONTENT: HeaderValue = HeaderValue::from_static("application/grpc");
/// Headers with the compression of messages, and with the one that the server supports: none.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");
/// Maximum number of headers: a header may take one byte on the wire, and more than a hundred in memory.
const MAX_HEADERS: usize = 128;
/// Memory of a header beside its name and its value, in bytes.
const HEADER: usize = 200;

/// All services, with the fast path in front.
#[derive(Clone, Debug)]
pub(in crate::server) struct FastPathService(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    snapshots: Arc<SnapshotCell>,
    /// Maximum size of a request message, in bytes.
    request_bytes: usize,
    /// Maximum size of a reply message, in bytes.
    reply_bytes: usize,
    /// Maximum timeout of a request.
    timeout: Duration,
    services: Routes,
    request_counters: Arc<RequestCounters>,
    concurrency: Arc<ConcurrencyLimiter>,
    bounds: Arc<BoundCounters>,
    /// Time for the message of a request to arrive.
    arrival: Duration,
    /// Whether only health is served: requests to other services count as unknown ones.
    is_health_alone: bool,
    /// The runtime for requests of low priority, if it is not that of the connections.
    background: Option<Handle>,
}

/// A request in progress. Completes with the headers of the reply.
pub(in crate::server) struct ResponseFuture {
    service_handle: FastPathService,
    method: RpcMethod,
    /// When the headers of the request arrived.
    arrived: Instant,
    /// The span of the request; disabled unless the log filter enables level `debug`.
    span: Span,
    /// The caller's connection; every request has one.
    connection: Option<Arc<ConnectionEntry>>,
    state: State,
    deadline: Deadline,
    permits: PermitState,
}

/// The permits of a request.
enum PermitState {
    /// The request holds permits until its reply.
    Acquired { permits: RequestPermits },
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
    Forwarded {
        future: RoutesFuture,
        /// The bytes of the request count until the reply.
        _hold: Option<SharedHold>,
    },
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
    /// Too many bytes of requests and replies are held.
    Held(HeldLimit),
    /// The content type is not that of gRPC with protobuf.
    ContentType,
    /// The messages are compressed.
    Encoding,
    /// There are too many headers.
    Headers,
}

/// A request whose message is being received.
struct PendingRequest {
    request: Request<Body>,
    read: BufferedBody,
    /// The bytes in `read` and of the headers, if the message was not complete at once.
    hold: Option<Hold>,
    /// Whether the method is the one of the fast path.
    is_get: bool,
}

impl PermitState {
    fn acquired(permits: RequestPermits) -> Self {
        Self::Acquired { permits }
    }

    /// Returns the permit that the reply holds; the others are returned.
    fn take_connection(&mut self) -> Option<Permit> {
        match std::mem::replace(self, Self::None) {
            Self::Acquired { permits } => Some(permits.into_connection()),
            Self::Released | Self::None => None,
        }
    }
}

impl Shared {
    /// Creates what serves all services, with request counters of its own.
    fn new(
        snapshots: Arc<SnapshotCell>,
        limits: &Limits,
        services: Routes,
        (concurrency, bounds): (Arc<ConcurrencyLimiter>, Arc<BoundCounters>),
    ) -> Self {
        Self {
            snapshots,
            request_bytes: limits.request_bytes,
            reply_bytes: limits.reply_bytes,
            timeout: limits.request_timeout,
            services,
            request_counters: Arc::default(),
            concurrency,
            bounds,
            arrival: limits.request_arrival,
            is_health_alone: false,
            background: None,
        }
    }
}

impl FastPathService {
    /// Creates the fast path in front of the services.
    pub fn new(
        snapshots: Arc<SnapshotCell>,
        limits: &Limits,
        services: Routes,
        (request_counters, concurrency): (Arc<RequestCounters>, Arc<ConcurrencyLimiter>),
        (bounds, background): (Arc<BoundCounters>, Option<Handle>),
    ) -> Self {
        Self(Arc::new(Shared {
            request_counters,
            background,
            ..Shared::new(snapshots, limits, services, (concurrency, bounds))
        }))
    }

    /// Creates a service for health alone, with permits of its own.
    pub fn of_health_alone(
        snapshots: Arc<SnapshotCell>,
        limits: &Limits,
        health: Routes,
        bounds: Arc<BoundCounters>,
    ) -> Self {
        let concurrency = Arc::new(ConcurrencyLimiter::new(limits));
        // Probes are not counted among the requests of callers.
        Self(Arc::new(Shared {
            is_health_alone: true,
            ..Shared::new(snapshots, limits, health, (concurrency, bounds))
        }))
    }

    /// Returns the counters of exceeded bounds.
    pub fn bounds(&self) -> Arc<BoundCounters> {
        Arc::clone(&self.0.bounds)
    }

    /// Returns the runtime for requests of low priority, if it is not that of the connections.
    pub fn background(&self) -> Option<Handle> {
        self.0.background.clone()
    }

    fn forward(&self, request: Request<Body>, read: BufferedBody, arriving: Arriving) -> State {
        let hold = arriving.hold.clone();
        let request = request.map(|rest| Body::new(ReplayBody::new(read, rest, arriving)));
        State::Forwarded {
            future: self.0.services.clone().call(request),
            _hold: hold,
        }
    }

    /// Forwards a request whose message has not been read, with bounds for its arrival.
    fn forward_unread(&self, request: Request<Body>, method: RpcMethod) -> State {
        let connection = request.extensions().get::<Peer>().map(Peer::connection);
        // Reflection is a stream of messages, which do not add up.
        let is_stream = method.service() == RpcService::Other;
        let hold = connection.filter(|_| !is_stream);
        let arriving = Arriving {
            timer: match is_stream {
                true => ArrivalTimer::of_parts(self.0.timeout),
                false => ArrivalTimer::of_message(self.0.arrival),
            },
            ..self.arriving(method, connection, hold.map(|it| it.bytes.hold_any(0)))
        };
        self.forward(request, BufferedBody::default(), arriving)
    }

    /// What bounds a message that has not arrived.
    fn arriving(
        &self,
        method: RpcMethod,
        connection: Option<&Arc<ConnectionEntry>>,
        hold: Option<Hold>,
    ) -> Arriving {
        Arriving {
            hold: hold.map(SharedHold::new),
            client: connection.map(|it| (Arc::clone(it), self.bounds())),
            timer: ArrivalTimer::of_message(self.0.arrival),
            max_message: method.max_message(self.0.request_bytes),
        }
    }

    fn record(&self, rejection: Rejection, connection: Option<&Arc<ConnectionEntry>>) {
        if let (Some(bound), Some(connection)) = (rejection.bound(), connection) {
            self.0.bounds.record(bound, &connection.address());
        }
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
        check_headers(request.headers())?;
        // Streams acquire separate permits when they open.
        if request.uri().path() == WATCH {
            return Ok(None);
        }
        self.0
            .concurrency
            .admit(service, peer)
            .map(Some)
            .map_err(Rejection::Overload)
    }

    fn method(&self, path: &str) -> RpcMethod {
        if path == GET && !self.0.is_health_alone {
            return RpcMethod::GET;
        }
        let method = RpcMethod::of(path);
        match method.service() {
            RpcService::Health => method,
            _ if self.0.is_health_alone => RpcMethod::UNKNOWN,
            _ => method,
        }
    }

    /// Returns the first state of an admitted request.
    fn begin(&self, request: Request<Body>, method: RpcMethod, permits: &PermitState) -> State {
        let service = method.service();
        let is_probe = matches!(service, RpcService::Health | RpcService::Other);
        if is_probe || matches!(permits, PermitState::None) {
            return self.forward_unread(request, method);
        }
        State::PendingRequest(PendingRequest {
            is_get: method == RpcMethod::GET && request.method() == Method::POST,
            request,
            read: BufferedBody::default(),
            hold: None,
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
        let method = self.method(request.uri().path());
        let span = request_span(method, &request);
        let deadline = Deadline::of(request.headers(), arrived.into(), self.0.timeout);
        let connection = request.extensions().get::<Peer>().map(Peer::connection);
        let connection = connection.cloned();
        let admitted = self.admit(&request, method.service());
        let admitted =
            admitted.map(|permits| permits.map_or(PermitState::None, PermitState::acquired));
        let (permits, state) = match admitted {
            Ok(permits) => {
                // The services may create their future, and events, in the call.
                let state = span.in_scope(|| self.begin(request, method, &permits));
                (permits, state)
            }
            Err(rejection) => {
                self.record(rejection, connection.as_ref());
                let drain = RequestDrain::of(request);
                (PermitState::None, State::Rejection(rejection, drain))
            }
        };
        ResponseFuture {
            service_handle: self.clone(),
            method,
            arrived,
            span,
            connection,
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
        } else if matches!(this.state, State::Forwarded { .. }) {
            ready!(this.deadline.poll(context));
            deadline_exceeded()
        } else {
            let arrival = this.service_handle.0.arrival;
            match ready!(this.deadline.poll_arrival(arrival, context)) {
                true => this.not_arrived(),
                false => deadline_exceeded(),
            }
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
    /// Says how urgent the request is.
    pub fn priority(&self) -> Priority {
        match &self.state {
            State::PendingRequest(pending) if pending.is_get => Priority::LookUp,
            _ => self.method.priority(),
        }
    }

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
                        match pending.hold_read(self.connection.as_ref()) {
                            Ok(()) => return Poll::Pending,
                            Err(limit) => self.reject(Rejection::Held(limit)),
                        }
                        continue;
                    }
                    if let Err(rejection) = self.reacquire_permits() {
                        self.reject(rejection);
                    } else if let Some(reply) = self.answer() {
                        return Poll::Ready(reply);
                    }
                }
                State::Forwarded { future, .. } => {
                    let Ok(reply) = ready!(Pin::new(future).poll(context));
                    return Poll::Ready(self.forwarded(FramedBody::unwrap(reply), context));
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

    /// Returns the reply of the services. The message of a unary call is encoded now, so that its
    /// bytes count even if the caller never lets them be sent.
    fn forwarded(
        &mut self,
        reply: Response<Body>,
        context: &mut Context<'_>,
    ) -> Response<ReplyBody> {
        let mut permit = self.permits.take_connection();
        let (head, mut rest) = reply.into_parts();
        let mut first = None;
        if !self.method.is_stream()
            && let Some(connection) = &self.connection
            && let Poll::Ready(Some(Ok(frame))) =
                http_body::Body::poll_frame(Pin::new(&mut rest), context)
        {
            match frame.into_data() {
                Ok(data) => match ReplyBytes::count(data, connection, permit.take()) {
                    Ok(bytes) => first = Some(bytes),
                    Err(limit) => return self.exceeded(limit),
                },
                // Services of this server have headers instead of a body without a message.
                Err(_) => return failed(Status::internal("the reply has no message")),
            }
        }
        let body = ForwardedReply {
            first,
            rest,
            connection: self.connection.clone(),
            is_watch: self.method.is_watch(),
            _permit: permit,
        };
        Response::from_parts(head, ReplyBody::Forwarded(body))
    }

    fn exceeded(&self, limit: HeldLimit) -> Response<ReplyBody> {
        let rejection = Rejection::Held(limit);
        self.service_handle
            .record(rejection, self.connection.as_ref());
        rejection.reply()
    }

    fn not_arrived(&self) -> Response<ReplyBody> {
        if let Some(connection) = &self.connection {
            let bounds = &self.service_handle.0.bounds;
            bounds.record(Bound::RequestArrival, &connection.address());
        }
        failed(Status::deadline_exceeded(
            "the message of the request did not arrive in time: send it at once",
        ))
    }

    /// Returns the reply to a received request if the fast path can answer it; otherwise forwards
    /// the request to the services.
    fn answer(&mut self) -> Option<Response<ReplyBody>> {
        let State::PendingRequest(pending) = &mut self.state else {
            return None;
        };
        if let Some(frame) = pending.stored(&self.service_handle) {
            let connection = self.connection.as_ref()?;
            let permit = self.permits.take_connection();
            let frame = match ReplyBytes::count(frame, connection, permit) {
                Ok(frame) => frame,
                Err(limit) => return Some(self.exceeded(limit)),
            };
            let mut reply = Response::new(ReplyBody::Stored(Some(frame)));
            reply.headers_mut().insert(CONTENT_TYPE, CONTENT);
            return Some(reply);
        }
        let request = std::mem::take(&mut pending.request);
        let read = std::mem::take(&mut pending.read);
        let connection = self.connection.as_ref();
        let hold = pending.hold.take();
        let hold = hold.or_else(|| connection.map(|it| it.bytes.hold_any(read.len())));
        let arriving = self.service_handle.arriving(self.method, connection, hold);
        self.state = self.service_handle.forward(request, read, arriving);
        None
    }

    fn reject(&mut self, rejection: Rejection) {
        self.service_handle
            .record(rejection, self.connection.as_ref());
        if let State::PendingRequest(pending) = &mut self.state {
            // What has been read is discarded.
            let request = std::mem::take(&mut pending.request);
            self.state = State::Rejection(rejection, RequestDrain::of(request));
        }
    }
}

impl Rejection {
    fn reply(self) -> Response<ReplyBody> {
        match self {
            Self::Denied(error) => failed(error.status()),
            Self::Overload(overload) => overload.reply(),
            Self::Held(limit) => limit.reply(),
            Self::ContentType => {
                let mut reply = failed(Status::invalid_argument(
                    "the content type is not `application/grpc` or `application/grpc+proto`",
                ));
                *reply.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                reply
            }
            Self::Encoding => {
                let mut reply = failed(Status::unimplemented(
                    "compressed messages are not supported: send `grpc-encoding: identity` or none",
                ));
                reply.headers_mut().insert(ACCEPT_ENCODING, IDENTITY);
                reply
            }
            Self::Headers => failed(Status::resource_exhausted(format!(
                "the request has too many headers: send at most {MAX_HEADERS}"
            ))),
        }
    }

    /// Returns the bound that is exceeded, if it is counted apart from the codes of replies.
    fn bound(self) -> Option<Bound> {
        match self {
            Self::Denied(_) | Self::Overload(Overload::Caller | Overload::Server) => None,
            Self::Overload(Overload::Probes) => Some(Bound::Probes),
            Self::Held(limit) => Some(limit.bound()),
            Self::ContentType => Some(Bound::ContentType),
            Self::Encoding => Some(Bound::Encoding),
            Self::Headers => Some(Bound::RequestHeaders),
        }
    }
}

/// Checks the headers that say how messages are encoded, in the same way for all services.
fn check_headers(headers: &HeaderMap) -> Result<(), Rejection> {
    if headers.len() > MAX_HEADERS {
        return Err(Rejection::Headers);
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let is_grpc = types.next().is_some_and(|value| is_grpc(value.as_bytes()));
    if !is_grpc || types.next().is_some() {
        return Err(Rejection::ContentType);
    }
    let mut encodings = headers.get_all(ENCODING).iter();
    if encodings.any(|encoding| encoding != IDENTITY) {
        return Err(Rejection::Encoding);
    }
    Ok(())
}

/// Reports whether a content type is `application/grpc`, optionally with `+proto` and parameters.
fn is_grpc(value: &[u8]) -> bool {
    fn after<'v>(value: &'v [u8], prefix: &str) -> Option<&'v [u8]> {
        let (head, rest) = value.split_at_checked(prefix.len())?;
        head.eq_ignore_ascii_case(prefix.as_bytes()).then_some(rest)
    }
    let Some(rest) = after(value, "application/grpc") else {
        return false;
    };
    let rest = after(rest, "+proto").unwrap_or(rest).trim_ascii_start();
    rest.first().is_none_or(|byte| *byte == b';')
}

fn failed(status: Status) -> Response<ReplyBody> {
    let reply: Response<Body> = status.into_http();
    reply.map(|body| ReplyBody::Forwarded(ForwardedReply::uncounted(body)))
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

    /// Counts what has been received while the request waits for the rest.
    fn hold_read(&mut self, connection: Option<&Arc<ConnectionEntry>>) -> Result<(), HeldLimit> {
        let Some(connection) = connection else {
            return Ok(());
        };
        self.read.join();
        let headers = self.request.headers();
        let headers = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + HEADER);
        let waiting = self.read.len() + headers.sum::<usize>();
        let hold = self
            .hold
            .get_or_insert_with(|| connection.bytes.hold_any(0));
        hold.add(waiting.saturating_sub(hold.bytes()))
    }
}
