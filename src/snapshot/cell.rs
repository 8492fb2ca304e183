//! The one cell that holds the current snapshot.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwapOption;

use super::Snapshot;
use super::rows::PathQuota;
use super::views::WatchGroups;

/// Readers take the current snapshot without a lock; one writer publishes the next.
#[derive(Debug, Default)]
pub struct SnapshotCell {
    current: ArcSwapOption<Snapshot>,
    /// Who follows what; look-ups never come here.
    pub(super) views: Mutex<WatchGroups>,
    /// The paths that are listed for them.
    pub(super) path_quota: PathQuota,
}

impl SnapshotCell {
    /// The current snapshot; `None` before the first. One call a reply: what it returns is of one
    /// version.
    pub fn load(&self) -> Option<Arc<Snapshot>> {
        self.current.load_full()
    }

    /// Runs a reader on the current snapshot without counting a reference.
    pub fn with<T>(&self, read: impl FnOnce(&Snapshot) -> T) -> Option<T> {
        self.current.load().as_deref().map(read)
    }

    /// Publishes a snapshot and wakes those who follow what it changed. Returns the one before, which
    /// the writer drops: readers never pay for freeing it.
    pub fn publish(&self, snapshot: Arc<Snapshot>) -> Option<Arc<Snapshot>> {
        let mut views = self.views();
        // Marks come before the snapshot: who has it sees them. Who is woken has both.
        let touched = views.mark(self.current.load().as_deref(), &snapshot);
        let old = self.current.swap(Some(snapshot));
        views.notify(touched);
        old
    }
}
