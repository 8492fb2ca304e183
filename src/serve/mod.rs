//! The gRPC services: a look-up is parsed, a snapshot loaded, its bytes sent.
//!
//! This room answers from snapshots and cannot reach the engine. Every reply is of one snapshot,
//! loaded once; no guard is held over an await. Questions of people run on a bounded pool, so
//! that they cannot slow down look-ups.

mod bodies;
mod callers;
mod connection;
mod deadline;
mod envoy;
mod health;
mod hot;
mod insights;
mod limits;
mod listen;
mod load;
mod peer;
mod policies;
mod pool;
mod review;
mod server;
mod status;
mod tally;
mod tls;
mod transport;
mod watches;

use std::sync::Arc;

use tokio::sync::watch;
use tonic::Status;

use crate::insight::{ChangeWorld, Notes, Sight};
use crate::snapshot::Snapshots;

pub use callers::{AllowLists, CallerRow, Callers, CallersDocument, San, SanError};
pub use envoy::{EnvoyDialect, EnvoyDocument, EnvoySettings};
pub use health::Health;
pub use limits::{DEFAULT_MAX_CONCURRENCY, DEFAULT_MAX_CONCURRENCY_PER_CLIENT, Limits};
pub use listen::{Address, AddressError, Bound, Listener, SocketFile};
pub use load::Load;
pub use review::{Account, Reviewing, Reviews, Right};
pub use server::{Security, ServeError, Server};
pub use tally::Tally;
pub use tls::{Certificates, TlsError, TlsFiles};

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
mod generated {
    include!(concat!(env!("OUT_DIR"), "/entail.v1.rs"));
}

/// What the services answer from; one writer fills it.
#[derive(Clone, Debug)]
pub struct Answers {
    /// The current snapshot.
    pub snapshots: Arc<Snapshots>,
    /// What is wrong in the sources.
    pub notes: watch::Receiver<Arc<Notes>>,
    /// How a world would be after a change.
    pub change: ChangeWorld,
}

impl Answers {
    /// The status before the first snapshot; it says what the server waits for, if that is known.
    /// Where what is wrong stands is told to those who see everything.
    fn not_ready(&self, sight: &dyn Sight) -> Status {
        let notes = self.notes.borrow();
        let first = notes.problems.first().filter(|_| sight.is_all());
        Status::unavailable(match first {
            None => "no snapshot yet: the sources are being read, try again".to_owned(),
            Some((place, message)) => format!(
                "no snapshot yet: {} problems in the sources, the first at {place}: {message}",
                notes.problems.len()
            ),
        })
    }
}
