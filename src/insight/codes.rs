//! The codes of findings, and of the reasons why a value or a policy lost. Each has a page in
//! `docs/findings`, which is part of the binary.
//!
//! A code is stable: it keeps its meaning, and the code of a reason that no longer exists is not used again.

use crate::api::v1;
use entail_core::model::{LossReason, Outcome, PathErrorReason, UnknownReason, nearest};
use v1::finding::Severity;

/// Declares the codes: the name of the reason, the code, the usual severity, and a title of one line.
macro_rules! codes {
    ($($reason:ident = $code:literal, $severity:ident, $title:literal;)+) => {
        /// What a finding reports, or why a value lost.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $title] $reason,)+
        }

        impl Code {
            /// All codes, sorted.
            pub const ALL: &[Code] = &[$(Code::$reason,)+];

            /// The code, such as `E021`.
            pub fn id(self) -> &'static str {
                match self { $(Code::$reason => $code,)+ }
            }

            /// The name of the reason in CamelCase, such as `TargetNotFound`.
            pub fn reason(self) -> &'static str {
                match self { $(Code::$reason => stringify!($reason),)+ }
            }

            /// The severity that findings with the code have, except where the page says otherwise.
            pub fn severity(self) -> Severity {
                match self { $(Code::$reason => Severity::$severity,)+ }
            }

            /// One line that says what the code means, without a period.
            pub fn title(self) -> &'static str {
                match self { $(Code::$reason => $title,)+ }
            }

            /// The page about the code, in Markdown.
            pub fn page(self) -> &'static str {
                match self {
                    $(Code::$reason => include_str!(concat!("../../docs/findings/", $code, ".md")),)+
                }
            }
        }
    };
}

codes! {
    // Inputs.
    Broken = "E001", Error, "A document cannot be parsed";
    Malformed = "E002", Error, "A document is not a Kubernetes object";
    Unreadable = "E003", Error, "A file or directory cannot be read";
    Duplicate = "E004", Warning, "An object is in the manifests twice";
    ProfileRefused = "E005", Error, "A profile is refused";
    LabelContradicts = "E006", Note, "The policy label of a CRD contradicts the profile";
    PatternMatchesNothing = "E007", Warning, "A pattern of a profile matches no field of the CRD";
    CrdMissing = "E008", Note, "The CRD of a policy kind is not among the manifests";
    UnknownKind = "E009", Warning, "An object looks like a policy, and no profile describes its kind";
    ParametersNotRead = "E010", Note, "Parameters of a Gateway or GatewayClass are not read";
    IgnoreExpired = "E011", Warning, "An entry of the ignore file has expired";
    IgnoreUnused = "E012", Note, "What is to be ignored was not found";
    WrongType = "E013", Warning, "A field of an object has the wrong type";
    UnknownField = "E014", Warning, "An object has a field that its CRD does not have";
    ControllerNotListed = "E015", Note, "No profile lists the controller of a GatewayClass";

    // Policies and their references.
    Invalid = "E020", Error, "A policy is invalid";
    TargetNotFound = "E021", Error, "The target of a reference does not exist";
    RefNotPermitted = "E022", Error, "A reference into another namespace is not permitted";
    Conflicted = "E023", Warning, "A policy lost its target to another policy";
    SelectorNotEvaluated = "E024", Note, "A policy selects workloads, which are not evaluated";
    NotTrusted = "E025", Error, "The controller does not accept a policy";
    MissingReference = "E026", Error, "An object that a policy uses is missing";
    UnusualValue = "E027", Note, "A policy has an unusual value";
    NoWaypoint = "E028", Warning, "A policy targets a Service without a waypoint";

    // The effect of policies.
    Overridden = "E030", Note, "Other policies override all of a policy";
    NoScope = "E031", Warning, "The targets of a policy are on no path";
    SilentLoss = "E032", Warning, "A field of a policy is lost, and no other policy sets it";
    FoldOrder = "E033", Note, "The result depends on the direction of merging";
    EnforcementReplaced = "E034", Warning, "A policy takes the place of the one by which others are enforced";

    // What is not known.
    ControllerUnknown = "E040", Warning, "It is not known which controller serves a Gateway";
    NoProfile = "E041", Warning, "No profile describes the kind of a policy";
    FilterUnknown = "E042", Warning, "No profile describes the kind of a filter";
    DelegationNotFollowed = "E043", Warning, "A rule delegates to other Routes, and that is not followed";
    ReferenceNotChecked = "E044", Warning, "It is not known whether an object that a policy uses exists";
    PolicyUnreadable = "E045", Warning, "Parts of a policy cannot be read";
    BackendFilterNotEvaluated = "E046", Warning, "A filter of a backendRef references a policy";

    // Gateways and Routes.
    ListenerConflict = "E050", Warning, "Listeners of a Gateway conflict";
    RouteConflict = "E051", Warning, "Routes of a listener conflict";
    NoMatchingParent = "E052", Warning, "A parentRef matches no listener";
    NotAllowedByListeners = "E053", Warning, "The listener does not admit a Route";
    NoMatchingListenerHostname = "E054", Warning, "A Route and its listener have no hostname in common";
    GatewayNotFound = "E055", Warning, "The Gateway does not exist";
    ListenerSetNotFound = "E056", Warning, "The ListenerSet does not exist";
    ListenerSetNotAllowed = "E057", Warning, "The Gateway does not admit a ListenerSet";
    RouteNotServed = "E058", Warning, "The controller serves another Route of the listener alone";
    ChildRouteHasHostnames = "E059", Warning, "A child Route has hostnames of its own";
    BackendNotFound = "E060", Warning, "The backend does not exist";
    PortNotFound = "E061", Warning, "The backend has no such port";
    GatewayClassNotFound = "E062", Warning, "The GatewayClass does not exist";
    NamespaceNotFound = "E063", Warning, "The namespace does not exist";
    ListenerNotFound = "E064", Warning, "The listener does not exist";
    RouteNotFound = "E065", Warning, "The Route does not exist";
    RuleNotFound = "E066", Warning, "The Route has no such rule";
    NotAPath = "E067", Warning, "A name is not a path of the topology";

    // Why a value lost.
    MoreSpecificDefault = "E070", Note, "A more specific policy replaces a default";
    MoreSpecificOverride = "E071", Note, "A more specific override wins";
    LessSpecificOverride = "E072", Note, "A less specific override wins";
    Older = "E073", Note, "An older policy of the same target wins";
    Newer = "E074", Note, "A newer policy of the same target wins";
    Unset = "E075", Note, "A more specific policy unsets the field";
    DeletedByNull = "E076", Note, "A null deletes the field";
    ConditionFalse = "E077", Note, "The condition of a block is not true on the path";
    BeyondClosestParent = "E078", Note, "Only the closest parent is inherited";
    OwnField = "E079", Note, "A field of the object itself wins";
    ExclusiveFields = "E080", Note, "Another field excludes this one";
    SectionTaken = "E081", Note, "A policy of a more specific target replaces this one as a whole";
    SamePolicyOverride = "E082", Note, "The overrides of the same policy win over its defaults";

    // Assertions.
    AssertionFailed = "E090", Error, "Paths are not as an assertion expects";
    AssertionUnknown = "E091", Error, "It is not known whether paths are as an assertion expects";
    AssertionInvalid = "E092", Error, "An assertion is invalid";
    ExceptionExpired = "E093", Warning, "An exception of an assertion has expired";
    ExceptionUnused = "E094", Note, "No path needs an exception of an assertion";
    AssertionWithoutPaths = "E095", Warning, "An assertion is about no path";

    // Changes under review.
    ValueLost = "E100", Error, "A change takes a value away";
    PathRemoved = "E101", Error, "A change removes a path";
    LostOnTheWay = "E102", Error, "A change leads requests another way, without policies or values";
    NewPathWithoutPolicy = "E103", Error, "A new path lacks a policy that all others have";
}

impl Code {
    /// Returns the code with this ID, reason, or phrase of an explanation, in any case.
    pub fn find(name: &str) -> Option<Self> {
        let is_named = |code: &&Code| {
            code.id().eq_ignore_ascii_case(name) || code.reason().eq_ignore_ascii_case(name)
        };
        let code = Self::ALL.iter().find(is_named).copied();
        let is_phrase = |loss: &&LossReason| loss.as_str().eq_ignore_ascii_case(name);
        let loss = || LossReason::ALL.iter().find(is_phrase);
        let untrusted = Outcome::Untrusted.as_str();
        code.or_else(|| loss().map(|loss| Code::from(*loss)))
            .or_else(|| {
                name.eq_ignore_ascii_case(untrusted)
                    .then_some(Code::NotTrusted)
            })
    }

    /// Returns the ID or reason that is most like a name, if one is.
    pub fn nearest(name: &str) -> Option<&'static str> {
        let names = || Self::ALL.iter().flat_map(|code| [code.id(), code.reason()]);
        let lower = names().map(str::to_ascii_lowercase).collect();
        let near = nearest(&name.to_ascii_lowercase(), lower)?;
        names().find(|name| name.eq_ignore_ascii_case(&near))
    }
}

impl From<PathErrorReason> for Code {
    fn from(reason: PathErrorReason) -> Self {
        match reason {
            PathErrorReason::GatewayClassNotFound => Code::GatewayClassNotFound,
            PathErrorReason::NamespaceNotFound => Code::NamespaceNotFound,
            PathErrorReason::GatewayNotFound => Code::GatewayNotFound,
            PathErrorReason::ListenerSetNotFound => Code::ListenerSetNotFound,
            PathErrorReason::ListenerSetNotAllowed => Code::ListenerSetNotAllowed,
            PathErrorReason::ListenerNotFound => Code::ListenerNotFound,
            PathErrorReason::RouteNotFound => Code::RouteNotFound,
            PathErrorReason::NoMatchingParent => Code::NoMatchingParent,
            PathErrorReason::DelegationNotFollowed => Code::DelegationNotFollowed,
            PathErrorReason::ChildRouteHasHostnames => Code::ChildRouteHasHostnames,
            PathErrorReason::NotAllowedByListeners => Code::NotAllowedByListeners,
            PathErrorReason::NoMatchingListenerHostname => Code::NoMatchingListenerHostname,
            PathErrorReason::RouteNotServed => Code::RouteNotServed,
            PathErrorReason::RuleNotFound => Code::RuleNotFound,
            PathErrorReason::BackendNotFound => Code::BackendNotFound,
            PathErrorReason::RefNotPermitted => Code::RefNotPermitted,
            PathErrorReason::PortNotFound => Code::PortNotFound,
            PathErrorReason::NotAPath => Code::NotAPath,
        }
    }
}

impl From<UnknownReason> for Code {
    fn from(reason: UnknownReason) -> Self {
        match reason {
            UnknownReason::ControllerUnknown => Code::ControllerUnknown,
            UnknownReason::NoProfile => Code::NoProfile,
            UnknownReason::FilterUnknown => Code::FilterUnknown,
            UnknownReason::DelegationNotFollowed => Code::DelegationNotFollowed,
            UnknownReason::SelectorNotEvaluated => Code::SelectorNotEvaluated,
            UnknownReason::BackendFilterNotEvaluated => Code::BackendFilterNotEvaluated,
            UnknownReason::ReferenceNotChecked => Code::ReferenceNotChecked,
            UnknownReason::PolicyUnreadable => Code::PolicyUnreadable,
        }
    }
}

impl From<LossReason> for Code {
    fn from(reason: LossReason) -> Self {
        match reason {
            LossReason::MoreSpecificDefault => Code::MoreSpecificDefault,
            LossReason::MoreSpecificOverride => Code::MoreSpecificOverride,
            LossReason::LessSpecificOverride => Code::LessSpecificOverride,
            LossReason::Older => Code::Older,
            LossReason::Newer => Code::Newer,
            LossReason::Unset => Code::Unset,
            LossReason::DeletedByNull => Code::DeletedByNull,
            LossReason::ConditionFalse => Code::ConditionFalse,
            LossReason::BeyondClosestParent => Code::BeyondClosestParent,
            LossReason::OwnField => Code::OwnField,
            LossReason::MissingReference => Code::MissingReference,
            LossReason::ExclusiveFields => Code::ExclusiveFields,
            LossReason::SectionTaken => Code::SectionTaken,
            LossReason::SamePolicyOverride => Code::SamePolicyOverride,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_sorted() {
        let ids: Vec<&str> = Code::ALL.iter().map(|code| code.id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        for code in Code::ALL {
            let number = code.id().strip_prefix('E').unwrap();
            assert!(number.len() == 3 && number.parse::<u16>().is_ok());
            assert_eq!(Code::find(code.id()), Some(*code));
            assert_eq!(Code::find(&code.reason().to_ascii_lowercase()), Some(*code));
        }
    }

    #[test]
    fn reasons_and_phrases_have_the_code_of_their_name() {
        for loss in LossReason::ALL {
            let code = Code::from(loss);
            assert_eq!(format!("{loss:?}"), code.reason());
            assert_eq!(Code::find(loss.as_str()), Some(code), "{loss:?}");
        }
        let paths = [
            PathErrorReason::GatewayNotFound,
            PathErrorReason::RefNotPermitted,
            PathErrorReason::NotAPath,
        ];
        for reason in paths {
            assert_eq!(Code::from(reason).reason(), reason.as_str());
        }
        let unknown = UnknownReason::PolicyUnreadable;
        assert_eq!(Code::from(unknown).reason(), unknown.as_str());
        assert_eq!(Code::find("untrusted"), Some(Code::NotTrusted));
        assert_eq!(Code::find("E999"), None);
    }

    #[test]
    fn a_misspelled_name_has_a_nearest_one() {
        assert_eq!(Code::nearest("targetnotfond"), Some("TargetNotFound"));
        assert_eq!(Code::nearest("E21"), Some("E021"));
        assert_eq!(Code::nearest("xyzzy-plugh"), None);
    }

    #[test]
    fn titles_are_short_sentences() {
        for code in Code::ALL {
            let title = code.title();
            assert!(title.len() <= 66 && !title.ends_with('.'), "{title}");
            assert!(title.starts_with(|first: char| first.is_ascii_uppercase()));
        }
    }
}
