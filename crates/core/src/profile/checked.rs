//! How a profile was checked against its controller: `checked` in a profile.

use std::collections::BTreeSet;

use serde::Deserialize;

/// How a profile was checked against its controller, and where the two are known to differ. It informs readers; no
/// answer depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// The project whose policies the profile describes, such as `Envoy Gateway`.
    pub project: String,
    /// The version that was checked: a release, or a commit with its date.
    pub version: String,
    /// What the profile was compared with.
    pub by: CheckedBy,
    /// The known differences from the controller, one sentence each. None means that none is known.
    #[serde(default)]
    pub approximations: Vec<String>,
}

/// What a profile was compared with, from the strongest evidence to the weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum CheckedBy {
    /// The controller's code ran on the same objects (docs/agreement.md).
    Judge,
    /// Expected results from the project's own tests or documents are cases in `tests/conformance`.
    GoldenCases,
    /// The code and documents of the project were read. The cases show what the reader understood.
    Reading,
}

impl CheckedBy {
    /// Returns the word that stands in profiles.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Judge => "Judge",
            Self::GoldenCases => "GoldenCases",
            Self::Reading => "Reading",
        }
    }
}

/// Refuses texts that do not fit in a line of a table.
///
/// # Errors
/// A text is empty, has more than one line or space around it, or an approximation is written twice.
pub(super) fn validate(checked: Option<&Checked>) -> Result<(), String> {
    let Some(checked) = checked else {
        return Ok(());
    };
    line(&checked.project, "checked.project")?;
    line(&checked.version, "checked.version")?;
    let mut before = BTreeSet::new();
    for text in &checked.approximations {
        line(text, "checked.approximations")?;
        if !before.insert(text) {
            return Err(format!("checked.approximations: `{text}` is written twice"));
        }
    }
    Ok(())
}

fn line(text: &str, setting: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("{setting}: a text is required"));
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        return Err(format!(
            "{setting}: `{}` is not one line without space around it",
            text.escape_debug()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::profile::{CheckedBy, Profile, ProfileOrigin, parse_documents};

    fn resolved(checked: &str) -> Result<Profile, String> {
        let text = format!(
            "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {{name: x}}\nspec:\n  \
             policy: {{group: g, kind: K}}\n  checked: {checked}"
        );
        let (location, document) = parse_documents(&text, "f.yaml")
            .remove(0)
            .map_err(|e| e.to_string())?;
        Profile::resolve(&document, ProfileOrigin::Configured, None, &location)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn it_is_read_as_written() {
        let profile = resolved(
            "{project: Some Gateway, version: 1.2.3, by: GoldenCases, approximations: [no sections]}",
        );
        let checked = profile.unwrap().checked.unwrap();
        assert_eq!(checked.project, "Some Gateway");
        assert_eq!(checked.version, "1.2.3");
        assert_eq!(checked.by, CheckedBy::GoldenCases);
        assert_eq!(checked.approximations, ["no sections"]);
        assert_eq!(resolved("null").unwrap().checked, None);
    }

    #[test]
    fn malformed_ones_are_refused() {
        for (checked, expected) in [
            ("{project: P, version: 1.0.0}", "by"),
            ("{version: 1.0.0, by: Judge}", "project"),
            ("{project: P, by: Judge}", "version"),
            ("{project: P, version: 1.0.0, by: Guess}", "Guess"),
            ("{project: P, version: 1.0.0, by: Judge, on: today}", "on"),
            (
                "{project: '', version: 1.0.0, by: Judge}",
                "checked.project",
            ),
            ("{project: P, version: ' 1', by: Judge}", "checked.version"),
            (
                "{project: P, version: 1.0.0, by: Judge, approximations: [\"a\\nb\"]}",
                "one line",
            ),
            (
                "{project: P, version: 1.0.0, by: Judge, approximations: [a, a]}",
                "twice",
            ),
            (
                "{project: P, version: 1.0.0, by: Judge, approximations: a}",
                "expected sequence",
            ),
        ] {
            let error = resolved(checked).unwrap_err();
            assert!(error.contains(expected), "{checked}: {error}");
        }
    }
}
