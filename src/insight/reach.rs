//! Where a policy reaches: every path and object that it affects, and how far it is in force.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::lookup::incomplete_kinds;
use super::policies::message;
use super::{Failure, QuerySubject, Visibility};
use crate::api::{policy_ref, v1};
use crate::snapshot::Snapshot;
use entail_core::effective::{AttachmentChain, PolicyKind, World};
use entail_core::model::{PolicyRef, Unit};

/// Units that were won, and units that were lost.
type Shares = (Vec<String>, Vec<String>);

/// Most paths that one reply names.
const MAX_PATHS: usize = 10_000;

/// Tells where a policy, or one unit of it, reaches.
///
/// # Errors
/// A name that is none of a policy.
pub(super) fn reach(
    snapshot: &Snapshot,
    name: &str,
    unit: &str,
    visibility: &dyn Visibility,
) -> Result<v1::ListAffectedResponse, Failure> {
    let world = snapshot.world();
    let (number, index) = policy_named(world, name, visibility)?;
    let wanted = match unit {
        "" => Unit::default(),
        text => Unit::parse(text).ok_or_else(|| {
            Failure::invalid(
                "NotAUnit",
                format!("`{text}` is no unit: give a dotted path"),
            )
        })?,
    };
    let Some((kind, policy)) = world
        .kinds()
        .get(number)
        .and_then(|kind| Some((kind, kind.policies().get(index)?)))
    else {
        return Err(Failure::no_such_object(format!(
            "there is no policy `{name}`"
        )));
    };
    let statuses = snapshot.statuses();
    let status = statuses.of(number, index).cloned().unwrap_or_default();
    let of = (kind, &PolicyRef::of(&policy.key));
    let (paths, truncated) = paths(world, of, &wanted, visibility);
    let objects = statuses
        .affected
        .iter()
        .filter(|(_, policies)| policies.contains(&(number, index)))
        .filter(|(node, _)| visibility.includes_object(&world.topology().key(**node).object))
        .map(|(node, _)| world.topology().describe(*node));
    Ok(v1::ListAffectedResponse {
        status: Some(message(world, kind, (index, policy), &status)),
        objects: objects.collect::<BTreeSet<_>>().into_iter().collect(),
        paths,
        truncated,
        ..v1::ListAffectedResponse::default()
    })
}

/// The kind and the policy of a name.
fn policy_named(
    world: &World,
    name: &str,
    visibility: &dyn Visibility,
) -> Result<(usize, usize), Failure> {
    if let QuerySubject::Object(key, None) = QuerySubject::read(name, world)?
        && visibility.includes_object(&key)
    {
        for (number, kind) in world.kinds().iter().enumerate() {
            if let Some(index) = kind.policy(&key) {
                return Ok((number, index));
            }
        }
    }
    Err(Failure::no_such_object(format!(
        "there is no policy `{name}`: give `kind/namespace/name`"
    )))
}

/// The scopes in which the policy stands, with what it won and lost of the wanted units.
fn paths(
    world: &World,
    (kind, policy): (&PolicyKind, &PolicyRef),
    wanted: &Unit,
    visibility: &dyn Visibility,
) -> (Vec<v1::AffectedPath>, bool) {
    let mut known: HashMap<AttachmentChain, Option<Shares>> = HashMap::new();
    let mut found = Vec::new();
    let mut truncated = false;
    world.topology().visit(&mut |name, resolved| {
        if !world.is_scope(kind, resolved) || !visibility.includes_path(name) {
            return;
        }
        let Some(chain) = world.attachment_chain(kind, resolved) else {
            return;
        };
        let shares = known
            .entry(chain)
            .or_insert_with_key(|chain| share(world, kind, chain, policy, wanted));
        let Some((won, lost)) = shares else { return };
        if found.len() >= MAX_PATHS {
            truncated = true;
            return;
        }
        found.push(v1::AffectedPath {
            path: name.to_owned(),
            won: won.clone(),
            lost: lost.clone(),
        });
    });
    (found, truncated)
}

/// What a policy won and lost; `None` if it has no part in the wanted units there.
fn share(
    world: &World,
    kind: &PolicyKind,
    chain: &AttachmentChain,
    policy: &PolicyRef,
    wanted: &Unit,
) -> Option<Shares> {
    let meets = |unit: &Unit| unit.covers(wanted) || wanted.covers(unit);
    let explained = world.explain(kind, chain);
    let listed = explained
        .effective
        .listed
        .iter()
        .any(|l| l.policy == *policy);
    let mut won: Vec<String> = explained
        .units
        .iter()
        .filter(|unit| meets(&unit.unit))
        .filter(|unit| {
            unit.origin
                .as_ref()
                .is_some_and(|o| o.policies.contains(policy))
        })
        .map(|unit| unit.unit.to_string())
        .collect();
    if listed {
        won.push("*".to_owned());
    }
    let lost: BTreeSet<String> = explained
        .units
        .iter()
        .flat_map(|unit| &unit.beaten)
        .filter(|beaten| beaten.policy == *policy && meets(&beaten.unit))
        .map(|beaten| beaten.unit.to_string())
        .collect();
    (!won.is_empty() || !lost.is_empty()).then(|| (won, lost.into_iter().collect()))
}

/// The policies that affect an object (specification 9.3).
pub(super) fn affecting(
    snapshot: &Snapshot,
    object: &str,
    visibility: &dyn Visibility,
) -> Result<v1::ListAffectedResponse, Failure> {
    let world = snapshot.world();
    let subject = QuerySubject::read(object, world)?;
    if let QuerySubject::Object(key, _) = &subject
        && !visibility.includes_object(key)
    {
        // Nothing affects an object that is not there, either.
        return Ok(v1::ListAffectedResponse::default());
    }
    let key = match subject {
        QuerySubject::Object(key, None) => key.to_string(),
        QuerySubject::Object(key, Some(section)) => format!("{key}#{section}"),
        QuerySubject::All | QuerySubject::Path(_) => {
            return Err(Failure::invalid(
                "NotAnObject",
                format!("`{object}` is no object: give `kind/namespace/name`"),
            ));
        }
    };
    let affecting = world.affecting(&snapshot.statuses(), &key);
    Ok(v1::ListAffectedResponse {
        policies: affecting
            .into_iter()
            .filter(|(kind, _)| visibility.includes_kind(kind))
            .map(|(kind, policy)| v1::AffectingPolicy {
                kind: kind.to_string(),
                policy: Some(policy_ref(&policy)),
            })
            .collect(),
        ..v1::ListAffectedResponse::default()
    })
}

/// Lists the policies that affect an object, or where a policy reaches.
///
/// # Errors
/// A name that is none.
pub fn list_affected(
    snapshot: &Snapshot,
    request: &v1::ListAffectedRequest,
    visibility: &dyn Visibility,
) -> Result<v1::ListAffectedResponse, Failure> {
    use v1::list_affected_request::Subject as RequestSubject;
    let found = match &request.subject {
        Some(RequestSubject::Object(object)) => affecting(snapshot, object, visibility)?,
        Some(RequestSubject::Policy(policy)) => reach(snapshot, policy, &request.unit, visibility)?,
        None => {
            return Err(Failure::invalid(
                "NoSubject",
                "the request names nothing: set `object` or `policy`",
            ));
        }
    };
    let version = snapshot.version();
    Ok(v1::ListAffectedResponse {
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &[], visibility),
        ..found
    })
}
