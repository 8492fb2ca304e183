//! How far the writer is: what metrics and probes read while it works.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::object_cache::ObjectCache;
use crate::snapshot::SnapshotCell;

/// What the writer works on and others look at.
#[derive(Clone)]
pub(super) struct SharedState {
    pub cache: Arc<Mutex<ObjectCache>>,
    pub snapshots: Arc<SnapshotCell>,
    pub progress: Arc<ReconcilerProgress>,
}

/// Counted by the writer and those beside it.
#[derive(Debug, Default)]
pub(super) struct ReconcilerProgress {
    /// Objects that truly changed.
    pub changes: AtomicU64,
    /// When a snapshot was published last, in milliseconds since 1970; 0 for never.
    pub published: AtomicU64,
    /// When a checkpoint was written last, likewise.
    pub checkpoint: AtomicU64,
    /// Checkpoints that could not be written.
    pub checkpoint_failures: AtomicU64,
    /// The server stops.
    pub is_stopping: AtomicBool,
}

impl SharedState {
    /// Of an intake, before the first snapshot.
    pub fn of(cache: ObjectCache, progress: &Arc<ReconcilerProgress>) -> Self {
        Self {
            cache: Arc::new(Mutex::new(cache)),
            snapshots: Arc::default(),
            progress: Arc::clone(progress),
        }
    }

    /// The intake, once the writer is not at it.
    pub fn cache(&self) -> MutexGuard<'_, ObjectCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets a moment to now.
pub(super) fn record_now(moment: &AtomicU64) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.as_ref().map_or(0, Duration::as_millis);
    moment.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
}
