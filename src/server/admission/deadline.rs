//! Deadlines of requests.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use tokio::time::{Instant, Sleep};

/// Header with the timeout of the caller.
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// Maximum number of digits of a timeout.
const DIGITS: usize = 8;

/// The time at which a request fails with DEADLINE_EXCEEDED.
#[derive(Debug)]
pub(in crate::server) struct Deadline {
    at: Option<Instant>,
    max_timeout: Duration,
    /// Created when the request first waits, which most requests never do.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Returns the deadline of a request that arrives now: the timeout of the caller, but at most
    /// `max_timeout`. A malformed timeout is ignored.
    pub fn of(headers: &HeaderMap, max_timeout: Duration) -> Self {
        let timeout = headers.get(TIMEOUT);
        let timeout = timeout.and_then(|value| parse(value.as_bytes()));
        Self {
            at: timeout.map(|timeout| Instant::now() + timeout.min(max_timeout)),
            max_timeout,
            timer: None,
        }
    }

    /// Reports whether the timeout of the caller has expired, so that no work is started for it.
    pub fn has_passed(&self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }

    /// Ready when the deadline has passed.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| {
            let at = self.at.unwrap_or_else(|| Instant::now() + self.max_timeout);
            Box::pin(tokio::time::sleep_until(at))
        });
        timer.as_mut().poll(context)
    }
}

/// Parses a `grpc-timeout`: one to eight digits and a unit.
fn parse(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let count: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_parsed() {
        for (text, millis) in [
            ("1H", Some(3_600_000)),
            ("2M", Some(120_000)),
            ("3S", Some(3_000)),
            ("0m", Some(0)),
            ("5000u", Some(5)),
            ("99999999n", Some(99)),
            ("", None),
            ("S", None),
            ("1", None),
            ("1s", None),
            ("-1S", None),
            ("+1S", None),
            ("123456789S", None),
        ] {
            let parsed = parse(text.as_bytes()).map(|timeout| timeout.as_millis());
            assert_eq!(parsed, millis, "{text}");
        }
    }

    #[tokio::test]
    async fn a_deadline_passes() {
        let mut headers = HeaderMap::new();
        let mut deadline = |timeout: Option<&str>, max_timeout| {
            headers.clear();
            headers.extend(timeout.map(|timeout| (TIMEOUT, timeout.parse().unwrap())));
            Deadline::of(&headers, Duration::from_millis(max_timeout))
        };
        assert!(deadline(Some("0m"), 60_000).has_passed());
        assert!(!deadline(Some("9H"), 60_000).has_passed());
        assert!(!deadline(None, 0).has_passed());
        // The shorter timeout counts: that of the caller or that of the server.
        for (timeout, max_timeout) in [(Some("1m"), 60_000), (Some("9H"), 1), (None, 1)] {
            let mut deadline = deadline(timeout, max_timeout);
            std::future::poll_fn(|context| deadline.poll(context)).await;
        }
    }
}
