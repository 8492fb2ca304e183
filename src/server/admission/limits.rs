//! Limits that bound what callers can make the server allocate and compute.

use std::time::Duration;

use crate::background::half_the_cores;
use crate::subscription::{ByteLimits, HoldingLimits, PathLimits};

/// Default of `--max-concurrency`: the number of look-ups that two cores answer in about 50 ms.
pub const DEFAULT_MAX_CONCURRENCY: usize = 2_048;
/// Default of `--max-concurrency-per-client`.
pub const DEFAULT_MAX_CONCURRENCY_PER_CLIENT: usize = 512;
/// Default of `--max-connections`.
pub const DEFAULT_MAX_CONNECTIONS: usize = 10_000;
/// Default of `--max-connections-per-client`.
pub const DEFAULT_MAX_CONNECTIONS_PER_CLIENT: usize = 2_000;
/// Maximum size of the message of a request for health and reflection, in bytes.
pub(in crate::server) const PROBE_REQUEST_BYTES: usize = 4 * 1024;

/// Limits of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections of all listeners together, without the health listener. Beyond
    /// it, a silent or idle connection gives way to a new one, or one of the address with most.
    pub connections: usize,
    /// Maximum number of connections from one address (of IPv6, from one /64), and with one client
    /// certificate. Connections to Unix sockets are not limited by it.
    pub connections_per_client: usize,
    /// Maximum number of connections of the health listener, and half of it for one address.
    pub health_connections: usize,
    /// Time from the accept of a connection to the end of its TLS handshake and its HTTP/2 preface.
    pub connection_setup: Duration,
    /// Maximum age of a connection. Then the server sends GOAWAY and the client reconnects.
    pub connection_age: Duration,
    /// Time after GOAWAY for the requests of the connection to complete.
    pub connection_grace: Duration,
    /// Maximum size of a request message, in bytes.
    pub request_bytes: usize,
    /// Maximum size of a reply message, in bytes.
    pub reply_bytes: usize,
    /// Maximum number of bytes that the server holds for one connection: replies that the caller
    /// has not read, and requests that have not arrived completely. One larger reply is permitted
    /// while less than half is in use.
    pub held_bytes_per_connection: usize,
    /// Likewise for all connections together. Beyond it, a connection may still hold 32 KiB.
    pub held_bytes: usize,
    /// Time without progress after which a caller that does not read a reply loses its connection.
    /// It may take a quarter longer. Streams of watches are exempt.
    pub reply_progress: Duration,
    /// Time for the message of a request to arrive.
    pub request_arrival: Duration,
    /// Maximum number of concurrent requests for health and reflection per connection.
    pub probes_per_connection: usize,
    /// Maximum number of concurrent HTTP/2 streams per connection.
    pub streams: u32,
    /// Maximum number of concurrent look-ups of all callers, from the arrival of a request to its
    /// reply. Further look-ups are rejected.
    pub requests: usize,
    /// Maximum number of concurrent requests per connection, until their replies are written. Further
    /// requests are rejected.
    pub requests_per_connection: usize,
    /// Timeout of a request; callers can set a shorter one.
    pub request_timeout: Duration,
    /// Maximum size of the headers of a request, in bytes.
    pub header_bytes: u32,
    /// Interval of keepalive pings on a connection.
    pub keepalive: Duration,
    /// Timeout of the reply to a keepalive ping.
    pub keepalive_timeout: Duration,
    /// Number of requests to `PolicyInsightService` that run concurrently.
    pub insight_concurrency: usize,
    /// Number of requests to `PolicyInsightService` that may wait to run.
    pub insight_queue: usize,
    /// Timeout of requests to `PolicyInsightService` and of other work on a pool, including the
    /// time in the queue.
    pub insight_timeout: Duration,
    /// Number of large batches that run concurrently.
    pub batch_concurrency: usize,
    /// Number of large batches that may wait to run.
    pub batch_queue: usize,
    /// Maximum number of streams of `WatchEffectivePolicies`.
    pub watches: usize,
    /// Maximum number of streams of `WatchEffectivePolicies` per connection.
    pub watches_per_connection: usize,
    /// Maximum number of paths of a stream, of the streams of a caller, and of all streams. Streams
    /// with the same selector share a list of paths, which counts once.
    pub watch_paths: PathLimits,
    /// Maximum memory of the streams of a caller, and of all streams. What streams share counts
    /// once.
    pub watch_bytes: ByteLimits,
    /// Interval of heartbeats on a stream without changes.
    pub watch_heartbeat: Duration,
    /// Minimum interval between the updates of a stream. Changes in between are coalesced.
    pub watch_interval: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            connections: DEFAULT_MAX_CONNECTIONS,
            connections_per_client: DEFAULT_MAX_CONNECTIONS_PER_CLIENT,
            health_connections: 256,
            connection_setup: Duration::from_secs(5),
            connection_age: Duration::from_secs(3600),
            connection_grace: Duration::from_secs(60),
            request_bytes: 4 * MIB,
            reply_bytes: 64 * MIB,
            held_bytes_per_connection: 16 * MIB,
            held_bytes: 128 * MIB,
            reply_progress: Duration::from_secs(30),
            request_arrival: Duration::from_secs(10),
            probes_per_connection: 64,
            streams: 1024,
            requests: DEFAULT_MAX_CONCURRENCY,
            requests_per_connection: DEFAULT_MAX_CONCURRENCY_PER_CLIENT,
            request_timeout: Duration::from_secs(60),
            header_bytes: 16 * 1024,
            keepalive: Duration::from_secs(30),
            keepalive_timeout: Duration::from_secs(20),
            insight_concurrency: half_the_cores(),
            insight_queue: 64,
            insight_timeout: Duration::from_secs(30),
            batch_concurrency: half_the_cores(),
            batch_queue: 64,
            watches: 20_000,
            watches_per_connection: 1000,
            watch_paths: PathLimits {
                per_watch: 100_000,
                per_caller: 250_000,
                total: 1_000_000,
            },
            watch_bytes: ByteLimits {
                per_caller: 256 * MIB,
                total: 1024 * MIB,
            },
            watch_heartbeat: Duration::from_secs(10),
            watch_interval: Duration::from_millis(50),
        }
    }
}

impl Limits {
    /// The bounds of what watch streams hold.
    pub fn watch_holdings(&self) -> HoldingLimits {
        HoldingLimits {
            paths: self.watch_paths,
            bytes: self.watch_bytes,
        }
    }
}
