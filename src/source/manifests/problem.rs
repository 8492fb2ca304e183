//! Problems in manifests.

use std::fmt;

use entail_core::model::ObjectKey;

/// The kind of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProblemKind {
    /// A document is not valid YAML or exceeds a limit, or a file is too long.
    Broken,
    /// A document is not a Kubernetes object.
    Malformed,
    /// A field of an object has the wrong type, and counts as unset.
    WrongType,
    /// An object has a field that the schema of its CRD does not have.
    UnknownField,
    /// An object is in two places; the later one is used.
    Duplicate,
    /// A file or directory cannot be read.
    Unreadable,
}

/// A problem in the manifests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file or directory; characters that are not Unicode are replaced.
    pub path: String,
    /// The line, if the problem is at one.
    pub line: Option<u32>,
    /// Human-readable description with the remedy.
    pub message: String,
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// Whether the last good version stays in use.
    pub kept_last_good: bool,
    /// The object with the problem, if it is known.
    pub about: Option<ObjectKey>,
}

impl ProblemKind {
    /// Returns the name of the kind in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            ProblemKind::Broken => "Broken",
            ProblemKind::Malformed => "Malformed",
            ProblemKind::WrongType => "WrongType",
            ProblemKind::UnknownField => "UnknownField",
            ProblemKind::Duplicate => "Duplicate",
            ProblemKind::Unreadable => "Unreadable",
        }
    }
}

impl fmt::Display for Problem {
    /// Formats the problem as `path:line: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)?;
        if self.kept_last_good {
            f.write_str(" (its last good version stays in use)")?;
        }
        Ok(())
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
