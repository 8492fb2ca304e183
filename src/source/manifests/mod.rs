//! Objects from manifest files: read as kubectl reads them, kept at their last good version when
//! a file breaks, followed when files change.
//!
//! [`read_objects`] turns one text into objects, [`Manifests`] turns files and directories into
//! [`Change`]s, [`watch`] does so again whenever something changes.

mod content;
mod defaults;
mod document;
mod files;
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

/// What kind of trouble a [`Problem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProblemKind {
    /// A document is not valid YAML or exceeds a limit, or a file is too long.
    Broken,
    /// A document is not a Kubernetes object.
    Malformed,
    /// One object stands in two places; the later one wins.
    Duplicate,
    /// A file or directory cannot be read.
    Unreadable,
}

/// Something wrong with the manifests, for people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file or directory; characters that are not Unicode are replaced.
    pub path: String,
    /// The line, where there is one.
    pub line: Option<u32>,
    /// What is wrong and what to do.
    pub message: String,
    /// What kind of trouble it is.
    pub kind: ProblemKind,
    /// Whether the last good version of what is wrong stays in use.
    pub kept_last_good: bool,
    /// The object that it is about, where that is known.
    pub about: Option<ObjectKey>,
}

/// What a look at the files found.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// What differs from the scan before; the first scan yields everything. Its `states` are
    /// empty: files say nothing of how complete they are.
    pub change: Change,
    /// All that is wrong now, sorted by place.
    pub problems: Vec<Problem>,
    /// How many files there are.
    pub files: usize,
}

impl ProblemKind {
    /// The word in logs and metrics.
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
    /// Whether something could not be read and has no last good version: what is known is then
    /// less than what there is, and a server that has just started is not ready.
    pub fn is_partial(&self) -> bool {
        self.problems.iter().any(|problem| {
            let costs_all = matches!(problem.kind, ProblemKind::Broken | ProblemKind::Unreadable);
            costs_all && !problem.kept_last_good
        })
    }
}

impl fmt::Display for Problem {
    /// `path:line: message`.
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
