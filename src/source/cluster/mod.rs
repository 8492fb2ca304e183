//! Objects from a Kubernetes API server: one watch a kind, over all namespaces.
//!
//! [`Cluster`] is the connection, [`watch`] follows the kinds that are wanted and sends what is new
//! in [`ClusterUpdate`]s. What a kind's watch delivers is taken as it comes; a list is one change. Kinds that
//! are not served are awaited, those that may not be read are told and tried again.

mod api_requests;
mod change_collector;
mod connect;
mod discovery;
mod kind_watch;
mod reviews;
mod watch_filter;
mod watcher;

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use entail_core::model::{Change, GroupKind, ObjectKey};

pub use api_requests::{ApiRequestCounts, ApiRequestRecorder};
pub use connect::{Cluster, ClusterConfig, ClusterError};
pub use reviews::{AuthenticatedUser, ReviewClient};
pub use watch_filter::WatchFilter;
pub use watcher::watch;

/// What is wanted of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredKinds {
    /// The kinds to follow.
    pub kinds: BTreeSet<GroupKind>,
    /// The last step that this rests on: CRDs and profiles say which kinds there are.
    pub after: u64,
}

/// What is known of a cluster before it says anything: the kinds with their objects.
pub type KnownObjects = BTreeMap<GroupKind, BTreeSet<ObjectKey>>;

/// What a cluster says, one step after the other.
#[derive(Clone, Debug, Default)]
pub struct ClusterUpdate {
    /// Its number, from 1.
    pub number: u64,
    /// What differs from the step before.
    pub change: Change,
    /// What is wrong now: where, and what.
    pub problems: Vec<(String, String)>,
    /// Whether all that is wanted is known, or known to be out of reach.
    pub is_complete: bool,
    /// Whether something is still on its way; what cannot be read is not.
    pub is_loading: bool,
    /// When all kinds that can be read were known to be in step last: the server said something of
    /// each since. It sends a bookmark a minute where nothing changes.
    pub synced_at: Option<SystemTime>,
}
