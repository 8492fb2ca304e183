//! Protobuf: the messages of `proto/entail/v1`, and encoding of answers.

mod convert;
mod encoded;
mod etag;
mod reply;
mod request;

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

/// The messages of package `entail.v1`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::too_many_lines,
    clippy::indexing_slicing,
    reason = "generated"
)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/messages/entail.v1.rs"));
}

/// The messages of package `envoy.service.auth.v3`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::disallowed_types,
    reason = "generated"
)]
pub mod envoy {
    include!(concat!(
        env!("OUT_DIR"),
        "/messages/envoy.service.auth.v3.rs"
    ));
}

/// The descriptors of all packages and what they import, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/entail.v1.bin"));
