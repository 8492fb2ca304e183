//! Bodies of replies in pieces that count for their connection until they are written: gRPC-web and HTTP/1.1 pass bytes on
//! without a place to count them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::Frame;
use tonic::Status;

use crate::server::transport::body::{ReplyBody, ReplyBytes};

/// Maximum size of a piece. What a caller does not read is held once, and not once more behind it. A multiple of three,
/// so that pieces of a reply in base64 have no padding between them.
const PIECE: usize = 48 * 1024;

/// A body whose parts are split into pieces.
pub(super) struct PiecedBody {
    rest: ReplyBody,
    /// The part that is being sent, and what is not sent of it.
    part: Option<(Arc<Mutex<ReplyBytes>>, Bytes)>,
}

/// A piece. Its bytes are written when it is dropped.
struct Piece {
    bytes: Bytes,
    part: Arc<Mutex<ReplyBytes>>,
}

impl PiecedBody {
    /// Splits a body.
    pub fn new(rest: ReplyBody) -> Self {
        Self { rest, part: None }
    }

    /// Returns the next piece of the part that is being sent.
    fn next_piece(&mut self) -> Option<Bytes> {
        let (part, left) = self.part.as_mut()?;
        let bytes = left.split_to(left.len().min(PIECE));
        let piece = Piece {
            bytes,
            part: Arc::clone(part),
        };
        if left.is_empty() {
            self.part = None;
        }
        Some(Bytes::from_owner(piece))
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut part = self.part.lock().unwrap_or_else(PoisonError::into_inner);
        part.advance(self.bytes.len());
    }
}

impl http_body::Body for PiecedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if let Some(piece) = self.next_piece() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let frame = match ready!(Pin::new(&mut self.rest).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                None => return Poll::Ready(None),
            };
            match frame.into_data() {
                Ok(part) => {
                    let bytes = part.bytes();
                    self.part = Some((Arc::new(Mutex::new(part)), bytes));
                }
                Err(other) => {
                    let trailers = other.into_trailers().unwrap_or_default();
                    return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.part.is_none() && self.rest.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::server::Limits;
    use crate::server::admission::connections::ConnectionEntry;

    #[tokio::test]
    async fn bytes_are_held_until_their_piece_is_dropped() {
        let connection = ConnectionEntry::detached(&Limits::default());
        let bytes = Bytes::from(vec![7; PIECE + 5]);
        let part = ReplyBytes::count(bytes, &connection, None).unwrap();
        let held = |expected: usize| {
            let rest = ReplyBytes::count(Bytes::from_static(b"x"), &connection, None).unwrap();
            assert_eq!(connection.bytes.held(), expected + 1);
            drop(rest);
        };
        let mut body = PiecedBody::new(ReplyBody::Stored(Some(part)));
        let mut next = async || body.frame().await.unwrap().unwrap();
        let first = next().await.into_data().unwrap();
        assert_eq!(first.len(), PIECE);
        held(PIECE + 5);
        drop(first);
        held(5);
        let second = next().await.into_data().unwrap();
        assert_eq!(&*second, [7; 5]);
        assert!(next().await.is_trailers());
        held(5);
        drop(second);
        held(0);
    }
}
