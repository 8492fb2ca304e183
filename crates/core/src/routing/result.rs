//! What became of a request.

use std::fmt;

use crate::model::ObjectKey;
use crate::store::BackendRef;

/// What implementations choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingOptions {
    /// Of routes whose hostnames come to the same on a listener, those go first that say more
    /// themselves (Gateway API 1.7).
    pub by_route_hostname: bool,
    /// Only routes of the listener whose hostname says most serve a request.
    pub listener_isolation: bool,
}

/// What became of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingResult {
    /// The rules that it takes: one for each Gateway, and each port of it, that takes it.
    pub matched: Vec<MatchedRule>,
    /// Where it is not taken, and why.
    pub failures: Vec<MatchFailure>,
}

/// A rule that a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedRule {
    /// The name of the rule's path.
    pub path: String,
    /// The port that it comes in by, if that is known.
    pub port: Option<u16>,
    /// The rule's index.
    pub rule: u32,
    /// The index of the match; none for kinds without matches.
    pub at: Option<u32>,
    /// What the match asks, for people.
    pub matched: String,
    /// The rule's backendRefs with their weights, in their order.
    pub backends: Vec<(BackendRef, u32)>,
}

/// A place that does not take a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchFailure {
    /// The name of a Gateway's or listener's path, or of a mesh root's.
    pub path: String,
    /// Why.
    pub reason: NoMatchReason,
    /// The matches that lack least, from the nearest.
    pub nearest: Vec<NearMiss>,
}

/// A match that a request does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMiss {
    /// Its route.
    pub route: ObjectKey,
    /// Its rule's index.
    pub rule: u32,
    /// What the request lacks, for people.
    pub lacks: Vec<String>,
}

/// Why a place does not take a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMatchReason {
    /// There is no such Gateway.
    GatewayNotFound,
    /// No route names the Service as its parent.
    ServiceNotFound,
    /// It has no such listener, or none of that port for such requests.
    ListenerNotFound,
    /// The listener is out: another one has the same port, protocol and hostname.
    ListenerConflicted,
    /// No listener takes the host.
    HostNotTaken,
    /// No route of the listener takes the host.
    NoRoute,
    /// Routes take the host, but none of their matches is met.
    NoMatch,
}

impl Default for RoutingOptions {
    fn default() -> Self {
        Self {
            by_route_hostname: true,
            listener_isolation: true,
        }
    }
}

impl NoMatchReason {
    /// The word of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GatewayNotFound => "GatewayNotFound",
            Self::ServiceNotFound => "ServiceNotFound",
            Self::ListenerNotFound => "ListenerNotFound",
            Self::ListenerConflicted => "ListenerConflicted",
            Self::HostNotTaken => "HostNotTaken",
            Self::NoRoute => "NoRoute",
            Self::NoMatch => "NoMatch",
        }
    }
}

impl fmt::Display for NoMatchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GatewayNotFound => "there is no such Gateway",
            Self::ServiceNotFound => "no route names the Service as its parent",
            Self::ListenerNotFound => "it has no such listener for such requests",
            Self::ListenerConflicted => {
                "the listener is out: another one has the same port, protocol and hostname"
            }
            Self::HostNotTaken => "no listener takes the host",
            Self::NoRoute => "no route of the listener takes the host",
            Self::NoMatch => "routes take the host, but the request meets none of their matches",
        })
    }
}
