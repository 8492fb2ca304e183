//! Reads files of test cases with their fixtures.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::assertions::{empty_expectations, unexplained_paths};
use super::case::Case;
use super::fixtures::{FIXTURE_FILE, Fixtures, names_fixtures};
use crate::cli::{CliError, connect};

/// The cases of files.
#[derive(Debug, Default)]
pub(in crate::cli) struct CaseFiles {
    /// The cases with their files and lines.
    pub cases: Vec<(String, Case)>,
    /// The documents that are not valid cases.
    pub refused: Vec<RefusedCase>,
    /// Doubtful expectations, with file, line and case.
    pub warnings: Vec<String>,
}

/// A case that does not run.
#[derive(Debug)]
pub(in crate::cli) struct RefusedCase {
    /// The file and the line.
    pub place: String,
    /// The name, if the case has one.
    pub name: Option<String>,
    /// The errors, each with its field.
    pub errors: Vec<String>,
}

impl fmt::Display for RefusedCase {
    /// Writes one line for each error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_ref();
        let name = name.map(|name| format!(" `{name}`")).unwrap_or_default();
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(
                f,
                "{separator}{}: invalid test case{name}: {error}",
                self.place
            )?;
        }
        Ok(())
    }
}

/// Reads the cases of files, each with its file and line, as `read_files` does.
///
/// # Errors
/// As those of `read_files`, and the documents that are not valid cases.
pub fn read_cases<P: AsRef<Path>>(files: &[P]) -> Result<Vec<(String, Case)>, CliError> {
    let found = read_files(files)?;
    if found.refused.is_empty() {
        return Ok(found.cases);
    }
    let lines: Vec<String> = found.refused.iter().map(ToString::to_string).collect();
    Err(CliError::Unreadable(lines.join("\n")))
}

/// Reads the cases of files. A document that is not a valid case does not affect the others: it
/// expects nothing, has the name of another case, or names a fixture that is unknown.
///
/// The objects of a fixture replace its name in a case. A file `fixtures.yaml` is not read as a
/// case file. If it is among `files`, the cases must use all of its fixtures.
///
/// # Errors
/// A file cannot be read, or a fixture is invalid or unused.
pub(in crate::cli) fn read_files<P: AsRef<Path>>(files: &[P]) -> Result<CaseFiles, CliError> {
    let mut reader = CaseReader::default();
    let files = files.iter().map(AsRef::as_ref);
    let (fixtures, cases): (Vec<&Path>, Vec<&Path>) = files.partition(|path| is_fixtures(path));
    for path in cases {
        reader.read(path)?;
    }
    for path in fixtures {
        let fixtures = reader.fixtures(path)?;
        let check = fixtures.check_use();
        // A case that is refused may be the one that uses a fixture.
        if reader.found.refused.is_empty() {
            check?;
        }
    }
    Ok(reader.found)
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
    found: CaseFiles,
}

impl CaseReader {
    /// Reads the cases of a file.
    fn read(&mut self, path: &Path) -> Result<(), CliError> {
        for (line, value) in connect::read_values(path)? {
            let place = format!("{}:{line}", path.display());
            let name = value.get("name").and_then(Value::as_str);
            let name = name.map(str::to_owned);
            match self.case(path, value, &place)? {
                Ok(case) => {
                    let warnings = unexplained_paths(&case).into_iter();
                    let about = |warning| format!("{place}: case `{}`: {warning}", case.name);
                    self.found.warnings.extend(warnings.map(about));
                    self.found.cases.push((place, case));
                }
                Err(errors) => self.found.refused.push(RefusedCase {
                    place,
                    name,
                    errors,
                }),
            }
        }
        Ok(())
    }

    /// Parses a case of a file; the inner error has the reasons why it is not valid.
    fn case(
        &mut self,
        path: &Path,
        mut value: Value,
        place: &str,
    ) -> Result<Result<Case, Vec<String>>, CliError> {
        if names_fixtures(&value)
            && let Err(error) = self.expand(path, &mut value)?
        {
            return Ok(Err(vec![error]));
        }
        let case = match Case::read(&value) {
            Ok(case) => case,
            Err(error) => return Ok(Err(vec![error])),
        };
        if let Some(other) = self.places.insert(case.name.clone(), place.to_owned()) {
            let message = format!("duplicate case name, also at {other}: rename one");
            return Ok(Err(vec![message]));
        }
        let empty = empty_expectations(&value);
        Ok(if empty.is_empty() {
            Ok(case)
        } else {
            Err(empty)
        })
    }

    /// Replaces the names of fixtures in a case of a file; the inner error is that of the case.
    fn expand(&mut self, path: &Path, case: &mut Value) -> Result<Result<(), String>, CliError> {
        let beside = path.with_file_name(FIXTURE_FILE);
        if !beside.exists() {
            let message = format!("it names a fixture, but there is no {}", beside.display());
            return Ok(Err(message));
        }
        Ok(self.fixtures(&beside)?.expand(case))
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
expect: {paths: {valid: [namespaces/ns]}}
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
            "cases.yaml:1: invalid test case `one`: unknown fixture `nampespace`: fixtures.yaml does \
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
