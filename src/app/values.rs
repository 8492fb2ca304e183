//! Worlds from values instead of manifests: for the `test` command, and for previews of changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::AppError;
use super::load::read_profiles;
use super::object_cache::{ObjectCache, epoch, now};
use crate::config::ControllerSettings;
use crate::insight::{ChangeFilter, LocalBackend, SourceProblems};
use crate::snapshot::Version;
use crate::source::manifests::{self, CrdSchemas};
use entail_core::effective::World;
use entail_core::model::{Change, GroupKind, Object, ObjectKey};
use entail_core::store::ProfileSources;

/// The largest size, in bytes, that defaults may add to the objects of a previewed change. A small request
/// must not need much memory.
const MAX_PREVIEW_DEFAULTS: usize = 32 * 1024 * 1024;

/// The size, in bytes, from which on the manifests of changes are read one after the other.
const LARGE_CHANGE: usize = 256 * 1024;

/// The manifests of a large change are read.
static READING: Mutex<()> = Mutex::new(());

/// Reads the documents of a YAML or JSON file, each with the line on which it begins.
///
/// # Errors
/// Returns an error if the file cannot be read or parsed.
pub fn read_values(path: &Path) -> Result<Vec<(u32, Value)>, AppError> {
    let name = path.to_string_lossy();
    let text = fs::read_to_string(path)
        .map_err(|error| AppError::Input(vec![format!("{name}: {error}")]))?;
    manifests::read_values(&text, &name).map_err(|error| AppError::Input(vec![error.to_string()]))
}

/// Builds the world of objects given as values, with the built-in profiles.
///
/// The values are read as manifests are: a malformed object is skipped, the later of two objects
/// with the same key applies, and PolicyProfiles and CRDs among the objects define kinds. Objects get
/// the defaults of their CRDs.
pub fn world_of(values: &[Value]) -> World {
    cache_of(values, ProfileSources::shipped()).world()
}

/// Builds a query backend for objects given as values, as [`world_of`] does, with additional
/// profiles from files.
///
/// # Errors
/// Returns an error if a profile file is unreadable or invalid.
pub fn load_values(values: &[Value], profiles: &[PathBuf]) -> Result<LocalBackend, AppError> {
    load_values_with(values, profiles, &ControllerSettings::default())
}

/// Builds a query backend as [`load_values`] does, with what is known besides the objects.
///
/// # Errors
/// Returns an error if a profile file is unreadable or invalid.
pub fn load_values_with(
    values: &[Value],
    profiles: &[PathBuf],
    settings: &ControllerSettings,
) -> Result<LocalBackend, AppError> {
    let cache = cache_of(values, read_profiles(profiles, settings)?);
    let snapshot = cache.into_snapshot(Version {
        epoch: epoch(),
        generation: 1,
        synced_at: now(),
    });
    Ok(LocalBackend {
        snapshot: Arc::new(snapshot),
        source_problems: SourceProblems::default(),
        change: change_world,
    })
}

/// Returns the world after applying manifests and deleting objects, and the problems of the
/// manifests. Objects for which `may` returns false are ignored and reported as problems.
///
/// The objects get the defaults of the CRDs in the world and in the manifests, as if an API server stored
/// them. If a CRD is among the manifests, existing objects of its kind get its defaults, too.
pub fn change_world(
    world: &World,
    text: &str,
    deletes: &[ObjectKey],
    may: &ChangeFilter<'_>,
) -> (World, Vec<(String, String)>) {
    let mut change = Change {
        deletes: deletes.to_vec(),
        ..Change::default()
    };
    let mut problems = Vec::new();
    let parsed = {
        // While it is read, a text takes many times its size.
        let _one_after_the_other = (text.len() > LARGE_CHANGE)
            .then(|| READING.lock().unwrap_or_else(PoisonError::into_inner));
        manifests::read_objects(text, "change")
    };
    let parse_problems = parsed.problems.iter();
    problems.extend(parse_problems.map(|p| (p.path.clone(), p.message.clone())));
    for read in parsed.objects {
        let key = &read.object.key;
        if may(key) {
            change.upserts.push(Arc::new(read.object));
        } else {
            let message = format!("`{key}` is ignored: access denied");
            problems.push(("change".to_owned(), message));
        }
    }
    let mut cache = ObjectCache::with_store(world.profiles().clone(), world.store().clone());
    apply_defaults(&cache, &mut change, &mut problems);
    cache.apply(change);
    (cache.world(), problems)
}

/// Applies the defaults of CRDs to the objects of a change, and adds the existing objects that a CRD of
/// the change gives other fields.
fn apply_defaults(cache: &ObjectCache, change: &mut Change, problems: &mut Vec<(String, String)>) {
    let deletes = change.deletes.iter();
    let scopes = cache.scopes();
    let key_in_store = |key: &ObjectKey| ObjectKey {
        namespace: scopes.namespace(&key.kind, &key.namespace),
        ..key.clone()
    };
    let deleted: BTreeSet<ObjectKey> = deletes.map(key_in_store).collect();
    let kept = |object: &&Arc<Object>| !deleted.contains(&object.key);
    let crds = GroupKind::crd();
    let old = cache.store().of_kind(&crds).map(|(_, entry)| &entry.object);
    let schemas = CrdSchemas::of(old.filter(kept).chain(&change.upserts));
    let defined = change.upserts.iter();
    let defined: BTreeSet<GroupKind> = defined.filter_map(|crd| crd.defined_kind()).collect();
    let existing = defined.iter().flat_map(|kind| cache.store().of_kind(kind));
    let existing = existing.map(|(_, entry)| &entry.object).filter(kept);
    let mut left = MAX_PREVIEW_DEFAULTS;
    let mut upserts = Vec::new();
    for object in existing.chain(&change.upserts) {
        match schemas.with_defaults(object, &mut left) {
            Ok(completed) => upserts.push(completed.object),
            Err(error) => {
                problems.push(("change".to_owned(), format!("{}: {error}", object.key)));
                upserts.push(Arc::clone(object));
            }
        }
    }
    change.upserts = upserts;
}

fn cache_of(values: &[Value], profiles: ProfileSources) -> ObjectCache {
    let mut objects = Vec::new();
    for value in values {
        // Each value is parsed separately, so that a malformed one does not affect the others.
        let parsed = manifests::read_objects(&value.to_string(), "objects");
        let parsed = parsed.objects.into_iter();
        objects.extend(parsed.map(|read| Arc::new(read.object)));
    }
    let schemas = CrdSchemas::of(&objects);
    for object in &mut objects {
        // Objects whose defaults are too large stay as they are written.
        if let Ok(defaulted) = schemas.with_defaults(object, &mut { usize::MAX }) {
            *object = defaulted.object;
        }
    }
    let mut cache = ObjectCache::new(profiles);
    cache.apply(Change {
        upserts: objects,
        ..Change::default()
    });
    cache
}
