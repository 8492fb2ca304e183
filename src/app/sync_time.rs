//! The time at which the source was last in sync.

use std::time::{Duration, Instant, SystemTime};

/// A smaller step of the clock is an adjustment: `synced_at` is not published again.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);

/// When the source was last in sync: measured by the monotonic clock, shown by the wall clock.
///
/// The wall clock can be set back. Then the time that is shown moves back with it, so that it is not in the future. If the
/// clock is set forward, it stays: nothing is shown as newer than it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SyncTime {
    /// `None` before the source was in sync.
    at: Option<Instant>,
    /// `at` by the wall clock, or the time of the restored checkpoint.
    shown: Option<SystemTime>,
}

impl SyncTime {
    /// The time of a restored checkpoint.
    pub fn restored(at: Option<SystemTime>) -> Self {
        Self {
            at: None,
            shown: at.map(|at| at.min(SystemTime::now())),
        }
    }

    /// The time by the wall clock.
    pub fn shown(&self) -> Option<SystemTime> {
        self.shown
    }

    /// Takes a new time; reports whether it is later than the last one.
    pub fn advance(&mut self, at: Option<Instant>) -> bool {
        let is_later = at > self.at;
        if is_later {
            self.at = at;
            self.shown = self.by_wall_clock(SystemTime::now());
        }
        is_later
    }

    /// Moves the shown time back if the clock was set back; reports whether it was.
    pub fn follow_clock(&mut self) -> bool {
        self.follow(SystemTime::now())
    }

    fn follow(&mut self, now: SystemTime) -> bool {
        let (Some(by_clock), Some(shown)) = (self.by_wall_clock(now), self.shown) else {
            return false;
        };
        let step = shown.duration_since(by_clock).unwrap_or_default();
        let was_set_back = step > CLOCK_TOLERANCE || shown > now;
        if was_set_back {
            self.shown = Some(by_clock);
        }
        was_set_back
    }

    /// The time by a wall clock that shows `now`; that of a checkpoint is at most `now`.
    fn by_wall_clock(&self, now: SystemTime) -> Option<SystemTime> {
        match self.at {
            Some(at) => now.checked_sub(at.elapsed()),
            None => self.shown.map(|shown| shown.min(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn only_later_times_count() {
        let (mut time, start) = (SyncTime::default(), Instant::now());
        assert!(time.advance(Some(start)) && !time.advance(Some(start)) && !time.advance(None));
        assert!(time.shown().is_some_and(|shown| shown <= SystemTime::now()));
        assert!(time.advance(Some(Instant::now())));
    }

    #[test]
    fn the_shown_time_follows_a_clock_that_is_set_back() {
        let mut time = SyncTime::default();
        time.advance(Some(Instant::now()));
        let (shown, now) = (time.shown().unwrap(), SystemTime::now());
        assert!(!time.follow(now) && time.shown() == Some(shown));
        assert!(time.follow(now - HOUR));
        assert!(time.shown().unwrap() <= now - HOUR);
        assert!(!time.follow(now - HOUR), "published once");
        // Set forward again: the time is older than it could be, and not newer.
        assert!(!time.follow(now));
        assert!(time.shown().unwrap() <= now - HOUR);
    }

    #[test]
    fn a_restored_time_is_not_in_the_future() {
        let now = SystemTime::now();
        let mut time = SyncTime::restored(Some(now + HOUR));
        assert!(time.shown().is_some_and(|shown| shown <= SystemTime::now()));
        assert!(time.follow(now - HOUR));
        assert_eq!(time.shown(), Some(now - HOUR));
        // The source is in sync for the first time in this process.
        assert!(time.advance(Some(Instant::now())));
        assert!(time.shown().is_some_and(|shown| shown > now - HOUR));
    }
}
