//! Whole messages of requests, and the memory that they take once they are decoded.

use bytes::{Buf, Bytes, BytesMut};

/// Length of what precedes a message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// Memory of an element of the message itself, such as a request of a batch, in bytes.
const ELEMENT: usize = 288;
/// Memory of a text, or of an element of an element.
const PART: usize = 64;
/// Memory of a number.
const NUMBER: usize = 8;
/// The depth to which messages are decoded; deeper ones are errors.
const MAX_DEPTH: usize = 100;

/// Collects the messages of a request from the pieces in which they arrive.
#[derive(Debug, Default)]
pub(in crate::server) struct MessageCollector {
    pending: BytesMut,
    /// A message that arrived as one piece, which is the usual case.
    whole: Option<Bytes>,
}

/// A message that is longer than permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct TooLong {
    /// The length in bytes.
    pub length: usize,
}

impl MessageCollector {
    /// Adds a piece.
    pub fn push(&mut self, piece: Bytes) {
        let is_whole = message_length(&piece).is_some_and(|length| PREFIX + length == piece.len());
        if is_whole && self.pending.is_empty() && self.whole.is_none() {
            self.whole = Some(piece);
        } else {
            self.pending.extend(self.whole.take());
            self.pending.extend_from_slice(&piece);
        }
    }

    /// Returns the next message, with its prefix, if all of it has been added.
    ///
    /// # Errors
    /// The message has more than `max` bytes.
    pub fn next(&mut self, max: usize) -> Result<Option<Bytes>, TooLong> {
        let bytes = self.whole.as_deref().unwrap_or(&self.pending);
        let Some(length) = message_length(bytes) else {
            return Ok(None);
        };
        if length > max {
            return Err(TooLong { length });
        }
        let taken = self.whole.take().or_else(|| {
            let end = PREFIX.saturating_add(length);
            (self.pending.len() >= end).then(|| self.pending.split_to(end).freeze())
        });
        Ok(taken)
    }

    /// Returns what is left: the beginning of a message.
    pub fn take_rest(&mut self) -> Option<Bytes> {
        let rest = self.pending.split().freeze();
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.whole.is_none() && self.pending.is_empty()
    }
}

/// Returns the length of a message that follows its prefix; `None` if the prefix is not complete.
fn message_length(frame: &[u8]) -> Option<usize> {
    let prefix: &[u8; PREFIX] = frame.first_chunk()?;
    let [_, length @ ..] = prefix;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

/// Estimates the memory of a message, with its prefix, once it is decoded: two bytes may become an element with
/// hundreds. It goes by the form of protobufs alone, and takes for a message what reads as one, as far as it does: texts
/// rarely do for more than some bytes. The time is proportional to the length, and no more is read once the memory exceeds
/// `limit`: the result is anything more than that.
pub(in crate::server) fn decoded_bytes(frame: &[u8], limit: usize) -> usize {
    let message = frame.get(PREFIX..).unwrap_or_default();
    let mut memory = frame.len();
    add_fields(message, (ELEMENT, MAX_DEPTH), (&mut memory, limit));
    memory
}

/// Adds the memory of the fields of a message, as far as it can be read, until it exceeds what it may be at most.
fn add_fields(
    mut message: &[u8],
    (element, depth): (usize, usize),
    (memory, limit): (&mut usize, usize),
) {
    while *memory <= limit
        && let Some(kind) = varint(&mut message)
            .filter(|tag| *tag >= 8)
            .map(|tag| tag % 8)
    {
        let length = match kind {
            0 => varint(&mut message).map(|_| 0),
            // The begin and the end of a group, which decoding skips.
            3 | 4 => Some(0),
            1 => Some(8),
            2 => varint(&mut message).and_then(|length| usize::try_from(length).ok()),
            5 => Some(4),
            _ => None,
        };
        let Some((content, rest)) = length.and_then(|length| message.split_at_checked(length))
        else {
            break;
        };
        let own = if kind == 2 { element } else { NUMBER };
        *memory = memory.saturating_add(own);
        if kind == 2
            && let Some(depth) = depth.checked_sub(1)
        {
            add_fields(content, (PART, depth), (memory, limit));
        }
        message = rest;
    }
}

/// Reads a number of variable length.
fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = message.first().copied()?;
        message.advance(1);
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use entail_client::v1;
    use prost::Message;
    use v1::get_effective_policies_request::Target;

    use super::*;

    fn frame(message: &[u8]) -> Bytes {
        let mut frame = vec![0];
        frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        frame.extend_from_slice(message);
        frame.into()
    }

    #[test]
    fn messages_are_collected_from_any_pieces() {
        let messages = [frame(b"first"), frame(b""), frame(&[7; 300])];
        let all = messages.concat();
        for size in 1..all.len() {
            let mut collector = MessageCollector::default();
            let mut found = Vec::new();
            for piece in all.chunks(size) {
                collector.push(Bytes::copy_from_slice(piece));
                while let Some(message) = collector.next(300).unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, messages, "{size}");
            assert!(collector.is_empty() && collector.take_rest().is_none());
        }
    }

    #[test]
    fn a_long_message_is_known_by_its_prefix() {
        let mut collector = MessageCollector::default();
        let whole = frame(&[0; 301]);
        collector.push(whole.slice(..4));
        assert_eq!(collector.next(300), Ok(None));
        collector.push(whole.slice(4..6));
        assert_eq!(collector.next(301), Ok(None));
        assert_eq!(collector.next(300), Err(TooLong { length: 301 }));
        assert_eq!(collector.take_rest(), Some(whole.slice(..6)));
        // Also if it arrives at once.
        collector.push(whole.clone());
        assert_eq!(collector.next(300), Err(TooLong { length: 301 }));
        assert_eq!(collector.next(301), Ok(Some(whole)));
    }

    fn estimate(frame: &[u8]) -> usize {
        decoded_bytes(frame, usize::MAX)
    }

    #[test]
    fn the_rest_of_a_message_that_takes_too_much_is_not_read() {
        let elements = frame(&[0x0A, 0].repeat(1_000_000));
        let most = elements.len() + 100 * ELEMENT;
        assert_eq!(decoded_bytes(&elements, most), most + ELEMENT);
        assert_eq!(estimate(&elements), elements.len() + 1_000_000 * ELEMENT);
    }

    #[test]
    fn the_memory_of_small_elements_is_more_than_their_bytes() {
        let empty = v1::GetEffectivePoliciesRequest::default();
        let batch = v1::BatchGetEffectivePoliciesRequest {
            requests: vec![empty; 10_000],
            ..Default::default()
        };
        let request = size_of::<v1::GetEffectivePoliciesRequest>();
        assert!(request <= ELEMENT, "{request}");
        let estimated = estimate(&frame(&batch.encode_to_vec()));
        assert!(estimated >= 10_000 * request, "{estimated}");
        // Elements of elements.
        let kinds = v1::GetEffectivePoliciesRequest {
            kinds: vec![String::new(); 10_000],
            ..Default::default()
        };
        let batch = v1::BatchGetEffectivePoliciesRequest {
            requests: vec![kinds],
            ..Default::default()
        };
        assert!(estimate(&frame(&batch.encode_to_vec())) >= 10_000 * size_of::<String>());
    }

    #[test]
    fn the_memory_of_usual_requests_is_a_small_multiple_of_their_bytes() {
        let path = "gateways/infra/public/listeners/https/routes/HTTPRoute/shop/checkout/rules/pay";
        let request = v1::GetEffectivePoliciesRequest {
            target: Some(Target::Path(path.to_owned())),
            kinds: vec!["RateLimitPolicy.kuadrant.io".to_owned()],
            ..Default::default()
        };
        let batch = v1::BatchGetEffectivePoliciesRequest {
            requests: vec![request; 10_000],
            ..Default::default()
        };
        let bytes = batch.encode_to_vec();
        let estimated = estimate(&frame(&bytes));
        assert!(
            estimated < 5 * bytes.len() && estimated < 8 << 20,
            "{estimated}"
        );
        let manifests = "kind: HTTPRoute\nmetadata: {name: shop, namespace: shop}\n".repeat(50_000);
        let preview = v1::PreviewChangeRequest {
            manifests,
            ..Default::default()
        };
        let bytes = preview.encode_to_vec();
        let estimated = estimate(&frame(&bytes));
        assert!(estimated < bytes.len() + 100_000, "{estimated}");
    }

    #[test]
    fn any_bytes_are_read_in_time_that_is_proportional_to_them() {
        // Messages in messages, as deep as they may be and deeper.
        let mut deep = Vec::new();
        for _ in 0..10_000 {
            let mut outer = vec![0x0A];
            prost::encoding::encode_varint(deep.len() as u64, &mut outer);
            outer.append(&mut deep);
            deep = outer;
        }
        assert!(estimate(&frame(&deep)) > deep.len());
        for message in [
            &[0xFF; 100][..],
            &[0x0A],
            &[0x0A, 0xFF],
            &[8],
            &[0],
            &[0x0E],
        ] {
            assert!(estimate(&frame(message)) < 1_000, "{message:?}");
        }
        // What decoding skips hides nothing behind it.
        let mut behind_group = vec![0xA3, 0x06, 0xA4, 0x06];
        behind_group.extend([0x0A, 0].repeat(1_000));
        assert!(estimate(&frame(&behind_group)) > 1_000 * ELEMENT);
    }
}
