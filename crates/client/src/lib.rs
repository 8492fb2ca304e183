//! Client of entail for data planes.
//!
//! [`Mirror`] follows the paths that a data plane serves and answers look-ups in the process itself.
//! [`stubs`] are the plain gRPC clients, for callers that bring their own runtime, and [`v1`] their
//! messages. [`path`] has the names of paths.

mod connect;
mod mirror;

pub use connect::{ClientTls, ConnectError, connect, endpoint};
pub use mirror::{EffectivePolicies, Freshness, LookupError, Mirror, MirrorSettings, SnapshotInfo};

/// Names of paths: parse and format them, and compare prefixes.
pub mod path {
    pub use entail_core::model::{Level, PathName, PathPrefix};
}

/// The messages of package `entail.v1`.
#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    clippy::too_many_lines,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/entail.v1.rs"));
}

/// The client stubs of package `entail.v1`.
pub mod stubs {
    pub use super::v1::{effective_policy_service_client, policy_insight_service_client};
}

/// Most bytes of a reply.
pub const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;
