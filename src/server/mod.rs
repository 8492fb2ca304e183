//! The gRPC services: a look-up is parsed, a snapshot loaded, its bytes sent.
//!
//! This room answers from snapshots and cannot reach the engine. Every reply is of one snapshot,
//! loaded once; no guard is held over an await. Questions of people run on a bounded pool, so
//! that they cannot slow down look-ups.

mod access;
mod admission;
mod envoy;
mod server;
mod services;
mod tls;
mod transport;

use std::sync::Arc;

use tokio::sync::watch;
use tonic::Status;

use crate::insight::{PreviewFn, SourceProblems, Visibility};
use crate::snapshot::SnapshotCell;

pub use access::review::{Authorizer, ResourceAttributes, ReviewFuture, TokenAuthenticator};
pub use access::rules::{
    AccessRule, AccessRules, AccessRulesDocument, AllowLists, SanPattern, SanPatternError,
};
pub use admission::concurrency::ConcurrencyLimiter;
pub use admission::limits::{DEFAULT_MAX_CONCURRENCY, DEFAULT_MAX_CONCURRENCY_PER_CLIENT, Limits};
pub use envoy::{EnvoyDialect, EnvoyDocument, EnvoySettings};
pub use server::{Security, ServeError, Server};
pub use services::health::Health;
pub use tls::certificates::{Certificates, TlsError, TlsFiles};
pub use transport::listener::{Address, AddressError, BoundListener, SocketFile, StdListener};
pub use transport::request_counters::RequestCounters;

/// The server stubs. Their look-ups reply with bytes that are encoded already.
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
pub(crate) mod generated {
    include!(concat!(env!("OUT_DIR"), "/entail.v1.rs"));
}

/// What the services answer from; one writer fills it.
#[derive(Clone, Debug)]
pub struct ServiceContext {
    /// The current snapshot.
    pub snapshots: Arc<SnapshotCell>,
    /// What is wrong in the sources.
    pub source_problems: watch::Receiver<Arc<SourceProblems>>,
    /// How a world would be after a change.
    pub change: PreviewFn,
}

impl ServiceContext {
    /// The status before the first snapshot; it says what the server waits for, if that is known.
    /// Where what is wrong stands is told to those who see everything.
    fn not_ready(&self, visibility: &dyn Visibility) -> Status {
        let source_problems = self.source_problems.borrow();
        let first = source_problems
            .problems
            .first()
            .filter(|_| visibility.is_unrestricted());
        Status::unavailable(match first {
            None => "no snapshot yet: the sources are being read, try again".to_owned(),
            Some((place, message)) => format!(
                "no snapshot yet: {} problems in the sources, the first at {place}: {message}",
                source_problems.problems.len()
            ),
        })
    }
}
