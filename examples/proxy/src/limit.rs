//! Rate limits: a token bucket a rule.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many requests pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// At once, and in each `per`.
    pub requests: u32,
    pub per: Duration,
}

/// What a rule has left of its limit. It belongs to the rule, not to the answer of entail: rules
/// with equal answers share the answer and must not share this, and a new copy of the same answer
/// gives nobody new tokens.
#[derive(Debug, Default)]
pub struct Bucket(Mutex<Option<Level>>);

#[derive(Debug)]
struct Level {
    limit: Limit,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// Takes a token of a limit, or says how long it takes until there is one.
    ///
    /// The limit is compared, not the whole policy: an edit of retries leaves the bucket alone. With
    /// another limit it begins anew, full. A request that still holds the policy from before may do
    /// so once more: at a change a few requests too many may pass.
    pub fn take(&self, limit: Option<Limit>) -> Result<(), Duration> {
        // A panic elsewhere leaves numbers behind, and any of them will do.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(limit) = limit else {
            *kept = None;
            return Ok(());
        };
        let now = Instant::now();
        let tokens = match &*kept {
            Some(level) if level.limit == limit => {
                let new = limit.tokens_in(now.duration_since(level.at));
                (level.tokens + new).min(f64::from(limit.requests))
            }
            _ => f64::from(limit.requests),
        };
        let passes = tokens >= 1.0;
        let level = kept.insert(Level {
            limit,
            tokens: if passes { tokens - 1.0 } else { tokens },
            at: now,
        });
        if passes {
            Ok(())
        } else {
            Err(level.limit.time_for(1.0 - level.tokens))
        }
    }
}

impl Limit {
    fn tokens_in(self, time: Duration) -> f64 {
        f64::from(self.requests) * time.as_secs_f64() / self.per.as_secs_f64()
    }

    fn time_for(self, tokens: f64) -> Duration {
        if self.requests == 0 {
            // Nobody ever passes: any time is as good.
            return self.per;
        }
        self.per.mul_f64(tokens / f64::from(self.requests))
    }
}
