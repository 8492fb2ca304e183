//! Objects and values outside manifests, for the `test` command.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::AppError;
use super::load::read_profiles;
use super::object_cache::{ObjectCache, epoch, now};
use crate::insight::{ChangeFilter, LocalBackend, SourceProblems};
use crate::snapshot::Version;
use crate::source::manifests;
use entail_core::effective::World;
use entail_core::model::{Change, ObjectKey};
use entail_core::store::ProfileSources;

/// Reads the documents of a YAML or JSON file as values with the lines on which they begin.
///
/// # Errors
/// The file cannot be read, or is no YAML.
pub fn read_values(path: &Path) -> Result<Vec<(u32, Value)>, AppError> {
    let name = path.to_string_lossy();
    let text = fs::read_to_string(path)
        .map_err(|error| AppError::Input(vec![format!("{name}: {error}")]))?;
    manifests::read_values(&text, &name).map_err(|error| AppError::Input(vec![error.to_string()]))
}

/// The world of objects given as values, read as manifests are: a malformed one costs only itself,
/// the later of two with one name counts, PolicyProfiles and CRDs among them say what kinds are.
/// Beside them there are the built-in profiles.
pub fn world_of(values: &[Value]) -> World {
    cache_of(values, ProfileSources::shipped()).world()
}

/// The same with profiles of files, and ready to answer.
///
/// # Errors
/// Profiles of files that are refused.
pub fn load_values(values: &[Value], profiles: &[PathBuf]) -> Result<LocalBackend, AppError> {
    let cache = cache_of(values, read_profiles(profiles)?);
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

/// The world that another one would be if manifests were applied and objects deleted, with what is
/// wrong with the manifests.
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
    let told = parsed.problems.iter();
    problems.extend(told.map(|p| (p.path.clone(), p.message.clone())));
    for read in parsed.objects {
        let key = &read.object.key;
        if may(key) {
            change.upserts.push(Arc::new(read.object));
        } else {
            let why = format!("`{key}` is left out: the caller may not see it");
            problems.push(("change".to_owned(), why));
        }
    }
    let mut cache = ObjectCache::with_store(world.profiles().clone(), world.store().clone());
    cache.apply(change);
    (cache.world(), problems)
}

fn cache_of(values: &[Value], profiles: ProfileSources) -> ObjectCache {
    let mut change = Change::default();
    for value in values {
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
