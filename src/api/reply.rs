//! Encoding of the parts of replies. Parts are encoded separately so that replies can share them.

use std::ops::Range;

use bytes::Bytes;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, string};

use super::etag::{ETAG_LENGTH, combined_etag, etag};
use super::v1;

/// The encoded field `result` of a Get reply with one effective policy, and where its parts are.
pub struct EncodedPathPolicies {
    /// The field with its key and length. It ends with the etag of all policies.
    pub result: Vec<u8>,
    /// The range of the field `policies`, with its key and length; it is the same in `PolicyBody`.
    pub policies: Range<usize>,
    /// The range of the effective policy's etag.
    pub etag: Range<usize>,
}

/// The length of an encoded etag with the key and the length of its field.
const ETAG_FIELD_LENGTH: usize = 2 + ETAG_LENGTH;

/// Encodes a length-delimited field with its key and length.
pub fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = field_header(number, bytes.len());
    out.extend_from_slice(bytes);
    out
}

/// Encodes the key and the length of a length-delimited field, with capacity for its content.
pub fn field_header(number: u32, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length + 6);
    push_field_header(number, length, &mut out);
    out
}

fn push_field_header(number: u32, length: usize, out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(length as u64, out);
}

/// Decodes `policies` fields of [`EncodedPathPolicies`].
pub fn decode_policies(fields: impl Iterator<Item = Bytes>) -> Vec<v1::EffectivePolicy> {
    let bytes: Vec<u8> = fields.flatten().collect();
    let body = v1::PolicyBody::decode(&*bytes);
    body.unwrap_or_default().policies
}

/// Encodes field `result` of a Get reply with one effective policy of which the etag is empty, and adds the etag: the hash
/// of the policy without it.
pub fn result_of_policy(mut policy: v1::EffectivePolicy) -> EncodedPathPolicies {
    debug_assert!(policy.etag.is_empty(), "the etag is that of the rest");
    // The fields before the etag: fields are written in the order of their numbers.
    let first = v1::EffectivePolicy {
        group: std::mem::take(&mut policy.group),
        kind: std::mem::take(&mut policy.kind),
        spec_json: policy.spec_json.take(),
        spec_etag: std::mem::take(&mut policy.spec_etag),
        ..v1::EffectivePolicy::default()
    };
    let length = first.encoded_len() + ETAG_FIELD_LENGTH + policy.encoded_len();
    let policies_length = 1 + encoded_len_varint(length as u64) + length;
    let mut result = field_header(1, policies_length + ETAG_FIELD_LENGTH);
    let policies = result.len()..result.len() + policies_length;
    push_field_header(1, length, &mut result);
    let start = result.len();
    first.encode_raw(&mut result);
    let etag_field = result.len();
    policy.encode_raw(&mut result);
    let own_etag = etag(result.get(start..).unwrap_or_default());
    let mut field = Vec::with_capacity(ETAG_FIELD_LENGTH);
    string::encode(5, &own_etag, &mut field);
    drop(result.splice(etag_field..etag_field, field));
    string::encode(3, &combined_etag([&*own_etag].into_iter()), &mut result);
    let etag_end = etag_field + ETAG_FIELD_LENGTH;
    EncodedPathPolicies {
        result,
        policies,
        etag: etag_end - ETAG_LENGTH..etag_end,
    }
}

/// Encodes field `result` of a Get reply from encoded `policies` fields and their etag, which comes last.
pub fn result_field<'p>(policies: impl Iterator<Item = &'p [u8]> + Clone, etag: &str) -> Vec<u8> {
    let rest = v1::PathPolicies {
        etag: etag.to_owned(),
        ..v1::PathPolicies::default()
    };
    let length = policies.clone().map(<[u8]>::len).sum::<usize>() + rest.encoded_len();
    let mut out = field_header(1, length);
    for policy in policies {
        out.extend_from_slice(policy);
    }
    rest.encode_raw(&mut out);
    out
}

/// Encodes field `result` of a Get reply to a caller that holds the current policies.
pub fn not_modified_field(etag: &str) -> Vec<u8> {
    let result = v1::PathPolicies {
        etag: etag.to_owned(),
        not_modified: true,
        ..v1::PathPolicies::default()
    };
    field(1, &result.encode_to_vec())
}

/// Encodes the fields of a Get reply that follow `result`.
pub fn get_tail(
    version: v1::Version,
    synced_at: prost_types::Timestamp,
    kinds: &[v1::KindState],
) -> Vec<u8> {
    let tail = v1::GetEffectivePoliciesResponse {
        result: None,
        version: Some(version),
        synced_at: Some(synced_at),
        kinds: kinds.to_vec(),
    };
    tail.encode_to_vec()
}

/// Encodes the fields of a Batch reply that follow `bodies`.
pub fn batch_tail(
    version: v1::Version,
    synced_at: prost_types::Timestamp,
    kinds: &[v1::KindState],
) -> Vec<u8> {
    let tail = v1::BatchGetEffectivePoliciesResponse {
        results: Vec::new(),
        bodies: Vec::new(),
        version: Some(version),
        synced_at: Some(synced_at),
        kinds: kinds.to_vec(),
    };
    tail.encode_to_vec()
}
