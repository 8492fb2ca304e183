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

use super::Limits;
use super::bodies::{Again, Read, Reply, Rest};
use super::deadline::Deadline;
use super::load::{Admitted, Full, Load};
use super::peer::{Peer, Refusal};
use super::tally::{Asked, Tally, code};
use crate::api::path_alone;
use crate::insight::get_ready;
use crate::snapshot::Snapshots;

type RoutesFuture = <Routes as Service<Request<Body>>>::Future;

/// The method.
const GET: &str = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";
/// The method that begins a stream.
const WATCH: &str = "/entail.v1.EffectivePolicyService/WatchEffectivePolicies";
const CONTENT: HeaderValue = HeaderValue::from_static("application/grpc");

/// All services, with a short way to the stored bytes.
#[derive(Clone, Debug)]
pub(super) struct Hot(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    snapshots: Arc<Snapshots>,
    /// Most bytes of a reply's message.
    most: usize,
    /// How long a request may take.
    timeout: Duration,
    services: Routes,
    tally: Arc<Tally>,
    load: Arc<Load>,
}

/// A request that is being answered.
pub(super) struct Answering {
    hot: Hot,
    asked: Asked,
    state: State,
    deadline: Deadline,
    /// Its places, while it is worked on.
    held: Held,
}

/// The places of a request.
enum Held {
    /// It has them, until there is a reply.
    Taken { _places: Admitted },
    /// It has none while its message is awaited: who never sends one takes none from others.
    GivenBack,
    /// It needs none.
    None,
}

enum State {
    /// Its message is awaited.
    Reading(Reading),
    /// The services answer it.
    Passed(RoutesFuture),
    /// It is not answered.
    TurnedAway(TurnedAway, Rest),
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug)]
enum TurnedAway {
    /// Its caller may not ask this.
    Refused(Refusal),
    /// There is no room for it.
    Full(Full),
}

/// A request, while it comes.
struct Reading {
    request: Request<Body>,
    read: Read,
    /// Whether stored bytes may be the answer.
    is_get: bool,
}

impl Held {
    fn taken(places: Admitted) -> Self {
        Self::Taken { _places: places }
    }
}

impl Hot {
    pub fn new(
        snapshots: Arc<Snapshots>,
        limits: &Limits,
        services: Routes,
        (tally, load): (Arc<Tally>, Arc<Load>),
    ) -> Self {
        Self(Arc::new(Shared {
            snapshots,
            most: limits.reply_bytes,
            timeout: limits.request_timeout,
            services,
            tally,
            load,
        }))
    }

    fn pass(&self, request: Request<Body>) -> State {
        State::Passed(self.0.services.clone().call(request))
    }

    /// The reply's frame to a request's frame, if it is one of stored bytes.
    fn answer(&self, frame: &[u8], peer: &Peer) -> Option<Bytes> {
        let path = path_alone(frame).filter(|path| peer.sees(path))?;
        let snapshots = &self.0.snapshots;
        let reply = snapshots.with(|snapshot| get_ready(snapshot, path))??;
        reply.framed(self.0.most)
    }

    /// Lets a request in, or not. Every connection says who is at its other end; without that
    /// nothing is answered.
    fn admit(&self, request: &Request<Body>, asked: Asked) -> Result<Option<Admitted>, TurnedAway> {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.ok_or(TurnedAway::Refused(Refusal::Denied))?;
        peer.may(asked).map_err(TurnedAway::Refused)?;
        // Streams have places of their own.
        if request.uri().path() == WATCH {
            return Ok(None);
        }
        self.0.load.admit(asked, peer).map_err(TurnedAway::Full)
    }

    /// What becomes of a request that is let in.
    fn begin(&self, request: Request<Body>, is_get: bool, held: &Held) -> State {
        if matches!(held, Held::None) {
            return self.pass(request);
        }
        State::Reading(Reading {
            is_get: is_get && request.method() == Method::POST,
            request,
            read: Read::default(),
        })
    }
}

impl Service<Request<Body>> for Hot {
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // So are the services: tonic's routes wait for nothing.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answering {
        let is_get = request.uri().path() == GET;
        let asked = if is_get {
            Asked::Policies
        } else {
            Asked::of(request.uri().path())
        };
        let deadline = Deadline::of(request.headers(), self.0.timeout);
        let admitted = self.admit(&request, asked);
        let admitted = admitted.map(|places| places.map_or(Held::None, Held::taken));
        let (held, state) = match admitted {
            Ok(held) => {
                let state = self.begin(request, is_get, &held);
                (held, state)
            }
            Err(why) => (Held::None, State::TurnedAway(why, Rest::of(request))),
        };
        Answering {
            hot: self.clone(),
            asked,
            state,
            deadline,
            held,
        }
    }
}

impl Future for Answering {
    type Output = Result<Response<Reply>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let reply = if this.deadline.has_passed() {
            late()
        } else if let Poll::Ready(reply) = this.step(context) {
            reply
        } else {
            ready!(this.deadline.poll(context));
            late()
        };
        this.hot.0.tally.add(this.asked, code(reply.headers()));
        Poll::Ready(Ok(reply))
    }
}

impl Answering {
    fn step(&mut self, context: &mut Context<'_>) -> Poll<Response<Reply>> {
        loop {
            match &mut self.state {
                State::Reading(reading) => {
                    if reading.poll(context).is_pending() {
                        self.held = Held::GivenBack;
                        return Poll::Pending;
                    }
                    if let Err(why) = self.take_places() {
                        self.turn_away(why);
                    } else if let Some(reply) = self.answer() {
                        return Poll::Ready(reply);
                    }
                }
                State::Passed(future) => {
                    let Ok(reply) = ready!(Pin::new(future).poll(context));
                    return Poll::Ready(reply.map(Reply::Passed));
                }
                State::TurnedAway(why, rest) => {
                    ready!(rest.poll(context));
                    return Poll::Ready(why.reply());
                }
            }
        }
    }

    /// Takes places again that were given back.
    fn take_places(&mut self) -> Result<(), TurnedAway> {
        if let (Held::GivenBack, State::Reading(reading)) = (&self.held, &self.state) {
            let admitted = self.hot.admit(&reading.request, self.asked)?;
            self.held = admitted.map_or(Held::None, Held::taken);
        }
        Ok(())
    }

    /// The reply to a request that has been read, if it is one of stored bytes; else the services are
    /// asked.
    fn answer(&mut self) -> Option<Response<Reply>> {
        let State::Reading(reading) = &mut self.state else {
            return None;
        };
        if let Some(frame) = reading.stored(&self.hot) {
            let mut reply = Response::new(Reply::Stored(Some(frame)));
            reply.headers_mut().insert(CONTENT_TYPE, CONTENT);
            return Some(reply);
        }
        self.state = self.hot.pass(reading.take());
        None
    }

    fn turn_away(&mut self, why: TurnedAway) {
        if let State::Reading(reading) = &mut self.state {
            self.state = State::TurnedAway(why, Rest::of(reading.take()));
        }
    }
}

impl TurnedAway {
    fn reply(self) -> Response<Reply> {
        match self {
            Self::Refused(refusal) => failed(refusal.status()),
            Self::Full(full) => full.reply(),
        }
    }
}

fn failed(status: Status) -> Response<Reply> {
    let reply: Response<Body> = status.into_http();
    reply.map(Reply::Passed)
}

/// The answer to a caller who has stopped to wait.
fn late() -> Response<Reply> {
    failed(Status::deadline_exceeded(
        "the request took longer than its deadline, or than the server allows",
    ))
}

impl Refusal {
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

impl Reading {
    /// Ready when its message is there, or more of it than is awaited.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.read.poll(self.request.body_mut(), context)
    }

    /// The reply's frame, if it is one of stored bytes.
    fn stored(&self, hot: &Hot) -> Option<Bytes> {
        let frame = self.read.whole().filter(|_| self.is_get)?;
        hot.answer(frame, self.request.extensions().get::<Peer>()?)
    }

    /// The request, as it came.
    fn take(&mut self) -> Request<Body> {
        let request = std::mem::take(&mut self.request);
        let read = std::mem::take(&mut self.read);
        request.map(|rest| Body::new(Again { read, rest }))
    }
}
