//! The gRPC server: listeners, TLS, admission, access control and services.
//!
//! The server answers from snapshots and has no access to the engine. Every reply is taken from one
//! snapshot, which is loaded once per request; no guard of a snapshot is held across an await.
//! Requests to `PolicyInsightService` run on a bounded thread pool, so they cannot slow down
//! look-ups.

mod access;
mod admission;
mod console;
mod envoy;
mod serve;
mod services;
mod tls;
mod transport;
mod webhook;

use std::sync::Arc;

use tokio::sync::watch;
use tonic::Status;

use crate::insight::{PreviewFn, SourceProblems, Visibility};
use crate::subscription::SubscriptionHub;

pub use access::review::{Authorizer, ResourceAttributes, ReviewFuture, TokenAuthenticator};
pub use access::rules::{
    AccessRule, AccessRules, AccessRulesDocument, AllowLists, SanPattern, SanPatternError,
};
pub use admission::bounds::BoundCounters;
pub use admission::concurrency::ConcurrencyLimiter;
pub use admission::connections::{ClientAddress, ConnectionTable};
pub use admission::held_bytes::HeldBytes;
pub use admission::limits::{
    DEFAULT_MAX_CONCURRENCY, DEFAULT_MAX_CONCURRENCY_PER_CLIENT, DEFAULT_MAX_CONNECTIONS,
    DEFAULT_MAX_CONNECTIONS_PER_CLIENT, Limits,
};
pub use envoy::{EnvoyCounters, EnvoyDialect, EnvoyDocument, EnvoySettings};
pub use serve::{CallerLoad, ListenerSet, Security, ServeError, Server};
pub use services::health::Health;
pub use tls::certificates::{Certificates, HttpVersion, TlsError, TlsFiles};
pub use transport::listener::{Address, AddressError, BoundListener, SocketFile, StdListener};
pub use transport::request_counters::{RequestCounters, RequestDurations};
pub use webhook::{
    ReadObject, ReviewCounters, ReviewDurations, ReviewError, Reviewer, Webhook, WebhookSettings,
};

/// The state that all services answer from. The reconciler updates it.
#[derive(Clone, Debug)]
pub struct ServiceContext {
    /// The current snapshot, and the streams that follow it.
    pub subscriptions: Arc<SubscriptionHub>,
    /// The current problems in the sources.
    pub source_problems: watch::Receiver<Arc<SourceProblems>>,
    /// Computes the world after a change, for `PreviewChange`.
    pub change: PreviewFn,
}

impl ServiceContext {
    /// Returns the status of requests before the first snapshot. Only callers with unrestricted
    /// visibility receive the first problem in the sources, because it names files and objects.
    fn not_ready(&self, visibility: &dyn Visibility) -> Status {
        let source_problems = self.source_problems.borrow();
        let first = source_problems
            .problems
            .first()
            .filter(|_| visibility.is_unrestricted());
        Status::unavailable(match first {
            None => "no snapshot yet: the sources are being read, try again".to_owned(),
            Some(problem) => format!(
                "no snapshot yet: {} problems in the sources, the first at {problem}",
                source_problems.problems.len()
            ),
        })
    }
}
