//! The admission webhook: warns whoever applies or deletes an object of what effective policies would lose by it.
//!
//! The API server posts an AdmissionReview over HTTPS. The answer has warnings that `kubectl` prints, and allows the change
//! unless it breaks an assertion that is enforced. It is computed from the current snapshot, within a time limit: what is not computed in time is said to be unknown.

mod counters;
mod http;
mod review;
mod reviewer;
mod shares;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use counters::{ReviewCounters, ReviewDurations};
pub use reviewer::{ReviewError, Reviewer};

use super::transport::connection::{AcceptConfig, Acceptor};
use super::{AccessRules, BoundCounters, BoundListener, Certificates, HeldBytes, Limits};
use crate::server::admission::connections::{ConnectionLimits, ConnectionTable};
use crate::subscription::SubscriptionHub;
use entail_core::model::Object;

/// Maximum number of connections. An API server opens one for each review in progress.
const CONNECTIONS: usize = 256;

/// Reads an object as the source of the server does: `None` if the source does not follow it. The error says why an
/// object is malformed.
pub type ReadObject = Arc<dyn Fn(Value) -> Result<Option<Object>, String> + Send + Sync>;

/// What the webhook does, besides TLS.
#[derive(Clone)]
pub struct WebhookSettings {
    /// Reads the objects of reviews.
    pub read: ReadObject,
    /// Whether warnings name objects of all namespaces.
    pub full_names: bool,
}

/// The admission webhook of a server.
#[derive(Debug)]
pub struct Webhook {
    reviewer: Arc<Reviewer>,
    certificates: Arc<Certificates>,
    limits: Limits,
    bounds: Arc<BoundCounters>,
}

impl fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSettings")
            .field("full_names", &self.full_names)
            .finish_non_exhaustive()
    }
}

impl Webhook {
    /// Creates the webhook. What callers exceed counts in `bounds`.
    pub fn new(
        subscriptions: Arc<SubscriptionHub>,
        settings: WebhookSettings,
        certificates: Arc<Certificates>,
        (limits, bounds): (Limits, Arc<BoundCounters>),
    ) -> Self {
        Self {
            reviewer: Arc::new(Reviewer::new(
                subscriptions,
                settings,
                limits.insight_concurrency,
            )),
            certificates,
            limits,
            bounds,
        }
    }

    /// The counters of reviews.
    pub fn counters(&self) -> Arc<ReviewCounters> {
        self.reviewer.counters()
    }

    /// Serves on a TCP listener until `stop` is cancelled; then waits up to `drain` for the reviews in progress.
    pub async fn run(self, listener: BoundListener, stop: CancellationToken, drain: Duration) {
        let (acceptor, _file) = Acceptor::of(listener);
        let sizes = ConnectionLimits {
            total: CONNECTIONS,
            per_client: CONNECTIONS / 2,
            arrival: self.limits.connection_setup,
        };
        let shared = (&HeldBytes::new(&self.limits), &Arc::default());
        let accept_config = AcceptConfig {
            connections: ConnectionTable::new(sizes, &self.limits, shared, &self.bounds),
            certificates: Some(self.certificates),
            callers: Arc::new(AccessRules::default()),
            setup: self.limits.connection_setup,
        };
        let bounds = (&self.limits, self.bounds);
        http::serve(
            (acceptor, accept_config),
            self.reviewer,
            bounds,
            (stop, drain),
        )
        .await;
    }
}
