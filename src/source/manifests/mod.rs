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
mod problem;
mod read;
mod refusal;
mod scan;
mod scopes;
mod split;
mod watch;
mod watcher;

use entail_core::model::Change;

pub use defaults::CrdSchemas;
pub use limits::Limits;
pub use problem::{Problem, ProblemKind};
pub use read::{
    ManifestError, ManifestObject, ParsedManifest, read_documents, read_objects, read_values,
};
pub use scan::Manifests;
pub use scopes::KindScopes;
pub use watch::watch;

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

    /// Returns whether nothing stands for an earlier version of what could not be read.
    pub fn is_in_sync(&self) -> bool {
        !self.problems.iter().any(|problem| problem.kept_last_good)
    }
}
