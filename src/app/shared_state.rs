//! State that the reconciler shares with metrics and probes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::object_cache::ObjectCache;
use crate::subscription::SubscriptionHub;

/// The objects, the current snapshot and the progress of the reconciler.
#[derive(Clone)]
pub(super) struct SharedState {
    pub cache: Arc<Mutex<ObjectCache>>,
    pub subscriptions: Arc<SubscriptionHub>,
    pub progress: Arc<ReconcilerProgress>,
}

/// Counters and times of the reconciler and of the checkpoint writer.
#[derive(Debug, Default)]
pub(super) struct ReconcilerProgress {
    /// Number of objects whose content changed.
    pub changes: AtomicU64,
    /// Time of the last published snapshot, in milliseconds since the Unix epoch; 0 for none.
    pub published: AtomicU64,
    /// Time of the last written checkpoint, in milliseconds since the Unix epoch; 0 for none.
    pub checkpoint: AtomicU64,
    /// Number of checkpoints that could not be written.
    pub checkpoint_failures: AtomicU64,
    /// Whether the server is shutting down.
    pub is_stopping: AtomicBool,
}

impl SharedState {
    /// Creates the state before the first snapshot.
    pub fn of(cache: ObjectCache, progress: &Arc<ReconcilerProgress>) -> Self {
        Self {
            cache: Arc::new(Mutex::new(cache)),
            subscriptions: Arc::default(),
            progress: Arc::clone(progress),
        }
    }

    /// Locks the object cache; blocks while the reconciler builds a snapshot.
    pub fn cache(&self) -> MutexGuard<'_, ObjectCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores the current time in milliseconds since the Unix epoch.
pub(super) fn record_now(time: &AtomicU64) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.as_ref().map_or(0, Duration::as_millis);
    time.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
}
