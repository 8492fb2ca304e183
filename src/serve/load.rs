//! How much is worked on at once. A request takes a place when its headers arrive and gives it back
//! with its reply, so what waits for a thread counts, too: what cannot be answered soon is turned
//! away at once, and what is let in does not wait behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response};

use super::Limits;
use super::bodies::Reply;
use super::peer::Peer;
use super::tally::Asked;

/// Milliseconds that a caller should wait before it tries again (gRFC A6).
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// So many places.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    taken: AtomicUsize,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Places>);

/// The places of all callers together.
#[derive(Debug)]
pub struct Load {
    /// Of look-ups, Envoy's among them.
    look_ups: Arc<Places>,
    /// Of questions of people: they take none from look-ups.
    questions: Arc<Places>,
    /// Of streams that follow paths.
    watches: Arc<Places>,
}

/// The places that a request has: one of its connection, one of its row of callers, one of all.
#[derive(Debug)]
pub(super) struct Admitted {
    _own: Place,
    _of_row: Option<Place>,
    _shared: Place,
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Its caller asks too much at once.
    Caller,
    /// All callers together do.
    Server,
}

impl Places {
    pub fn new(most: usize) -> Arc<Self> {
        let taken = AtomicUsize::new(0);
        Arc::new(Self { most, taken })
    }

    /// Takes a place, if one is free.
    pub fn take(self: &Arc<Self>) -> Option<Place> {
        // Nothing is read because of this number but the number itself.
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.most {
            return Some(Place(Arc::clone(self)));
        }
        self.taken.fetch_sub(1, Ordering::Relaxed);
        None
    }

    fn taken(&self) -> usize {
        // One that finds no place counts for a moment.
        self.taken.load(Ordering::Relaxed).min(self.most)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Load {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            look_ups: Places::new(limits.requests),
            questions: Places::new(
                limits
                    .insight_at_once
                    .saturating_add(limits.insight_waiting),
            ),
            watches: Places::new(limits.watches),
        }
    }

    /// The places of a request; none are needed for health, which has to be told under any load,
    /// and for reflection.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn admit(&self, asked: Asked, peer: &Peer) -> Result<Option<Admitted>, Full> {
        let shared = match asked {
            Asked::Policies | Asked::Envoy => &self.look_ups,
            Asked::Insight => &self.questions,
            Asked::Health | Asked::Other => return Ok(None),
        };
        let own = peer.requests().take().ok_or(Full::Caller)?;
        let of_row = match peer.places_of_row() {
            Some(places) => Some(places.take().ok_or(Full::Caller)?),
            None => None,
        };
        let shared = shared.take().ok_or(Full::Server)?;
        Ok(Some(Admitted {
            _own: own,
            _of_row: of_row,
            _shared: shared,
        }))
    }

    /// The places of a stream that follows paths.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn admit_watch(&self, peer: &Peer) -> Result<Admitted, Full> {
        let own = peer.watches().take().ok_or(Full::Caller)?;
        let shared = self.watches.take().ok_or(Full::Server)?;
        Ok(Admitted {
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

impl Full {
    /// The reply, as cheap as one can be: under load there are many of them. It tells those who try
    /// again by themselves not to do so at once.
    pub fn reply(self) -> Response<Reply> {
        let message = match self {
            Self::Caller => {
                "too%20many%20requests%20of%20this%20caller%3A%20ask%20less%20at%20once"
            }
            Self::Server => "too%20many%20requests%3A%20try%20again%20later",
        };
        let mut reply = Response::new(Reply::Done);
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
        let places = Places::new(2);
        let (one, two) = (places.take().unwrap(), places.take().unwrap());
        assert!(places.take().is_none());
        assert_eq!(places.taken(), 2);
        drop(one);
        let three = places.take().unwrap();
        assert!(places.take().is_none());
        drop((two, three));
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn one_caller_cannot_take_what_others_need() {
        let limits = Limits {
            requests: 3,
            requests_per_connection: 2,
            insight_at_once: 1,
            insight_waiting: 0,
            ..Limits::default()
        };
        let load = Load::new(&limits);
        let (greedy, other) = (Peer::unnamed(&limits), Peer::unnamed(&limits));
        let admit = |asked, peer: &Peer| load.admit(asked, peer);
        let _two = [
            admit(Asked::Policies, &greedy),
            admit(Asked::Envoy, &greedy),
        ];
        assert_eq!(admit(Asked::Policies, &greedy).unwrap_err(), Full::Caller);
        let third = admit(Asked::Policies, &other).unwrap();
        assert_eq!(admit(Asked::Policies, &other).unwrap_err(), Full::Server);
        // A place of its caller that leads to none of all is given back.
        drop(third);
        assert!(admit(Asked::Policies, &other).is_ok());
        // Questions of people have places of their own; health needs none.
        let _question = admit(Asked::Insight, &other).unwrap();
        assert_eq!(admit(Asked::Insight, &other).unwrap_err(), Full::Server);
        assert!(admit(Asked::Health, &greedy).unwrap().is_none());
    }
}
