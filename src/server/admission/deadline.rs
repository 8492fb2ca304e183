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
    arrived: Instant,
    /// The deadline of the caller.
    at: Option<Instant>,
    max_timeout: Duration,
    /// Created when the request first waits, which most requests never do.
    timer: Option<Pin<Box<Sleep>>>,
}

/// The time until which the message of a request must arrive.
#[derive(Debug)]
pub(in crate::server) struct ArrivalTimer {
    timeout: Duration,
    /// Whether the time begins again with every part that arrives, for streams of messages.
    is_idle_timeout: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Returns the deadline of a request that arrived at `arrived`: the timeout of the caller, but at
    /// most `max_timeout`. A malformed timeout is ignored.
    pub fn of(headers: &HeaderMap, arrived: Instant, max_timeout: Duration) -> Self {
        let timeout = headers.get(TIMEOUT);
        let timeout = timeout.and_then(|value| parse(value.as_bytes()));
        Self {
            arrived,
            at: timeout.map(|timeout| arrived + timeout.min(max_timeout)),
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
        let at = self.at.unwrap_or(self.arrived + self.max_timeout);
        self.poll_until(at, context)
    }

    /// Ready when the deadline or the time for the arrival of the message has passed: `true` for
    /// the latter.
    pub fn poll_arrival(&mut self, timeout: Duration, context: &mut Context<'_>) -> Poll<bool> {
        let at = self.at.unwrap_or(self.arrived + self.max_timeout);
        let arrival = self.arrived + timeout;
        self.poll_until(at.min(arrival), context)
            .map(|()| arrival < at)
    }

    fn poll_until(&mut self, at: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        if timer.deadline() != at {
            timer.as_mut().reset(at);
        }
        timer.as_mut().poll(context)
    }
}

impl ArrivalTimer {
    /// A timer for a whole message.
    pub fn of_message(timeout: Duration) -> Self {
        Self {
            timeout,
            is_idle_timeout: false,
            timer: None,
        }
    }

    /// A timer for each part of a stream of messages.
    pub fn of_parts(timeout: Duration) -> Self {
        Self {
            is_idle_timeout: true,
            ..Self::of_message(timeout)
        }
    }

    /// Notes that a part has arrived.
    pub fn received(&mut self) {
        if self.is_idle_timeout {
            self.timer = None;
        }
    }

    /// Ready when the time has passed. It begins with the first call.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let timeout = self.timeout;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
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
            Deadline::of(&headers, Instant::now(), Duration::from_millis(max_timeout))
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
