//! Bodies of requests, buffered and replayed, and of replies.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Frame;
use tonic::Status;
use tonic::body::Body;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");
/// Maximum number of bytes of a request that are read before it acquires permits again, and before
/// a rejected request is replied to.
const MAX_BUFFERED_BYTES: usize = 64 * 1024;

/// Reads and discards the rest of a rejected request. A reply before the end of the request would
/// reset its stream, and HTTP/2 closes a connection with many reset streams.
pub(in crate::server) struct RequestDrain {
    body: Body,
    read: usize,
}

/// The part of a request's body that has been read.
#[derive(Default)]
pub(in crate::server) struct BufferedBody {
    /// The first chunk. Most requests have only one.
    first: Option<Bytes>,
    more: VecDeque<Bytes>,
    bytes: usize,
    /// The trailers or the error after the data.
    last: Option<Result<Frame<Bytes>, Status>>,
}

/// The body of a request that is forwarded to the services: the buffered part, then the rest.
pub(in crate::server) struct ReplayBody {
    pub read: BufferedBody,
    pub rest: Body,
}

/// A body that a service frames itself. In the extensions of a response it replaces the body that
/// tonic encodes, which would copy each message for each stream.
#[derive(Clone)]
pub(in crate::server) struct FramedBody(Arc<Mutex<Option<Body>>>);

/// The body of a reply.
pub(in crate::server) enum ReplyBody {
    /// An encoded gRPC frame, then trailers with status OK.
    Stored(Option<Bytes>),
    /// Nothing more to send.
    Done,
    /// The body of a reply of the services.
    Forwarded(Body),
}

impl FramedBody {
    /// Wraps a body.
    pub fn new(body: impl http_body::Body<Data = Bytes, Error = Status> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Body::new(body)))))
    }

    /// Returns a response with the framed body in its extensions, if there is one, as its body.
    pub fn unwrap(mut response: Response<Body>) -> Response<ReplyBody> {
        let framed: Option<Self> = response.extensions_mut().remove();
        let framed = framed.and_then(|framed| {
            let mut body = framed.0.lock().unwrap_or_else(PoisonError::into_inner);
            body.take()
        });
        response.map(|body| ReplyBody::Forwarded(framed.unwrap_or(body)))
    }
}

impl RequestDrain {
    /// Drains the body of a request.
    pub fn of(request: Request<Body>) -> Self {
        let body = request.into_body();
        Self { body, read: 0 }
    }

    /// Ready at the end of the request, on an error, or after `MAX_BUFFERED_BYTES`.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.read <= MAX_BUFFERED_BYTES && !http_body::Body::is_end_stream(&self.body) {
            let body = Pin::new(&mut self.body);
            match ready!(http_body::Body::poll_frame(body, context)) {
                Some(Ok(frame)) => self.read += frame.data_ref().map_or(0, Bytes::len),
                Some(Err(_)) | None => break,
            }
        }
        Poll::Ready(())
    }
}

impl BufferedBody {
    /// Ready at the end of the body, on an error, or after `MAX_BUFFERED_BYTES`.
    pub fn poll(&mut self, body: &mut Body, context: &mut Context<'_>) -> Poll<()> {
        while self.last.is_none()
            && self.bytes <= MAX_BUFFERED_BYTES
            && !http_body::Body::is_end_stream(body)
        {
            let Some(frame) = ready!(http_body::Body::poll_frame(Pin::new(body), context)) else {
                break;
            };
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => self.push(data),
                Ok(Err(trailers)) => self.last = Some(Ok(trailers)),
                Err(error) => self.last = Some(Err(error)),
            }
        }
        Poll::Ready(())
    }

    fn push(&mut self, data: Bytes) {
        self.bytes += data.len();
        match &self.first {
            _ if data.is_empty() => {}
            None => self.first = Some(data),
            Some(_) => self.more.push_back(data),
        }
    }

    /// Returns the body if it is one chunk without trailers or an error.
    pub fn whole(&self) -> Option<&Bytes> {
        let is_whole =
            self.more.is_empty() && self.last.is_none() && self.bytes <= MAX_BUFFERED_BYTES;
        self.first.as_ref().filter(|_| is_whole)
    }
}

impl http_body::Body for ReplayBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let read = &mut self.read;
        if let Some(data) = read.first.take().or_else(|| read.more.pop_front()) {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(last) = read.last.take() {
            return Poll::Ready(Some(last));
        }
        Pin::new(&mut self.rest).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        let BufferedBody { first, last, .. } = &self.read;
        first.is_none() && self.read.more.is_empty() && last.is_none() && self.rest.is_end_stream()
    }
}

impl http_body::Body for ReplyBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        match this {
            Self::Stored(frame) => {
                let next = frame.take().map(Frame::data).unwrap_or_else(|| {
                    let mut trailers = HeaderMap::with_capacity(1);
                    trailers.insert(STATUS, OK);
                    Frame::trailers(trailers)
                });
                if next.is_trailers() {
                    *this = Self::Done;
                }
                Poll::Ready(Some(Ok(next)))
            }
            Self::Done => Poll::Ready(None),
            Self::Forwarded(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Stored(_) => false,
            Self::Done => true,
            Self::Forwarded(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Stored(_) | Self::Done => http_body::SizeHint::default(),
            Self::Forwarded(body) => body.size_hint(),
        }
    }
}
