//! Client of entail for data planes.
//!
//! A [`Mirror`] keeps a copy of the effective policies of the paths that a data plane serves, and
//! answers look-ups from it without I/O. [`stubs`] contains the gRPC clients for everything else, and
//! [`v1`] their messages. [`path`] parses and formats path names.
//!
//! # Example
//!
//! Connect a mirror, look up a path, and fail closed if the state of a kind is not known:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use entail_client::v1::kind_state::State;
//! use entail_client::{LookupError, Mirror, MirrorSettings};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mirror = Mirror::follow(MirrorSettings {
//!     server: "127.0.0.1:50051".to_owned(),
//!     prefixes: vec!["gateways/shop/web".to_owned()],
//!     levels: vec!["RouteRule".to_owned()],
//!     kinds: vec!["TimeoutPolicy.example.com".to_owned()],
//!     ..MirrorSettings::default()
//! })?;
//! mirror.ready().await;
//!
//! let path = "gateways/shop/web/listeners/http/routes/HTTPRoute/shop/cart/rules/#0";
//! let result = mirror.look_up(path, |answer, info| {
//!     // `kinds` contains the kinds whose state is not COMPLETE. If a kind is FORBIDDEN or UNKNOWN,
//!     // an answer without a policy does not mean that there is no policy.
//!     let unknown = info.kinds.iter().find(|kind| kind.state() != State::Stale);
//!     match unknown {
//!         None => Ok(Arc::clone(answer)),
//!         Some(kind) => Err(format!("the policies of {} are not known", kind.kind)),
//!     }
//! });
//! match result {
//!     Ok(Ok(answer)) => {
//!         for policy in &answer.policies {
//!             println!("{}: {}", policy.kind, policy.spec_json());
//!         }
//!     }
//!     Ok(Err(message)) => eprintln!("rejecting the request: {message}"),
//!     Err(LookupError::NotReady) => eprintln!("no update from the server yet"),
//!     Err(LookupError::NotSubscribed) => eprintln!("add the path to the settings of the mirror"),
//!     Err(LookupError::NotFound) => eprintln!("the path does not exist, or is newer than the copy"),
//! }
//! # Ok(())
//! # }
//! ```

mod connect;
pub mod failure;
mod generated;
mod mirror;
mod names;

pub use connect::{ClientTls, ConnectError, connect, endpoint};
pub use generated::v1;
pub use mirror::{EffectivePolicies, Freshness, LookupError, Mirror, MirrorSettings, SnapshotInfo};
pub use names::EnumName;

/// Path names: parse, format, and compare them with prefixes.
pub mod path {
    pub use entail_core::model::{Level, PathName, PathPrefix};
}

/// gRPC clients of the services of `entail.v1`: EffectivePolicyService and PolicyInsightService.
pub mod stubs {
    pub use super::v1::{effective_policy_service_client, policy_insight_service_client};
}

/// Maximum size of a reply in bytes; pass it to `max_decoding_message_size` of a stub, whose default
/// of 4 MiB is too small for large batches.
pub const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;
