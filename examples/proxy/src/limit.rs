//! Rate limits: one token bucket per rule.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Capacity of the bucket, which is refilled once per `per`.
    pub requests: u32,
    /// Time in which an empty bucket is refilled.
    pub per: Duration,
}

/// The token bucket of a rule. It belongs to the rule and not to the compiled answer: rules with
/// equal answers share the answer but not the bucket, and an update must not refill the bucket.
#[derive(Debug, Default)]
pub struct Bucket(Mutex<Option<Level>>);

#[derive(Debug)]
struct Level {
    limit: Limit,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// Takes a token, or returns the time until one is available.
    ///
    /// A bucket with another limit is replaced by a full one; other changes of the policy do not
    /// affect it. Requests in flight during an update may use the old limit, so a few requests too
    /// many may pass then.
    pub fn take(&self, limit: Option<Limit>) -> Result<(), Duration> {
        // The bucket is valid even if another thread panicked.
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(limit) = limit else {
            *bucket = None;
            return Ok(());
        };
        let now = Instant::now();
        let tokens = match &*bucket {
            Some(level) if level.limit == limit => {
                let new = limit.tokens_in(now.duration_since(level.at));
                (level.tokens + new).min(f64::from(limit.requests))
            }
            _ => f64::from(limit.requests),
        };
        let passes = tokens >= 1.0;
        let level = bucket.insert(Level {
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
            // There is never a token: the time to wait is arbitrary.
            return self.per;
        }
        self.per.mul_f64(tokens / f64::from(self.requests))
    }
}
