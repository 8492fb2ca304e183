//! When something was last heard of each kind. Silence makes a kind stale, whatever its cause.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::watcher::ClusterWatcher;

/// A check that comes later than this was delayed: events may wait that were not looked at yet.
const LATE_CHECK: Duration = Duration::from_secs(3);

/// Remembers when freshness was last checked.
#[derive(Debug, Default)]
pub(super) struct FreshnessClock {
    last: Option<Instant>,
    /// Whether the last check was skipped.
    has_skipped: bool,
}

impl FreshnessClock {
    /// Reports whether silence counts now. After a delay of this process, such as a long build of a snapshot, it counts
    /// from the next check on.
    fn counts(&mut self, now: Instant) -> bool {
        let last = self.last.replace(now);
        let is_late = last.is_some_and(|last| now.duration_since(last) > LATE_CHECK);
        self.has_skipped = is_late && !self.has_skipped;
        !self.has_skipped
    }
}

impl ClusterWatcher {
    /// Marks kinds of which nothing has been heard for long as stale, and reports those that have not been read.
    pub(super) fn check_freshness(&mut self, clock: &mut FreshnessClock) {
        let now = Instant::now();
        if clock.counts(now) {
            self.mark_silent_kinds(now);
        }
        self.report_unread_kinds(now);
    }

    fn mark_silent_kinds(&mut self, now: Instant) {
        let stale_after = self.cluster.timeouts.stale_after;
        for (kind, watch) in &self.watches {
            let heard = self.cluster.calls.last_contact(&watch.path);
            let is_silent = heard.is_none_or(|at| now.duration_since(at) >= stale_after);
            let message = is_silent.then(|| {
                let seconds = stale_after.as_secs_f32();
                format!("the API server has sent nothing for {seconds} s")
            });
            self.collector.set_silent(kind, message);
        }
    }

    fn report_unread_kinds(&mut self, now: Instant) {
        let unread = self.collector.unread();
        let long = self.cluster.timeouts.long_read;
        let unread = unread.filter(|(_, since)| now.duration_since(*since) >= long);
        let unread: BTreeMap<_, _> = unread.map(|(kind, since)| (kind.clone(), since)).collect();
        for (kind, since) in &unread {
            let heard = self.watches.get(kind).map(|watch| {
                let heard = self.cluster.calls.last_contact(&watch.path);
                heard.is_some_and(|at| at >= *since)
            });
            let reason = match heard {
                None => "API discovery does not return it",
                Some(false) => "the API server does not answer",
                Some(true) => "its list is not complete",
            };
            self.collector.set_waits_for(kind, reason);
        }
        self.cluster.calls.set_unread(unread);
    }

    /// Returns when all readable kinds were last in sync; `None` if they are not in sync now.
    pub(super) fn last_sync(&self) -> Option<Instant> {
        if !self.is_complete() || self.collector.has_stale_kinds() {
            return None;
        }
        let readable = self.watches.iter();
        let readable = readable.filter(|(kind, _)| self.collector.is_complete_kind(kind));
        let calls = &self.cluster.calls;
        let contacts = readable.map(|(_, watch)| calls.last_contact(&watch.path));
        // `None` is the minimum: a kind without any contact is not in sync.
        contacts.min().flatten()
    }

    /// Reports whether all kinds were in sync later than the last update says.
    pub(super) fn has_later_sync(&self) -> bool {
        let last_sync = self.last_sync();
        last_sync.is_some() && last_sync > self.synced_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_does_not_count_right_after_a_delay() {
        let (mut clock, start) = (FreshnessClock::default(), Instant::now());
        let mut counts = |seconds| clock.counts(start + Duration::from_secs(seconds));
        assert!(counts(0) && counts(1));
        assert!(!counts(60), "events may wait");
        assert!(counts(61));
        // A process that is always late checks every other time.
        assert!(!counts(70) && counts(80) && !counts(90));
    }
}
