//! Limits for concurrent requests. A request holds permits from the arrival of its headers until
//! its reply, including the time that it waits for a thread. Excess requests are therefore rejected
//! at once, and admitted ones do not queue behind them.
//!
//! The permit of the connection is held until the reply is written: a caller that does not read its
//! replies uses up its own permits. The others limit work, and are returned with the reply, because
//! such a caller must not use up those of everyone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response};

use crate::server::Limits;
use crate::server::access::peer::Peer;
use crate::server::admission::bounds::Bound;
use crate::server::admission::held_bytes::HeldLimit;
use crate::server::transport::body::ReplyBody;
use crate::server::transport::request_counters::RpcService;

/// Header with the milliseconds that a client should wait before it retries (gRFC A6).
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// A part of the permits of the server, one in so many, is shared out evenly among the connections with requests in
/// progress: a connection with more than its share cannot take from it.
const SHARED_OUT: usize = 2;
/// The share of a connection is at least so many requests.
const FEW_REQUESTS: usize = 16;

/// A fixed number of permits.
#[derive(Debug)]
pub(in crate::server) struct Permits {
    limit: usize,
    in_use: AtomicUsize,
    /// Counts the connection as busy while some are in use.
    busy: Option<Arc<BusyConnections>>,
}

/// The number of connections with requests in progress.
#[derive(Debug, Default)]
pub(in crate::server) struct BusyConnections(AtomicUsize);

/// A permit; dropping it returns it.
#[derive(Debug)]
pub(in crate::server) struct Permit(Arc<Permits>);

/// The limits of the whole server, across all callers.
#[derive(Debug)]
pub struct ConcurrencyLimiter {
    /// Permits for look-ups: `EffectivePolicyService` and the service for Envoy.
    look_ups: Arc<Permits>,
    /// Permits for `PolicyInsightService`, separate so that its requests do not reduce the capacity
    /// for look-ups.
    insight: Arc<Permits>,
    /// Permits for streams of `WatchEffectivePolicies`.
    watches: Arc<Permits>,
    busy: Arc<BusyConnections>,
}

/// The permits of a request: one of its connection, one of its access rule if the rule has a limit,
/// and one of the server.
#[derive(Debug)]
pub(in crate::server) struct RequestPermits {
    connection: Permit,
    _access_rule: Option<Permit>,
    /// Requests for health and reflection have none: health must respond under any load.
    _server: Option<Permit>,
}

/// The limit that a rejected request exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Overload {
    /// The limit of the caller: of its connection or its access rule.
    Caller,
    /// The limit of the server.
    Server,
    /// The limit of the connection for health and reflection.
    Probes,
}

impl RequestPermits {
    /// Returns all permits but the one of the connection, which the reply holds.
    pub fn into_connection(self) -> Permit {
        self.connection
    }
}

impl Permits {
    /// Creates `limit` permits.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            in_use: AtomicUsize::new(0),
            busy: None,
        })
    }

    /// Creates `limit` permits of a connection, which is busy while some are in use.
    pub fn of_connection(limit: usize, busy: &Arc<BusyConnections>) -> Arc<Self> {
        Arc::new(Self {
            limit,
            in_use: AtomicUsize::new(0),
            busy: Some(Arc::clone(busy)),
        })
    }

    /// Acquires a permit, or returns `None` if all are in use. Does not wait.
    pub fn try_acquire(self: &Arc<Self>) -> Option<Permit> {
        self.try_acquire_below(self.limit)
    }

    /// Acquires a permit if fewer than `most` are in use.
    fn try_acquire_below(self: &Arc<Self>, most: usize) -> Option<Permit> {
        // Relaxed is enough: the counters do not guard other memory.
        let before = self.in_use.fetch_add(1, Ordering::Relaxed);
        if before >= most {
            self.release();
            return None;
        }
        if let (0, Some(busy)) = (before, &self.busy) {
            busy.0.fetch_add(1, Ordering::Relaxed);
        }
        Some(Permit(Arc::clone(self)))
    }

    /// Returns a permit. A rejected attempt does the same, and may be the last to do so.
    fn release(&self) {
        let before = self.in_use.fetch_sub(1, Ordering::Relaxed);
        if let (1, Some(busy)) = (before, &self.busy) {
            busy.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of permits in use.
    pub fn in_use(&self) -> usize {
        // A failed `try_acquire` exceeds the limit for a moment.
        self.in_use.load(Ordering::Relaxed).min(self.limit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl ConcurrencyLimiter {
    pub(in crate::server) fn new(limits: &Limits) -> Self {
        Self {
            look_ups: Permits::new(limits.requests),
            insight: Permits::new(
                limits
                    .insight_concurrency
                    .saturating_add(limits.insight_queue),
            ),
            watches: Permits::new(limits.watches),
            busy: Arc::default(),
        }
    }

    /// Returns the counter of connections with requests in progress.
    pub(in crate::server) fn busy(&self) -> &Arc<BusyConnections> {
        &self.busy
    }

    /// Returns how many permits of the server may be in use for a connection with some requests to get another.
    fn most(&self, server: &Permits, of_connection: usize) -> usize {
        let shared_out = server.limit / SHARED_OUT;
        let connections = self.busy.0.load(Ordering::Relaxed).max(1);
        let share = (shared_out / connections).max(FEW_REQUESTS);
        match of_connection > share {
            true => server.limit - shared_out,
            false => server.limit,
        }
    }

    /// Acquires the permits of a request. Health and reflection need only one of their connection.
    ///
    /// # Errors
    /// Returns the limit that is reached.
    pub(in crate::server) fn admit(
        &self,
        service: RpcService,
        peer: &Peer,
    ) -> Result<RequestPermits, Overload> {
        let server = match service {
            RpcService::Policies | RpcService::Envoy => &self.look_ups,
            RpcService::Insight => &self.insight,
            RpcService::Health | RpcService::Other => {
                let connection = peer.probes().try_acquire().ok_or(Overload::Probes)?;
                return Ok(RequestPermits {
                    connection,
                    _access_rule: None,
                    _server: None,
                });
            }
        };
        let connection = peer.requests().try_acquire().ok_or(Overload::Caller)?;
        let access_rule = match peer.rule_permits() {
            Some(permits) => Some(permits.try_acquire().ok_or(Overload::Caller)?),
            None => None,
        };
        let most = self.most(server, peer.requests().in_use());
        let server = server.try_acquire_below(most).ok_or(Overload::Server)?;
        Ok(RequestPermits {
            connection,
            _access_rule: access_rule,
            _server: Some(server),
        })
    }

    /// Acquires the permits of a stream of `WatchEffectivePolicies`.
    ///
    /// # Errors
    /// Returns the limit that is reached.
    pub(in crate::server) fn admit_watch(&self, peer: &Peer) -> Result<RequestPermits, Overload> {
        let connection = peer.watches().try_acquire().ok_or(Overload::Caller)?;
        let server = self.watches.try_acquire().ok_or(Overload::Server)?;
        Ok(RequestPermits {
            connection,
            _access_rule: None,
            _server: Some(server),
        })
    }

    /// Returns the number of requests in progress: look-ups, and requests to
    /// `PolicyInsightService`.
    pub fn requests(&self) -> [(&'static str, usize); 2] {
        [
            ("look-ups", self.look_ups.in_use()),
            ("insight", self.insight.in_use()),
        ]
    }

    /// Returns the number of open streams of `WatchEffectivePolicies`.
    pub fn watches(&self) -> usize {
        self.watches.in_use()
    }
}

impl Overload {
    /// Returns the reply to the request: RESOURCE_EXHAUSTED, and the time to wait before a retry.
    /// Built from static headers, because an overloaded server sends many of them.
    pub fn reply(self) -> Response<ReplyBody> {
        exhausted(match self {
            Self::Caller => {
                "too%20many%20concurrent%20requests%20of%20this%20caller%3A%20send%20fewer%2C%20or%20read%20the%20replies"
            }
            Self::Server => "too%20many%20concurrent%20requests%3A%20try%20again%20later",
            Self::Probes => {
                "too%20many%20concurrent%20requests%20for%20health%20and%20reflection%20on%20this%20connection%3A%20send%20fewer"
            }
        })
    }
}

impl HeldLimit {
    /// Returns the reply to the request: RESOURCE_EXHAUSTED, and the time to wait before a retry.
    pub fn reply(self) -> Response<ReplyBody> {
        exhausted(match self {
            Self::Connection => {
                "this%20connection%20holds%20too%20many%20bytes%3A%20read%20the%20replies%2C%20or%20send%20fewer%20requests%20at%20once"
            }
            Self::Server => {
                "all%20connections%20together%20hold%20too%20many%20bytes%3A%20try%20again%20later"
            }
        })
    }

    /// Returns the bound that is exceeded.
    pub fn bound(self) -> Bound {
        match self {
            Self::Connection => Bound::BytesOfConnection,
            Self::Server => Bound::Bytes,
        }
    }
}

/// Returns RESOURCE_EXHAUSTED with a percent-encoded message.
fn exhausted(message: &'static str) -> Response<ReplyBody> {
    let mut reply = Response::new(ReplyBody::Done);
    let headers = reply.headers_mut();
    headers.reserve(4);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from_static("8"));
    headers.insert("grpc-message", HeaderValue::from_static(message));
    headers.insert(PUSHBACK, HeaderValue::from_static("100"));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::admission::connections::ConnectionEntry;

    #[test]
    fn permits_are_acquired_and_returned() {
        let permits = Permits::new(2);
        let (one, two) = (
            permits.try_acquire().unwrap(),
            permits.try_acquire().unwrap(),
        );
        assert!(permits.try_acquire().is_none());
        assert_eq!(permits.in_use(), 2);
        drop(one);
        let three = permits.try_acquire().unwrap();
        assert!(permits.try_acquire().is_none());
        drop((two, three));
        assert_eq!(permits.in_use(), 0);
    }

    #[test]
    fn one_caller_cannot_use_up_the_limit_of_the_server() {
        let limits = Limits {
            requests: 3,
            requests_per_connection: 2,
            insight_concurrency: 1,
            insight_queue: 0,
            ..Limits::default()
        };
        let limiter = ConcurrencyLimiter::new(&limits);
        let peer = || Peer::plain(ConnectionEntry::detached(&limits));
        let (greedy, other) = (peer(), peer());
        let admit = |service, peer: &Peer| limiter.admit(service, peer);
        let _two = [
            admit(RpcService::Policies, &greedy),
            admit(RpcService::Envoy, &greedy),
        ];
        assert_eq!(
            admit(RpcService::Policies, &greedy).unwrap_err(),
            Overload::Caller
        );
        let third = admit(RpcService::Policies, &other).unwrap();
        assert_eq!(
            admit(RpcService::Policies, &other).unwrap_err(),
            Overload::Server
        );
        // The permit of the connection is returned if the server has none.
        drop(third);
        assert!(admit(RpcService::Policies, &other).is_ok());
        // PolicyInsightService has separate permits; health needs none.
        let _insight = admit(RpcService::Insight, &other).unwrap();
        assert_eq!(
            admit(RpcService::Insight, &other).unwrap_err(),
            Overload::Server
        );
        assert!(admit(RpcService::Health, &greedy).is_ok());
        let _probes: Vec<_> =
            std::iter::from_fn(|| admit(RpcService::Health, &greedy).ok()).collect();
        assert_eq!(
            admit(RpcService::Other, &greedy).unwrap_err(),
            Overload::Probes
        );
        assert!(admit(RpcService::Health, &other).is_ok());
    }

    #[test]
    fn many_connections_with_many_requests_leave_another_its_share() {
        let limits = Limits {
            requests: 200,
            requests_per_connection: 100,
            ..Limits::default()
        };
        let limiter = ConcurrencyLimiter::new(&limits);
        let peer = || Peer::plain(ConnectionEntry::busy(&limits, limiter.busy()));
        let admit = |peer: &Peer| limiter.admit(RpcService::Policies, peer);
        let (greedy, other) = ([peer(), peer(), peer()], peer());
        // Each takes what it gets: the first two have half of all together.
        let mut held: Vec<_> = greedy
            .iter()
            .map(|peer| std::iter::from_fn(|| admit(peer).ok()).collect::<Vec<_>>())
            .collect();
        let counts: Vec<usize> = held.iter().map(Vec::len).collect();
        assert_eq!(counts, [100, 50, 33]);
        let shares: Vec<_> = std::iter::from_fn(|| admit(&other).ok()).collect();
        assert_eq!(shares.len(), 17);
        assert_eq!(admit(&other).unwrap_err(), Overload::Server);
        // Connections without requests have no share.
        held.truncate(1);
        let more: Vec<_> = std::iter::from_fn(|| admit(&other).ok()).collect();
        assert_eq!(shares.len() + more.len(), 50);
    }
}
