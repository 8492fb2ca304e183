//! State that the reconciler shares with metrics and probes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use super::assertions::AssertionMonitor;
use super::object_cache::ObjectCache;
use crate::subscription::SubscriptionHub;

/// The objects, the current snapshot and the progress of the reconciler.
#[derive(Clone)]
pub(super) struct SharedState {
    pub cache: Arc<Mutex<ObjectCache>>,
    pub subscriptions: Arc<SubscriptionHub>,
    pub progress: Arc<ReconcilerProgress>,
    pub assertions: Arc<AssertionMonitor>,
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
    /// When the snapshot that is computed now was begun.
    building_since: Mutex<Option<Instant>>,
}

/// Marks that a snapshot is computed, as long as it lives.
#[derive(Debug)]
pub(super) struct BuildInProgress(Arc<ReconcilerProgress>);

impl ReconcilerProgress {
    /// Marks that a snapshot is computed.
    pub fn begin_build(self: &Arc<Self>) -> BuildInProgress {
        self.set_building(Some(Instant::now()));
        BuildInProgress(Arc::clone(self))
    }

    /// For how long a snapshot has been computed; `None` if none is.
    pub fn build_time(&self) -> Option<Duration> {
        let since = self.building_since.lock();
        let since = since.unwrap_or_else(PoisonError::into_inner);
        since.map(|since| since.elapsed())
    }

    fn set_building(&self, since: Option<Instant>) {
        let building = self.building_since.lock();
        *building.unwrap_or_else(PoisonError::into_inner) = since;
    }
}

impl Drop for BuildInProgress {
    fn drop(&mut self) {
        self.0.set_building(None);
    }
}

impl SharedState {
    /// Creates the state before the first snapshot.
    pub fn of(cache: ObjectCache, progress: &Arc<ReconcilerProgress>) -> Self {
        Self {
            cache: Arc::new(Mutex::new(cache)),
            subscriptions: Arc::default(),
            progress: Arc::clone(progress),
            assertions: Arc::default(),
        }
    }

    /// Locks the object cache; blocks while the reconciler builds a snapshot.
    pub fn cache(&self) -> MutexGuard<'_, ObjectCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the object cache; `None` while the reconciler builds a snapshot.
    pub fn try_cache(&self) -> Option<MutexGuard<'_, ObjectCache>> {
        match self.cache.try_lock() {
            Ok(cache) => Some(cache),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Stores the current time in milliseconds since the Unix epoch.
pub(super) fn record_now(time: &AtomicU64) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.store(since.map_or(0, whole_millis), Ordering::Relaxed);
}

/// Converts a duration to milliseconds. Logs get 64 bits: JSON lines have wider integers as strings.
pub(super) fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
