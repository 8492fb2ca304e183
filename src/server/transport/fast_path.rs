//! The method that is asked most, past the router and the codec: a frame that holds a path and
//! nothing else is answered with a frame of stored bytes. Whatever else comes goes to the services,
//! as it came.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::service::Routes;

use crate::api::path_only_request;
use crate::insight::get_stored;
use crate::server::Limits;
use crate::server::access::peer::{AccessError, Peer};
use crate::server::admission::concurrency::{ConcurrencyLimiter, Overload, RequestPermits};
use crate::server::admission::deadline::Deadline;
use crate::server::transport::body::{BufferedBody, ReplayBody, ReplyBody, RequestDrain};
use crate::server::transport::request_counters::{RequestCounters, RpcService, code};
use crate::snapshot::SnapshotCell;

type RoutesFuture = <Routes as Service<Request<Body>>>::Future;

/// The method.
const GET: &str = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";
/// The method that begins a stream.
const WATCH: &str = "/entail.v1.EffectivePolicyService/WatchEffectivePolicies";
const CONTENT: HeaderValue = HeaderValue::from_static("application/grpc");

/// All services, with a short way to the stored bytes.
#[derive(Clone, Debug)]
pub(in crate::server) struct FastPathService(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    snapshots: Arc<SnapshotCell>,
    /// Most bytes of a reply's message.
    most: usize,
    /// How long a request may take.
    timeout: Duration,
    services: Routes,
    request_counters: Arc<RequestCounters>,
    concurrency: Arc<ConcurrencyLimiter>,
}

/// A request that is being answered.
pub(in crate::server) struct ResponseFuture {
    service_handle: FastPathService,
    service: RpcService,
    state: State,
    deadline: Deadline,
    /// Its permits, while it is worked on.
    permits: PermitState,
}

/// The permits of a request.
enum PermitState {
    /// It has them, until there is a reply.
    Acquired { _permits: RequestPermits },
    /// It has none while its message is awaited: who never sends one takes none from others.
    Released,
    /// It needs none.
    None,
}

enum State {
    /// Its message is awaited.
    PendingRequest(PendingRequest),
    /// The services answer it.
    Forwarded(RoutesFuture),
    /// It is not answered.
    Rejection(Rejection, RequestDrain),
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug)]
enum Rejection {
    /// Its caller may not ask this.
    Denied(AccessError),
    /// There is no room for it.
    Overload(Overload),
}

/// A request, while it comes.
struct PendingRequest {
    request: Request<Body>,
    read: BufferedBody,
    /// Whether stored bytes may be the answer.
    is_get: bool,
}

impl PermitState {
    fn taken(permits: RequestPermits) -> Self {
        Self::Acquired { _permits: permits }
    }
}

impl FastPathService {
    pub fn new(
        snapshots: Arc<SnapshotCell>,
        limits: &Limits,
        services: Routes,
        (request_counters, concurrency): (Arc<RequestCounters>, Arc<ConcurrencyLimiter>),
    ) -> Self {
        Self(Arc::new(Shared {
            snapshots,
            most: limits.reply_bytes,
            timeout: limits.request_timeout,
            services,
            request_counters,
            concurrency,
        }))
    }

    fn pass(&self, request: Request<Body>) -> State {
        State::Forwarded(self.0.services.clone().call(request))
    }

    /// The reply's frame to a request's frame, if it is one of stored bytes.
    fn answer(&self, frame: &[u8], peer: &Peer) -> Option<Bytes> {
        let path = path_only_request(frame).filter(|path| peer.may_look_up(path))?;
        let snapshots = &self.0.snapshots;
        let reply = snapshots.with(|snapshot| get_stored(snapshot, path))??;
        reply.to_frame(self.0.most)
    }

    /// Lets a request in, or not. Every connection says who is at its other end; without that
    /// nothing is answered.
    fn admit(
        &self,
        request: &Request<Body>,
        service: RpcService,
    ) -> Result<Option<RequestPermits>, Rejection> {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.ok_or(Rejection::Denied(AccessError::Denied))?;
        peer.authorize(service).map_err(Rejection::Denied)?;
        // Streams have permits of their own.
        if request.uri().path() == WATCH {
            return Ok(None);
        }
        self.0
            .concurrency
            .admit(service, peer)
            .map_err(Rejection::Overload)
    }

    /// What becomes of a request that is let in.
    fn begin(&self, request: Request<Body>, is_get: bool, permits: &PermitState) -> State {
        if matches!(permits, PermitState::None) {
            return self.pass(request);
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
        // So are the services: tonic's routes wait for nothing.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        let is_get = request.uri().path() == GET;
        let service = if is_get {
            RpcService::Policies
        } else {
            RpcService::of(request.uri().path())
        };
        let deadline = Deadline::of(request.headers(), self.0.timeout);
        let admitted = self.admit(&request, service);
        let admitted =
            admitted.map(|permits| permits.map_or(PermitState::None, PermitState::taken));
        let (permits, state) = match admitted {
            Ok(permits) => {
                let state = self.begin(request, is_get, &permits);
                (permits, state)
            }
            Err(why) => (
                PermitState::None,
                State::Rejection(why, RequestDrain::of(request)),
            ),
        };
        ResponseFuture {
            service_handle: self.clone(),
            service,
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
        let reply = if this.deadline.has_passed() {
            deadline_exceeded()
        } else if let Poll::Ready(reply) = this.step(context) {
            reply
        } else {
            ready!(this.deadline.poll(context));
            deadline_exceeded()
        };
        this.service_handle
            .0
            .request_counters
            .record(this.service, code(reply.headers()));
        Poll::Ready(Ok(reply))
    }
}

impl ResponseFuture {
    fn step(&mut self, context: &mut Context<'_>) -> Poll<Response<ReplyBody>> {
        loop {
            match &mut self.state {
                State::PendingRequest(reading) => {
                    if reading.poll(context).is_pending() {
                        self.permits = PermitState::Released;
                        return Poll::Pending;
                    }
                    if let Err(why) = self.reacquire_permits() {
                        self.reject(why);
                    } else if let Some(reply) = self.answer() {
                        return Poll::Ready(reply);
                    }
                }
                State::Forwarded(future) => {
                    let Ok(reply) = ready!(Pin::new(future).poll(context));
                    return Poll::Ready(reply.map(ReplyBody::Forwarded));
                }
                State::Rejection(why, rest) => {
                    ready!(rest.poll(context));
                    return Poll::Ready(why.reply());
                }
            }
        }
    }

    /// Takes permits again that were given back.
    fn reacquire_permits(&mut self) -> Result<(), Rejection> {
        if let (PermitState::Released, State::PendingRequest(reading)) =
            (&self.permits, &self.state)
        {
            let admitted = self.service_handle.admit(&reading.request, self.service)?;
            self.permits = admitted.map_or(PermitState::None, PermitState::taken);
        }
        Ok(())
    }

    /// The reply to a request that has been read, if it is one of stored bytes; else the services are
    /// asked.
    fn answer(&mut self) -> Option<Response<ReplyBody>> {
        let State::PendingRequest(reading) = &mut self.state else {
            return None;
        };
        if let Some(frame) = reading.stored(&self.service_handle) {
            let mut reply = Response::new(ReplyBody::Stored(Some(frame)));
            reply.headers_mut().insert(CONTENT_TYPE, CONTENT);
            return Some(reply);
        }
        self.state = self.service_handle.pass(reading.take());
        None
    }

    fn reject(&mut self, why: Rejection) {
        if let State::PendingRequest(reading) = &mut self.state {
            self.state = State::Rejection(why, RequestDrain::of(reading.take()));
        }
    }
}

impl Rejection {
    fn reply(self) -> Response<ReplyBody> {
        match self {
            Self::Denied(refusal) => failed(refusal.status()),
            Self::Overload(full) => full.reply(),
        }
    }
}

fn failed(status: Status) -> Response<ReplyBody> {
    let reply: Response<Body> = status.into_http();
    reply.map(ReplyBody::Forwarded)
}

/// The answer to a caller who has stopped to wait.
fn deadline_exceeded() -> Response<ReplyBody> {
    failed(Status::deadline_exceeded(
        "the request took longer than its deadline, or than the server allows",
    ))
}

impl AccessError {
    pub fn status(self) -> Status {
        match self {
            Self::Unauthenticated => Status::unauthenticated(
                "the certificate that this connection began with is not trusted any more: connect anew with another",
            ),
            Self::Denied => Status::permission_denied(
                "the names in the client certificate are not on the list of this service",
            ),
        }
    }
}

impl PendingRequest {
    /// Ready when its message is there, or more of it than is awaited.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.read.poll(self.request.body_mut(), context)
    }

    /// The reply's frame, if it is one of stored bytes.
    fn stored(&self, service_handle: &FastPathService) -> Option<Bytes> {
        let frame = self.read.whole().filter(|_| self.is_get)?;
        service_handle.answer(frame, self.request.extensions().get::<Peer>()?)
    }

    /// The request, as it came.
    fn take(&mut self) -> Request<Body> {
        let request = std::mem::take(&mut self.request);
        let read = std::mem::take(&mut self.read);
        request.map(|rest| Body::new(ReplayBody { read, rest }))
    }
}
