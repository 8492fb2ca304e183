//! Lists policies with their conditions (specification 10).

use std::sync::Arc;

use prost::Message;

use super::lookup::{is_requested, requested_kinds, unknown_kinds};
use super::paths::page;
use super::visible::visible_paths;
use super::waypoints::idle_references;
use super::{Failure, Visibility, abridged, parameters};
use crate::api::{policy_ref, v1};
use crate::snapshot::Snapshot;
use entail_core::attach::{AttachmentGroup, ReferenceOutcome};
use entail_core::effective::{PolicyKind, PolicyStatus, Statuses, World};
use entail_core::model::{Enforcement, Outcome, PolicyRef, UnknownReason};
use entail_core::profile::{Policy, Vocabulary, is_routing_filter};

/// Maximum number of units in a message.
const MAX_NAMED_UNITS: usize = 5;

/// Lists policies with their statuses.
///
/// # Errors
/// The page token is invalid or belongs to another snapshot.
pub fn list_policies(
    snapshot: &Snapshot,
    request: &v1::ListPoliciesRequest,
    visibility: &dyn Visibility,
) -> Result<v1::ListPoliciesResponse, Failure> {
    let world = snapshot.world();
    let statuses = statuses(snapshot, visibility)?;
    let requested = requested_kinds(&request.kinds)?;
    let mut all = Vec::new();
    for (number, kind) in world.kinds().iter().enumerate() {
        if !is_requested(&requested, &kind.profile().policy) {
            continue;
        }
        let kind_name = kind.profile().policy.to_string();
        for (index, policy) in kind.policies() {
            visibility.budget().check()?;
            // Filters may reference objects that do not exist.
            let exists = world.store().get(&policy.key).is_some();
            if !exists || !visibility.includes_object(&policy.key) {
                continue;
            }
            let status = statuses.of(number, index);
            // Where a filter is a part of routing it is no policy (specification 2.7).
            let is_routing = kind.is_unprofiled() && is_routing_filter(&kind.profile().policy);
            if is_routing && status.is_none_or(|status| status.ancestors.is_empty()) {
                continue;
            }
            let PolicyRef { namespace, name } = PolicyRef::of(&policy.key);
            all.push((kind_name.clone(), namespace, name, (number, index)));
        }
    }
    all.sort();
    let page = page(snapshot, request.page_size, &request.page_token)?;
    let mut room = page.room();
    let mut policies: Vec<v1::PolicyStatus> = Vec::new();
    for (.., (number, index)) in all.iter().skip(page.first).take(page.size) {
        visibility.budget().check()?;
        let kind = world.kinds().get(*number);
        let Some((kind, policy)) = kind.and_then(|kind| Some((kind, kind.policy_at(*index)?)))
        else {
            continue;
        };
        let status = statuses.of(*number, *index).cloned().unwrap_or_default();
        let listed = message(world, kind, (*index, policy), &status, visibility);
        if !room.take(listed.encoded_len()) {
            break;
        }
        policies.push(listed);
    }
    let next = page.first.saturating_add(policies.len());
    let version = snapshot.version();
    Ok(v1::ListPoliciesResponse {
        next_page_token: super::paths::token(snapshot, next, all.len()),
        policies,
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: unknown_kinds(snapshot, &requested, visibility),
        unread_parameters: match request.page_token.is_empty() {
            true => parameters::of_all(snapshot, visibility),
            false => Vec::new(),
        },
        truncated: visibility.is_truncated(),
    })
}

/// Returns the statuses of all policies, over the paths that a caller sees.
pub(super) fn statuses(
    snapshot: &Snapshot,
    visibility: &dyn Visibility,
) -> Result<Arc<Statuses>, Failure> {
    visibility.budget().check()?;
    let engine = snapshot.engine();
    let paths = visible_paths(engine, visibility);
    visibility.budget().check()?;
    Ok(Arc::new(match paths {
        Ok(None) => return Ok(snapshot.statuses()),
        Ok(Some(paths)) => engine.statuses_among(&paths),
        Err(error) => {
            engine.fail(error);
            Statuses::default()
        }
    }))
}

/// Converts the status of a policy to its message.
pub(super) fn message(
    world: &World,
    kind: &PolicyKind,
    (index, policy): (usize, &Policy),
    status: &PolicyStatus,
    visibility: &dyn Visibility,
) -> v1::PolicyStatus {
    let references = kind.attached(index).map_or(&[][..], |a| &a.references);
    let idle = idle_references(world, kind, index);
    let mut conditions = vec![match &status.refused {
        Some(why) => condition("Accepted", "False", Outcome::Invalid.as_str(), why.clone()),
        None => accepted(kind, index, policy, references, &idle),
    }];
    conditions.extend(in_force(kind, status, &idle, visibility));
    v1::PolicyStatus {
        kind: kind.profile().policy.to_string(),
        policy: Some(policy_ref(&PolicyRef::of(&policy.key))),
        conditions,
        in_force: status
            .in_force
            .map(|f| f.as_str().to_owned())
            .unwrap_or_default(),
        overridden_by: status.overridden_by.iter().map(policy_ref).collect(),
        ancestors: status.ancestors.iter().map(ToString::to_string).collect(),
        references: references.iter().map(|r| reference(world, r)).collect(),
        paths: status.paths as u64,
        overridden_paths: status.overridden_paths as u64,
        overridden_units: status.overridden_units.clone(),
        warnings: policy.warnings.to_vec(),
    }
}

fn reference(world: &World, outcome: &ReferenceOutcome) -> v1::ReferenceStatus {
    let topology = world.topology();
    v1::ReferenceStatus {
        field: outcome.field.to_string(),
        outcome: outcome.outcome.to_string(),
        message: outcome.message.to_string(),
        nodes: outcome
            .nodes
            .iter()
            .filter(|(_, group)| *group != AttachmentGroup::Selecting)
            .map(|(key, _)| {
                topology
                    .node(key)
                    .map_or_else(|| key.to_string(), |n| topology.describe(n))
            })
            .collect(),
    }
}

/// Returns the condition `Accepted`.
pub(super) fn accepted(
    kind: &PolicyKind,
    index: usize,
    policy: &Policy,
    references: &[ReferenceOutcome],
    idle: &[String],
) -> v1::Condition {
    let (outcome, reason) = kind.outcome(index);
    let status = match outcome {
        Outcome::Accepted => "True",
        Outcome::SelectorNotEvaluated | Outcome::BackendFilterNotEvaluated | Outcome::NoProfile => {
            "Unknown"
        }
        _ => "False",
    };
    let first = references.iter().find(|r| r.outcome == outcome);
    let missing = policy
        .missing
        .as_ref()
        .filter(|_| outcome == Outcome::Invalid);
    let invalid = policy.invalid.as_deref();
    let message = match (invalid.or(missing.map(|missing| &*missing.message)), first) {
        (Some(why), _) => why.to_owned(),
        (None, Some(reference)) if !reference.message.is_empty() => {
            format!("{}: {}", reference.field, reference.message)
        }
        _ if outcome == Outcome::Accepted => idle.join("; "),
        _ => String::new(),
    };
    condition("Accepted", status, &reason, message)
}

/// Returns the conditions for how far a policy is in force, in the vocabulary of its profile
/// (specification 10).
fn in_force(
    kind: &PolicyKind,
    status: &PolicyStatus,
    idle: &[String],
    visibility: &dyn Visibility,
) -> Vec<v1::Condition> {
    let Some(force) = status.in_force else {
        return Vec::new();
    };
    let vocabulary = kind.profile().status.vocabulary;
    let text = match force {
        Enforcement::NoScope if !idle.is_empty() => idle.join("; "),
        Enforcement::NoScope if !visibility.is_unrestricted() => {
            "none of its targets is on a path that you may see".to_owned()
        }
        _ => enforcement_message(status),
    };
    if vocabulary == Vocabulary::Programmed {
        let (state, reason) = match force {
            Enforcement::All | Enforcement::AllWithAdditions => ("True", "Programmed"),
            Enforcement::Part | Enforcement::PartWithAdditions => ("True", "PartiallyProgrammed"),
            Enforcement::None => ("False", "Overridden"),
            Enforcement::NoScope => ("False", "Pending"),
            Enforcement::Unknown => ("Unknown", unknown_reason(status).as_str()),
        };
        return vec![condition("Programmed", state, reason, text)];
    }
    let additions = vocabulary == Vocabulary::EnforcedWithAdditions;
    let (state, reason) = match force {
        Enforcement::AllWithAdditions if additions => ("True", "EnforcedWithAdditions"),
        Enforcement::All | Enforcement::AllWithAdditions => ("True", "Enforced"),
        Enforcement::PartWithAdditions if additions => ("True", "PartiallyEnforcedWithAdditions"),
        Enforcement::Part | Enforcement::PartWithAdditions => ("True", "PartiallyEnforced"),
        Enforcement::None => ("False", "Overridden"),
        Enforcement::NoScope => ("False", "Unknown"),
        Enforcement::Unknown => ("Unknown", unknown_reason(status).as_str()),
    };
    let mut conditions = vec![condition("Enforced", state, reason, text.clone())];
    if force == Enforcement::None {
        conditions.push(condition("Overridden", "True", "Overridden", text));
    }
    conditions
}

/// Why it is not known how far a policy is in force.
pub(super) fn unknown_reason(status: &PolicyStatus) -> UnknownReason {
    status.unknown.unwrap_or(UnknownReason::ControllerUnknown)
}

/// Describes why it is not known how far a policy is in force.
pub(super) fn unknown_message(reason: UnknownReason) -> &'static str {
    match reason {
        UnknownReason::DelegationNotFollowed => {
            "rules of Routes delegate to or from its targets, and that is not followed"
        }
        _ => "it is not known which controller serves its targets",
    }
}

/// Describes the overridden units, the policies that override them, and the paths.
fn enforcement_message(status: &PolicyStatus) -> String {
    if status.in_force == Some(Enforcement::Unknown) {
        return unknown_message(unknown_reason(status)).to_owned();
    }
    if status.in_force == Some(Enforcement::NoScope) {
        return "none of its targets is on a path".to_owned();
    }
    if status.overridden_units.is_empty() {
        return format!("in force on {} of {} paths", status.paths, status.paths);
    }
    let by: Vec<String> = status
        .overridden_by
        .iter()
        .map(ToString::to_string)
        .collect();
    let by = if by.is_empty() {
        String::new()
    } else {
        format!(" by {}", by.join(", "))
    };
    let units = abridged(&status.overridden_units, MAX_NAMED_UNITS);
    format!(
        "{units} overridden{by} on {} of {} paths: {}",
        status.overridden_paths,
        status.paths,
        abridged(
            &status.overridden_path_names,
            status
                .overridden_paths
                .min(status.overridden_path_names.len())
        ),
    ) + if status.overridden_path_names.len() < status.overridden_paths {
        " and more"
    } else {
        ""
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: String) -> v1::Condition {
    v1::Condition {
        r#type: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
    }
}
