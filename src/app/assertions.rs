//! Checks the assertions of each snapshot in the background.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use tokio::time::timeout;

use crate::api::v1;
use crate::background;
use crate::insight::{AssertionChecker, NOT_CHECKED, today};
use crate::subscription::SubscriptionHub;
use crate::telemetry::Metric;
use entail_client::EnumName;
use v1::assertion_result::Outcome;

/// How often assertions are checked without a new snapshot: exceptions end with a day.
const DAY_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The results of the assertions of the current snapshot, or of one shortly before it.
#[derive(Debug, Default)]
pub(super) struct AssertionMonitor {
    current: Mutex<Arc<[v1::AssertionResult]>>,
    /// Number of checks, and the time that they took, in microseconds.
    checks: AtomicU64,
    micros: AtomicU64,
}

impl AssertionMonitor {
    /// Checks the assertions of each snapshot, after it is published, until the future is dropped.
    pub async fn follow(self: Arc<Self>, subscriptions: Arc<SubscriptionHub>) {
        let mut checker = AssertionChecker::default();
        let mut generation = subscriptions.generation();
        loop {
            // A timeout is a check, too. The sender lives as long as the subscriptions.
            let _ = timeout(DAY_CHECK_INTERVAL, generation.changed()).await;
            let Some(snapshot) = subscriptions.snapshots().load() else {
                continue;
            };
            let begun = Instant::now();
            let mut next = std::mem::take(&mut checker);
            let check = background::spawn_blocking(move || {
                let results = next.follow(&snapshot, today());
                (next, results)
            });
            match check.await {
                Ok((next, results)) => {
                    checker = next;
                    self.report(results, begun.elapsed());
                }
                Err(error) => {
                    tracing::error!(%error, "failed to check the assertions");
                    self.forget();
                }
            }
        }
    }

    fn report(&self, results: Vec<v1::AssertionResult>, time: Duration) {
        self.checks.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        let before = self.current();
        let before: HashMap<&str, Outcome> = before
            .iter()
            .map(|result| (&*result.object, result.outcome()))
            .collect();
        let differs =
            |result: &&v1::AssertionResult| before.get(&*result.object) != Some(&result.outcome());
        for result in results.iter().filter(differs) {
            let (assertion, paths) = (&*result.object, result.paths);
            let (failed, unknown) = (result.failed, result.unknown);
            match result.outcome() {
                Outcome::Passed => tracing::info!(assertion, paths, "assertion holds"),
                outcome => {
                    let outcome = outcome.name();
                    tracing::warn!(
                        assertion,
                        outcome,
                        paths,
                        failed,
                        unknown,
                        "assertion does not hold"
                    );
                }
            }
        }
        *self.lock() = results.into();
    }

    /// Marks all results as not known: those of before may not hold any more.
    fn forget(&self) {
        let mut results = self.current().to_vec();
        for result in &mut results {
            result.outcome = Outcome::Unknown.into();
            result.message = "internal error: the check failed".to_owned();
        }
        *self.lock() = results.into();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<[v1::AssertionResult]>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Arc<[v1::AssertionResult]> {
        Arc::clone(&self.lock())
    }

    /// The metrics of assertions. Their names are labels: the number of assertions that are checked is bounded.
    pub fn metrics(&self) -> [Metric; 5] {
        let results = self.current();
        let checked = || results.iter().filter(|result| !is_over(result));
        let holds = checked().map(|result| {
            let holds = result.outcome() == Outcome::Passed;
            let labels = vec![("assertion", result.object.clone())];
            (labels, f64::from(u8::from(holds)))
        });
        let paths = checked().flat_map(|result| {
            let excepted: u64 = result.exceptions.iter().map(|e| e.paths).sum();
            let others = result.failed + result.unknown + excepted;
            let counts = [
                ("passed", result.paths.saturating_sub(others)),
                ("failed", result.failed),
                ("unknown", result.unknown),
                ("excepted", excepted),
            ];
            counts.map(|(outcome, count)| {
                let labels = vec![
                    ("assertion", result.object.clone()),
                    ("outcome", outcome.to_owned()),
                ];
                (labels, count as f64)
            })
        });
        [
            Metric::gauges(
                "entail_assertion_holds",
                "1 if an assertion holds; 0 if it fails, is invalid or not known to hold",
                holds.collect(),
            ),
            Metric::gauges(
                "entail_assertion_paths",
                "Paths of an assertion by outcome",
                paths.collect(),
            ),
            Metric::gauge(
                "entail_assertions_not_checked",
                "Assertions beyond the maximum number",
                results.iter().filter(|result| is_over(result)).count() as f64,
            ),
            Metric::counter(
                "entail_assertion_checks",
                "Snapshots whose assertions were checked",
                self.checks.load(Ordering::Relaxed),
            ),
            Metric::seconds(
                "entail_assertion_check_seconds",
                "Time of these checks",
                self.micros.load(Ordering::Relaxed) as f64 / 1e6,
            ),
        ]
    }
}

/// Whether a result is that of an assertion beyond the maximum number.
fn is_over(result: &v1::AssertionResult) -> bool {
    result.message.starts_with(NOT_CHECKED)
}
