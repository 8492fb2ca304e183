//! What changes between two worlds: on which paths, and which values.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::look_up::incomplete_kinds;
use super::{Failure, Sight, Subject};
use crate::api::{node_policy_ref, origin, v1};
use crate::snapshot::Snapshot;
use entail_core::effective::{Frames, Kind, World};
use entail_core::model::{Explained, GroupKind, ObjectKey, PathName, Rejected, UnitOutcome};
use entail_core::topology::Trail;

/// Makes the world that another one would be if manifests were applied and objects deleted.
/// Returns it with what is wrong with the manifests: place and message.
/// Objects that `may` refuses are left out, and told among that.
pub type ChangeWorld =
    fn(&World, &str, &[ObjectKey], &MayChange<'_>) -> (World, Vec<(String, String)>);

/// Tells whether an object may be changed.
pub type MayChange<'m> = dyn Fn(&ObjectKey) -> bool + 'm;

/// Most paths that one reply names.
const MAX_PATHS: usize = 10_000;

/// Tells what a change would do.
///
/// # Errors
/// A name to delete that is none, or that nothing has.
pub fn preview_change(
    snapshot: &Snapshot,
    request: &v1::PreviewChangeRequest,
    change: ChangeWorld,
    sight: &dyn Sight,
) -> Result<v1::PreviewChangeResponse, Failure> {
    let world = snapshot.world();
    let mut deletes = Vec::with_capacity(request.deletes.len());
    for name in &request.deletes {
        deletes.push(object_named(world, name, sight)?);
    }
    let (after, problems) = change(world, &request.manifests, &deletes, &|key| {
        sight.object(key)
    });
    let version = snapshot.version();
    Ok(v1::PreviewChangeResponse {
        problems: problems
            .into_iter()
            .map(|(place, message)| v1::Problem { place, message })
            .collect(),
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &[], sight),
        ..compare(world, &after, sight)
    })
}

/// The object that a name means.
fn object_named(world: &World, name: &str, sight: &dyn Sight) -> Result<ObjectKey, Failure> {
    let Subject::Object(key, None) = Subject::read(name, world)? else {
        return Err(Failure::invalid(
            "NotAnObject",
            format!("`{name}` is no object: give `kind/namespace/name`"),
        ));
    };
    if world.store().get(&key).is_none() || !sight.object(&key) {
        return Err(Failure::absent(format!("there is no `{name}` to delete")));
    }
    Ok(key)
}

/// The changes from one world to another, equal ones told once with all their paths.
pub fn compare(before: &World, after: &World, sight: &dyn Sight) -> v1::PreviewChangeResponse {
    let mut comparison = Comparison {
        sight,
        before: Side::new(before),
        after: Side::new(after),
        changes: BTreeMap::new(),
        known: HashMap::new(),
        told: 0,
        truncated: false,
    };
    let (old, new) = (names(before, sight), names(after, sight));
    before.topology().visit(&mut |name, trail| {
        if !new.contains(name) {
            return;
        }
        let located = PathName::parse(name).map(|path| after.locate(&path));
        if let Ok(Ok(other)) = located {
            comparison.path(name, trail, &other);
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
fn names(world: &World, sight: &dyn Sight) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    world.topology().visit(&mut |name, _| {
        if sight.path(name) {
            names.insert(name.to_owned());
        }
    });
    names
}

/// One of two worlds, with the explanations that were needed so far.
struct Side<'w> {
    world: &'w World,
    numbers: HashMap<(GroupKind, Option<Frames>), usize>,
    explained: Vec<Explained>,
}

struct Comparison<'w> {
    sight: &'w dyn Sight,
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
    fn number(&mut self, kind: &GroupKind, trail: &Trail) -> usize {
        let known: Option<&Kind> = self.world.kind(kind);
        let frames = known.and_then(|k| self.world.frames(k, trail));
        let key = (kind.clone(), frames);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let explained = match (known, &key.1) {
            (Some(known), Some(frames)) => self.world.explain(known, frames),
            _ => Explained::default(),
        };
        let number = self.explained.len();
        self.explained.push(explained);
        self.numbers.insert(key, number);
        number
    }

    fn is_scope(&self, kind: &GroupKind, trail: &Trail) -> bool {
        let known = self.world.kind(kind);
        known.is_some_and(|k| self.world.is_scope(k, trail))
    }
}

impl Comparison<'_> {
    /// Compares the answers of one path, of each kind that it is a scope of.
    fn path(&mut self, name: &str, old: &Trail, new: &Trail) {
        let kinds: BTreeSet<GroupKind> = [self.before.world, self.after.world]
            .iter()
            .flat_map(|world| world.kinds())
            .filter(|kind| self.sight.kind(&kind.profile().policy))
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
        let nothing = Explained::default();
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
fn units(old: &[UnitOutcome], new: &[UnitOutcome]) -> Vec<v1::ChangedUnit> {
    let standing = |units: &[UnitOutcome]| -> BTreeMap<String, UnitOutcome> {
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
        let value = |unit: Option<&UnitOutcome>| unit.and_then(|u| u.value.clone());
        let who = |unit: Option<&UnitOutcome>| {
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
        let told = |unit: Option<&UnitOutcome>| unit.and_then(|u| u.origin.as_ref()).map(origin);
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
fn meets<'u>(unit: &UnitOutcome, mut others: impl Iterator<Item = &'u UnitOutcome>) -> bool {
    others.any(|other| other.unit.covers(&unit.unit) || unit.unit.covers(&other.unit))
}

fn rejected(old: &[Rejected], new: &[Rejected]) -> Vec<v1::RejectedPolicy> {
    new.iter()
        .filter(|r| !old.contains(r))
        .map(|rejected| v1::RejectedPolicy {
            policy: Some(node_policy_ref(&rejected.policy)),
            reason: rejected.reason.clone(),
            message: rejected.message.clone(),
        })
        .collect()
}
