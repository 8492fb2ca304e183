//! Reads YAML files with settings.

use std::path::Path;

use serde::de::DeserializeOwned;

/// Reads and parses a file. Each error message begins with the path of the file.
pub(super) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Vec<String>>,
) -> Result<T, Vec<String>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| vec![format!("{name}: {error}")])?;
    parse(&text).map_err(|errors| {
        let errors = errors.into_iter();
        errors.map(|error| format!("{name}: {error}")).collect()
    })
}

/// Parses a document. Of an error, only the first line is returned, which has the location; the
/// others are an excerpt of the text.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Vec<String>> {
    serde_saphyr::from_str(text).map_err(|error| {
        let error = error.to_string();
        vec![error.lines().next().unwrap_or_default().to_owned()]
    })
}
