//! Watches manifests for changes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout_at};

use super::scan::Manifests;
use super::watcher::Watcher;
use super::{Problem, Scan};

/// Time without events after which a change is read.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Maximum time from the first event until a change is read.
const MAX_DEBOUNCE: Duration = Duration::from_millis(250);
/// Interval of polling if the file system reports no events.
const FALLBACK_POLL: Duration = Duration::from_millis(500);
const MIN_POLL: Duration = Duration::from_millis(10);

/// Scans the manifests now and whenever they change. Sends the first scan, then each scan with
/// changes or with other problems than before. Without events, the manifests are scanned at the
/// interval `poll`; if the file system reports no events, twice a second. Returns when the receiver
/// is closed.
pub async fn watch(mut manifests: Manifests, tx: mpsc::Sender<Scan>, poll: Duration) {
    let waker = Arc::new(Notify::new());
    let mut watcher = match Watcher::new(Arc::clone(&waker)) {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, "manifests cannot be watched: they are polled instead");
            None
        }
    };
    let mut sent_problems: Option<Vec<Problem>> = None;
    loop {
        let scanning = tokio::task::spawn_blocking(move || {
            let scan = manifests.scan();
            let coverage = watcher
                .as_mut()
                .map(|watcher| watcher.follow(manifests.folders()));
            (manifests, watcher, scan, coverage)
        });
        let scan;
        let coverage;
        (manifests, watcher, scan, coverage) = match scanning.await {
            Ok(finished) => finished,
            Err(error) => {
                tracing::error!(%error, "reading manifests failed: they are no longer followed");
                return;
            }
        };
        if coverage.is_some_and(|coverage| coverage.is_wider) {
            // Changes between reading a directory and watching it are not reported: scan again.
            waker.notify_one();
        }
        if !scan.change.is_empty() || sent_problems.as_ref() != Some(&scan.problems) {
            sent_problems = Some(scan.problems.clone());
            if tx.send(scan).await.is_err() {
                return;
            }
        }
        let is_unwatched = !coverage.is_some_and(|coverage| coverage.is_complete);
        let pause = if is_unwatched {
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

/// Waits until no more events arrive, at most `MAX_DEBOUNCE`.
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
