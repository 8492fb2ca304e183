//! Reads the inputs once, for commands.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cluster;
use super::object_cache::{ObjectCache, epoch, now, profile_problems};
use super::values::change_world;
use super::{AppError, Inputs};
use crate::config::ControllerSettings;
use crate::insight::{
    Code, LocalBackend, SourceProblem, SourceProblems, missing_crds, missing_namespaces,
};
use crate::snapshot::Version;
use crate::source::manifests::{Limits, Manifests, Problem, ProblemKind};
use entail_core::effective::World;
use entail_core::model::{GroupKind, did_you_mean};
use entail_core::profile::parse_documents;
use entail_core::store::{ProfileSources, Store};

/// The snapshot of the inputs of a command, with their problems.
#[derive(Debug)]
pub struct LoadedInputs {
    /// Answers queries from the snapshot.
    pub local: LocalBackend,
    /// Problems of the inputs for standard error: `path:line: message`.
    pub warnings: Vec<String>,
    /// Warnings for standard error about what the inputs lack.
    pub remarks: Vec<String>,
    /// Whether the manifests have no objects.
    pub is_empty: bool,
    /// A note for standard error: the policy kinds of manifests whose CRDs are missing, so that their
    /// defaults are not applied.
    pub note: Option<String>,
    /// A note about Namespaces whose labels are not known; it is no finding.
    pub missing_namespaces: Option<String>,
    /// Whether some input could not be read and `--allow-partial` is not set. The answers are
    /// correct for the readable inputs, but the command ends with exit code 3.
    pub incomplete: bool,
}

/// Reads the inputs and computes all effective policies.
///
/// # Errors
/// Returns an error if the inputs or the profiles of `--profiles` are invalid, or if the cluster
/// does not respond.
pub fn load(inputs: &Inputs) -> Result<LoadedInputs, AppError> {
    inputs.check().map_err(AppError::Usage)?;
    let mut cache = ObjectCache::new(read_profiles(&inputs.profiles, &inputs.controllers)?);
    let mut remarks = Vec::new();
    let mut is_empty = false;
    let (problems, is_complete) = match &inputs.cluster {
        Some(access) => {
            cache = cache.with_kind_states();
            cluster::read(&mut cache, access)?
        }
        None => {
            let manifests = Manifests::new(inputs.manifests.clone(), cache.scopes());
            let scan = manifests.with_limits(limits(inputs)).scan();
            let is_complete = !scan.is_partial();
            is_empty = scan.change.upserts.is_empty() && scan.problems.is_empty();
            if let Some(first) = inputs.manifests.first().filter(|_| is_empty) {
                remarks.push(without_objects(first, scan.files));
            }
            cache.apply(scan.change);
            (source_problems(&scan.problems), is_complete)
        }
    };
    let incomplete = !is_complete && !inputs.allow_partial;
    cache.set_lacks_input(incomplete && inputs.cluster.is_none());
    let snapshot = cache.into_snapshot(Version {
        epoch: epoch(),
        generation: 1,
        synced_at: now(),
    });
    let note = missing_crds(snapshot.world(), &[]);
    let missing_namespaces = missing_namespaces(snapshot.world());
    let refused = profile_problems(snapshot.world());
    let warnings = problems.problems.iter();
    let warnings = warnings.map(ToString::to_string).chain(refused).collect();
    let complete_kinds = inputs.controllers.complete_kinds.iter();
    remarks.extend(complete_kinds.filter_map(|kind| not_referenced(snapshot.world(), kind)));
    Ok(LoadedInputs {
        local: LocalBackend {
            snapshot: Arc::new(snapshot),
            source_problems: problems,
            change: change_world,
        },
        warnings,
        remarks,
        is_empty,
        note,
        missing_namespaces,
        incomplete,
    })
}

/// Says that manifests have no objects, and how many files were read.
fn without_objects(first: &Path, files: usize) -> String {
    let first = first.display();
    match files {
        0 => format!(
            "{first}: there are no manifests: files of a directory are read if they end with .yaml, .yml or .json"
        ),
        _ => format!(
            "{first}: there are no objects: check the path, or the command that writes them"
        ),
    }
}

/// Says that no policy refers to objects of a kind of which the input is said to hold all, so that this has no effect;
/// `None` if some may.
fn not_referenced(world: &World, kind: &GroupKind) -> Option<String> {
    let profiles = world.kinds().iter().map(|kind| kind.profile());
    let references = profiles.flat_map(|profile| &profile.references);
    let mut known: BTreeSet<GroupKind> = references.map(|one| one.kind.clone()).collect();
    let policies = world.kinds().iter().flat_map(|kind| kind.policies());
    let named = policies.flat_map(|(_, policy)| &policy.named_objects);
    known.extend(named.map(|object| object.kind.clone()));
    known.extend(
        world
            .store()
            .objects()
            .map(|object| object.key.kind.clone()),
    );
    if known.is_empty() || known.contains(kind) {
        return None;
    }
    let names = known.iter().map(ToString::to_string);
    let meant = did_you_mean(&kind.to_string(), names.collect());
    Some(format!(
        "`--assume-complete {kind}` has no effect: no policy refers to objects of this kind{meant}"
    ))
}

/// Returns the limits of a manifest.
pub(super) fn limits(inputs: &Inputs) -> Limits {
    let default = Limits::default();
    Limits {
        mib: inputs.max_manifest_mib.unwrap_or(default.mib),
    }
}

/// Converts problems of manifests.
pub(super) fn source_problems(problems: &[Problem]) -> SourceProblems {
    let located = |problem: &Problem| {
        let location = match problem.line {
            Some(line) => format!("{}:{line}", problem.path),
            None => problem.path.clone(),
        };
        let kept = if problem.kept_last_good {
            " (its last good version stays in use)"
        } else {
            ""
        };
        SourceProblem {
            location,
            message: format!("{}{kept}", problem.message),
            code: Some(match problem.kind {
                ProblemKind::Broken => Code::Broken,
                ProblemKind::Malformed => Code::Malformed,
                ProblemKind::Unreadable => Code::Unreadable,
                ProblemKind::WrongType => Code::WrongType,
                ProblemKind::UnknownField => Code::UnknownField,
                ProblemKind::Duplicate => Code::Duplicate,
            }),
        }
    };
    SourceProblems {
        problems: problems.iter().map(located).collect(),
    }
}

/// Returns the built-in profiles and the profiles of files. The files are read once: to change a
/// profile while a server runs, add it to the manifests as a PolicyProfile object.
///
/// # Errors
/// Returns all invalid documents, each with file, line and reason.
pub(super) fn read_profiles(
    paths: &[PathBuf],
    controllers: &ControllerSettings,
) -> Result<ProfileSources, AppError> {
    let mut profiles = ProfileSources::shipped();
    let mut refused = Vec::new();
    profiles.add_aliases(controllers.aliases.iter().cloned());
    for (class, controller) in &controllers.assumed_classes {
        profiles.assume_class(class.clone(), controller.clone());
    }
    for kind in &controllers.complete_kinds {
        profiles.assume_complete(kind.clone());
    }
    for path in paths {
        match files_of(path) {
            Ok(files) => {
                for file in files {
                    read_profile_file(&file, &mut profiles, &mut refused);
                }
            }
            Err(error) => refused.push(format!("{}: {error}", path.display())),
        }
    }
    // Conflicts between documents appear when the profiles are resolved.
    let problems = profiles.resolve(&Store::default()).problems;
    refused.extend(
        problems
            .iter()
            .map(|p| format!("{}: {}", p.location, p.reason)),
    );
    if refused.is_empty() {
        Ok(profiles)
    } else {
        Err(AppError::Input(refused))
    }
}

fn read_profile_file(file: &Path, profiles: &mut ProfileSources, refused: &mut Vec<String>) {
    let name = file.to_string_lossy();
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            refused.push(format!("{name}: {error}"));
            return;
        }
    };
    for parsed in parse_documents(&text, &name) {
        match parsed {
            Ok(document) => profiles.configure([document]),
            Err(problem) => refused.push(format!("{}: {}", problem.location, problem.reason)),
        }
    }
}

/// Returns the file at `path`, or the YAML and JSON files of a directory sorted by name, as
/// `kubectl -f` does.
///
/// # Errors
/// Returns an error if the file or the directory cannot be read.
pub fn files_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml" | "json")) && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(result: Result<ProfileSources, AppError>) -> Vec<String> {
        match result {
            Err(AppError::Input(refused)) => refused,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_invalid_profiles_are_reported_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let head = "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {name: x}\n";
        let good = format!("{head}spec: {{policy: {{group: g, kind: Good}}}}\n");
        let invalid = format!("{head}spec: {{policy: {{group: g, kind: A}}, fold: TopDown}}\n");
        fs::write(path.join("a.yaml"), "kind: [").unwrap();
        fs::write(path.join("b.yaml"), &invalid).unwrap();
        fs::write(path.join("c.yaml"), &good).unwrap();
        fs::write(path.join("notes.txt"), "not a profile").unwrap();
        let messages = refused(read_profiles(
            &[path.into(), path.join("missing")],
            &ControllerSettings::default(),
        ));
        assert_eq!(messages.len(), 3, "{messages:#?}");
        for expected in ["a.yaml:1", "missing", "bothBlocks"] {
            assert!(
                messages.iter().any(|message| message.contains(expected)),
                "{expected}: {messages:#?}"
            );
        }
        assert!(read_profiles(&[path.join("c.yaml")], &ControllerSettings::default()).is_ok());
    }

    #[test]
    fn an_unreadable_file_makes_the_inputs_incomplete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("a.yaml"), "a: [").unwrap();
        let good = "{apiVersion: v1, kind: Service, metadata: {name: a}}";
        fs::write(path.join("b.yaml"), good).unwrap();
        let mut inputs = Inputs {
            manifests: vec![path.into()],
            ..Inputs::default()
        };
        let loaded = load(&inputs).unwrap();
        assert!(loaded.incomplete);
        assert_eq!(loaded.warnings.len(), 1);
        assert!(
            loaded.warnings[0].contains("a.yaml:1: "),
            "{:?}",
            loaded.warnings
        );
        assert_eq!(loaded.local.snapshot.world().store().len(), 1);
        inputs.allow_partial = true;
        assert!(!load(&inputs).unwrap().incomplete);
        inputs.manifests.clear();
        assert_eq!(load(&inputs).unwrap_err().exit_code(), 2);
    }
}
