//! Reasons: the outcome of a reference, and why a path does not exist.

use std::fmt;

/// The outcome of one reference of a policy, in the order of the checks (specification 3.3).
/// A malformed policy has an outcome and never causes an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The reference attaches.
    Accepted,
    /// The profile does not allow the kind or section, or the policy itself is malformed.
    Invalid,
    /// No ReferenceGrant permits the reference.
    RefNotPermitted,
    /// The target or its section does not exist.
    TargetNotFound,
    /// A more established policy is attached to the target.
    Conflicted,
    /// The target is a workload, and workloads are not nodes (specification 3.1).
    SelectorNotEvaluated,
    /// A filter of a backendRef references the policy (specification 2.8).
    BackendFilterNotEvaluated,
    /// The policy's own controller did not accept it (`trustStatus`).
    Untrusted,
    /// No profile describes the kind (specification 2.7).
    NoProfile,
}

/// Why a path does not exist: the reason of its first step that fails (specification 1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathErrorReason {
    /// The GatewayClass does not exist.
    GatewayClassNotFound,
    /// No object is in the namespace.
    NamespaceNotFound,
    /// The Gateway does not exist.
    GatewayNotFound,
    /// The ListenerSet does not exist.
    ListenerSetNotFound,
    /// The Gateway's `allowedListeners` do not admit the ListenerSet.
    ListenerSetNotAllowed,
    /// The listener does not exist.
    ListenerNotFound,
    /// The route does not exist.
    RouteNotFound,
    /// No parentRef of the route names this parent, or its section and port do not match.
    NoMatchingParent,
    /// A rule of another Route delegates to the route, and delegation is not followed.
    DelegationNotFollowed,
    /// A rule delegates to the route, which has hostnames: it would take those of its parent.
    ChildRouteHasHostnames,
    /// The listener's `allowedRoutes` do not admit the route.
    NotAllowedByListeners,
    /// The hostnames of the route and the listener do not intersect.
    NoMatchingListenerHostname,
    /// The controller serves another Route of the listener alone, or no Route with several rules.
    RouteNotServed,
    /// The route has no such rule.
    RuleNotFound,
    /// The Service does not exist, or the rule does not reference it.
    BackendNotFound,
    /// No ReferenceGrant permits the reference into another namespace.
    RefNotPermitted,
    /// The backend has no such port, or the backendRef does not reference it.
    PortNotFound,
    /// The path does not exist for another reason.
    NotAPath,
}

impl Outcome {
    /// Returns the reason of a condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Accepted => "Accepted",
            Outcome::Invalid => "Invalid",
            Outcome::RefNotPermitted => "RefNotPermitted",
            Outcome::TargetNotFound => "TargetNotFound",
            Outcome::Conflicted => "Conflicted",
            Outcome::SelectorNotEvaluated => "SelectorNotEvaluated",
            Outcome::BackendFilterNotEvaluated => "BackendFilterNotEvaluated",
            Outcome::Untrusted => "Untrusted",
            Outcome::NoProfile => "NoProfile",
        }
    }

    /// Whether the reference is one whose effect is not evaluated (specification 2.8).
    pub fn is_not_evaluated(self) -> bool {
        matches!(
            self,
            Outcome::SelectorNotEvaluated | Outcome::BackendFilterNotEvaluated
        )
    }
}

impl PathErrorReason {
    /// Returns the reason in errors.
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
            PathErrorReason::DelegationNotFollowed => "DelegationNotFollowed",
            PathErrorReason::ChildRouteHasHostnames => "ChildRouteHasHostnames",
            PathErrorReason::NotAllowedByListeners => "NotAllowedByListeners",
            PathErrorReason::NoMatchingListenerHostname => "NoMatchingListenerHostname",
            PathErrorReason::RouteNotServed => "RouteNotServed",
            PathErrorReason::RuleNotFound => "RuleNotFound",
            PathErrorReason::BackendNotFound => "BackendNotFound",
            PathErrorReason::RefNotPermitted => "RefNotPermitted",
            PathErrorReason::PortNotFound => "PortNotFound",
            PathErrorReason::NotAPath => "NotAPath",
        }
    }

    /// Returns a message that describes the reason.
    pub fn explain(self) -> &'static str {
        match self {
            PathErrorReason::GatewayClassNotFound => "the GatewayClass does not exist",
            PathErrorReason::NamespaceNotFound => "no object is in the namespace",
            PathErrorReason::GatewayNotFound => "the Gateway does not exist",
            PathErrorReason::ListenerSetNotFound => "the Gateway has no such ListenerSet",
            PathErrorReason::ListenerSetNotAllowed => {
                "the Gateway's allowedListeners do not admit the ListenerSet"
            }
            PathErrorReason::ListenerNotFound => "the listener does not exist",
            PathErrorReason::RouteNotFound => "the route does not exist",
            PathErrorReason::NoMatchingParent => "no parentRef of the route matches this parent",
            PathErrorReason::DelegationNotFollowed => {
                "rules of other Routes delegate to the route, and that is not followed"
            }
            PathErrorReason::ChildRouteHasHostnames => {
                "the child Route has hostnames, and would have to take those of its parent"
            }
            PathErrorReason::NotAllowedByListeners => {
                "the listener's allowedRoutes do not admit the route"
            }
            PathErrorReason::NoMatchingListenerHostname => {
                "the hostnames of the route and the listener do not intersect"
            }
            PathErrorReason::RouteNotServed => {
                "the controller serves the oldest such Route of a listener alone, and none with several rules"
            }
            PathErrorReason::RuleNotFound => "the route has no such rule",
            PathErrorReason::BackendNotFound => {
                "the Service does not exist, or the rule does not reference it"
            }
            PathErrorReason::RefNotPermitted => "no ReferenceGrant permits the reference",
            PathErrorReason::PortNotFound => {
                "the backend has no such port, or the backendRef does not reference it"
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
