//! Explanations: who said what, who lost, and why.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::lookup::incomplete_kinds;
use super::paths::no_path_failure;
use super::status::scope_levels;
use super::{Failure, QuerySubject, Visibility};
use crate::api::{block, effective_policy, origin, policy_ref, timestamp, v1};
use crate::snapshot::Snapshot;
use entail_core::effective::{AttachmentChain, NodeAttachments, PolicyKind, World};
use entail_core::model::{BeatenPolicy, GroupKind, Level, PathName, UnitExplanation};
use entail_core::topology::ResolvedPath;

/// Most paths that one explanation names.
const MAX_PATHS: usize = 10_000;

/// The paths of a kind that have the same chain.
type PathGroups = BTreeMap<(usize, usize), (AttachmentChain, Vec<String>)>;

/// Explains a path, or every path through an object at each kind's effective level. Paths with the
/// same explanation are told once.
///
/// # Errors
/// A wrong name, or one that is on no path.
pub fn explain(
    snapshot: &Snapshot,
    request: &v1::ExplainRequest,
    visibility: &dyn Visibility,
) -> Result<v1::ExplainResponse, Failure> {
    let world = snapshot.world();
    let subject = QuerySubject::read(&request.name, world)?;
    let wanted: Vec<GroupKind> = request.kinds.iter().map(|k| GroupKind::parse(k)).collect();
    let kinds: Vec<&PolicyKind> = world
        .kinds()
        .iter()
        .filter(|kind| wanted.is_empty() || wanted.contains(&kind.profile().policy))
        .filter(|kind| visibility.includes_kind(&kind.profile().policy))
        .collect();
    let (found, truncated) = match &subject {
        QuerySubject::Path(name) => (one(snapshot, &kinds, name, visibility)?, false),
        QuerySubject::All | QuerySubject::Object(..) => {
            many(snapshot, &kinds, (&subject, &request.name), visibility)?
        }
    };
    let paths = found
        .into_iter()
        .filter_map(|((kind, _), (chain, paths))| {
            let kind = kinds.get(kind)?;
            let explained = explanation(world, kind, &chain);
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
    let states = incomplete_kinds(snapshot, &wanted, visibility);
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
    kinds: &[&PolicyKind],
    name: &str,
    visibility: &dyn Visibility,
) -> Result<PathGroups, Failure> {
    let world = snapshot.world();
    let path = PathName::parse(name).map_err(|error| Failure::syntax(name, &error))?;
    if !visibility.includes_path(name) {
        return Err(Failure::hidden(name, &path));
    }
    let resolved = world
        .locate(&path)
        .map_err(|reason| Failure::not_found(snapshot, name, reason, visibility))?;
    let mut found = PathGroups::new();
    for (number, kind) in kinds.iter().enumerate() {
        if let Some(chain) = world.attachment_chain(kind, &resolved) {
            found.insert((number, 0), (chain, vec![name.to_owned()]));
        }
    }
    Ok(found)
}

/// Every path through an object, at each kind's effective level.
fn many(
    snapshot: &Snapshot,
    kinds: &[&PolicyKind],
    (subject, name): (&QuerySubject, &str),
    visibility: &dyn Visibility,
) -> Result<(PathGroups, bool), Failure> {
    let world = snapshot.world();
    let levels: Vec<Vec<Level>> = kinds.iter().map(|k| scope_levels(k.profile())).collect();
    let mut known: HashMap<(usize, AttachmentChain), usize> = HashMap::new();
    let mut found = PathGroups::new();
    let (mut through, mut told, mut truncated) = (false, 0, false);
    world.topology().visit(&mut |path, resolved| {
        if !subject.includes(world, path, resolved) || !visibility.includes_path(path) {
            return;
        }
        through = true;
        for (number, kind) in kinds.iter().enumerate() {
            let scopes = levels.get(number).map_or(&[][..], Vec::as_slice);
            if !is_scope(world, subject, scopes, resolved) {
                continue;
            }
            let Some(chain) = world.attachment_chain(kind, resolved) else {
                continue;
            };
            if told >= MAX_PATHS {
                truncated = true;
                return;
            }
            told += 1;
            let next = known.len();
            let place = *known.entry((number, chain.clone())).or_insert(next);
            let entry = found.entry((number, place));
            entry
                .or_insert_with(|| (chain, Vec::new()))
                .1
                .push(path.to_owned());
        }
    });
    if !through {
        return Err(no_path_failure(snapshot, name, visibility));
    }
    Ok((found, truncated))
}

/// Whether a path is at a kind's effective level; where that is above the object, the path that
/// ends at the object answers for it.
fn is_scope(
    world: &World,
    subject: &QuerySubject,
    scopes: &[Level],
    resolved: &ResolvedPath,
) -> bool {
    let end = resolved.end();
    if scopes.contains(&end) {
        return true;
    }
    let QuerySubject::Object(key, section) = subject else {
        return false;
    };
    let at_object = resolved
        .steps
        .last()
        .is_some_and(|step| super::subject::is_step_of(world, step, key, section.as_deref()));
    at_object && scopes.iter().all(|level| *level < end)
}

fn explanation(world: &World, kind: &PolicyKind, chain: &AttachmentChain) -> v1::KindExplanation {
    let explained = world.explain(kind, chain);
    v1::KindExplanation {
        policy: Some(effective_policy(
            &kind.profile().policy,
            &explained.effective,
        )),
        nodes: world
            .node_attachments(kind, chain)
            .iter()
            .map(|here| node(world, here))
            .collect(),
        units: explained.units.iter().map(unit).collect(),
        losses: world
            .losses(kind, chain)
            .iter()
            .map(ToString::to_string)
            .collect(),
        warnings: warnings(world, kind, chain),
    }
}

fn warnings(world: &World, kind: &PolicyKind, chain: &AttachmentChain) -> Vec<String> {
    let differs = world.top_down_differs(kind, chain);
    let trap = "folding from the top, as GEP-713 draws it, would give another answer here: an \
                override above a weaker strategy does not hold there";
    differs.then(|| trap.to_owned()).into_iter().collect()
}

fn node(world: &World, here: &NodeAttachments<'_>) -> v1::AttachedNode {
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
                policy: Some(policy_ref(&entail_core::model::PolicyRef::of(&policy.key))),
                blocks: policy
                    .blocks
                    .iter()
                    .filter(|b| b.participates || !b.unset.is_empty())
                    .map(|b| format!("{}: {}", b.name.as_str(), b.strategy.strategy()))
                    .collect(),
                created: policy.object.created.map(timestamp),
            })
            .collect(),
    }
}

fn unit(outcome: &UnitExplanation) -> v1::UnitExplanation {
    let strategy = outcome.origin.as_ref().map(|o| o.strategy.to_string());
    v1::UnitExplanation {
        unit: outcome.unit.to_string(),
        value_json: outcome.value.as_ref().map(ToString::to_string),
        strategy: strategy.unwrap_or_default(),
        origin: outcome.origin.as_ref().map(origin),
        beaten: outcome.beaten.iter().map(beaten).collect(),
    }
}

fn beaten(beaten: &BeatenPolicy) -> v1::BeatenPolicy {
    v1::BeatenPolicy {
        policy: Some(policy_ref(&beaten.policy)),
        block: block(beaten.block).into(),
        unit: beaten.unit.to_string(),
        value_json: beaten.value.to_string(),
        reason: beaten.reason.as_str().to_owned(),
    }
}
