//! The parts of replies, encoded apart so that they can be shared.

use bytes::Bytes;
use prost::Message;
use prost::encoding::WireType;

use super::v1;

/// A length-delimited field with its key.
pub fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = field_header(number, bytes.len());
    out.extend_from_slice(bytes);
    out
}

/// Key and length of a length-delimited field.
pub fn field_header(number: u32, length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length + 6);
    prost::encoding::encode_key(number, WireType::LengthDelimited, &mut out);
    prost::encoding::encode_varint(length as u64, &mut out);
    out
}

/// Field `policies`, of `PathPolicies` and `PolicyBody` alike.
pub fn policies_field(policy: &v1::EffectivePolicy) -> Vec<u8> {
    let mut out = field_header(1, policy.encoded_len());
    policy.encode_raw(&mut out);
    out
}

/// The policies that fields `policies` hold; they are our own bytes.
pub fn decode_policies<'p>(fields: impl Iterator<Item = &'p Bytes>) -> Vec<v1::EffectivePolicy> {
    let bytes: Vec<u8> = fields.flatten().copied().collect();
    let read = v1::PolicyBody::decode(&*bytes);
    read.unwrap_or_default().policies
}

/// Field `result` of a Get reply: fields `policies` as they are, and their etag.
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

/// Field `result` of a Get reply whose caller holds the current policies.
pub fn not_modified_field(etag: &str) -> Vec<u8> {
    let result = v1::PathPolicies {
        etag: etag.to_owned(),
        not_modified: true,
        ..v1::PathPolicies::default()
    };
    field(1, &result.encode_to_vec())
}

/// The fields that a Get reply ends with.
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

/// The fields that a Batch reply ends with.
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
