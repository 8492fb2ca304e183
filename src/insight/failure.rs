//! Why a question has no answer.

use std::fmt;

use super::Visibility;
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::model::{PathErrorReason, PathName, PathSyntaxError, Root};

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its code.
    pub code: FailureCode,
    /// One word, such as `RouteNotFound`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// The longest prefix that is a path; empty if there is none.
    pub nearest: String,
}

/// The codes of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// The question is wrong.
    InvalidArgument,
    /// What it is about does not exist.
    NotFound,
    /// The state has moved on: begin again.
    Aborted,
}

impl Failure {
    /// A wrong question.
    pub fn invalid(reason: &str, message: impl Into<String>) -> Self {
        Self {
            code: FailureCode::InvalidArgument,
            reason: reason.to_owned(),
            message: message.into(),
            nearest: String::new(),
        }
    }

    /// Something that does not exist.
    pub fn no_such_object(message: impl Into<String>) -> Self {
        Self {
            code: FailureCode::NotFound,
            reason: "NotFound".to_owned(),
            message: message.into(),
            nearest: String::new(),
        }
    }

    /// A text that is no path name.
    pub fn syntax(text: &str, error: &PathSyntaxError) -> Self {
        Self::invalid(
            "NotAPath",
            format!("`{}` is no path name: {error}", shortened(text)),
        )
    }

    /// A path that is none: the first step that fails, and the nearest prefix that is one
    /// (specification 1.4).
    pub fn not_found(
        snapshot: &Snapshot,
        text: &str,
        reason: PathErrorReason,
        visibility: &dyn Visibility,
    ) -> Self {
        let nearest = nearest(snapshot, text, visibility);
        if visibility.is_unrestricted() {
            return Self::of_path(text, reason, nearest);
        }
        // Why something does not join tells of what may not be seen; that it is not on the path does
        // not.
        match PathName::parse(text) {
            Ok(path) if nearest.is_empty() => Self::hidden(text, &path),
            _ => Self::of_path(text, step_after(text, &nearest), nearest),
        }
    }

    /// A path that its caller may not see: the same as if its first step were none.
    pub fn hidden(text: &str, path: &PathName<'_>) -> Self {
        let reason = match path {
            PathName::Traffic(walk) => match walk.root {
                Root::Gateway { .. } => PathErrorReason::GatewayNotFound,
                // A Service that no route names is as good as none.
                Root::Mesh { .. } => PathErrorReason::NoMatchingParent,
            },
            PathName::GatewayClass(_) => PathErrorReason::GatewayClassNotFound,
            PathName::Namespace(_) => PathErrorReason::NamespaceNotFound,
        };
        Self::of_path(text, reason, String::new())
    }

    fn of_path(text: &str, reason: PathErrorReason, nearest: String) -> Self {
        let hint = if nearest.is_empty() {
            String::new()
        } else {
            format!("; the nearest path is `{nearest}`")
        };
        Self {
            code: FailureCode::NotFound,
            reason: reason.to_string(),
            message: format!("`{}`: {}{hint}", shortened(text), reason.explain()),
            nearest,
        }
    }

    /// The number of the code in google.rpc.Code.
    pub fn number(&self) -> i32 {
        match self.code {
            FailureCode::InvalidArgument => 3,
            FailureCode::NotFound => 5,
            FailureCode::Aborted => 10,
        }
    }

    /// The failure of one path of a batch.
    pub fn path_error(&self) -> v1::PathError {
        v1::PathError {
            code: self.number(),
            reason: self.reason.clone(),
            message: self.message.clone(),
            nearest: self.nearest.clone(),
        }
    }
}

/// The step of a path's name that comes after a prefix, as one that is not there.
fn step_after(text: &str, prefix: &str) -> PathErrorReason {
    let rest = text.get(prefix.len()..).unwrap_or_default();
    match rest.trim_start_matches('/').split('/').next() {
        Some("listenersets") => PathErrorReason::ListenerSetNotFound,
        Some("listeners") => PathErrorReason::ListenerNotFound,
        Some("routes") => PathErrorReason::RouteNotFound,
        Some("rules") => PathErrorReason::RuleNotFound,
        Some("ports") => PathErrorReason::PortNotFound,
        _ => PathErrorReason::BackendNotFound,
    }
}

/// The longest prefix of a path's name that is a path and may be seen.
fn nearest(snapshot: &Snapshot, text: &str, visibility: &dyn Visibility) -> String {
    let mut prefix = text;
    while let Some((above, _)) = prefix.rsplit_once('/') {
        let found = PathName::parse(above).is_ok_and(|path| snapshot.look_up(&path).is_some());
        if found && visibility.includes_path(above) {
            return above.to_owned();
        }
        prefix = above;
    }
    String::new()
}

/// Names from outside are repeated up to a length.
fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    if text.len() <= MOST {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MOST).collect();
    format!("{kept}...")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
