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

/// Replies are never decoded by the server.
fn refuse() -> Result<(), DecodeError> {
    let mut nothing: &[u8] = &[];
    // Decoding a key from nothing is the error that prost lets others make.
    prost::encoding::decode_key(&mut nothing).map(drop)?;
    Ok(())
}

impl prost::Message for EncodedGetEffectivePoliciesResponse {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(&self.result);
        buffer.put_slice(&self.tail);
    }

    fn merge_field(
        &mut self,
        _tag: u32,
        _wire_type: WireType,
        _buffer: &mut impl Buf,
        _context: DecodeContext,
    ) -> Result<(), DecodeError> {
        refuse()
    }

    fn encoded_len(&self) -> usize {
        self.result.len() + self.tail.len()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl prost::Message for EncodedBatchGetEffectivePoliciesResponse {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(&self.results);
        for (head, body) in &self.bodies {
            buffer.put_slice(head);
            buffer.put_slice(body);
        }
        buffer.put_slice(&self.tail);
    }

    fn merge_field(
        &mut self,
        _tag: u32,
        _wire_type: WireType,
        _buffer: &mut impl Buf,
        _context: DecodeContext,
    ) -> Result<(), DecodeError> {
        refuse()
    }

    fn encoded_len(&self) -> usize {
        let bodies: usize = self.bodies.iter().map(|(h, b)| h.len() + b.len()).sum();
        self.results.len() + bodies + self.tail.len()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}
