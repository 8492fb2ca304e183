//! Problems in the log: each once, until it is gone.

use std::collections::BTreeSet;

/// Problems that one look logs one by one.
const MAX_LOGGED: usize = 20;

/// What was logged and still holds.
#[derive(Debug, Default)]
pub(super) struct ProblemLog(BTreeSet<String>);

impl ProblemLog {
    /// Logs the problems of something that were not there before.
    pub fn log_new(&mut self, now: BTreeSet<String>, of: &'static str) {
        // Problems of sources and of profiles are told apart, or each would forget the other's.
        let tagged: BTreeSet<String> = now.iter().map(|line| format!("{of} {line}")).collect();
        let before = self.0.iter();
        let (ours, others): (Vec<_>, Vec<_>) = before.cloned().partition(|l| l.starts_with(of));
        let mended = ours.iter().filter(|line| !tagged.contains(*line)).count();
        let is_new = |line: &&String| !self.0.contains(&format!("{of} {line}"));
        for (number, problem) in now.iter().filter(is_new).enumerate() {
            if number == MAX_LOGGED {
                tracing::warn!(
                    problems = now.len(),
                    "there are more: ask for the server's status"
                );
                break;
            }
            tracing::warn!("{problem}");
        }
        if mended > 0 {
            tracing::info!(mended, remaining = now.len(), "{of}: problems are gone");
        }
        self.0 = others.into_iter().chain(tagged).collect();
    }
}
