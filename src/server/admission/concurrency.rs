//! How much is worked on at once. A request takes a place when its headers arrive and gives it back
//! with its reply, so what waits for a thread counts, too: what cannot be answered soon is turned
//! away at once, and what is let in does not wait behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response};

use crate::server::Limits;
use crate::server::access::peer::Peer;
use crate::server::transport::body::ReplyBody;
use crate::server::transport::request_counters::RpcService;

/// Milliseconds that a caller should wait before it tries again (gRFC A6).
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// So many permits.
#[derive(Debug)]
pub(in crate::server) struct Permits {
    most: usize,
    taken: AtomicUsize,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(in crate::server) struct Permit(Arc<Permits>);

/// The permits of all callers together.
#[derive(Debug)]
pub struct ConcurrencyLimiter {
    /// Of look-ups, Envoy's among them.
    look_ups: Arc<Permits>,
    /// Of questions of people: they take none from look-ups.
    questions: Arc<Permits>,
    /// Of streams that follow paths.
    watches: Arc<Permits>,
}

/// The permits that a request has: one of its connection, one of its row of callers, one of all.
#[derive(Debug)]
pub(in crate::server) struct RequestPermits {
    _own: Permit,
    _of_row: Option<Permit>,
    _shared: Permit,
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Overload {
    /// Its caller asks too much at once.
    Caller,
    /// All callers together do.
    Server,
}

impl Permits {
    pub fn new(most: usize) -> Arc<Self> {
        let taken = AtomicUsize::new(0);
        Arc::new(Self { most, taken })
    }

    /// Takes a place, if one is free.
    pub fn take(self: &Arc<Self>) -> Option<Permit> {
        // Nothing is read because of this number but the number itself.
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.most {
            return Some(Permit(Arc::clone(self)));
        }
        self.taken.fetch_sub(1, Ordering::Relaxed);
        None
    }

    fn taken(&self) -> usize {
        // One that finds no place counts for a moment.
        self.taken.load(Ordering::Relaxed).min(self.most)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConcurrencyLimiter {
    pub(in crate::server) fn new(limits: &Limits) -> Self {
        Self {
            look_ups: Permits::new(limits.requests),
            questions: Permits::new(
                limits
                    .insight_concurrency
                    .saturating_add(limits.insight_queue),
            ),
            watches: Permits::new(limits.watches),
        }
    }

    /// The permits of a request; none are needed for health, which has to be told under any load,
    /// and for reflection.
    ///
    /// # Errors
    /// There is no room for it.
    pub(in crate::server) fn admit(
        &self,
        service: RpcService,
        peer: &Peer,
    ) -> Result<Option<RequestPermits>, Overload> {
        let shared = match service {
            RpcService::Policies | RpcService::Envoy => &self.look_ups,
            RpcService::Insight => &self.questions,
            RpcService::Health | RpcService::Other => return Ok(None),
        };
        let own = peer.requests().take().ok_or(Overload::Caller)?;
        let of_row = match peer.rule_permits() {
            Some(permits) => Some(permits.take().ok_or(Overload::Caller)?),
            None => None,
        };
        let shared = shared.take().ok_or(Overload::Server)?;
        Ok(Some(RequestPermits {
            _own: own,
            _of_row: of_row,
            _shared: shared,
        }))
    }

    /// The permits of a stream that follows paths.
    ///
    /// # Errors
    /// There is no room for it.
    pub(in crate::server) fn admit_watch(&self, peer: &Peer) -> Result<RequestPermits, Overload> {
        let own = peer.watches().take().ok_or(Overload::Caller)?;
        let shared = self.watches.take().ok_or(Overload::Server)?;
        Ok(RequestPermits {
            _own: own,
            _of_row: None,
            _shared: shared,
        })
    }

    /// Requests that are worked on now, by what they are for: look-ups, and questions of people.
    pub fn requests(&self) -> [(&'static str, usize); 2] {
        [
            ("look-ups", self.look_ups.taken()),
            ("insight", self.questions.taken()),
        ]
    }

    /// Streams that follow paths.
    pub fn watches(&self) -> usize {
        self.watches.taken()
    }
}

impl Overload {
    /// The reply, as cheap as one can be: under load there are many of them. It tells those who try
    /// again by themselves not to do so at once.
    pub fn reply(self) -> Response<ReplyBody> {
        let message = match self {
            Self::Caller => {
                "too%20many%20requests%20of%20this%20caller%3A%20ask%20less%20at%20once"
            }
            Self::Server => "too%20many%20requests%3A%20try%20again%20later",
        };
        let mut reply = Response::new(ReplyBody::Done);
        let headers = reply.headers_mut();
        headers.reserve(4);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert("grpc-status", HeaderValue::from_static("8"));
        headers.insert("grpc-message", HeaderValue::from_static(message));
        headers.insert(PUSHBACK, HeaderValue::from_static("100"));
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_and_given_back() {
        let permits = Permits::new(2);
        let (one, two) = (permits.take().unwrap(), permits.take().unwrap());
        assert!(permits.take().is_none());
        assert_eq!(permits.taken(), 2);
        drop(one);
        let three = permits.take().unwrap();
        assert!(permits.take().is_none());
        drop((two, three));
        assert_eq!(permits.taken(), 0);
    }

    #[test]
    fn one_caller_cannot_take_what_others_need() {
        let limits = Limits {
            requests: 3,
            requests_per_connection: 2,
            insight_concurrency: 1,
            insight_queue: 0,
            ..Limits::default()
        };
        let load = ConcurrencyLimiter::new(&limits);
        let (greedy, other) = (Peer::anonymous(&limits), Peer::anonymous(&limits));
        let admit = |service, peer: &Peer| load.admit(service, peer);
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
        // A place of its caller that leads to none of all is given back.
        drop(third);
        assert!(admit(RpcService::Policies, &other).is_ok());
        // Questions of people have permits of their own; health needs none.
        let _question = admit(RpcService::Insight, &other).unwrap();
        assert_eq!(
            admit(RpcService::Insight, &other).unwrap_err(),
            Overload::Server
        );
        assert!(admit(RpcService::Health, &greedy).unwrap().is_none());
    }
}
