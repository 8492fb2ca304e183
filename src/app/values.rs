//! Worlds from values instead of manifests: for the `test` command, and for previews of changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::AppError;
use super::load::read_profiles;
use super::object_cache::{ObjectCache, epoch, now};
use crate::config::ControllerSettings;
use crate::insight::{ChangeFilter, LocalBackend, SourceProblems};
use crate::snapshot::Version;
use crate::source::manifests;
use entail_core::effective::World;
use entail_core::model::{Change, ObjectKey};
use entail_core::store::ProfileSources;

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
/// with the same key applies, and PolicyProfiles and CRDs among the objects define kinds.
pub fn world_of(values: &[Value]) -> World {
    cache_of(values, ProfileSources::shipped()).world()
}

/// Builds a query backend for objects given as values, as [`world_of`] does, with additional
/// profiles from files.
///
/// # Errors
/// Returns an error if a profile file is unreadable or invalid.
pub fn load_values(values: &[Value], profiles: &[PathBuf]) -> Result<LocalBackend, AppError> {
    let cache = cache_of(
        values,
        read_profiles(profiles, &ControllerSettings::default())?,
    );
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
    let parsed = manifests::read_objects(text, "change");
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
    cache.apply(change);
    (cache.world(), problems)
}

fn cache_of(values: &[Value], profiles: ProfileSources) -> ObjectCache {
    let mut change = Change::default();
    for value in values {
        // Each value is parsed separately, so that a malformed one does not affect the others.
        let parsed = manifests::read_objects(&value.to_string(), "objects");
        let objects = parsed.objects.into_iter();
        change
            .upserts
            .extend(objects.map(|read| Arc::new(read.object)));
    }
    let mut cache = ObjectCache::new(profiles);
    cache.apply(change);
    cache
}
