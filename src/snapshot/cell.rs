//! The cell that holds the current snapshot.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::Snapshot;

/// The current snapshot. Readers load it without a lock; one writer replaces it.
#[derive(Debug, Default)]
pub struct SnapshotCell {
    current: ArcSwapOption<Snapshot>,
}

impl SnapshotCell {
    /// The current snapshot; `None` before the first. Call it once for each reply, so that a reply
    /// never mixes two snapshots.
    pub fn load(&self) -> Option<Arc<Snapshot>> {
        self.current.load_full()
    }

    /// Runs a reader on the current snapshot without incrementing a reference count.
    pub fn with<T>(&self, read: impl FnOnce(&Snapshot) -> T) -> Option<T> {
        self.current.load().as_deref().map(read)
    }

    /// Replaces the snapshot; returns the previous one. Only `SubscriptionHub::publish` calls it,
    /// which also wakes streams.
    pub(crate) fn swap(&self, snapshot: Arc<Snapshot>) -> Option<Arc<Snapshot>> {
        self.current.swap(Some(snapshot))
    }
}
