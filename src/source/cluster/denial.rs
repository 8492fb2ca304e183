//! Decides whether a 403 means that a kind must not be read.
//!
//! A starting API server denies everything for some seconds, so one 403 proves nothing. It is confirmed by a
//! SelfSubjectAccessReview of a ready server, or by lasting while the server is ready.

use std::time::Duration;

use kube::core::ApiResource;
use tokio::time::Instant;

use super::server_health::{Readiness, ServerHealth};

/// Time between two reviews that both count: the second one confirms the first.
const REVIEW_INTERVAL: Duration = Duration::from_secs(2);

/// The denials of a kind since it was last readable.
#[derive(Debug)]
pub(super) struct Denials {
    /// How long denials last until they are confirmed without a review.
    forbidden_after: Duration,
    /// When the first denial by a server that may be ready occurred.
    since: Option<Instant>,
    /// When a ready server last answered in a review that access is not allowed.
    reviewed: Option<Instant>,
    is_confirmed: bool,
}

impl Denials {
    pub fn new(forbidden_after: Duration) -> Self {
        Self {
            forbidden_after,
            since: None,
            reviewed: None,
            is_confirmed: false,
        }
    }

    /// Forgets all denials: the kind has been read.
    pub fn clear(&mut self) {
        *self = Self::new(self.forbidden_after);
    }

    /// Records a denied request and returns whether the kind is FORBIDDEN. `was_read` is whether the objects of the kind
    /// are known: then one review is not enough, because several servers can be behind one address.
    pub async fn is_confirmed(
        &mut self,
        health: &ServerHealth,
        resource: &ApiResource,
        verb: &str,
        was_read: bool,
    ) -> bool {
        if self.is_confirmed {
            return true;
        }
        let readiness = health.probe().await;
        let is_allowed = match readiness {
            Readiness::Ready => health.is_allowed(resource, verb).await,
            Readiness::NotReady | Readiness::Unknown => None,
        };
        self.judge(readiness, is_allowed, was_read, Instant::now())
    }

    fn judge(
        &mut self,
        readiness: Readiness,
        is_allowed: Option<bool>,
        was_read: bool,
        now: Instant,
    ) -> bool {
        if readiness == Readiness::NotReady {
            self.clear();
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let is_reviewed = match is_allowed {
            Some(false) => {
                let first = *self.reviewed.get_or_insert(now);
                !was_read || now.duration_since(first) >= REVIEW_INTERVAL
            }
            Some(true) => {
                self.reviewed = None;
                false
            }
            None => false,
        };
        self.is_confirmed = is_reviewed || now.duration_since(since) >= self.forbidden_after;
        self.is_confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Readiness::{NotReady, Ready, Unknown};

    const AFTER: Duration = Duration::from_secs(60);

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn a_review_of_a_ready_server_confirms_the_first_read_at_once() {
        let mut denials = Denials::new(AFTER);
        assert!(denials.judge(Ready, Some(false), false, Instant::now()));
    }

    #[test]
    fn a_kind_that_was_read_needs_two_reviews() {
        let (mut denials, start) = (Denials::new(AFTER), Instant::now());
        assert!(!denials.judge(Ready, Some(false), true, start));
        assert!(!denials.judge(Ready, Some(false), true, start + seconds(1)));
        assert!(denials.judge(Ready, Some(false), true, start + seconds(2)));
    }

    #[test]
    fn a_review_that_allows_begins_anew() {
        let (mut denials, start) = (Denials::new(AFTER), Instant::now());
        assert!(!denials.judge(Ready, Some(false), true, start));
        assert!(!denials.judge(Ready, Some(true), true, start + seconds(1)));
        assert!(!denials.judge(Ready, Some(false), true, start + seconds(2)));
    }

    #[test]
    fn a_server_that_is_not_ready_confirms_nothing() {
        let (mut denials, start) = (Denials::new(AFTER), Instant::now());
        for second in 0..600 {
            assert!(!denials.judge(NotReady, None, false, start + seconds(second)));
        }
        // The time of a server that was not ready does not count.
        assert!(!denials.judge(Ready, None, false, start + seconds(600)));
        assert!(!denials.judge(Ready, None, false, start + seconds(659)));
        assert!(denials.judge(Ready, None, false, start + seconds(660)));
    }

    #[test]
    fn denials_that_last_are_confirmed_without_reviews() {
        for (readiness, is_allowed) in [(Unknown, None), (Ready, None), (Ready, Some(true))] {
            let (mut denials, start) = (Denials::new(AFTER), Instant::now());
            assert!(!denials.judge(readiness, is_allowed, true, start));
            assert!(!denials.judge(readiness, is_allowed, true, start + seconds(59)));
            assert!(denials.judge(readiness, is_allowed, true, start + seconds(60)));
            denials.clear();
            assert!(!denials.judge(readiness, is_allowed, true, start + seconds(61)));
        }
    }
}
