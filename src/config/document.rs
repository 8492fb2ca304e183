//! Files of settings, in YAML.

use std::path::Path;

use serde::de::DeserializeOwned;

/// Reads a file; what is wrong is told with its name, one sentence each.
pub(super) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Vec<String>>,
) -> Result<T, Vec<String>> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| vec![format!("{place}: {error}")])?;
    parse(&text).map_err(|wrong| {
        let wrong = wrong.into_iter();
        wrong.map(|error| format!("{place}: {error}")).collect()
    })
}

/// Reads a document; the first line of what the reader says tells the place.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Vec<String>> {
    serde_saphyr::from_str(text).map_err(|error| {
        let error = error.to_string();
        vec![error.lines().next().unwrap_or_default().to_owned()]
    })
}
