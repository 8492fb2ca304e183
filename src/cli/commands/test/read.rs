//! Reads files of test cases with their fixtures.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::case::Case;
use super::fixtures::{FIXTURE_FILE, Fixtures, names_fixtures};
use crate::cli::{CliError, connect};

/// Reads the cases of files, each with its file and line.
///
/// The objects of a fixture replace its name in a case. A file `fixtures.yaml` is not read as a
/// case file. If it is among `files`, the cases must use all of its fixtures.
///
/// # Errors
/// A file cannot be read, a document is not a test case, two cases have one name, or a fixture is
/// invalid, unknown or unused.
pub fn read_cases<P: AsRef<Path>>(files: &[P]) -> Result<Vec<(String, Case)>, CliError> {
    let mut reader = CaseReader::default();
    let files = files.iter().map(AsRef::as_ref);
    let (fixtures, cases): (Vec<&Path>, Vec<&Path>) = files.partition(|path| is_fixtures(path));
    for path in cases {
        reader.read(path)?;
    }
    for path in fixtures {
        reader.fixtures(path)?.check_use()?;
    }
    Ok(reader.cases)
}

fn is_fixtures(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == FIXTURE_FILE)
}

#[derive(Default)]
struct CaseReader {
    /// By path, the fixture files that were read.
    fixtures: BTreeMap<PathBuf, Fixtures>,
    /// By case name, the place of the case.
    places: BTreeMap<String, String>,
    cases: Vec<(String, Case)>,
}

impl CaseReader {
    /// Reads the cases of a file.
    fn read(&mut self, path: &Path) -> Result<(), CliError> {
        for (line, mut value) in connect::read_values(path)? {
            let place = format!("{}:{line}", path.display());
            let invalid =
                |e: String| CliError::Unreadable(format!("{place}: invalid test case: {e}"));
            if names_fixtures(&value) {
                self.expand(path, &mut value, &invalid)?;
            }
            let case = Case::read(&value).map_err(invalid)?;
            if let Some(other) = self.places.insert(case.name.clone(), place.clone()) {
                return Err(CliError::Unreadable(format!(
                    "{place}: duplicate case name `{}`, also at {other}: rename one",
                    case.name
                )));
            }
            self.cases.push((place, case));
        }
        Ok(())
    }

    /// Replaces the names of fixtures in a case of a file.
    fn expand(
        &mut self,
        path: &Path,
        case: &mut Value,
        invalid: &dyn Fn(String) -> CliError,
    ) -> Result<(), CliError> {
        let beside = path.with_file_name(FIXTURE_FILE);
        if !beside.exists() {
            let message = format!("it names a fixture, but there is no {}", beside.display());
            return Err(invalid(message));
        }
        self.fixtures(&beside)?.expand(case).map_err(invalid)
    }

    /// The fixtures of a file, which is read once.
    fn fixtures(&mut self, path: &Path) -> Result<&mut Fixtures, CliError> {
        // The file may be given by another spelling of its path.
        let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match self.fixtures.entry(key) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(Fixtures::read(path)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const FIXTURES: &str = "\
fixture: namespace
object: {apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
fixture: services
objects:
- {apiVersion: v1, kind: Service, metadata: {name: a, namespace: ns}}
- {apiVersion: v1, kind: Service, metadata: {name: b, namespace: ns}}
---
fixture: profile
object: {apiVersion: entail.dev/v1alpha1, kind: PolicyProfile, metadata: {name: p}}
";
    const CASES: &str = "\
name: one
profiles: [fixture:profile, authpolicies.kuadrant.io]
objects:
- fixture:namespace
- {apiVersion: v1, kind: Service, metadata: {name: c, namespace: ns}}
- fixture:services
expect: {}
";

    /// Reads `cases.yaml` and `fixtures.yaml` with these texts.
    fn read(cases: &str, fixtures: &str) -> Result<Vec<(String, Case)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let files = ["cases.yaml", "fixtures.yaml"].map(|name| folder.path().join(name));
        for (file, text) in files.iter().zip([cases, fixtures]) {
            std::fs::write(file, text).unwrap();
        }
        let prefix = format!("{}/", folder.path().display());
        read_cases(&files).map_err(|error| error.to_string().replace(&prefix, ""))
    }

    fn names(values: &[Value]) -> Vec<&str> {
        let names = values.iter().map(|value| match value.as_str() {
            Some(built_in) => built_in,
            None => value["metadata"]["name"].as_str().unwrap(),
        });
        names.collect()
    }

    #[test]
    fn fixtures_stand_for_their_objects_in_order() {
        let cases = read(CASES, FIXTURES).unwrap();
        let (place, case) = &cases[0];
        assert!(place.ends_with("cases.yaml:1"), "{place}");
        assert_eq!(names(&case.objects), ["ns", "c", "a", "b"]);
        assert_eq!(names(&case.profiles), ["p", "authpolicies.kuadrant.io"]);
        assert_eq!(
            case.built_in().collect::<Vec<_>>(),
            ["authpolicies.kuadrant.io"]
        );
    }

    #[test]
    fn an_unknown_fixture_is_an_error() {
        let cases = CASES.replace("fixture:namespace", "fixture:nampespace");
        assert_eq!(
            read(&cases, FIXTURES).unwrap_err(),
            "cases.yaml:1: invalid test case: unknown fixture `nampespace`: fixtures.yaml does \
             not define it"
        );
    }

    #[test]
    fn an_unused_fixture_is_an_error_if_the_file_is_given() {
        let cases = CASES.replace("- fixture:services\n", "");
        assert_eq!(
            read(&cases, FIXTURES).unwrap_err(),
            "fixtures.yaml:4: unused fixture `services`: remove it"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cases.yaml");
        std::fs::write(&file, cases).unwrap();
        std::fs::write(folder.path().join(FIXTURE_FILE), FIXTURES).unwrap();
        assert_eq!(read_cases(&[file]).unwrap().len(), 1);
    }

    #[test]
    fn a_fixture_that_names_another_is_an_error() {
        let fixtures = format!("{FIXTURES}---\nfixture: both\nobjects: [fixture:namespace]\n");
        assert_eq!(
            read(CASES, &fixtures).unwrap_err(),
            "fixtures.yaml:12: invalid fixture `both`: it names the fixture `namespace`: a \
             fixture contains only objects"
        );
    }

    #[test]
    fn invalid_fixtures_are_errors() {
        let wrong = [
            (
                "fixture: x\nobject: {}\nobjects: [{}]",
                "set either `object` or `objects`",
            ),
            (
                "fixture: x\nobjects: []",
                "set either `object` or `objects`",
            ),
            ("fixture: x\nobject: text", "`\"text\"` is not an object"),
            ("fixture: x\nobject: {}\nuses: []", "unknown field `uses`"),
            (
                "fixture: profile\nobject: {}",
                "duplicate fixture `profile`, also at line 9",
            ),
        ];
        for (document, expected) in wrong {
            let error = read(CASES, &format!("{FIXTURES}---\n{document}\n")).unwrap_err();
            assert!(error.starts_with("fixtures.yaml:12: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_case_with_a_fixture_needs_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cases.yaml");
        std::fs::write(&file, CASES).unwrap();
        let error = read_cases(&[file]).unwrap_err().to_string();
        assert!(
            error.contains("it names a fixture, but there is no "),
            "{error}"
        );
    }

    #[test]
    fn a_name_without_the_prefix_is_no_object() {
        let cases = CASES.replace("fixture:namespace", "namespace");
        let error = read(&cases, FIXTURES).unwrap_err();
        assert!(error.contains("`namespace` is not an object"), "{error}");
    }
}
