//! Watches manifests for changes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::scan::Manifests;
use super::watcher::{ChangedPaths, Coverage, Watcher};
use super::{Problem, Scan};
use crate::background;

/// Time without events after which a change is read.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Maximum time from the first event until a change is read.
const MAX_DEBOUNCE: Duration = Duration::from_millis(250);
/// Interval of polling if the file system reports no events.
const FALLBACK_POLL: Duration = Duration::from_millis(500);
const MIN_POLL: Duration = Duration::from_millis(10);

/// Manifests with the watcher of their directories; `None` if they cannot be watched.
struct Followed {
    manifests: Manifests,
    watcher: Option<Watcher>,
}

/// Scans the manifests now and whenever they change. Sends the first scan, then each scan with changes or with other
/// problems than before. Files that events name are read without listing all. All are listed at the interval `poll`; if
/// the file system reports no events, twice a second. Returns when the receiver is closed.
pub async fn watch(manifests: Manifests, tx: mpsc::Sender<Scan>, poll: Duration) {
    let waker = Arc::new(Notify::new());
    let watcher = match Watcher::new(Arc::clone(&waker)) {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, "manifests cannot be watched: they are polled instead");
            None
        }
    };
    let mut followed = Followed { manifests, watcher };
    let mut sent_problems: Option<Vec<Problem>> = None;
    let mut is_listing_due = true;
    let mut is_unwatched = true;
    let mut listed = Instant::now();
    loop {
        let scanning = background::spawn_blocking(move || followed.scan(is_listing_due));
        let scan;
        let coverage;
        (followed, scan, coverage) = match scanning.await {
            Ok(finished) => finished,
            Err(error) => {
                tracing::error!(%error, "reading manifests failed: they are no longer followed");
                return;
            }
        };
        let is_wider = coverage.is_some_and(|coverage| coverage.is_wider);
        if is_wider {
            // Changes between reading a directory and watching it are not reported: scan again.
            waker.notify_one();
        }
        if let Some(coverage) = coverage {
            is_unwatched = !coverage.is_complete;
            listed = Instant::now();
        }
        if !scan.change.is_empty() || sent_problems.as_ref() != Some(&scan.problems) {
            sent_problems = Some(scan.problems.clone());
            if tx.send(scan).await.is_err() {
                return;
            }
        }
        let pause = match is_unwatched {
            true => poll.min(FALLBACK_POLL),
            false => poll,
        };
        let pause = pause.max(MIN_POLL);
        let is_event = tokio::select! {
            () = tx.closed() => return,
            () = waker.notified() => {
                debounce(&waker).await;
                true
            }
            () = sleep_until(listed + pause) => false,
        };
        // Not all changes cause events, and events may never pause.
        is_listing_due = !is_event || is_wider || is_unwatched || listed.elapsed() >= pause;
    }
}

impl Followed {
    /// Reads what changed: the files that events name, or all if a listing is due or events do not suffice. Returns
    /// which directories are watched if all were listed. This blocks.
    fn scan(mut self, is_listing_due: bool) -> (Self, Scan, Option<Coverage>) {
        let changed = self.watcher.as_ref().map(Watcher::take_changed);
        if let Some(ChangedPaths::Entries(paths)) = changed
            && !is_listing_due
            && let Some(scan) = self.manifests.scan_paths(&paths)
        {
            return (self, scan, None);
        }
        let scan = self.manifests.scan();
        let watcher = self.watcher.as_mut();
        let coverage = watcher.map(|watcher| watcher.follow(self.manifests.folders()));
        (self, scan, Some(coverage.unwrap_or_default()))
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
