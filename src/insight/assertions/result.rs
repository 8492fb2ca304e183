//! The results of assertions as messages.

use jiff::civil::Date;

use super::checker::{MAX_ASSERTIONS, MAX_OF_NAMESPACE};
use super::document::Assertion;
use super::tree::Counts;
use super::verdict::Verdict;
use crate::api::{ALL_KINDS, v1};
use crate::insight::Visibility;
use crate::insight::lookup::incomplete_kinds;
use crate::snapshot::Snapshot;
use entail_core::model::{GroupKind, Object, ObjectKey};
use v1::assertion_result::Outcome;
use v1::kind_state::State;

/// The beginning of the message of an assertion beyond the maximum number.
pub const NOT_CHECKED: &str = "not checked";
/// The message of a result without paths.
pub(super) const NO_PATHS: &str = "no path is like `paths`: nothing is checked";

/// What is not known of an assertion as a whole.
pub(super) enum NotKnown {
    /// The policies on all paths.
    Policies(String),
    /// Whether there are more paths.
    Paths(String),
}

/// Makes the result of an assertion whose paths were counted.
pub(super) fn result(
    (object, assertion): (&Object, &Assertion),
    mut counts: Counts,
    mut failures: Vec<v1::AssertionPath>,
    not_known: Option<NotKnown>,
    today: Date,
) -> v1::AssertionResult {
    let not_known = match not_known {
        Some(NotKnown::Policies(what)) => {
            // What is missing on a path need not be missing.
            counts = Counts {
                unknown: counts.paths(),
                ..Counts::default()
            };
            failures.clear();
            Some(what)
        }
        Some(NotKnown::Paths(what)) => Some(what),
        // An assertion that is about nothing protects nothing.
        None => (counts.paths() == 0).then(|| NO_PATHS.to_owned()),
    };
    let outcome = match (counts.failed, counts.unknown, &not_known) {
        (1.., ..) => Outcome::Failed,
        (0, 1.., _) | (0, 0, Some(_)) => Outcome::Unknown,
        (0, 0, None) => Outcome::Passed,
    };
    let exceptions = assertion.exceptions.iter().enumerate();
    let exceptions = exceptions.map(|(index, exception)| {
        let mut excepted = counts.excepted.iter();
        let paths = excepted.find(|(of, _)| usize::from(*of) == index);
        v1::AssertionException {
            object: exception.name.clone(),
            reason: exception.reason.clone(),
            expires: exception
                .expires
                .map(|day| day.to_string())
                .unwrap_or_default(),
            has_expired: exception.has_expired(today),
            paths: paths.map_or(0, |(_, count)| *count),
        }
    });
    v1::AssertionResult {
        description: assertion.description.clone(),
        outcome: outcome.into(),
        message: not_known.unwrap_or_default(),
        paths: counts.paths(),
        failed: counts.failed,
        unknown: counts.unknown,
        failures,
        exceptions: exceptions.collect(),
        enforce: assertion.enforce,
        ..named(object)
    }
}

/// The result of an assertion that is invalid.
pub(super) fn invalid(object: &Object, why: String) -> v1::AssertionResult {
    v1::AssertionResult {
        outcome: Outcome::Invalid.into(),
        message: why,
        ..named(object)
    }
}

/// The result of an assertion beyond the maximum number.
pub(super) fn not_checked(object: &Object) -> v1::AssertionResult {
    v1::AssertionResult {
        outcome: Outcome::Unknown.into(),
        message: format!(
            "{NOT_CHECKED}: there are more than {MAX_ASSERTIONS} assertions, or {MAX_OF_NAMESPACE} in the namespace"
        ),
        ..named(object)
    }
}

/// A result without an outcome.
fn named(object: &Object) -> v1::AssertionResult {
    let location = object.location.as_ref();
    v1::AssertionResult {
        object: object.key.to_string(),
        location: location.map(ToString::to_string).unwrap_or_default(),
        ..v1::AssertionResult::default()
    }
}

/// The entry of a path that is not as expected.
pub(super) fn message_of(path: String, verdict: &Verdict) -> v1::AssertionPath {
    let (outcome, message) = match verdict {
        Verdict::Passed => (Outcome::Passed, ""),
        Verdict::Failed(why) => (Outcome::Failed, &**why),
        Verdict::Unknown(what) => (Outcome::Unknown, &**what),
    };
    v1::AssertionPath {
        path,
        outcome: outcome.into(),
        message: message.to_owned(),
    }
}

/// Why not all paths are known, or not all policies of the kinds that an assertion reads.
pub(super) fn kinds_not_known(
    snapshot: &Snapshot,
    assertion: &Assertion,
    visibility: &dyn Visibility,
) -> Option<NotKnown> {
    if let Some(what) = &assertion.unknown {
        return Some(NotKnown::Policies(what.clone()));
    }
    let mut kinds = incomplete_kinds(snapshot, &[], visibility);
    if let Some(all) = kinds.iter().find(|state| state.kind == ALL_KINDS) {
        return Some(NotKnown::Policies(all.message.clone()));
    }
    kinds.retain(|state| matches!(state.state(), State::Unknown | State::Forbidden));
    let reads = |kind: &GroupKind| {
        let mut own = assertion.policies.iter();
        own.any(|(_, own)| own.resource() == kind.resource())
    };
    let find = |includes: &dyn Fn(&GroupKind) -> bool| {
        let mut kinds = kinds.iter();
        let found = kinds.find(|state| includes(&GroupKind::parse(&state.kind)))?;
        Some(format!("{}: {}", found.kind, found.message))
    };
    let policies = find(&reads).map(NotKnown::Policies);
    let paths = policies.or_else(|| find(&Snapshot::affects_topology).map(NotKnown::Paths));
    paths.or_else(|| missing_root(snapshot, assertion, visibility).map(NotKnown::Paths))
}

/// A Gateway or Service that the assertion names and that does not exist, or that the caller may not see.
fn missing_root(
    snapshot: &Snapshot,
    assertion: &Assertion,
    visibility: &dyn Visibility,
) -> Option<String> {
    let filter = &assertion.filter;
    let roots = [
        (GroupKind::gateway(), &filter.gateways),
        (GroupKind::service(), &filter.services),
    ];
    let named = roots.into_iter().flat_map(|(kind, roots)| {
        let names = roots.iter().flat_map(|roots| &roots.names);
        names.map(move |(namespace, name)| {
            ObjectKey::new(kind.clone(), namespace.clone(), name.clone())
        })
    });
    let store = snapshot.world().store();
    let exists = |key: &ObjectKey| store.get(key).is_some() && visibility.includes_object(key);
    let missing = { named }.find(|key| !exists(key))?;
    Some(format!("`{missing}` does not exist"))
}
