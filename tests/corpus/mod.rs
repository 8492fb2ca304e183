//! The cases of `tests/conformance`.

use std::path::{Path, PathBuf};

use entail::cli::test::Case;

/// The files of a folder whose stems are, or are not, those of lists.
fn folder(lists: bool) -> Vec<PathBuf> {
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

/// The files of cases.
pub fn files() -> Vec<PathBuf> {
    folder(false)
}

/// The lists of cases that may fail.
#[allow(dead_code, reason = "not every test that shares the corpus needs it")]
pub fn lists() -> Vec<PathBuf> {
    folder(true)
}

/// Every case.
pub fn cases() -> Vec<Case> {
    files()
        .iter()
        .flat_map(|file| entail::app::read_values(file).unwrap())
        .map(|(_, value)| Case::read(&value).unwrap())
        .collect()
}
