//! Delays between attempts to list and watch a kind.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first delay after an attempt that failed, before jitter.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// The longest delay, before jitter.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// Exponential delays with jitter, for every way in which a list or a watch fails or ends early.
///
/// [`reset`](Self::reset) is called only after a watch has lived for some time: a server that accepts each request and
/// then ends it early must not be asked at full speed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RetryBackoff {
    /// Attempts that failed since the last reset.
    failures: u32,
}

impl RetryBackoff {
    /// Returns the delay before the next attempt: between half of and the whole exponential delay.
    pub fn next_delay(&mut self) -> Duration {
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let delay = FIRST_DELAY.saturating_mul(factor).min(MAX_DELAY);
        // Beyond this the delay no longer grows.
        self.failures = self.failures.saturating_add(1).min(16);
        delay / 2 + random_up_to(delay / 2)
    }

    /// Starts again with the first delay.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

/// Returns a random duration up to `most`, so that kinds and replicas do not act at once.
pub(super) fn random_up_to(most: Duration) -> Duration {
    // Every `RandomState` has its own random keys, so no generator of random numbers is needed.
    let random = RandomState::new().hash_one(0_u8);
    let fraction = f64::from(u32::try_from(random >> 32).unwrap_or_default()) / f64::from(u32::MAX);
    most.mul_f64(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_a_bound_and_have_jitter() {
        let mut backoff = RetryBackoff::default();
        let delays: Vec<Duration> = (0..40).map(|_| backoff.next_delay()).collect();
        let mut whole = FIRST_DELAY;
        for delay in &delays {
            assert!(
                *delay >= whole / 2 && *delay <= whole,
                "{delay:?} of {whole:?}"
            );
            whole = (whole * 2).min(MAX_DELAY);
        }
        let last: std::collections::BTreeSet<_> = delays.iter().rev().take(20).collect();
        assert!(last.len() > 10, "no jitter: {last:?}");
        backoff.reset();
        assert!(backoff.next_delay() <= FIRST_DELAY);
    }

    #[test]
    fn random_durations_differ_and_have_a_bound() {
        let most = Duration::from_millis(50);
        let drawn: std::collections::BTreeSet<_> = (0..100).map(|_| random_up_to(most)).collect();
        assert!(drawn.len() > 50 && drawn.iter().all(|each| *each <= most));
        assert_eq!(random_up_to(Duration::ZERO), Duration::ZERO);
    }
}
