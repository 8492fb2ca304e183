//! The messages of `proto/entail/v1`, and encoding of replies.

mod convert;
mod encoded;
mod etag;
mod generated;
mod reply;
mod request;
mod state;

use prost::Message;

pub use convert::{
    block, effective_policy, effective_policy_without_etag, origin, policy_ref, timestamp,
    unknown_state,
};
pub use encoded::{
    EncodedBatchGetEffectivePoliciesResponse, EncodedGetEffectivePoliciesResponse,
    EncodedWatchEffectivePoliciesResponse,
};
pub use etag::{ETAG_LENGTH, combined_etag, etag};
pub use generated::envoy;
pub(crate) use generated::server_stubs;
pub use reply::{
    EncodedPathPolicies, batch_tail, decode_policies, field, field_header, get_tail,
    not_modified_field, result_field, result_of_policy,
};
pub use request::path_only_request;
pub use state::{ALL_KINDS, StateReason};

pub use entail_client::v1;

/// Returns the descriptors of the API and of its imports: an encoded
/// `google.protobuf.FileDescriptorSet`. Envoy's service is included only if `with_envoy` is set,
/// because `proto/envoy` declares only the fields that entail reads and writes.
pub fn descriptors(with_envoy: bool) -> Vec<u8> {
    const ALL: &[u8] = include_bytes!("generated/entail.v1.bin");
    // Decoding cannot fail: the build script encoded the set.
    let mut set = prost_types::FileDescriptorSet::decode(ALL).unwrap_or_default();
    set.file
        .retain(|file| with_envoy || !file.name().starts_with("envoy/"));
    set.encode_to_vec()
}
