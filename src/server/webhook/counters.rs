//! Counters of admission reviews.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::server::transport::request_counters::LatencyHistogram;

/// How a review is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewOutcome {
    /// With warnings about the effect.
    Warned,
    /// With a denial: an assertion that is enforced breaks.
    Denied,
    /// Without a warning.
    Silent,
    /// With a warning that the effect was not computed, or, if too much is read at once, with status 503.
    NotComputed,
    /// With an error: it is no review, or too large.
    Malformed,
}

/// Counts of reviews by outcome, and how long they took.
#[derive(Debug, Default)]
pub struct ReviewCounters {
    counts: [AtomicU64; ReviewOutcome::ALL.len()],
    latencies: LatencyHistogram,
}

/// How long reviews took.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewDurations {
    /// Sum of all durations, in seconds.
    pub sum: f64,
    /// Upper bound of each bucket in seconds, and the number of reviews in it, not cumulative. The bound of the last bucket
    /// is `f64::INFINITY`.
    pub buckets: Vec<(f64, u64)>,
}

impl ReviewOutcome {
    const ALL: [Self; 5] = [
        Self::Warned,
        Self::Denied,
        Self::Silent,
        Self::NotComputed,
        Self::Malformed,
    ];

    /// Returns the value of the label `outcome`.
    fn name(self) -> &'static str {
        match self {
            Self::Warned => "warned",
            Self::Denied => "denied",
            Self::Silent => "silent",
            Self::NotComputed => "not_computed",
            Self::Malformed => "malformed",
        }
    }
}

impl ReviewCounters {
    /// Records an answered review.
    pub(super) fn record(&self, outcome: ReviewOutcome, duration: Duration) {
        self.count(outcome);
        self.latencies.observe(duration);
    }

    /// Records a request that is answered with an error.
    pub(super) fn record_malformed(&self) {
        self.count(ReviewOutcome::Malformed);
    }

    /// Records a review that was not read, because too much was read at once.
    pub(super) fn record_not_read(&self) {
        self.count(ReviewOutcome::NotComputed);
    }

    fn count(&self, outcome: ReviewOutcome) {
        if let Some(count) = self.counts.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of reviews by outcome.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let outcomes = ReviewOutcome::ALL.iter().zip(&self.counts);
        outcomes.map(|(outcome, count)| (outcome.name(), count.load(Ordering::Relaxed)))
    }

    /// Returns how long reviews took.
    pub fn durations(&self) -> ReviewDurations {
        ReviewDurations {
            sum: self.latencies.sum(),
            buckets: self.latencies.buckets(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_are_counted_by_outcome() {
        let counters = ReviewCounters::default();
        for outcome in [
            ReviewOutcome::Warned,
            ReviewOutcome::Silent,
            ReviewOutcome::Warned,
            ReviewOutcome::Denied,
        ] {
            counters.record(outcome, Duration::from_millis(2));
        }
        counters.record_malformed();
        let counts: Vec<_> = counters.counts().collect();
        let expected = [
            ("warned", 2),
            ("denied", 1),
            ("silent", 1),
            ("not_computed", 0),
            ("malformed", 1),
        ];
        assert_eq!(counts, expected);
        let durations = counters.durations();
        assert_eq!(
            durations
                .buckets
                .iter()
                .map(|(_, count)| count)
                .sum::<u64>(),
            4
        );
        assert!((durations.sum - 0.008).abs() < 1e-9);
    }
}
