//! Reads the cases of `tests/conformance`.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use entail::cli::test::Case;

/// Returns the YAML files of the folder: the lists of expected failures, or the case files.
fn yaml_files(lists: bool) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .filter(|path| {
            let stem = path.file_stem().and_then(|s| s.to_str()).unwrap();
            ["pending", "disputed"].contains(&stem) == lists
        })
        .collect();
    files.sort();
    files
}

/// The case files.
pub fn files() -> Vec<PathBuf> {
    yaml_files(false)
}

/// The lists of expected failures.
pub fn lists() -> Vec<PathBuf> {
    yaml_files(true)
}

/// All cases.
pub fn cases() -> &'static [Case] {
    // Read once for all tests: it takes a second or two without optimisation.
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
        files()
            .iter()
            .flat_map(|file| entail::app::read_values(file).unwrap())
            .map(|(_, value)| Case::read(&value).unwrap())
            .collect()
    });
    &CASES
}
