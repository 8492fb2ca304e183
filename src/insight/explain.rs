//! Explanations: who said what, who lost, and why.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::look_up::incomplete_kinds;
use super::paths::nothing;
use super::status::scope_levels;
use super::{Failure, Sight, Subject};
use crate::api::{block, effective_policy, node_policy_ref, origin, timestamp, v1};
use crate::snapshot::Snapshot;
use entail_core::effective::{AttachedHere, Frames, Kind, World};
use entail_core::model::{Beaten, GroupKind, Level, PathName, UnitOutcome};
use entail_core::topology::Trail;

/// Most paths that one explanation names.
const MAX_PATHS: usize = 10_000;

/// The paths of a kind that have the same frames.
type Found = BTreeMap<(usize, usize), (Frames, Vec<String>)>;

/// Explains a path, or every path through an object at each kind's effective level. Paths with the
/// same explanation are told once.
///
/// # Errors
/// A wrong name, or one that is on no path.
pub fn explain(
    snapshot: &Snapshot,
    request: &v1::ExplainRequest,
    sight: &dyn Sight,
) -> Result<v1::ExplainResponse, Failure> {
    let world = snapshot.world();
    let subject = Subject::read(&request.name, world)?;
    let wanted: Vec<GroupKind> = request.kinds.iter().map(|k| GroupKind::parse(k)).collect();
    let kinds: Vec<&Kind> = world
        .kinds()
        .iter()
        .filter(|kind| wanted.is_empty() || wanted.contains(&kind.profile().policy))
        .filter(|kind| sight.kind(&kind.profile().policy))
        .collect();
    let (found, truncated) = match &subject {
        Subject::Path(name) => (one(snapshot, &kinds, name, sight)?, false),
        Subject::All | Subject::Object(..) => {
            many(snapshot, &kinds, (&subject, &request.name), sight)?
        }
    };
    let paths = found
        .into_iter()
        .filter_map(|((kind, _), (frames, paths))| {
            let kind = kinds.get(kind)?;
            let explained = explanation(world, kind, &frames);
            let silent = explained.units.is_empty() && explained.nodes.is_empty();
            let rejected = explained
                .policy
                .as_ref()
                .is_some_and(|p| !p.rejected.is_empty());
            (!silent || rejected).then(|| v1::PathExplanation {
                paths,
                kinds: vec![explained],
            })
        })
        .collect();
    let version = snapshot.version();
    let states = incomplete_kinds(snapshot, &wanted, sight);
    Ok(v1::ExplainResponse {
        paths,
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: states,
        truncated,
    })
}

/// One path, as a look-up sees it.
fn one(
    snapshot: &Snapshot,
    kinds: &[&Kind],
    name: &str,
    sight: &dyn Sight,
) -> Result<Found, Failure> {
    let world = snapshot.world();
    let path = PathName::parse(name).map_err(|error| Failure::syntax(name, &error))?;
    if !sight.path(name) {
        return Err(Failure::hidden(name, &path));
    }
    let trail = world
        .locate(&path)
        .map_err(|reason| Failure::not_found(snapshot, name, reason, sight))?;
    let mut found = Found::new();
    for (number, kind) in kinds.iter().enumerate() {
        if let Some(frames) = world.frames(kind, &trail) {
            found.insert((number, 0), (frames, vec![name.to_owned()]));
        }
    }
    Ok(found)
}

/// Every path through an object, at each kind's effective level.
fn many(
    snapshot: &Snapshot,
    kinds: &[&Kind],
    (subject, name): (&Subject, &str),
    sight: &dyn Sight,
) -> Result<(Found, bool), Failure> {
    let world = snapshot.world();
    let levels: Vec<Vec<Level>> = kinds.iter().map(|k| scope_levels(k.profile())).collect();
    let mut known: HashMap<(usize, Frames), usize> = HashMap::new();
    let mut found = Found::new();
    let (mut through, mut told, mut truncated) = (false, 0, false);
    world.topology().visit(&mut |path, trail| {
        if !subject.includes(world, path, trail) || !sight.path(path) {
            return;
        }
        through = true;
        for (number, kind) in kinds.iter().enumerate() {
            let scopes = levels.get(number).map_or(&[][..], Vec::as_slice);
            if !is_scope(world, subject, scopes, trail) {
                continue;
            }
            let Some(frames) = world.frames(kind, trail) else {
                continue;
            };
            if told >= MAX_PATHS {
                truncated = true;
                return;
            }
            told += 1;
            let next = known.len();
            let place = *known.entry((number, frames.clone())).or_insert(next);
            let entry = found.entry((number, place));
            entry
                .or_insert_with(|| (frames, Vec::new()))
                .1
                .push(path.to_owned());
        }
    });
    if !through {
        return Err(nothing(snapshot, name, sight));
    }
    Ok((found, truncated))
}

/// Whether a path is at a kind's effective level; where that is above the object, the path that
/// ends at the object answers for it.
fn is_scope(world: &World, subject: &Subject, scopes: &[Level], trail: &Trail) -> bool {
    let end = trail.end();
    if scopes.contains(&end) {
        return true;
    }
    let Subject::Object(key, section) = subject else {
        return false;
    };
    let at_object = trail
        .steps
        .last()
        .is_some_and(|step| super::name::at(world, step, key, section.as_deref()));
    at_object && scopes.iter().all(|level| *level < end)
}

fn explanation(world: &World, kind: &Kind, frames: &Frames) -> v1::KindExplanation {
    let explained = world.explain(kind, frames);
    v1::KindExplanation {
        policy: Some(effective_policy(
            &kind.profile().policy,
            &explained.effective,
        )),
        nodes: world
            .attached_here(kind, frames)
            .iter()
            .map(|here| node(world, here))
            .collect(),
        units: explained.units.iter().map(unit).collect(),
        losses: world
            .losses(kind, frames)
            .iter()
            .map(ToString::to_string)
            .collect(),
        warnings: warnings(world, kind, frames),
    }
}

fn warnings(world: &World, kind: &Kind, frames: &Frames) -> Vec<String> {
    let differs = world.top_down_differs(kind, frames);
    let trap = "folding from the top, as GEP-713 draws it, would give another answer here: an \
                override above a weaker strategy does not hold there";
    differs.then(|| trap.to_owned()).into_iter().collect()
}

fn node(world: &World, here: &AttachedHere<'_>) -> v1::AttachedNode {
    v1::AttachedNode {
        node: match here.level {
            Level::Root => "Root".to_owned(),
            _ => world.topology().describe(here.node),
        },
        level: here.level.to_string(),
        policies: here
            .policies
            .iter()
            .map(|policy| v1::AttachedPolicy {
                policy: Some(node_policy_ref(&entail_core::model::PolicyRef::of(
                    &policy.key,
                ))),
                blocks: policy
                    .blocks
                    .iter()
                    .filter(|b| b.offers || !b.unset.is_empty())
                    .map(|b| format!("{}: {}", b.name.as_str(), b.strategy.strategy()))
                    .collect(),
                created: policy.object.created.map(timestamp),
            })
            .collect(),
    }
}

fn unit(outcome: &UnitOutcome) -> v1::UnitExplanation {
    let strategy = outcome.origin.as_ref().map(|o| o.strategy.to_string());
    v1::UnitExplanation {
        unit: outcome.unit.to_string(),
        value_json: outcome.value.as_ref().map(ToString::to_string),
        strategy: strategy.unwrap_or_default(),
        origin: outcome.origin.as_ref().map(origin),
        beaten: outcome.beaten.iter().map(beaten).collect(),
    }
}

fn beaten(beaten: &Beaten) -> v1::BeatenPolicy {
    v1::BeatenPolicy {
        policy: Some(node_policy_ref(&beaten.policy)),
        block: block(beaten.block).into(),
        unit: beaten.unit.to_string(),
        value_json: beaten.value.to_string(),
        reason: beaten.reason.as_str().to_owned(),
    }
}
