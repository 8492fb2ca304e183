//! Counters of what was refused or ended because it exceeded a bound, and a log line for each bound
//! that repeats at most every [`LOG_INTERVAL`], so that an attack does not fill the log.

use std::fmt::Display;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Minimum interval between two log lines about one bound.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// A bound on what callers can make the server hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Bound {
    /// No connection could give way to a new one, which was closed.
    Connections,
    /// One address or one client certificate has its share of connections; a new one was closed.
    ConnectionsOfClient,
    /// A silent or idle connection gave way to a new one.
    ConnectionEvicted,
    /// A connection did not finish its TLS handshake and HTTP/2 preface in time.
    ConnectionSetup,
    /// The client certificate of a connection expired.
    CertificateExpired,
    /// A reply was refused because its connection has not read earlier ones, or a request because
    /// its connection sends too many at once.
    BytesOfConnection,
    /// Likewise, for all connections together.
    Bytes,
    /// A connection was ended because it did not read a reply.
    ReplyUnread,
    /// A connection sends something else than look-ups without a pause. It is served at low priority until it pauses.
    SustainedReads,
    /// The message of a request did not arrive in time.
    RequestArrival,
    /// A connection has too many requests for health and reflection.
    Probes,
    /// The content type of a request is not that of gRPC with protobuf.
    ContentType,
    /// The message of a request has an unknown compression.
    Encoding,
    /// The headers of a request over HTTP/1.1 are too large.
    RequestHeaders,
    /// A request to the console is one that a browser sends for another site, or for another name of this machine.
    ForeignSite,
}

/// How often each bound was exceeded.
#[derive(Debug, Default)]
pub struct BoundCounters {
    counts: [AtomicU64; Bound::ALL.len()],
    /// Milliseconds from `started` to the last log line about each bound; 0 for none.
    logged: [AtomicU64; Bound::ALL.len()],
    started: OnceLock<Instant>,
}

impl Bound {
    const ALL: [Self; 15] = [
        Self::Connections,
        Self::ConnectionsOfClient,
        Self::ConnectionEvicted,
        Self::ConnectionSetup,
        Self::CertificateExpired,
        Self::BytesOfConnection,
        Self::Bytes,
        Self::ReplyUnread,
        Self::SustainedReads,
        Self::RequestArrival,
        Self::Probes,
        Self::ContentType,
        Self::Encoding,
        Self::RequestHeaders,
        Self::ForeignSite,
    ];

    /// Returns the value of the label `bound`.
    fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::ConnectionsOfClient => "connections_of_client",
            Self::ConnectionEvicted => "connection_evicted",
            Self::ConnectionSetup => "connection_setup",
            Self::CertificateExpired => "certificate_expired",
            Self::BytesOfConnection => "bytes_of_connection",
            Self::Bytes => "bytes",
            Self::ReplyUnread => "reply_unread",
            Self::SustainedReads => "sustained_reads",
            Self::RequestArrival => "request_arrival",
            Self::Probes => "probes",
            Self::ContentType => "content_type",
            Self::Encoding => "encoding",
            Self::RequestHeaders => "request_headers",
            Self::ForeignSite => "foreign_site",
        }
    }
}

impl BoundCounters {
    /// Counts that a client exceeded a bound, and logs it unless that was done a moment ago.
    pub(in crate::server) fn record(&self, bound: Bound, client: &dyn Display) {
        let Some(count) = self.counts.get(bound as usize) else {
            return;
        };
        let total = count.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_due(bound) {
            tracing::warn!(
                bound = bound.name(),
                %client,
                total,
                "a client exceeded a bound; see SECURITY.md for its value"
            );
        }
    }

    /// Returns the count of every bound, by its name.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = Bound::ALL.iter().zip(&self.counts);
        counts
            .map(|(bound, count)| (bound.name(), count.load(Ordering::Relaxed)))
            .collect()
    }

    /// Reports whether a line about the bound may be logged now, and remembers that it was.
    fn is_due(&self, bound: Bound) -> bool {
        let started = self.started.get_or_init(Instant::now);
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        // Never 0, which stands for no line.
        let now = millis(started.elapsed()).saturating_add(1);
        let Some(logged) = self.logged.get(bound as usize) else {
            return false;
        };
        let last = logged.load(Ordering::Relaxed);
        let is_due = last == 0 || now.saturating_sub(last) >= millis(LOG_INTERVAL);
        // Of several threads only one logs.
        is_due
            && logged
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_counted_and_the_log_does_not_repeat() {
        for (index, bound) in Bound::ALL.into_iter().enumerate() {
            assert_eq!(bound as usize, index);
        }
        let counters = BoundCounters::default();
        assert!(counters.is_due(Bound::Bytes));
        assert!(!counters.is_due(Bound::Bytes));
        assert!(counters.is_due(Bound::Encoding));
        for _ in 0..3 {
            counters.record(Bound::Bytes, &"nobody");
        }
        let counts = counters.counts();
        assert_eq!(counts.len(), Bound::ALL.len());
        assert!(counts.contains(&("bytes", 3)) && counts.contains(&("probes", 0)));
    }
}
