//! Warnings about a policy that has no effect itself.

use super::{ChangedObject, NameScope, ObjectChange};
use crate::api::v1;
use crate::insight::AccessScope;
use crate::insight::findings::missing_target_hint;
use crate::insight::policies::accepted;
use crate::insight::waypoints::idle_references;
use entail_core::attach::ReferenceOutcome;
use entail_core::effective::{PolicyKind, World};
use entail_core::model::Outcome;
use entail_core::profile::Policy;

/// Returns why a changed object has no effect as a policy of the world after the change, or not at all of its targets.
pub(in crate::insight) fn of_policy(
    world: &World,
    object: ChangedObject<'_>,
    differences: &v1::PreviewChangeResponse,
) -> Vec<String> {
    if object.change == ObjectChange::Deleted {
        return Vec::new();
    }
    let mut found = Vec::new();
    for kind in world.kinds() {
        let policy = kind.policy(object.key);
        let Some(policy) = policy.and_then(|slot| Some((slot, kind.policy_at(slot)?))) else {
            continue;
        };
        let references = references(world, kind, policy, object.names);
        let (outcome, _) = kind.outcome(policy.0);
        if outcome != Outcome::Accepted {
            found.push(not_accepted(kind, policy, object, &references));
            continue;
        }
        let bad = references.iter().filter(|reference| !reference.is_accepted);
        let subject = object.subject();
        found.extend(bad.map(|reference| format!("{subject}: {}", reference.text)));
        let idle = idle_references(world, kind, policy.0);
        found.extend(idle.iter().map(|why| format!("{subject}: {why}")));
        if found.is_empty()
            && object.change == ObjectChange::Created
            && has_no_effect(kind, object, differences)
        {
            let why = "it is overridden everywhere, or its targets are on no path";
            found.push(format!("{subject} has no effect: {why}"));
        }
    }
    found
}

/// A reference of a policy with what became of it.
struct ReferenceText {
    is_accepted: bool,
    text: String,
}

fn references(
    world: &World,
    kind: &PolicyKind,
    (slot, policy): (usize, &Policy),
    names: &NameScope,
) -> Vec<ReferenceText> {
    let attached = kind.attached(slot).into_iter();
    let of_policy = attached.flat_map(|attached| &attached.references);
    let text = |reference: &ReferenceOutcome| {
        let message = match (reference.outcome, names) {
            // The message names the policy that is attached to the target.
            (Outcome::Conflicted, NameScope::Own { .. }) => {
                "a more established policy is attached to the target"
            }
            _ => &reference.message,
        };
        let hint = missing_target_hint(world, policy, reference, &AccessScope::default());
        ReferenceText {
            is_accepted: reference.outcome == Outcome::Accepted,
            text: format!("{}: {message}{hint}", reference.field),
        }
    };
    of_policy.map(text).collect()
}

/// The warning about a policy that is not accepted.
fn not_accepted(
    kind: &PolicyKind,
    (slot, policy): (usize, &Policy),
    object: ChangedObject<'_>,
    references: &[ReferenceText],
) -> String {
    let subject = object.subject();
    let outcomes = kind.attached(slot).map_or(&[][..], |a| &a.references);
    let condition = accepted(kind, slot, policy, outcomes, &[]);
    let verdict = match condition.status.as_str() {
        "Unknown" => format!("it is not known what {subject} does"),
        _ => format!("{subject} is not accepted"),
    };
    let first = references.iter().find(|reference| !reference.is_accepted);
    let why = match first {
        Some(reference) if !policy.is_invalid() => reference.text.clone(),
        _ => condition.message,
    };
    let separator = if why.is_empty() { "" } else { ": " };
    format!("{verdict}: {}{separator}{why}", condition.reason)
}

/// Whether a new policy sets no value on any path.
fn has_no_effect(
    kind: &PolicyKind,
    object: ChangedObject<'_>,
    differences: &v1::PreviewChangeResponse,
) -> bool {
    if kind.not_computed().is_some() || differences.truncated {
        return false;
    }
    let name = kind.profile().policy.to_string();
    if differences.kinds.iter().any(|state| state.kind == name) {
        return false;
    }
    let own = |policy: &v1::PolicyRef| {
        *policy.namespace == *object.key.namespace && *policy.name == *object.key.name
    };
    let changes = differences
        .changes
        .iter()
        .filter(|change| change.kind == name);
    let mut units = changes.flat_map(|change| &change.units);
    !units.any(|unit| {
        let origin = unit.after_origin.as_ref();
        origin.is_some_and(|origin| origin.policies.iter().any(own))
    })
}
