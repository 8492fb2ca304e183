//! How far the writer is: what metrics and probes read while it works.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::intake::Intake;
use crate::snapshot::Snapshots;

/// What the writer works on and others look at.
#[derive(Clone)]
pub(super) struct Shared {
    pub intake: Arc<Mutex<Intake>>,
    pub snapshots: Arc<Snapshots>,
    pub progress: Arc<Progress>,
}

/// Counted by the writer and those beside it.
#[derive(Debug, Default)]
pub(super) struct Progress {
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

impl Shared {
    /// Of an intake, before the first snapshot.
    pub fn of(intake: Intake, progress: &Arc<Progress>) -> Self {
        Self {
            intake: Arc::new(Mutex::new(intake)),
            snapshots: Arc::default(),
            progress: Arc::clone(progress),
        }
    }

    /// The intake, once the writer is not at it.
    pub fn intake(&self) -> MutexGuard<'_, Intake> {
        self.intake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets a moment to now.
pub(super) fn stamp(moment: &AtomicU64) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.as_ref().map_or(0, Duration::as_millis);
    moment.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
}
