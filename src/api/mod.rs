//! Protobuf: the messages of `proto/entail/v1`, and encoding of answers.

mod convert;
mod encoded;
mod etag;
mod reply;
mod request;

use prost::Message;

pub use convert::{block, effective_policy, node_policy_ref, origin, timestamp, with_spec};
pub use encoded::{
    EncodedBatchGetEffectivePoliciesResponse, EncodedGetEffectivePoliciesResponse,
    EncodedWatchEffectivePoliciesResponse,
};
pub use etag::{etag, etag_of_all};
pub use reply::{
    batch_tail, field, get_tail, head, policies_field, policies_of, result_field, unmodified_field,
};
pub use request::path_alone;

pub use entail_client::v1;

/// The messages of package `envoy.service.auth.v3`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::disallowed_types,
    reason = "generated"
)]
pub mod envoy {
    include!(concat!(env!("OUT_DIR"), "/envoy.service.auth.v3.rs"));
}

/// The descriptors of the API, those of its imports among them: an encoded
/// `google.protobuf.FileDescriptorSet`. Envoy's service comes `with_envoy` only: what is here of its
/// protocol is what entail reads and writes of it.
pub fn descriptors(with_envoy: bool) -> Vec<u8> {
    const ALL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/entail.v1.bin"));
    // The build script has encoded it.
    let mut set = prost_types::FileDescriptorSet::decode(ALL).unwrap_or_default();
    set.file
        .retain(|file| with_envoy || !file.name().starts_with("envoy/"));
    set.encode_to_vec()
}
