//! Bodies of requests, buffered and replayed, and of replies.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Frame;
use tonic::Status;
use tonic::body::Body;

use crate::server::admission::bounds::{Bound, BoundCounters};
use crate::server::admission::concurrency::Permit;
use crate::server::admission::connections::ConnectionEntry;
use crate::server::admission::deadline::ArrivalTimer;
use crate::server::admission::held_bytes::{HeldLimit, Hold};
use crate::server::transport::messages::{MessageCollector, TooLong, decoded_bytes};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const OK: HeaderValue = HeaderValue::from_static("0");
/// Maximum number of bytes of a request that are read before it acquires permits again, and before
/// a rejected request is replied to.
const MAX_BUFFERED_BYTES: usize = 16 * 1024;

/// Reads and discards the rest of a rejected request. A reply before the end of the request would
/// reset its stream, and HTTP/2 closes a connection with many reset streams.
pub(in crate::server) struct RequestDrain {
    body: Body,
    read: usize,
}

/// The part of a request's body that has been read. Pieces of one byte take no more memory than the bytes that count:
/// they do not keep what the connection has read around them.
#[derive(Default)]
pub(in crate::server) struct BufferedBody {
    /// The first piece. Most requests have only one.
    first: Option<Bytes>,
    /// All pieces, if there were several, or if the request waited for more.
    joined: BytesMut,
    bytes: usize,
    /// The trailers or the error after the data.
    last: Option<Result<Frame<Bytes>, Status>>,
}

/// The body of a request that is forwarded to the services: the buffered part, then the rest, message by message. Only
/// messages that have arrived and that have room once they are decoded are forwarded.
pub(in crate::server) struct ReplayBody {
    read: BufferedBody,
    rest: Body,
    arriving: Arriving,
    messages: MessageCollector,
    /// What follows the beginning of a message that never ends.
    last: Option<Option<Result<Frame<Bytes>, Status>>>,
}

/// What bounds the part of a request that has not arrived.
pub(in crate::server) struct Arriving {
    /// The connection, and the counters of bounds.
    pub client: Option<(Arc<ConnectionEntry>, Arc<BoundCounters>)>,
    /// The bytes that have arrived, and those of decoded messages; not counted for streams of messages.
    pub hold: Option<SharedHold>,
    pub timer: ArrivalTimer,
    /// Maximum length of a message.
    pub max_message: usize,
}

/// The bytes of a request. They count until the request is answered, and not only until its body has been read.
#[derive(Clone)]
pub(in crate::server) struct SharedHold(Arc<Mutex<Hold>>);

/// A body that a service frames itself. In the extensions of a response it replaces the body that
/// tonic encodes, which would copy each message for each stream.
#[derive(Clone)]
pub(in crate::server) struct FramedBody(Arc<Mutex<Option<Body>>>);

/// The body of a reply.
pub(in crate::server) enum ReplyBody {
    /// An encoded gRPC frame, then trailers with status OK.
    Stored(Option<ReplyBytes>),
    /// Nothing more to send.
    Done,
    /// The body of a reply of the services.
    Forwarded(ForwardedReply),
}

/// The body of a reply of the services.
pub(in crate::server) struct ForwardedReply {
    /// A part of the body that has been read already.
    pub first: Option<ReplyBytes>,
    pub rest: Body,
    /// The connection that the bytes count for.
    pub connection: Option<Arc<ConnectionEntry>>,
    /// Whether the caller may read as slowly as it likes.
    pub is_watch: bool,
    /// The permit of the request, until the body ends.
    pub _permit: Option<Permit>,
}

/// Bytes of a reply. They count for their connection until they are written.
pub(in crate::server) struct ReplyBytes {
    bytes: Bytes,
    hold: Option<Hold>,
    /// The permit of the request, until the bytes are written.
    _permit: Option<Permit>,
}

impl FramedBody {
    /// Wraps a body.
    pub fn new(body: impl http_body::Body<Data = Bytes, Error = Status> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Body::new(body)))))
    }

    /// Returns a response with the framed body in its extensions, if there is one, as its body.
    pub fn unwrap(mut response: Response<Body>) -> Response<Body> {
        let framed: Option<Self> = response.extensions_mut().remove();
        let framed = framed.and_then(|framed| {
            let mut body = framed.0.lock().unwrap_or_else(PoisonError::into_inner);
            body.take()
        });
        response.map(|body| framed.unwrap_or(body))
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

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    fn push(&mut self, data: Bytes) {
        let is_first = self.bytes == 0;
        self.bytes += data.len();
        if is_first {
            self.first = Some(data).filter(|data| !data.is_empty());
        } else {
            self.join();
            self.joined.extend_from_slice(&data);
        }
    }

    /// Copies the first piece, which is part of what the connection has read.
    pub fn join(&mut self) {
        if let Some(first) = self.first.take() {
            self.joined.extend_from_slice(&first);
        }
    }

    /// Returns the data, and leaves none.
    fn take(&mut self) -> Option<Bytes> {
        let joined = &mut self.joined;
        let all = || (!joined.is_empty()).then(|| joined.split().freeze());
        self.first.take().or_else(all)
    }

    /// Returns the body if it is one piece without trailers or an error.
    pub fn whole(&self) -> Option<&Bytes> {
        let is_whole = self.last.is_none() && self.bytes <= MAX_BUFFERED_BYTES;
        self.first.as_ref().filter(|_| is_whole)
    }
}

impl ReplayBody {
    /// Creates the body of a request.
    pub fn new(read: BufferedBody, rest: Body, arriving: Arriving) -> Self {
        Self {
            read,
            rest,
            arriving,
            messages: MessageCollector::default(),
            last: None,
        }
    }

    /// Returns the next piece of the body as it arrived.
    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let read = &mut self.read;
        if let Some(data) = read.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(last) = read.last.take() {
            return Poll::Ready(Some(last));
        }
        let rest = Pin::new(&mut self.rest);
        let frame = match http_body::Body::poll_frame(rest, context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                ready!(self.arriving.timer.poll(context));
                return Poll::Ready(Some(Err(self.arriving.late())));
            }
        };
        self.arriving.timer.received();
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
            && let Err(limit) = self.arriving.count(data.len())
        {
            return Poll::Ready(Some(Err(self.arriving.exceeded(limit))));
        }
        Poll::Ready(frame)
    }
}

impl http_body::Body for ReplayBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if this.arriving.hold.is_none() {
            return this.poll_piece(context);
        }
        if let Some(last) = this.last.take() {
            return Poll::Ready(last);
        }
        loop {
            match this.messages.next(this.arriving.max_message) {
                Ok(Some(message)) => {
                    let admitted = this.arriving.admit(&message);
                    return Poll::Ready(Some(admitted.map(|()| Frame::data(message))));
                }
                Ok(None) => {}
                Err(too_long) => {
                    return Poll::Ready(Some(Err(this.arriving.too_long(too_long))));
                }
            }
            let last = match ready!(this.poll_piece(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => {
                        this.messages.push(piece);
                        continue;
                    }
                    Err(trailers) => Some(Ok(trailers)),
                },
                last => last,
            };
            return Poll::Ready(match this.messages.take_rest() {
                Some(rest) => {
                    this.last = Some(last);
                    Some(Ok(Frame::data(rest)))
                }
                None => last,
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        let BufferedBody {
            first,
            last,
            joined,
            ..
        } = &self.read;
        let has_read = first.is_some() || last.is_some() || !joined.is_empty();
        !has_read && self.messages.is_empty() && self.last.is_none() && self.rest.is_end_stream()
    }
}

impl SharedHold {
    /// Shares a hold.
    pub fn new(hold: Hold) -> Self {
        Self(Arc::new(Mutex::new(hold)))
    }

    fn lock(&self) -> MutexGuard<'_, Hold> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arriving {
    fn count(&self, bytes: usize) -> Result<(), HeldLimit> {
        let hold = self.hold.as_ref();
        hold.map_or(Ok(()), |hold| hold.lock().add(bytes))
    }

    /// Counts the memory of a message that will be decoded.
    fn admit(&self, message: &[u8]) -> Result<(), Status> {
        let Some(hold) = &self.hold else {
            return Ok(());
        };
        let limit = hold.lock().max_per_connection();
        let bytes = decoded_bytes(message, limit);
        let added = hold.lock().add_within(bytes);
        added.map_err(|limit| {
            self.record(limit.bound());
            Status::resource_exhausted(
                "the message has too many elements for what its connection may hold: \
                 send them in several requests",
            )
        })
    }

    fn too_long(&self, TooLong { length }: TooLong) -> Status {
        Status::out_of_range(format!(
            "the message has {length} bytes: send at most {}",
            self.max_message
        ))
    }

    fn late(&self) -> Status {
        self.record(Bound::RequestArrival);
        Status::deadline_exceeded(
            "the message of the request did not arrive in time: send it at once",
        )
    }

    fn exceeded(&self, limit: HeldLimit) -> Status {
        self.record(limit.bound());
        Status::resource_exhausted(
            "too many bytes of requests are arriving at once: send fewer requests at once",
        )
    }

    fn record(&self, bound: Bound) {
        if let Some((connection, bounds)) = &self.client {
            bounds.record(bound, &connection.address());
        }
    }
}

impl ReplyBytes {
    /// Counts the bytes of a reply that the caller must read in time, and keeps the permit of the
    /// request until they are written.
    ///
    /// # Errors
    /// Returns the limit that is reached.
    pub fn count(
        bytes: Bytes,
        connection: &ConnectionEntry,
        permit: Option<Permit>,
    ) -> Result<Self, HeldLimit> {
        let hold = connection.bytes.hold(bytes.len())?.must_progress();
        Ok(Self {
            bytes,
            hold: Some(hold),
            _permit: permit,
        })
    }

    /// Returns the bytes that are not written.
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Counts the bytes without a limit.
    fn count_any(bytes: Bytes, connection: Option<&Arc<ConnectionEntry>>) -> Self {
        let hold = connection.map(|connection| connection.bytes.hold_any(bytes.len()));
        Self {
            bytes,
            hold,
            _permit: None,
        }
    }
}

impl Buf for ReplyBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    /// Called when bytes are written to the socket or to the small buffer before it.
    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(hold) = &mut self.hold {
            hold.written(count);
        }
    }
}

impl ForwardedReply {
    /// A body that does not count, for errors.
    pub fn uncounted(rest: Body) -> Self {
        Self {
            first: None,
            rest,
            connection: None,
            is_watch: false,
            _permit: None,
        }
    }

    /// Counts a part of the body.
    fn count(&self, bytes: Bytes) -> Result<ReplyBytes, HeldLimit> {
        match &self.connection {
            Some(connection) if !self.is_watch => ReplyBytes::count(bytes, connection, None),
            connection => Ok(ReplyBytes::count_any(bytes, connection.as_ref())),
        }
    }

    /// Returns the next part of the body; a part that exceeds a limit ends it.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<ReplyBytes>, Status>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let frame = ready!(http_body::Body::poll_frame(
            Pin::new(&mut self.rest),
            context
        ));
        let frame = match frame {
            Some(Ok(frame)) => frame,
            Some(Err(status)) => return Poll::Ready(Some(Err(status))),
            None => return Poll::Ready(None),
        };
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(other) => {
                let trailers = other.into_trailers().unwrap_or_default();
                return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
            }
        };
        Poll::Ready(Some(match self.count(data) {
            Ok(bytes) => Ok(Frame::data(bytes)),
            Err(_) => Err(Status::resource_exhausted(
                "this connection holds too many bytes: read the replies",
            )),
        }))
    }
}

impl http_body::Body for ReplyBody {
    type Data = ReplyBytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<ReplyBytes>, Status>>> {
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
            Self::Forwarded(body) => body.poll(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Stored(_) => false,
            Self::Done => true,
            Self::Forwarded(body) => body.first.is_none() && body.rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Stored(_) | Self::Done => http_body::SizeHint::default(),
            Self::Forwarded(body) if body.first.is_none() => body.rest.size_hint(),
            Self::Forwarded(_) => http_body::SizeHint::default(),
        }
    }
}
