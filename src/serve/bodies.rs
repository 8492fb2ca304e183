//! Bodies of requests, as far as they were read, and of replies.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body::Frame;
use tonic::Status;
use tonic::body::Body;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");
/// Bytes of a request that is turned away which are read before it is told so.
const AWAITED: usize = 64 * 1024;

/// What is still to come of a request that is turned away. A reply before its end would reset the
/// stream, and a connection of which many streams are reset is closed.
pub(super) struct Rest {
    body: Body,
    read: usize,
}

/// What was taken from a request's body.
#[derive(Default)]
pub(super) struct Read {
    pub first: Option<Bytes>,
    /// What came after it: such a request is passed on.
    pub second: Option<Result<Frame<Bytes>, Status>>,
}

/// The body of a request that is passed on: what was read, and the rest.
pub(super) struct Again {
    pub read: Read,
    pub rest: Body,
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

impl Rest {
    pub fn of(request: Request<Body>) -> Self {
        let body = request.into_body();
        Self { body, read: 0 }
    }

    /// Ready at the end of the request, or when more of it has come than is waited for.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.read <= AWAITED && !http_body::Body::is_end_stream(&self.body) {
            let body = Pin::new(&mut self.body);
            match ready!(http_body::Body::poll_frame(body, context)) {
                Some(Ok(frame)) => self.read += frame.data_ref().map_or(0, Bytes::len),
                Some(Err(_)) | None => break,
            }
        }
        Poll::Ready(())
    }
}

impl Read {
    /// Ready at the end of the body, or as soon as it has more than one piece.
    pub fn poll(&mut self, body: &mut Body, context: &mut Context<'_>) -> Poll<()> {
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
