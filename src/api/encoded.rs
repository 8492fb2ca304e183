//! Replies made of encoded fields. All look-ups of equal answers share the bytes of the answer, and
//! all replies of a snapshot share the bytes of its version and kinds.
//!
//! On the wire they are the plain messages, because protobuf fields can be concatenated.

use bytes::{Buf, BufMut, Bytes};
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType};

/// A `GetEffectivePoliciesResponse` of encoded fields.
#[derive(Clone, Debug, Default)]
pub struct EncodedGetEffectivePoliciesResponse {
    /// Field `result`, with its key and length.
    pub result: Bytes,
    /// Fields `version`, `synced_at` and `kinds`.
    pub tail: Bytes,
}

/// A `BatchGetEffectivePoliciesResponse` of encoded fields.
#[derive(Clone, Debug, Default)]
pub struct EncodedBatchGetEffectivePoliciesResponse {
    /// The `results` fields.
    pub results: Bytes,
    /// The `bodies` fields: for each, its key and length, and its content.
    pub bodies: Vec<(Bytes, Bytes)>,
    /// Fields `version`, `synced_at` and `kinds`.
    pub tail: Bytes,
}

/// An encoded `WatchEffectivePoliciesResponse`.
#[derive(Clone, Debug, Default)]
pub struct EncodedWatchEffectivePoliciesResponse {
    /// The whole message.
    pub message: Bytes,
}

impl EncodedGetEffectivePoliciesResponse {
    fn chunks(&self) -> impl Iterator<Item = &Bytes> {
        [&self.result, &self.tail].into_iter()
    }
}

impl EncodedBatchGetEffectivePoliciesResponse {
    fn chunks(&self) -> impl Iterator<Item = &Bytes> {
        let bodies = self.bodies.iter().flat_map(|(head, body)| [head, body]);
        let results = std::iter::once(&self.results);
        results.chain(bodies).chain(std::iter::once(&self.tail))
    }
}

impl EncodedWatchEffectivePoliciesResponse {
    fn chunks(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.message)
    }
}

/// Returns an error: the server never decodes replies.
fn decoding_error() -> Result<(), DecodeError> {
    let mut empty: &[u8] = &[];
    // prost has no public constructor for `DecodeError`; decoding a key from no bytes returns one.
    prost::encoding::decode_key(&mut empty).map(drop)?;
    Ok(())
}

/// Implements `prost::Message` for a type that is encoded as the concatenation of its chunks.
macro_rules! impl_message {
    ($message:ty) => {
        impl prost::Message for $message {
            fn encode_raw(&self, buffer: &mut impl BufMut) {
                for chunk in self.chunks() {
                    buffer.put_slice(chunk);
                }
            }

            fn merge_field(
                &mut self,
                _tag: u32,
                _wire_type: WireType,
                _buffer: &mut impl Buf,
                _context: DecodeContext,
            ) -> Result<(), DecodeError> {
                decoding_error()
            }

            fn encoded_len(&self) -> usize {
                self.chunks().map(Bytes::len).sum()
            }

            fn clear(&mut self) {
                *self = Self::default();
            }
        }
    };
}

impl_message!(EncodedGetEffectivePoliciesResponse);
impl_message!(EncodedBatchGetEffectivePoliciesResponse);
impl_message!(EncodedWatchEffectivePoliciesResponse);
