//! Following manifests as they change.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout_at};

use super::scan::Manifests;
use super::watcher::Watcher;
use super::{Problem, Scan};

/// A change is looked at when nothing more happens for this long,
const DEBOUNCE: Duration = Duration::from_millis(50);
/// but no later than this.
const MAX_DEBOUNCE: Duration = Duration::from_millis(250);
/// How often to look where the file system tells nothing.
const FALLBACK_POLL: Duration = Duration::from_millis(500);
const MIN_POLL: Duration = Duration::from_millis(10);

/// Scans the manifests now and whenever they change, and sends what is new: the first scan, then
/// those with changes or with other problems than before. `poll` is how often to look even if the
/// file system tells of no change; where it cannot tell, twice a second. Ends when nobody
/// receives any more.
pub async fn watch(mut manifests: Manifests, tx: mpsc::Sender<Scan>, poll: Duration) {
    let waker = Arc::new(Notify::new());
    let mut watcher = match Watcher::new(Arc::clone(&waker)) {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, "manifests cannot be watched: they are polled instead");
            None
        }
    };
    let mut told: Option<Vec<Problem>> = None;
    loop {
        let look = tokio::task::spawn_blocking(move || {
            let scan = manifests.scan();
            let coverage = watcher
                .as_mut()
                .map(|watcher| watcher.follow(manifests.folders()));
            (manifests, watcher, scan, coverage)
        });
        let scan;
        let coverage;
        (manifests, watcher, scan, coverage) = match look.await {
            Ok(looked) => looked,
            Err(error) => {
                tracing::error!(%error, "reading manifests failed: they are no longer followed");
                return;
            }
        };
        if coverage.is_some_and(|coverage| coverage.is_wider) {
            // What changed in a directory between being read and being watched is not known.
            waker.notify_one();
        }
        if !scan.change.is_empty() || told.as_ref() != Some(&scan.problems) {
            told = Some(scan.problems.clone());
            if tx.send(scan).await.is_err() {
                return;
            }
        }
        let is_blind = !coverage.is_some_and(|coverage| coverage.is_complete);
        let pause = if is_blind {
            poll.min(FALLBACK_POLL)
        } else {
            poll
        }
        .max(MIN_POLL);
        tokio::select! {
            () = tx.closed() => return,
            () = waker.notified() => debounce(&waker).await,
            () = sleep(pause) => {}
        }
    }
}

/// Waits until a burst of events is over, or lasts too long.
async fn debounce(waker: &Notify) {
    let end = Instant::now() + MAX_DEBOUNCE;
    loop {
        let now = Instant::now();
        let quiet = end.min(now + DEBOUNCE);
        if now >= end || timeout_at(quiet, waker.notified()).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
