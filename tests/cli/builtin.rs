//! Checks that everything that belongs to a built-in profile is there: its file is compiled in, a ClusterRole
//! allows to read its policies and their targets, and a conformance case expects something of its kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use entail_core::profile::{
    Profile, ProfileOrigin, TargetKinds, built_in_sources, parse_documents,
};
use serde_json::Value;

const FOLDER: &str = "crates/core/src/profile/builtin";

/// A resource as roles name it: API group and plural.
type Resource = (String, String);

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn files(folder: &str) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(root(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect()
}

/// Returns the built-in profiles with the names of their files, without `.yaml`.
fn profiles() -> Vec<(&'static str, Profile)> {
    let sources = built_in_sources().iter();
    sources
        .flat_map(|(name, text)| {
            let file = name.strip_suffix(".yaml").unwrap();
            parse_documents(text, name).into_iter().map(move |parsed| {
                let (location, document) = parsed.unwrap();
                let origin = ProfileOrigin::BuiltIn;
                (
                    file,
                    Profile::resolve(&document, origin, None, &location).unwrap(),
                )
            })
        })
        .collect()
}

/// Returns the plural of a kind, by the rule that the CRDs of all targets follow.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

/// Returns what each ClusterRole of `deploy/rbac/roles.yaml` allows to read.
fn roles() -> BTreeMap<String, BTreeSet<Resource>> {
    let text = fs::read_to_string(root("deploy/rbac/roles.yaml")).unwrap();
    let words = |rule: &Value, field: &str| -> Vec<String> {
        let list = rule[field].as_array().unwrap().iter();
        list.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let documents = text.split("\n---\n");
    documents
        .filter(|document| document.contains("\nkind: ClusterRole\n"))
        .map(|document| {
            let role: Value = serde_saphyr::from_str(document).unwrap();
            let mut resources = BTreeSet::new();
            for rule in role["rules"].as_array().unwrap() {
                for group in words(rule, "apiGroups") {
                    let plurals = words(rule, "resources").into_iter();
                    resources.extend(plurals.map(|plural| (group.clone(), plural)));
                }
            }
            let name = role["metadata"]["name"].as_str().unwrap();
            (name.to_owned(), resources)
        })
        .collect()
}

#[test]
fn every_file_of_profiles_is_compiled_in() {
    for path in files(FOLDER) {
        let file = path.file_name().unwrap().to_str().unwrap();
        assert!(
            built_in_sources().iter().any(|(name, _)| *name == file),
            "{FOLDER}/{file} needs a line in FILES of crates/core/src/profile/builtin.rs"
        );
    }
}

#[test]
fn roles_allow_to_read_every_built_in_kind_and_its_targets() {
    let roles = roles();
    let all: BTreeSet<&Resource> = roles.values().flatten().collect();
    for (file, profile) in profiles() {
        // Before the name of the CRD there may be that of a section.
        let group = &*profile.policy.group;
        let definition = profile
            .name
            .strip_suffix(group)
            .unwrap()
            .trim_end_matches('.');
        let plural_name = definition.rsplit('.').next().unwrap();
        let policies = (group.to_owned(), plural_name.to_owned());
        let role = format!("entail-{file}");
        assert!(
            roles.get(&role).is_some_and(|r| r.contains(&policies)),
            "deploy/rbac/roles.yaml: ClusterRole {role} lacks `{plural_name}` of group `{group}`"
        );
        let TargetKinds::Listed(targets) = &profile.targets else {
            continue;
        };
        for target in targets {
            let resource = (target.kind.group.to_string(), plural(&target.kind.kind));
            assert!(
                all.contains(&resource),
                "deploy/rbac/roles.yaml: no ClusterRole has {resource:?}, a target of {}",
                profile.policy
            );
        }
    }
}

#[test]
fn every_built_in_kind_has_a_case() {
    let texts: Vec<String> = files("tests/conformance")
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    for (_, profile) in profiles() {
        let kind = profile.policy.to_string();
        assert!(
            texts.iter().any(|text| text.contains(&kind)),
            "no case in tests/conformance names {kind}"
        );
    }
}
