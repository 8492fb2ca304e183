//! Reads the cases of `tests/conformance`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use entail::cli::test::{Case, read_cases};

/// Returns the YAML files of the folder: the case files, or the lists of expected failures and the
/// fixtures.
fn yaml_files(others: bool) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .filter(|path| {
            let stem = path.file_stem().and_then(|s| s.to_str()).unwrap();
            ["pending", "disputed", "fixtures"].contains(&stem) == others
        })
        .collect();
    files.sort();
    files
}

/// Returns the case files.
pub fn files() -> Vec<PathBuf> {
    yaml_files(false)
}

/// Returns the lists of expected failures, and the fixtures.
pub fn others() -> Vec<PathBuf> {
    yaml_files(true)
}

/// The names of the cases that are expected to fail.
fn expected_failures() -> BTreeSet<String> {
    let lists = others()
        .into_iter()
        .filter(|path| !path.ends_with("fixtures.yaml"));
    let mut names = BTreeSet::new();
    for list in lists {
        let text = std::fs::read_to_string(list).unwrap();
        let items = text.lines().filter(|line| line.starts_with("- "));
        let named = items.filter_map(|line| line.split_once("name: "));
        let name = |rest: &str| rest.split([',', '}']).next().unwrap().trim().to_owned();
        names.extend(named.map(|(_, rest)| name(rest)));
    }
    names
}

/// Returns all cases but those that are expected to fail.
pub fn cases() -> &'static [Case] {
    // The cases are read once for all tests, because reading takes a second or two without
    // optimisation.
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let cases = read_cases(&files()).unwrap();
        let failing = expected_failures();
        let cases = cases.into_iter().map(|(_, case)| case);
        cases.filter(|case| !failing.contains(&case.name)).collect()
    });
    &CASES
}
