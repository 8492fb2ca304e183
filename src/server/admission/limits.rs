//! What one caller may cost.

use std::time::Duration;

use crate::snapshot::PathLimits;

/// Look-ups that are worked on at once, unless told otherwise: what two cores answer in some 50 ms.
pub const DEFAULT_MAX_CONCURRENCY: usize = 2_048;
/// Requests of one connection that are, unless told otherwise.
pub const DEFAULT_MAX_CONCURRENCY_PER_CLIENT: usize = 512;

/// Limits of the server: no caller can make it allocate or work without bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most connections of all listeners together; more wait to be accepted.
    pub connections: usize,
    /// How long a connection may live: then the caller is told to open another.
    pub connection_age: Duration,
    /// How long requests may take to end after that.
    pub connection_grace: Duration,
    /// Most bytes of a request's message.
    pub request_bytes: usize,
    /// Most bytes of a reply's message.
    pub reply_bytes: usize,
    /// Most streams that one connection may have open.
    pub streams: u32,
    /// Most look-ups that are worked on at once, of all callers together, from the arrival of a
    /// request to its reply; others are turned away.
    pub requests: usize,
    /// Most requests of one connection that are; likewise.
    pub requests_per_connection: usize,
    /// How long a request may take, if its caller does not wait for less.
    pub request_timeout: Duration,
    /// Most bytes of a request's headers.
    pub header_bytes: u32,
    /// How often an idle connection is asked whether it is alive.
    pub keepalive: Duration,
    /// How long it may take to say so.
    pub keepalive_timeout: Duration,
    /// Questions of people that are worked on at once.
    pub insight_concurrency: usize,
    /// Questions of people that may wait for that.
    pub insight_queue: usize,
    /// How long a question of people may take, waiting included.
    pub insight_timeout: Duration,
    /// Large batches that are worked on at once.
    pub batch_concurrency: usize,
    /// Large batches that may wait for that.
    pub batch_queue: usize,
    /// Most streams that follow paths, of all callers together.
    pub watches: usize,
    /// Most of them on one connection.
    pub watches_per_connection: usize,
    /// Most paths that one of them follows, and that are listed for all together; those who follow
    /// the same share a list.
    pub watch_paths: PathLimits,
    /// How often one that has nothing to tell tells so.
    pub watch_heartbeat: Duration,
    /// How long one that has told something waits before it tells more: what changes meanwhile is
    /// told once.
    pub watch_interval: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            connections: 10_000,
            connection_age: Duration::from_secs(3600),
            connection_grace: Duration::from_secs(60),
            request_bytes: 4 * MIB,
            reply_bytes: 64 * MIB,
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
            batch_concurrency: 4,
            batch_queue: 64,
            watches: 20_000,
            watches_per_connection: 1000,
            watch_paths: PathLimits {
                per_watch: 100_000,
                total: 4_000_000,
            },
            watch_heartbeat: Duration::from_secs(10),
            watch_interval: Duration::from_millis(50),
        }
    }
}

/// Threads for questions of people, at least two: one may wait for others.
fn half_the_cores() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| (cores.get() / 2).max(2))
}
