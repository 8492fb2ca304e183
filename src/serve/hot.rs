//! The method that is asked most, past the router and the codec: a frame that holds a path and
//! nothing else is answered with a frame of stored bytes. Whatever else comes goes to the services,
//! as it came.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body::Frame;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::service::Routes;
use tonic::{Code, Status};

use super::peer::{Peer, Refusal};
use super::tally::{Asked, Tally, code};
use crate::insight::get_ready;
use crate::snapshot::Snapshots;
use crate::wire::path_alone;

type RoutesFuture = <Routes as Service<Request<Body>>>::Future;

/// The method.
const GET: &str = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";
const CONTENT: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");

/// All services, with a short way to the stored bytes.
#[derive(Clone, Debug)]
pub(super) struct Hot {
    snapshots: Arc<Snapshots>,
    /// Most bytes of a reply's message.
    most: usize,
    services: Routes,
    tally: Arc<Tally>,
}

/// A request that is being answered.
pub(super) enum Answering {
    /// Its frame is awaited.
    Reading(Reading),
    /// The services answer it.
    Passed(Passed),
    /// The caller may not ask this.
    Refused(Status),
}

/// A request that the services answer.
pub(super) struct Passed {
    future: RoutesFuture,
    asked: Asked,
    tally: Arc<Tally>,
}

/// A request to the method, while it comes.
pub(super) struct Reading {
    hot: Hot,
    /// Taken once it is passed on.
    request: Option<Request<Body>>,
    read: Read,
}

/// What was taken from a request's body.
#[derive(Default)]
struct Read {
    first: Option<Bytes>,
    /// What came after it: such a request is passed on.
    second: Option<Result<Frame<Bytes>, Status>>,
}

/// The body of a request that is passed on: what was read, and the rest.
struct Again {
    read: Read,
    rest: Body,
}

/// The body of a reply.
pub(super) enum Reply {
    /// One frame, then the trailers.
    Stored(Option<Bytes>),
    /// All is sent.
    Done,
    /// What the services answer.
    Passed(Body),
}

impl Hot {
    pub fn new(
        snapshots: Arc<Snapshots>,
        most: usize,
        services: Routes,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            snapshots,
            most,
            services,
            tally,
        }
    }

    fn pass(&mut self, asked: Asked, request: Request<Body>) -> Passed {
        Passed {
            asked,
            tally: Arc::clone(&self.tally),
            future: self.services.call(request),
        }
    }

    /// The reply's frame to a request's frame, if it is one of stored bytes.
    fn answer(&self, frame: &[u8]) -> Option<Bytes> {
        let path = path_alone(frame)?;
        let reply = self
            .snapshots
            .with(|snapshot| get_ready(snapshot, path))??;
        reply.framed(self.most)
    }
}

impl Service<Request<Body>> for Hot {
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Body>>::poll_ready(&mut self.services, context)
    }

    fn call(&mut self, request: Request<Body>) -> Answering {
        let is_get = request.uri().path() == GET;
        let asked = if is_get {
            Asked::Policies
        } else {
            Asked::of(request.uri().path())
        };
        if let Some(refusal) = refusal(&request, asked) {
            let status = refusal.status();
            self.tally.add(asked, status.code());
            return Answering::Refused(status);
        }
        if !is_get || request.method() != Method::POST {
            return Answering::Passed(self.pass(asked, request));
        }
        Answering::Reading(Reading {
            hot: self.clone(),
            request: Some(request),
            read: Read::default(),
        })
    }
}

impl Future for Answering {
    type Output = Result<Response<Reply>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match this {
                Self::Reading(reading) => match ready!(reading.poll(context)) {
                    Ok(reply) => return Poll::Ready(Ok(reply)),
                    Err(passed) => *this = Self::Passed(passed),
                },
                Self::Passed(passed) => {
                    let reply = ready!(Pin::new(&mut passed.future).poll(context))?;
                    passed.tally.add(passed.asked, code(reply.headers()));
                    return Poll::Ready(Ok(reply.map(Reply::Passed)));
                }
                Self::Refused(status) => {
                    let reply: Response<Body> = status.clone().into_http();
                    return Poll::Ready(Ok(reply.map(Reply::Passed)));
                }
            }
        }
    }
}

/// Why a caller may not ask, if so. Every connection says who is at its other end; without that
/// nothing is answered.
fn refusal(request: &Request<Body>, asked: Asked) -> Option<Refusal> {
    let peer = request.extensions().get::<Peer>();
    peer.map_or(Some(Refusal::Denied), |peer| peer.may(asked).err())
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
    /// The reply, or the services' answer to what was read.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Response<Reply>, Passed>> {
        if let Some(request) = &mut self.request {
            ready!(self.read.poll(request.body_mut(), context));
        }
        let frame = match &self.read {
            Read {
                first: Some(first),
                second: None,
            } => self.hot.answer(first),
            _ => None,
        };
        Poll::Ready(match frame {
            None => Err(self.pass()),
            Some(frame) => {
                self.hot.tally.add(Asked::Policies, Code::Ok);
                let mut reply = Response::new(Reply::Stored(Some(frame)));
                reply.headers_mut().insert(CONTENT_TYPE, CONTENT);
                Ok(reply)
            }
        })
    }

    fn pass(&mut self) -> Passed {
        let request = self.request.take().unwrap_or_default();
        let read = std::mem::take(&mut self.read);
        let again = |rest| Body::new(Again { read, rest });
        self.hot.pass(Asked::Policies, request.map(again))
    }
}

impl Read {
    /// Ready at the end of the body, or as soon as it has more than one piece.
    fn poll(&mut self, body: &mut Body, context: &mut Context<'_>) -> Poll<()> {
        while self.second.is_none() && !http_body::Body::is_end_stream(body) {
            let piece = ready!(http_body::Body::poll_frame(Pin::new(body), context));
            match piece {
                None => break,
                Some(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty) => {}
                Some(piece) if self.first.is_some() => self.second = Some(piece),
                Some(piece) => match piece.map(Frame::into_data) {
                    Ok(Ok(data)) => self.first = Some(data),
                    Ok(Err(trailers)) => self.second = Some(Ok(trailers)),
                    Err(error) => self.second = Some(Err(error)),
                },
            }
        }
        Poll::Ready(())
    }
}

impl http_body::Body for Again {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(data) = self.read.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(piece) = self.read.second.take() {
            return Poll::Ready(Some(piece));
        }
        Pin::new(&mut self.rest).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        let Read { first, second } = &self.read;
        first.is_none() && second.is_none() && self.rest.is_end_stream()
    }
}

impl http_body::Body for Reply {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        match this {
            Self::Stored(frame) => {
                let piece = frame.take().map(Frame::data).unwrap_or_else(|| {
                    let mut trailers = HeaderMap::with_capacity(1);
                    trailers.insert(STATUS, OK);
                    Frame::trailers(trailers)
                });
                if piece.is_trailers() {
                    *this = Self::Done;
                }
                Poll::Ready(Some(Ok(piece)))
            }
            Self::Done => Poll::Ready(None),
            Self::Passed(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Stored(_) => false,
            Self::Done => true,
            Self::Passed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Stored(_) | Self::Done => http_body::SizeHint::default(),
            Self::Passed(body) => body.size_hint(),
        }
    }
}
