//! Encoding of the parts of replies. Parts are encoded separately so that replies can share them.

use bytes::Bytes;
use prost::Message;
use prost::encoding::WireType;

use super::v1;

/// Encodes a length-delimited field with its key and length.
pub fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = field_header(number, bytes.len());
    out.extend_from_slice(bytes);
    out
}

/// Encodes the key and the length of a length-delimited field, with capacity for its content.
pub fn field_header(number: u32, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length + 6);
    prost::encoding::encode_key(number, WireType::LengthDelimited, &mut out);
    prost::encoding::encode_varint(length as u64, &mut out);
    out
}

/// Encodes a `policies` field, which is the same in `PathPolicies` and `PolicyBody`.
pub fn policies_field(policy: &v1::EffectivePolicy) -> Vec<u8> {
    let mut out = field_header(1, policy.encoded_len());
    policy.encode_raw(&mut out);
    out
}

/// Decodes `policies` fields that [`policies_field`] encoded.
pub fn decode_policies(fields: impl Iterator<Item = Bytes>) -> Vec<v1::EffectivePolicy> {
    let bytes: Vec<u8> = fields.flatten().collect();
    let body = v1::PolicyBody::decode(&*bytes);
    body.unwrap_or_default().policies
}

/// Returns the length of what precedes the policies in [`result_field`].
pub fn result_header(policies: usize, etag: &str) -> usize {
    let rest = v1::PathPolicies {
        etag: etag.to_owned(),
        ..v1::PathPolicies::default()
    };
    field_header(1, policies + rest.encoded_len()).len()
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
