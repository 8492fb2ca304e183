//! Logs problems of sources and profiles, each once until it is resolved.

use std::collections::BTreeSet;

/// Maximum number of new problems that one call logs.
const MAX_LOGGED: usize = 20;

/// The problems that were logged and are not resolved, each with its origin as a prefix.
#[derive(Debug, Default)]
pub(super) struct ProblemLog(BTreeSet<String>);

impl ProblemLog {
    /// Logs the problems of an origin, such as `source`, that were not logged before.
    pub fn log_new(&mut self, now: BTreeSet<String>, origin: &'static str) {
        // Each origin reports all of its own problems, so only those are replaced.
        let tagged: BTreeSet<String> = now.iter().map(|line| format!("{origin} {line}")).collect();
        let before = self.0.iter();
        let (ours, others): (Vec<_>, Vec<_>) = before.cloned().partition(|l| l.starts_with(origin));
        let resolved = ours.iter().filter(|line| !tagged.contains(*line)).count();
        let is_new = |line: &&String| !self.0.contains(&format!("{origin} {line}"));
        for (number, problem) in now.iter().filter(is_new).enumerate() {
            if number == MAX_LOGGED {
                tracing::warn!(
                    problems = now.len(),
                    "further problems are not logged: see GetServerStatus"
                );
                break;
            }
            tracing::warn!("{problem}");
        }
        if resolved > 0 {
            tracing::info!(
                resolved,
                remaining = now.len(),
                "{origin}: problems resolved"
            );
        }
        self.0 = others.into_iter().chain(tagged).collect();
    }
}
