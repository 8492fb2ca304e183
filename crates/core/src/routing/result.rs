//! The result of routing a request.

use std::fmt;

use super::dialect::{Dialect, HostnamePrecedence, ListenerIsolation, Refusal};
use super::request::BadRequest;
use crate::model::ObjectKey;
use crate::store::BackendRef;

/// What a request asks for instead of what the dialect says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoutingOptions {
    /// The dialect at all Gateways and in the mesh.
    pub dialect: Option<&'static Dialect>,
    /// Which hostnames of routes are compared.
    pub hostname_precedence: Option<HostnamePrecedence>,
    /// Which listeners of a port serve the request.
    pub listener_isolation: Option<ListenerIsolation>,
}

/// The result of routing a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingResult {
    /// The rules that the request takes: one for each Gateway port that accepts it.
    pub matched: Vec<MatchedRule>,
    /// The Gateways, listeners and Services that do not accept the request, and why.
    pub failures: Vec<MatchFailure>,
}

/// A rule that a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedRule {
    /// Name of the path of the rule.
    pub path: String,
    /// The port that the request enters by, if known.
    pub port: Option<u16>,
    /// Index of the rule.
    pub rule: u32,
    /// Index of the match; `None` for route kinds without matches.
    pub at: Option<u32>,
    /// Human-readable description of the match.
    pub matched: String,
    /// The backendRefs of the rule with their weights, in order.
    pub backends: Vec<(BackendRef, u32)>,
    /// The dialect of the Gateway or Service.
    pub dialect: &'static Dialect,
    /// Why the proxy refuses the request before it looks for a rule.
    pub refusal: Option<Refusal>,
}

/// A Gateway, listener or Service that does not accept a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchFailure {
    /// Name of the path of the Gateway, the listener or the mesh root.
    pub path: String,
    /// Why the request is not accepted.
    pub reason: NoMatchReason,
    /// The matches with the fewest unmet conditions, from the nearest.
    pub near_misses: Vec<NearMiss>,
    /// The dialect of the Gateway or Service; `None` if the request reached neither.
    pub dialect: Option<&'static Dialect>,
    /// Why the proxy refuses the request before it looks for a rule.
    pub refusal: Option<Refusal>,
}

/// A match whose conditions a request does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMiss {
    /// The route.
    pub route: ObjectKey,
    /// Index of the rule.
    pub rule: u32,
    /// Human-readable descriptions of the unmet conditions.
    pub missing: Vec<String>,
}

/// Why a Gateway, listener or Service does not accept a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMatchReason {
    /// The Gateway does not exist.
    GatewayNotFound,
    /// No route references the Service as its parent.
    ServiceNotFound,
    /// The Gateway has no listener with the given name, port and protocol.
    ListenerNotFound,
    /// The listener conflicts with another one of the same port, protocol and hostname.
    ListenerConflicted,
    /// No listener accepts the host.
    HostnameNotServed,
    /// No route of the listener accepts the host.
    NoRoute,
    /// Routes accept the host, but the request meets none of their matches.
    NoMatch,
    /// A rule matches and delegates, and it is not decided which child Route takes the request (specification 12.14).
    DelegationNotFollowed,
    /// A rule takes the request if its regular expressions match, which are too large to be evaluated (specification
    /// 12.9).
    RegexNotEvaluated,
    /// The host is malformed.
    NotAHost,
    /// The path is malformed.
    NotARequestPath,
    /// Different proxies interpret the path differently.
    AmbiguousPath,
}

impl MatchFailure {
    /// Whether the request cannot be read in the dialect.
    pub fn is_bad_request(&self) -> bool {
        use NoMatchReason::{AmbiguousPath, NotAHost, NotARequestPath};
        matches!(self.reason, NotAHost | NotARequestPath | AmbiguousPath)
    }
}

impl From<&BadRequest> for NoMatchReason {
    fn from(bad: &BadRequest) -> Self {
        match bad {
            BadRequest::Host(_) => Self::NotAHost,
            BadRequest::Path(_) => Self::NotARequestPath,
            BadRequest::AmbiguousPath(_) => Self::AmbiguousPath,
        }
    }
}

impl NoMatchReason {
    /// Returns the reason in CamelCase.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GatewayNotFound => "GatewayNotFound",
            Self::ServiceNotFound => "ServiceNotFound",
            Self::ListenerNotFound => "ListenerNotFound",
            Self::ListenerConflicted => "ListenerConflicted",
            Self::HostnameNotServed => "HostnameNotServed",
            Self::NoRoute => "NoRoute",
            Self::NoMatch => "NoMatch",
            Self::DelegationNotFollowed => "DelegationNotFollowed",
            Self::RegexNotEvaluated => "RegexNotEvaluated",
            Self::NotAHost => "NotAHost",
            Self::NotARequestPath => "NotARequestPath",
            Self::AmbiguousPath => "AmbiguousPath",
        }
    }
}

impl fmt::Display for NoMatchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GatewayNotFound => "the Gateway does not exist",
            Self::ServiceNotFound => "no route references the Service as its parent",
            Self::ListenerNotFound => {
                "the Gateway has no such listener for requests of this protocol"
            }
            Self::ListenerConflicted => {
                "the listener conflicts with another one of the same port, protocol and hostname"
            }
            Self::HostnameNotServed => "no listener accepts the host",
            Self::NoRoute => "no route of the listener accepts the host",
            Self::NoMatch => "routes accept the host, but the request meets none of their matches",
            Self::DelegationNotFollowed => {
                "a rule matches that delegates, and it is not decided which child Route takes the request"
            }
            Self::RegexNotEvaluated => {
                "a rule takes the request if its regular expressions match, and those of its route are too large to \
                 be evaluated: make them smaller"
            }
            Self::NotAHost => "the host is malformed",
            Self::NotARequestPath => "the path is malformed",
            Self::AmbiguousPath => {
                "the path is ambiguous, because proxies interpret it differently: normalize it first"
            }
        })
    }
}
