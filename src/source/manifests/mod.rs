//! Objects from manifest files. Files are read as kubectl reads them. If a file becomes invalid, the
//! last good version of its objects stays in use.
//!
//! [`read_objects`] parses the objects of one text, [`Manifests`] turns files and directories into
//! [`Change`]s, and [`watch`] repeats this whenever a file changes.

mod content;
mod defaults;
mod document;
mod files;
mod json;
mod limits;
mod merge;
mod read;
mod refusal;
mod scan;
mod scopes;
mod split;
mod watch;
mod watcher;

use std::fmt;

use entail_core::model::{Change, ObjectKey};

pub use defaults::CrdSchemas;
pub use limits::Limits;
pub use read::{
    ManifestError, ManifestObject, ParsedManifest, read_documents, read_objects, read_values,
};
pub use scan::Manifests;
pub use scopes::KindScopes;
pub use watch::watch;

/// The kind of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProblemKind {
    /// A document is not valid YAML or exceeds a limit, or a file is too long.
    Broken,
    /// A document is not a Kubernetes object.
    Malformed,
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

/// The result of reading the files once.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// The changes since the previous scan; all objects in the first scan. `states` is empty, because
    /// files contain no information on completeness.
    pub change: Change,
    /// All current problems, sorted by path and line.
    pub problems: Vec<Problem>,
    /// The number of files.
    pub files: usize,
}

impl ProblemKind {
    /// Returns the name of the kind in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            ProblemKind::Broken => "Broken",
            ProblemKind::Malformed => "Malformed",
            ProblemKind::Duplicate => "Duplicate",
            ProblemKind::Unreadable => "Unreadable",
        }
    }
}

impl Scan {
    /// Returns whether something could not be read and has no last good version. Objects may then be
    /// missing, and a server that has just started is not ready.
    pub fn is_partial(&self) -> bool {
        self.problems.iter().any(|problem| {
            let may_hide_objects =
                matches!(problem.kind, ProblemKind::Broken | ProblemKind::Unreadable);
            may_hide_objects && !problem.kept_last_good
        })
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
