//! What changes between two worlds: on which paths, and which values.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::lookup::incomplete_kinds;
use super::{Failure, QuerySubject, Visibility};
use crate::api::{origin, policy_ref, v1};
use crate::snapshot::Snapshot;
use entail_core::effective::{AttachmentChain, PolicyKind, World};
use entail_core::model::{
    Explanation, GroupKind, ObjectKey, PathName, RejectedPolicy, UnitExplanation,
};
use entail_core::topology::ResolvedPath;

/// Makes the world that another one would be if manifests were applied and objects deleted.
/// Returns it with what is wrong with the manifests: place and message.
/// Objects that `may` refuses are left out, and told among that.
pub type PreviewFn =
    fn(&World, &str, &[ObjectKey], &ChangeFilter<'_>) -> (World, Vec<(String, String)>);

/// Tells whether an object may be changed.
pub type ChangeFilter<'m> = dyn Fn(&ObjectKey) -> bool + 'm;

/// Most paths that one reply names.
const MAX_PATHS: usize = 10_000;

/// Tells what a change would do.
///
/// # Errors
/// A name to delete that is none, or that nothing has.
pub fn preview_change(
    snapshot: &Snapshot,
    request: &v1::PreviewChangeRequest,
    change: PreviewFn,
    visibility: &dyn Visibility,
) -> Result<v1::PreviewChangeResponse, Failure> {
    let world = snapshot.world();
    let mut deletes = Vec::with_capacity(request.deletes.len());
    for name in &request.deletes {
        deletes.push(object_named(world, name, visibility)?);
    }
    let (after, problems) = change(world, &request.manifests, &deletes, &|key| {
        visibility.includes_object(key)
    });
    let version = snapshot.version();
    Ok(v1::PreviewChangeResponse {
        problems: problems
            .into_iter()
            .map(|(place, message)| v1::Problem { place, message })
            .collect(),
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &[], visibility),
        ..compare(world, &after, visibility)
    })
}

/// The object that a name means.
fn object_named(
    world: &World,
    name: &str,
    visibility: &dyn Visibility,
) -> Result<ObjectKey, Failure> {
    let QuerySubject::Object(key, None) = QuerySubject::read(name, world)? else {
        return Err(Failure::invalid(
            "NotAnObject",
            format!("`{name}` is no object: give `kind/namespace/name`"),
        ));
    };
    if world.store().get(&key).is_none() || !visibility.includes_object(&key) {
        return Err(Failure::no_such_object(format!(
            "there is no `{name}` to delete"
        )));
    }
    Ok(key)
}

/// The changes from one world to another, equal ones told once with all their paths.
pub fn compare(
    before: &World,
    after: &World,
    visibility: &dyn Visibility,
) -> v1::PreviewChangeResponse {
    let mut comparison = Comparison {
        visibility,
        before: Side::new(before),
        after: Side::new(after),
        changes: BTreeMap::new(),
        known: HashMap::new(),
        told: 0,
        truncated: false,
    };
    let (old, new) = (names(before, visibility), names(after, visibility));
    before.topology().visit(&mut |name, resolved| {
        if !new.contains(name) {
            return;
        }
        let located = PathName::parse(name).map(|path| after.locate(&path));
        if let Ok(Ok(other)) = located {
            comparison.path(name, resolved, &other);
        }
    });
    let changes = once(comparison.changes.into_values());
    let lost = |unit: &v1::ChangedUnit| unit.before_json.is_some() && unit.after_json.is_none();
    v1::PreviewChangeResponse {
        loses: changes.iter().flat_map(|c| &c.units).any(lost),
        changes,
        paths_added: new.difference(&old).cloned().collect(),
        paths_removed: old.difference(&new).cloned().collect(),
        truncated: comparison.truncated,
        ..v1::PreviewChangeResponse::default()
    }
}

/// Equal changes of one kind, with all their paths: explanations may differ in what does not show.
fn once(changes: impl Iterator<Item = v1::ChangedAnswer>) -> Vec<v1::ChangedAnswer> {
    let mut found: Vec<v1::ChangedAnswer> = Vec::new();
    for mut change in changes {
        let paths = std::mem::take(&mut change.paths);
        let same = found.iter_mut().find(|other| {
            other.kind == change.kind
                && other.units == change.units
                && other.newly_rejected == change.newly_rejected
        });
        match same {
            Some(other) => other.paths.extend(paths),
            None => found.push(v1::ChangedAnswer { paths, ..change }),
        }
    }
    for change in &mut found {
        change.paths.sort();
    }
    found
}

/// The names of all paths.
fn names(world: &World, visibility: &dyn Visibility) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    world.topology().visit(&mut |name, _| {
        if visibility.includes_path(name) {
            names.insert(name.to_owned());
        }
    });
    names
}

/// One of two worlds, with the explanations that were needed so far.
struct Side<'w> {
    world: &'w World,
    numbers: HashMap<(GroupKind, Option<AttachmentChain>), usize>,
    explained: Vec<Explanation>,
}

struct Comparison<'w> {
    visibility: &'w dyn Visibility,
    before: Side<'w>,
    after: Side<'w>,
    /// By kind and the numbers of both explanations.
    changes: BTreeMap<(GroupKind, usize, usize), v1::ChangedAnswer>,
    known: HashMap<(GroupKind, usize, usize), bool>,
    told: usize,
    truncated: bool,
}

impl<'w> Side<'w> {
    fn new(world: &'w World) -> Self {
        Self {
            world,
            numbers: HashMap::new(),
            explained: Vec::new(),
        }
    }

    /// The number of the explanation of a kind on a path.
    fn number(&mut self, kind: &GroupKind, resolved: &ResolvedPath) -> usize {
        let known: Option<&PolicyKind> = self.world.kind(kind);
        let chain = known.and_then(|k| self.world.attachment_chain(k, resolved));
        let key = (kind.clone(), chain);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let explained = match (known, &key.1) {
            (Some(known), Some(chain)) => self.world.explain(known, chain),
            _ => Explanation::default(),
        };
        let number = self.explained.len();
        self.explained.push(explained);
        self.numbers.insert(key, number);
        number
    }

    fn is_scope(&self, kind: &GroupKind, resolved: &ResolvedPath) -> bool {
        let known = self.world.kind(kind);
        known.is_some_and(|k| self.world.is_scope(k, resolved))
    }
}

impl Comparison<'_> {
    /// Compares the answers of one path, of each kind that it is a scope of.
    fn path(&mut self, name: &str, old: &ResolvedPath, new: &ResolvedPath) {
        let kinds: BTreeSet<GroupKind> = [self.before.world, self.after.world]
            .iter()
            .flat_map(|world| world.kinds())
            .filter(|kind| self.visibility.includes_kind(&kind.profile().policy))
            .filter(|kind| !kind.policies().is_empty())
            .map(|kind| kind.profile().policy.clone())
            .collect();
        for kind in kinds {
            if !self.before.is_scope(&kind, old) && !self.after.is_scope(&kind, new) {
                continue;
            }
            let numbers = (
                self.before.number(&kind, old),
                self.after.number(&kind, new),
            );
            let key = (kind.clone(), numbers.0, numbers.1);
            let changed = match self.known.get(&key) {
                Some(&changed) => changed,
                None => self.look(&key),
            };
            if !changed {
                continue;
            }
            if self.told >= MAX_PATHS {
                self.truncated = true;
                continue;
            }
            self.told += 1;
            if let Some(change) = self.changes.get_mut(&key) {
                change.paths.push(name.to_owned());
            }
        }
    }

    /// Compares two explanations; `true` if something changes.
    fn look(&mut self, key: &(GroupKind, usize, usize)) -> bool {
        let nothing = Explanation::default();
        let old = self.before.explained.get(key.1).unwrap_or(&nothing);
        let new = self.after.explained.get(key.2).unwrap_or(&nothing);
        let change = v1::ChangedAnswer {
            kind: key.0.to_string(),
            paths: Vec::new(),
            units: units(&old.units, &new.units),
            newly_rejected: rejected(&old.effective.rejected, &new.effective.rejected),
        };
        let changed = !change.units.is_empty() || !change.newly_rejected.is_empty();
        self.known.insert(key.clone(), changed);
        if changed {
            self.changes.insert(key.clone(), change);
        }
        changed
    }
}

/// The units whose value or origin changes.
fn units(old: &[UnitExplanation], new: &[UnitExplanation]) -> Vec<v1::ChangedUnit> {
    let standing = |units: &[UnitExplanation]| -> BTreeMap<String, UnitExplanation> {
        units
            .iter()
            .filter(|unit| unit.value.is_some())
            .map(|unit| (unit.unit.to_string(), unit.clone()))
            .collect()
    };
    let (old, new) = (standing(old), standing(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        let (before, after) = (old.get(name), new.get(name));
        let value = |unit: Option<&UnitExplanation>| unit.and_then(|u| u.value.clone());
        let who = |unit: Option<&UnitExplanation>| {
            let origin = unit.and_then(|u| u.origin.as_ref());
            origin.map(|o| (o.policies.clone(), o.block))
        };
        if value(before) == value(after) && who(before) == who(after) {
            continue;
        }
        // What an object or a scalar in its place replaces is told there, and is not lost.
        if before.is_some_and(|unit| after.is_none() && meets(unit, new.values())) {
            continue;
        }
        let told =
            |unit: Option<&UnitExplanation>| unit.and_then(|u| u.origin.as_ref()).map(origin);
        found.push(v1::ChangedUnit {
            unit: name.clone(),
            before_json: value(before).map(|v| v.to_string()),
            after_json: value(after).map(|v| v.to_string()),
            before_origin: told(before),
            after_origin: told(after),
        });
    }
    found
}

/// Whether another unit stands above or below.
fn meets<'u>(
    unit: &UnitExplanation,
    mut others: impl Iterator<Item = &'u UnitExplanation>,
) -> bool {
    others.any(|other| other.unit.covers(&unit.unit) || unit.unit.covers(&other.unit))
}

fn rejected(old: &[RejectedPolicy], new: &[RejectedPolicy]) -> Vec<v1::RejectedPolicy> {
    new.iter()
        .filter(|r| !old.contains(r))
        .map(|rejected| v1::RejectedPolicy {
            policy: Some(policy_ref(&rejected.policy)),
            reason: rejected.reason.clone(),
            message: rejected.message.clone(),
        })
        .collect()
}
