//! Publishes snapshots and wakes the watch groups that they affect.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::ledger::StreamLedger;
use super::path_list::{PathList, TooManyPaths};
use super::resume::ResumeHistory;
use super::watch_group::{PathSelector, WatchGroup, WatchGroups};
use crate::snapshot::{Snapshot, SnapshotCell};

/// The current snapshot and the watch groups that follow it. Look-ups use the [`SnapshotCell`]
/// alone and never take the lock of the groups.
#[derive(Debug, Default)]
pub struct SubscriptionHub {
    snapshots: Arc<SnapshotCell>,
    groups: Mutex<WatchGroups>,
    ledger: Arc<StreamLedger>,
    resume_history: Arc<ResumeHistory>,
    /// The generation of the current snapshot; 0 before the first.
    generation: watch::Sender<u64>,
}

/// The paths of a watch group, and the snapshot that they were listed for.
#[derive(Debug)]
pub struct SnapshotPaths {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// The paths.
    pub paths: Arc<PathList>,
}

impl SubscriptionHub {
    /// The cell with the current snapshot.
    pub fn snapshots(&self) -> &Arc<SnapshotCell> {
        &self.snapshots
    }

    /// Publishes a snapshot and wakes the groups that it affects. Returns the previous snapshot, so
    /// that the caller frees it and not the last reader. The cost grows with the followed answers
    /// that changed.
    pub fn publish(&self, snapshot: Arc<Snapshot>) -> Option<Arc<Snapshot>> {
        let mut groups = self.groups();
        // Marked before the swap: a stream that loads the new snapshot also sees its marks. Woken
        // after it: a stream that wakes loads the new snapshot.
        let recipients = groups.mark(self.snapshots.load().as_deref(), &snapshot);
        let generation = snapshot.version().generation;
        let paths = snapshot.paths();
        let old = self.snapshots.swap(snapshot);
        groups.notify(recipients);
        self.generation.send_if_modified(|current| {
            let is_new = *current != generation;
            *current = generation;
            is_new
        });
        drop(groups);
        self.resume_history.fit(paths);
        old
    }

    /// The generation of the current snapshot, as it changes.
    pub fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Returns the group of the streams with a selector; creates it for the first of them.
    pub fn watch_group(&self, selector: PathSelector) -> Arc<WatchGroup> {
        self.groups().group(selector)
    }

    /// Returns the paths of a group and the current snapshot; `None` before the first snapshot.
    /// Lists the paths if the topology has changed since the last call, which takes time
    /// proportional to their number and blocks other calls for the same group.
    ///
    /// # Errors
    /// The group has more than `limit` paths.
    pub fn list_paths(
        &self,
        group: &WatchGroup,
        limit: usize,
    ) -> Result<Option<SnapshotPaths>, TooManyPaths> {
        let mut cached = group.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(snapshot) = self.snapshots.load() else {
            return Ok(None);
        };
        if let Some(paths) = cached.as_ref().filter(|paths| paths.is_of(&snapshot)) {
            let paths = Arc::clone(paths);
            return Ok(Some(SnapshotPaths { snapshot, paths }));
        }
        *cached = None;
        let paths = Arc::new(PathList::list(
            &snapshot,
            &group.selector,
            limit,
            Arc::clone(&group.publications),
        )?);
        self.register(&paths, &snapshot);
        *cached = Some(Arc::clone(&paths));
        Ok(Some(SnapshotPaths { snapshot, paths }))
    }

    /// Registers a new list, so that publications mark its slots. If the answers changed while it
    /// was listed, marks all slots.
    fn register(&self, paths: &Arc<PathList>, listed: &Snapshot) {
        let mut groups = self.groups();
        let Some(current) = self.snapshots.load().filter(|now| paths.is_of(now)) else {
            // The publication that changed the topology has woken all groups.
            return;
        };
        groups.register(paths);
        if current.version().generation != listed.version().generation {
            groups.mark_all(paths);
        }
    }

    /// The ledger of what streams hold.
    pub fn ledger(&self) -> &Arc<StreamLedger> {
        &self.ledger
    }

    /// The positions that streams can resume from.
    pub(super) fn resume_history(&self) -> &Arc<ResumeHistory> {
        &self.resume_history
    }

    fn groups(&self) -> MutexGuard<'_, WatchGroups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
