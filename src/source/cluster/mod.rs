//! Objects from a Kubernetes API server: one watch per kind, over all namespaces.
//!
//! [`Cluster`] is the client. [`watch`] watches the desired kinds and sends [`ClusterUpdate`]s. The
//! events of a watch are applied in order; a list is one change. A kind that is not served is
//! watched as soon as discovery finds it. A kind that must not be read is reported as a problem, and
//! its watch is retried.

mod api_requests;
mod backoff;
mod change_collector;
mod connect;
mod connections;
mod denial;
mod discovery;
mod errors;
mod freshness;
mod identity;
mod kind_watch;
mod listed_object;
mod listed_state;
mod object_decoder;
mod report_writer;
mod reviews;
mod server_health;
mod watch_filter;
mod watcher;

#[cfg(test)]
mod fake_api_server;
#[cfg(test)]
mod outage_tests;

use std::collections::{BTreeMap, BTreeSet};

use entail_core::model::{Change, GroupKind, ObjectKey};
use tokio::time::Instant;

pub use api_requests::{ApiRequestCounts, ApiRequestRecorder};
pub use connect::{ApiTimeouts, Cluster, ClusterConfig, ClusterError};
pub use report_writer::{ReportKinds, WrittenReports};
pub use reviews::{AuthenticatedUser, ReviewClient};
pub use watch_filter::WatchFilter;
pub use watcher::watch;

/// The kinds to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredKinds {
    /// The kinds to watch.
    pub kinds: BTreeSet<GroupKind>,
    /// Those of which only the target references are kept.
    pub targets_only: BTreeSet<GroupKind>,
    /// Those whose statuses are not kept, because nothing depends on them.
    pub without_status: BTreeSet<GroupKind>,
    /// The number of the last [`ClusterUpdate`] from which `kinds` was computed: CRDs and
    /// PolicyProfiles in an update can change the desired kinds.
    pub after: u64,
}

/// The parts of the objects of a kind that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectParts {
    /// Everything that rules can read.
    Whole,
    /// All but the status.
    WithoutStatus,
    /// The target references.
    Targets,
}

impl DesiredKinds {
    /// The parts that are kept of the objects of a kind.
    fn parts_of(&self, kind: &GroupKind) -> ObjectParts {
        if self.targets_only.contains(kind) {
            ObjectParts::Targets
        } else if self.without_status.contains(kind) {
            ObjectParts::WithoutStatus
        } else {
            ObjectParts::Whole
        }
    }

    /// Reports whether other kinds, or other parts of objects, are desired than in `other`.
    fn differ_from(&self, other: &Self) -> bool {
        self.kinds != other.kinds
            || self.targets_only != other.targets_only
            || self.without_status != other.without_status
    }
}

/// What the receiver of updates has from a restored checkpoint.
#[derive(Clone, Debug, Default)]
pub struct KnownObjects {
    /// The objects, by kind.
    pub objects: BTreeMap<GroupKind, BTreeSet<ObjectKey>>,
    /// UID of the cluster that the checkpoint was read from, if it is still to be compared with that of the cluster.
    pub unverified: Option<String>,
}

/// A batch of changes of a cluster, with the state of the watches after it.
#[derive(Clone, Debug, Default)]
pub struct ClusterUpdate {
    /// Sequence number, from 1.
    pub number: u64,
    /// Changes since the previous update.
    pub change: Change,
    /// Current problems, each with its location.
    pub problems: Vec<(String, String)>,
    /// Whether every desired kind has been read or must not be read.
    pub is_complete: bool,
    /// Whether the first read of a kind is in progress; false for kinds that cannot be read.
    pub is_loading: bool,
    /// When all readable kinds were last in sync: the oldest of the times at which each kind last
    /// received data. The API server sends a bookmark about every minute if nothing changes.
    pub synced_at: Option<Instant>,
}
