//! How long the caller of a request waits for it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use tokio::time::{Instant, Sleep};

/// Where callers say how long they wait.
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// Most digits of it.
const DIGITS: usize = 8;

/// When a request has taken too long.
#[derive(Debug)]
pub(in crate::server) struct Deadline {
    at: Option<Instant>,
    most: Duration,
    /// Made when something has to be waited for, which most requests never do.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// The deadline of a request that has just come: what its caller says, at most so much later.
    /// What cannot be read says nothing.
    pub fn of(headers: &HeaderMap, most: Duration) -> Self {
        let said = headers.get(TIMEOUT);
        let said = said.and_then(|value| read(value.as_bytes()));
        Self {
            at: said.map(|said| Instant::now() + said.min(most)),
            most,
            timer: None,
        }
    }

    /// Whether the caller has stopped to wait: then no work is begun for it.
    pub fn has_passed(&self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }

    /// Ready once it has passed.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| {
            let at = self.at.unwrap_or_else(|| Instant::now() + self.most);
            Box::pin(tokio::time::sleep_until(at))
        });
        timer.as_mut().poll(context)
    }
}

/// At most eight digits, then a unit.
fn read(text: &[u8]) -> Option<Duration> {
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
    fn timeouts_are_read() {
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
            let read = read(text.as_bytes()).map(|told| told.as_millis());
            assert_eq!(read, millis, "{text}");
        }
    }

    #[tokio::test]
    async fn a_deadline_passes() {
        let mut headers = HeaderMap::new();
        let mut deadline = |told: Option<&str>, most| {
            headers.clear();
            headers.extend(told.map(|told| (TIMEOUT, told.parse().unwrap())));
            Deadline::of(&headers, Duration::from_millis(most))
        };
        assert!(deadline(Some("0m"), 60_000).has_passed());
        assert!(!deadline(Some("9H"), 60_000).has_passed());
        assert!(!deadline(None, 0).has_passed());
        // The earlier one counts: what the caller says, or what the server allows.
        for (told, most) in [(Some("1m"), 60_000), (Some("9H"), 1), (None, 1)] {
            let mut deadline = deadline(told, most);
            std::future::poll_fn(|context| deadline.poll(context)).await;
        }
    }
}
