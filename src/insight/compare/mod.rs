//! Compares the effective policies of two worlds.

mod answers;
mod effect;
mod walk;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use effect::ChangeEffect;

use self::walk::Comparison;
use super::absent::absence;
use super::lookup::incomplete_kinds;
use super::warnings::of_policy;
use super::{ChangedObject, Failure, NameScope, ObjectChange, QuerySubject, Visibility, shortened};
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::effective::World;
use entail_core::engine::{ChangedPaths, PathEngine};
use entail_core::model::{ObjectKey, Str};

/// Maximum number of policies of a change that are warned of, and of warnings.
const MAX_WARNED: usize = 100;
/// Maximum number of objects that a change names to delete.
const MAX_DELETES: usize = 1_000;

/// Computes the world after manifests are applied and objects are deleted. Returns it with the
/// problems of the manifests: location and message. Objects that the filter rejects are skipped and
/// reported as problems.
pub type PreviewFn =
    fn(&World, &str, &[ObjectKey], &ChangeFilter<'_>) -> (World, Vec<(String, String)>);

/// Returns whether the caller may change an object.
pub type ChangeFilter<'m> = dyn Fn(&ObjectKey) -> bool + 'm;

/// Returns the effect of a change without applying it.
///
/// # Errors
/// The name of an object to delete is malformed, the object does not exist, or there are too many names.
pub fn preview_change(
    snapshot: &Snapshot,
    request: &v1::PreviewChangeRequest,
    change: PreviewFn,
    visibility: &dyn Visibility,
) -> Result<v1::PreviewChangeResponse, Failure> {
    let world = snapshot.world();
    Failure::check_count("deletes", request.deletes.len(), MAX_DELETES)?;
    let mut deletes = BTreeSet::new();
    let mut namespaces = BTreeSet::new();
    for name in &request.deletes {
        let key = object_named(snapshot, name, visibility)?;
        if key.kind.is_namespace() {
            namespaces.insert(key.name.clone());
        }
        if visibility.includes_object(&key) {
            deletes.insert(key);
        }
    }
    if !namespaces.is_empty() {
        let inside = objects_in(world, visibility, |namespace| {
            namespaces.contains(namespace)
        });
        deletes.extend(inside);
    }
    let deletes: Vec<ObjectKey> = deletes.into_iter().collect();
    visibility.budget().check()?;
    let (after, problems) = change(world, &request.manifests, &deletes, &|key| {
        visibility.includes_object(key)
    });
    visibility.budget().check()?;
    let version = snapshot.version();
    let after = PathEngine::new(after);
    let compared = compare(snapshot.engine(), &after, visibility);
    let warnings = change_warnings([world, after.world()], &compared, visibility);
    visibility.budget().check()?;
    let mut kinds = incomplete_kinds(snapshot, &[], visibility);
    kinds.extend(compared.kinds.iter().cloned());
    Ok(v1::PreviewChangeResponse {
        problems: problems
            .into_iter()
            .map(|(location, message)| v1::Problem {
                location,
                message,
                code: String::new(),
            })
            .collect(),
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds,
        truncated: compared.truncated || visibility.is_truncated(),
        warnings,
        ..compared
    })
}

/// Why policies that a change creates or replaces have no effect, or not at all of their targets.
pub fn change_warnings(
    [before, after]: [&World; 2],
    differences: &v1::PreviewChangeResponse,
    visibility: &dyn Visibility,
) -> Vec<String> {
    let policies = after.kinds().iter().flat_map(|kind| kind.policies());
    let policies = policies.take_while(|_| visibility.budget().step());
    let changed = policies.filter_map(|(_, policy)| {
        let known = before.store().get(&policy.key);
        let change = match known {
            None => ObjectChange::Created,
            Some(known) if Arc::ptr_eq(&known.object, &policy.object) => return None,
            Some(known) if known.object.body == policy.object.body => return None,
            Some(_) => ObjectChange::Updated,
        };
        let is_seen = visibility.includes_object(&policy.key);
        is_seen.then_some((&policy.key, change))
    });
    let mut found = Vec::new();
    for (key, change) in changed.take(MAX_WARNED) {
        let object = ChangedObject {
            key,
            change,
            names: &NameScope::All,
        };
        let texts = of_policy(after, object, differences);
        found.extend(texts.into_iter().map(|text| format!("{key}: {text}")));
    }
    found.truncate(MAX_WARNED);
    found
}

/// Finds the object with a name. A namespace without an object of its own exists by the objects in it.
fn object_named(
    snapshot: &Snapshot,
    name: &str,
    visibility: &dyn Visibility,
) -> Result<ObjectKey, Failure> {
    let world = snapshot.world();
    let QuerySubject::Object(key, None) = QuerySubject::read(name, world, visibility)? else {
        return Err(Failure::invalid(
            "NotAnObject",
            format!(
                "malformed object name `{}`: use `kind/namespace/name`",
                shortened(name)
            ),
        ));
    };
    let is_inhabited = key.kind.is_namespace()
        && objects_in(world, visibility, |namespace| *namespace == key.name)
            .next()
            .is_some();
    if is_inhabited {
        return Ok(key);
    }
    match absence(world, name, &key, visibility) {
        None => Ok(key),
        Some(failure) => Err(Failure {
            message: format!("{}; nothing to delete", failure.message),
            ..failure
        }),
    }
}

/// The visible objects in some namespaces, which are deleted with these.
fn objects_in<'w>(
    world: &'w World,
    visibility: &'w dyn Visibility,
    includes: impl Fn(&Str) -> bool + 'w,
) -> impl Iterator<Item = ObjectKey> {
    let objects = world.store().objects();
    let objects = objects.take_while(|_| visibility.budget().step());
    objects
        .filter(move |object| includes(&object.key.namespace))
        .filter(|object| visibility.includes_object(&object.key))
        .map(|object| object.key.clone())
}

/// Returns the changes from one world to another, and the kinds that are unknown on a compared path, or on one that
/// only one of them has. Equal changes form one entry with all their paths.
pub fn compare(
    before: &PathEngine,
    after: &PathEngine,
    visibility: &dyn Visibility,
) -> v1::PreviewChangeResponse {
    compare_changed([before, after], None, visibility)
}

/// As [`compare`], for two versions of one world that differ only in some paths: only these are compared, and name the
/// kinds that are unknown.
fn compare_changed(
    [before, after]: [&PathEngine; 2],
    changed: Option<&ChangedPaths>,
    visibility: &dyn Visibility,
) -> v1::PreviewChangeResponse {
    let mut comparison = Comparison::new([before, after], changed, visibility);
    let mut kinds = match comparison.compare_all() {
        Ok(()) => Vec::new(),
        // The world before the change may serve: what is wrong with the comparison is not an error of its answers.
        Err(error) => comparison.failed_kinds(error),
    };
    kinds.extend(comparison.unknown_kinds());
    let changes = merge_equal(comparison.take_changes());
    let is_lost = |unit: &v1::ChangedUnit| unit.before_json.is_some() && unit.after_json.is_none();
    v1::PreviewChangeResponse {
        loses_values: changes.iter().flat_map(|c| &c.units).any(is_lost),
        changes,
        kinds,
        paths_added: comparison.added.into_iter().collect(),
        paths_removed: comparison.removed.into_iter().collect(),
        truncated: comparison.truncated,
        ..v1::PreviewChangeResponse::default()
    }
}

/// Merges equal changes of a kind. Different explanations may lead to equal changes, because a change
/// contains only a part of them.
fn merge_equal(changes: impl Iterator<Item = v1::ChangedAnswer>) -> Vec<v1::ChangedAnswer> {
    let mut merged: Vec<v1::ChangedAnswer> = Vec::new();
    for mut change in changes {
        let paths = std::mem::take(&mut change.paths);
        let same = merged.iter_mut().find(|other| {
            other.kind == change.kind
                && other.units == change.units
                && other.newly_rejected == change.newly_rejected
        });
        match same {
            Some(other) => other.paths.extend(paths),
            None => merged.push(v1::ChangedAnswer { paths, ..change }),
        }
    }
    for change in &mut merged {
        change.paths.sort();
    }
    merged
}
