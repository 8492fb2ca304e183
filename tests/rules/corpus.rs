//! Reads the cases of `tests/conformance`.

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

/// Returns all cases.
pub fn cases() -> &'static [Case] {
    // The cases are read once for all tests, because reading takes a second or two without
    // optimisation.
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let cases = read_cases(&files()).unwrap();
        cases.into_iter().map(|(_, case)| case).collect()
    });
    &CASES
}
