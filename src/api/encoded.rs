//! Replies that are encoded already: bytes that are shared by all look-ups of equal answers, and
//! the fields that a snapshot's replies share.
//!
//! On the wire they are the plain messages: protobuf fields may be concatenated.

use bytes::{Buf, BufMut, Bytes};
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType};

/// A `GetEffectivePoliciesResponse` of stored bytes.
#[derive(Clone, Debug, Default)]
pub struct EncodedGetEffectivePoliciesResponse {
    /// Field `result` with its key and length.
    pub result: Bytes,
    /// Fields `version`, `synced_at` and `kinds`.
    pub tail: Bytes,
}

/// A `BatchGetEffectivePoliciesResponse` of stored bytes.
#[derive(Clone, Debug, Default)]
pub struct EncodedBatchGetEffectivePoliciesResponse {
    /// Fields `results`.
    pub results: Bytes,
    /// Fields `bodies`, each with its key and length.
    pub bodies: Vec<(Bytes, Bytes)>,
    /// Fields `version`, `synced_at` and `kinds`.
    pub tail: Bytes,
}

/// A `WatchEffectivePoliciesResponse`.
#[derive(Clone, Debug, Default)]
pub struct EncodedWatchEffectivePoliciesResponse {
    /// All of it.
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

/// Replies are never decoded by the server.
fn decoding_error() -> Result<(), DecodeError> {
    let mut nothing: &[u8] = &[];
    // Decoding a key from nothing is the error that prost lets others make.
    prost::encoding::decode_key(&mut nothing).map(drop)?;
    Ok(())
}

/// A message that is sent as its chunks stand.
macro_rules! impl_message {
    ($message:ty) => {
        impl prost::Message for $message {
            fn encode_raw(&self, buffer: &mut impl BufMut) {
                for piece in self.chunks() {
                    buffer.put_slice(piece);
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
