//! What an answer does not know (specification 1.8, 2.5 to 2.8, 5.7).

use super::effective::PolicyRef;

/// Why it is not known what is in effect for a kind on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnknownReason {
    /// It is not known which controller serves the Gateway (specification 2.6).
    ControllerUnknown,
    /// No profile describes the kind, and objects of it target the path (specification 2.7).
    NoProfile,
    /// No profile describes the kind, and a filter of the route rule or of the backendRef references it
    /// (specification 2.7).
    FilterUnknown,
    /// The rule delegates to other Routes, and delegation is not followed (specification 1.8).
    DelegationNotFollowed,
    /// Policies select workloads, which are not nodes of a path (specification 2.8).
    SelectorNotEvaluated,
    /// A filter of a backendRef references policies of a kind that has a profile (specification 2.8).
    BackendFilterNotEvaluated,
    /// It is not known whether an object exists that a policy references, and requests pass without what the
    /// policy asks of it (specification 5.7).
    ReferenceNotChecked,
    /// Parts of a policy could not be read, so it is not known what it asks for (specification 2.5).
    PolicyUnreadable,
}

/// What an answer for a kind does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The reason.
    pub reason: UnknownReason,
    /// A human-readable description of the reason.
    pub message: String,
    /// The first 16 policies whose effect is not known, sorted.
    pub policies: Vec<PolicyRef>,
}

impl UnknownReason {
    /// The reasons beside which the answer holds for all policies but those named. By all others nothing at
    /// all is known of the kind on the path.
    pub const PARTIAL: [UnknownReason; 4] = [
        UnknownReason::SelectorNotEvaluated,
        UnknownReason::BackendFilterNotEvaluated,
        UnknownReason::ReferenceNotChecked,
        UnknownReason::PolicyUnreadable,
    ];

    /// Returns the name of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            UnknownReason::ControllerUnknown => "ControllerUnknown",
            UnknownReason::NoProfile => "NoProfile",
            UnknownReason::FilterUnknown => "FilterUnknown",
            UnknownReason::DelegationNotFollowed => "DelegationNotFollowed",
            UnknownReason::SelectorNotEvaluated => "SelectorNotEvaluated",
            UnknownReason::BackendFilterNotEvaluated => "BackendFilterNotEvaluated",
            UnknownReason::ReferenceNotChecked => "ReferenceNotChecked",
            UnknownReason::PolicyUnreadable => "PolicyUnreadable",
        }
    }
}
