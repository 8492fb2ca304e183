//! Classes of differences that are known, read from `known/JUDGE.yaml`.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::RunError;
use crate::report::Facts;

/// The known classes of one controller, in the order of the file: a difference belongs to the first
/// that matches.
#[derive(Clone, Debug)]
pub struct KnownClasses(Vec<KnownClass>);

/// A class of differences.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KnownClass {
    /// A short name.
    pub id: String,
    /// The facts of a difference of this class: all of one item must match.
    pub facts: Vec<std::collections::BTreeMap<String, Pattern>>,
    /// What entail does, and what the controller does.
    pub description: String,
    /// Why they differ.
    pub why: String,
    /// The setting of entail that gives the controller's answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// Who is to change.
    pub verdict: Verdict,
    /// Places in the controller's code, as `FILE:LINE`.
    pub evidence: Vec<String>,
    /// Which runs need not find a difference of this class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rare: Option<String>,
}

/// One text or several; `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pattern {
    /// One text.
    One(String),
    /// Any of these.
    Any(Vec<String>),
}

/// Who is to change for a difference to vanish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The controller: entail does not follow it.
    Theirs,
    /// entail.
    Ours,
    /// Not decided yet.
    Open,
}

impl KnownClasses {
    /// Reads a file of classes.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, a class has an unknown field or none of its
    /// facts, or two classes have one id.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let fail = |error: String| RunError::File(path.display().to_string(), error);
        let text = fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let classes: Vec<KnownClass> =
            serde_saphyr::from_str(&text).map_err(|error| fail(error.to_string()))?;
        for (index, class) in classes.iter().enumerate() {
            if class.facts.iter().any(|facts| facts.is_empty()) || class.facts.is_empty() {
                return Err(fail(format!("class {} has no facts", class.id)));
            }
            if classes.iter().take(index).any(|other| other.id == class.id) {
                return Err(fail(format!("two classes have the id {}", class.id)));
            }
        }
        Ok(Self(classes))
    }

    /// The classes in the order of the file.
    pub fn classes(&self) -> &[KnownClass] {
        &self.0
    }
}

impl KnownClass {
    /// Whether a difference with these facts belongs to the class.
    pub fn matches(&self, facts: &Facts) -> bool {
        let holds = |(name, pattern): (&String, &Pattern)| {
            facts.get(name).is_some_and(|value| pattern.matches(value))
        };
        self.facts.iter().any(|wanted| wanted.iter().all(holds))
    }

    /// Whether a run may find no difference of this class.
    pub fn is_rare(&self) -> bool {
        self.rare.is_some()
    }
}

impl Pattern {
    fn matches(&self, value: &str) -> bool {
        match self {
            Pattern::One(pattern) => glob(pattern, value),
            Pattern::Any(patterns) => patterns.iter().any(|pattern| glob(pattern, value)),
        }
    }
}

/// Whether a text matches a pattern in which `*` stands for any characters.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(tail) = text.strip_prefix(head) else {
        return false;
    };
    let starts = tail
        .char_indices()
        .map(|(index, _)| index)
        .chain([tail.len()]);
    starts
        .filter_map(|start| tail.get(start..))
        .any(|end| glob(rest, end))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Theirs => "theirs",
            Verdict::Ours => "ours",
            Verdict::Open => "open",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        assert!(glob("a*c", "abc"));
        assert!(glob("*", ""));
        assert!(glob("retry", "retry"));
        assert!(!glob("retry", "retry.on"));
        assert!(!glob("a*c", "abd"));
        assert!(glob("*.b*", "a.bc"));
    }
}
