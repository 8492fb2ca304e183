//! The other side of the services: asking a running server, and following it.
//!
//! [`Mirror`] follows the paths that a data plane serves and answers look-ups in the process itself.
//! [`stubs`] are the plain clients, for callers that bring their own runtime.

mod connect;
mod mirror;
#[cfg(feature = "server")]
mod remote;

pub use connect::{ClientTls, ConnectError};
pub use mirror::{Answer, Freshness, Known, Mirror, MirrorSettings, Miss};
#[cfg(feature = "server")]
pub use remote::{Remote, health};

/// The client stubs, for callers that bring their own runtime.
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
pub mod stubs {
    include!(concat!(env!("OUT_DIR"), "/client/entail.v1.rs"));
}

/// Most bytes of a reply.
const MAX_REPLY: usize = 64 * 1024 * 1024;
