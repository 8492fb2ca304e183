//! API discovery: which kinds the API server serves, and as which resources; and when to ask for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kube::Discovery;
use kube::core::ApiResource;
use tokio::time::{Instant, timeout};

use super::errors::error_chain;
use super::{Cluster, DesiredKinds};
use entail_core::model::GroupKind;

/// Timeout of discovery.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Delays between the first discoveries after a CRD has changed: the server takes a while to serve
/// the kind.
const DISCOVERY_BACKOFF: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];
/// Delay between discoveries after those of [`DISCOVERY_BACKOFF`].
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(60);

/// The resources of the served kinds, or why they are not known.
pub(super) type Served = Result<BTreeMap<GroupKind, ApiResource>, String>;

/// When discovery is due, and what it has found out.
pub(super) struct DiscoverySchedule {
    /// The desired kinds of the last discovery that was begun.
    pub asked_for: DesiredKinds,
    /// Why the last discovery failed.
    pub error: Option<String>,
    /// When the next discovery is due.
    pub due_at: Instant,
    /// Number of discoveries since something changed.
    attempts: usize,
    /// Whether something has changed since the last discovery was begun.
    is_needed: bool,
    /// Whether a discovery that is needed is in progress.
    is_awaited: bool,
    /// Whether discovery has run, with or without success.
    has_run: bool,
}

impl DiscoverySchedule {
    /// A schedule whose first discovery is due after a delay.
    pub fn new(delay: Duration) -> Self {
        Self {
            asked_for: DesiredKinds::default(),
            error: Some("API discovery has not run yet".to_owned()),
            due_at: Instant::now() + delay,
            attempts: 0,
            is_needed: false,
            is_awaited: false,
            has_run: false,
        }
    }

    /// Makes discovery due at once if the desired kinds differ from those of the last one.
    pub fn follow(&mut self, desired: &DesiredKinds) {
        if desired.differ_from(&self.asked_for) {
            self.attempts = 0;
            self.is_needed = true;
            self.due_at = Instant::now();
        }
    }

    /// Makes discovery due soon, because a CRD has changed.
    pub fn follow_crds(&mut self) {
        self.attempts = 0;
        self.is_needed = true;
        self.due_at = self.due_at.min(Instant::now() + DISCOVERY_BACKOFF[0]);
    }

    /// Makes discovery due at once if the last one failed, because the server is available again.
    pub fn retry(&mut self) {
        if self.error.is_some() {
            self.due_at = Instant::now();
        }
    }

    /// Begins a discovery of the desired kinds.
    pub fn begin(
        &mut self,
        cluster: &Cluster,
        desired: DesiredKinds,
    ) -> BoxFuture<'static, Served> {
        let delay = DISCOVERY_BACKOFF.get(self.attempts);
        self.due_at = Instant::now() + delay.copied().unwrap_or(DISCOVERY_INTERVAL);
        self.attempts += 1;
        self.is_awaited = std::mem::take(&mut self.is_needed);
        self.asked_for = desired;
        discover(cluster.clone(), self.asked_for.kinds.clone()).boxed()
    }

    /// Ends a discovery.
    pub fn finish(&mut self, error: Option<String>) {
        if error.is_some() {
            // Without discovery no watch can be started, so the delay stays short.
            self.attempts = self.attempts.min(DISCOVERY_BACKOFF.len() - 2);
            self.due_at = self.due_at.min(Instant::now() + DISCOVERY_BACKOFF[3]);
        }
        self.error = error;
        self.has_run = true;
        self.is_awaited = false;
    }

    /// Reports whether the result of a discovery is missing.
    pub fn is_pending(&self) -> bool {
        self.is_needed || self.is_awaited || !self.has_run
    }
}

async fn discover(cluster: Cluster, desired: BTreeSet<GroupKind>) -> Served {
    match timeout(DISCOVERY_TIMEOUT, served_resources(&cluster, &desired)).await {
        Ok(served) => served.map_err(|error| error_chain(&error)),
        Err(_) => Err("API discovery timed out".to_owned()),
    }
}

/// Returns the resources of those desired kinds that are served and can be listed and watched, each
/// at the version that the server prefers among the versions that have the kind.
///
/// # Errors
/// Returns an error if a discovery request fails.
async fn served_resources(
    cluster: &Cluster,
    desired: &BTreeSet<GroupKind>,
) -> Result<BTreeMap<GroupKind, ApiResource>, kube::Error> {
    let groups: BTreeSet<&str> = desired.iter().map(|kind| &*kind.group).collect();
    let groups: Vec<&str> = groups.into_iter().collect();
    let discovery = Discovery::new(cluster.client.clone()).filter(&groups);
    let discovered = discovery.run_aggregated().await?;
    let resource_of = |kind: &GroupKind| {
        let group = discovered.get(&kind.group)?;
        // A kind may not exist at the preferred version of its group: for years, ReferenceGrant was
        // v1beta1 while routes were v1. `versions` begins with the most stable version.
        let preferred = std::iter::once(group.preferred_version_or_latest());
        let mut resources = preferred
            .chain(group.versions())
            .flat_map(|version| group.versioned_resources(version));
        let (resource, _) = resources.find(|(resource, capabilities)| {
            let can_watch =
                capabilities.supports_operation("list") && capabilities.supports_operation("watch");
            resource.kind == *kind.kind && can_watch
        })?;
        Some((kind.clone(), resource))
    };
    Ok(desired.iter().filter_map(resource_of).collect())
}
