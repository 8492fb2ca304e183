//! Reasons: why a reference does not attach, why something is no path.

use std::fmt;

/// The outcome of one reference of a policy, in the order in which it is checked
/// (specification 3.3). A bad policy is data, never an error of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// It attaches.
    Accepted,
    /// The kind or section is not allowed by the profile, or the policy itself is wrong.
    Invalid,
    /// No grant permits it.
    RefNotPermitted,
    /// The target, or the section of it, does not exist.
    TargetNotFound,
    /// An established policy holds the place.
    Conflicted,
    /// The target is a workload, which is no node (specification 3.1).
    SelectorNotEvaluated,
    /// The policy's controller says that it is not accepted (`trustStatus`).
    Untrusted,
}

/// Why something is no path (specification 1.4): the first step that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathErrorReason {
    /// No such GatewayClass.
    GatewayClassNotFound,
    /// Nothing lives in such a namespace.
    NamespaceNotFound,
    /// No such Gateway.
    GatewayNotFound,
    /// No such ListenerSet.
    ListenerSetNotFound,
    /// The Gateway does not admit the ListenerSet.
    ListenerSetNotAllowed,
    /// No such listener.
    ListenerNotFound,
    /// No such route.
    RouteNotFound,
    /// No parentRef of the route names this parent, or its section and port do not match.
    NoMatchingParent,
    /// The listener's kinds or namespaces do not admit the route.
    NotAllowedByListeners,
    /// The hostnames have no intersection.
    NoMatchingListenerHostname,
    /// No such rule.
    RuleNotFound,
    /// No such Service.
    BackendNotFound,
    /// A reference into another namespace without a grant.
    RefNotPermitted,
    /// The backend has no such port, or the backendRef does not name it.
    PortNotFound,
    /// It is no path for another reason.
    NotAPath,
}

impl Outcome {
    /// The word used as a condition's reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Accepted => "Accepted",
            Outcome::Invalid => "Invalid",
            Outcome::RefNotPermitted => "RefNotPermitted",
            Outcome::TargetNotFound => "TargetNotFound",
            Outcome::Conflicted => "Conflicted",
            Outcome::SelectorNotEvaluated => "SelectorNotEvaluated",
            Outcome::Untrusted => "Untrusted",
        }
    }
}

impl PathErrorReason {
    /// The word used in errors.
    pub fn as_str(self) -> &'static str {
        match self {
            PathErrorReason::GatewayClassNotFound => "GatewayClassNotFound",
            PathErrorReason::NamespaceNotFound => "NamespaceNotFound",
            PathErrorReason::GatewayNotFound => "GatewayNotFound",
            PathErrorReason::ListenerSetNotFound => "ListenerSetNotFound",
            PathErrorReason::ListenerSetNotAllowed => "ListenerSetNotAllowed",
            PathErrorReason::ListenerNotFound => "ListenerNotFound",
            PathErrorReason::RouteNotFound => "RouteNotFound",
            PathErrorReason::NoMatchingParent => "NoMatchingParent",
            PathErrorReason::NotAllowedByListeners => "NotAllowedByListeners",
            PathErrorReason::NoMatchingListenerHostname => "NoMatchingListenerHostname",
            PathErrorReason::RuleNotFound => "RuleNotFound",
            PathErrorReason::BackendNotFound => "BackendNotFound",
            PathErrorReason::RefNotPermitted => "RefNotPermitted",
            PathErrorReason::PortNotFound => "PortNotFound",
            PathErrorReason::NotAPath => "NotAPath",
        }
    }

    /// A sentence for people.
    pub fn explain(self) -> &'static str {
        match self {
            PathErrorReason::GatewayClassNotFound => "no such GatewayClass",
            PathErrorReason::NamespaceNotFound => "nothing lives in such a namespace",
            PathErrorReason::GatewayNotFound => "no such Gateway",
            PathErrorReason::ListenerSetNotFound => "the Gateway has no such ListenerSet",
            PathErrorReason::ListenerSetNotAllowed => {
                "the Gateway's allowedListeners do not admit the ListenerSet"
            }
            PathErrorReason::ListenerNotFound => "no such listener",
            PathErrorReason::RouteNotFound => "no such route",
            PathErrorReason::NoMatchingParent => "no parentRef of the route matches this parent",
            PathErrorReason::NotAllowedByListeners => {
                "the listener's allowedRoutes do not admit the route"
            }
            PathErrorReason::NoMatchingListenerHostname => {
                "the hostnames of the route and of the listener have no intersection"
            }
            PathErrorReason::RuleNotFound => "the route has no such rule",
            PathErrorReason::BackendNotFound => "no such Service, or the rule does not name it",
            PathErrorReason::RefNotPermitted => "no ReferenceGrant permits the reference",
            PathErrorReason::PortNotFound => {
                "the backendRef does not name such a port of the backend"
            }
            PathErrorReason::NotAPath => "not a path of the topology",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for PathErrorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
