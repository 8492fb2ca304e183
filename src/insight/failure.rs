//! Errors of queries.

use std::borrow::Cow;
use std::fmt;

use super::Visibility;
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::model::{PathErrorReason, PathName, PathSyntaxError, Root};

/// Maximum number of kinds, and of levels, that a request names: each is compared with those of the
/// world, and a reply has a state of each kind.
pub(crate) const MAX_NAMED: usize = 100;

/// The error of a query. Servers convert it to a gRPC status with a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The class of the error.
    pub code: FailureCode,
    /// A CamelCase reason for programs, such as `RouteNotFound`.
    pub reason: String,
    /// A message for people.
    pub message: String,
    /// The longest prefix that is an existing, visible path; empty if there is none.
    pub nearest: String,
}

/// The class of a [`Failure`], a subset of the gRPC codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// The request is malformed.
    InvalidArgument,
    /// The subject of the request does not exist.
    NotFound,
    /// The snapshot changed between two pages: restart the listing.
    Aborted,
    /// The caller is gone, or its deadline has passed.
    Cancelled,
}

impl Failure {
    /// Creates the error of a malformed request.
    pub fn invalid(reason: &str, message: impl Into<String>) -> Self {
        Self {
            code: FailureCode::InvalidArgument,
            reason: reason.to_owned(),
            message: message.into(),
            nearest: String::new(),
        }
    }

    /// Checks how many of something a request has.
    ///
    /// # Errors
    /// There are more than `limit`.
    pub fn check_count(field: &str, count: usize, limit: usize) -> Result<(), Self> {
        if count <= limit {
            return Ok(());
        }
        let message = format!("{count} {field} in one request, maximum {limit}");
        Err(Self::invalid("TooMany", message))
    }

    /// Creates the error of an object that does not exist.
    pub fn no_such_object(message: impl Into<String>) -> Self {
        Self {
            code: FailureCode::NotFound,
            reason: "NotFound".to_owned(),
            message: message.into(),
            nearest: String::new(),
        }
    }

    /// Creates the error of a malformed page token.
    pub(super) fn page_token() -> Self {
        Self::invalid("PageToken", "invalid page_token")
    }

    /// Creates the error of a query whose caller is gone.
    pub fn cancelled() -> Self {
        Self {
            code: FailureCode::Cancelled,
            reason: "Cancelled".to_owned(),
            message: "the caller is gone, or its deadline has passed".to_owned(),
            nearest: String::new(),
        }
    }

    /// Creates the error of a malformed path name.
    pub fn syntax(text: &str, error: &PathSyntaxError) -> Self {
        Self::invalid(
            "NotAPath",
            format!("malformed path name `{}`: {error}", shortened(text)),
        )
    }

    /// Creates the error of a path that does not exist: the first segment that fails, and the nearest
    /// existing prefix (specification 1.4).
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
        // The exact reason could reveal objects that the caller may not see. A missing segment does
        // not.
        match PathName::parse(text) {
            Ok(path) if nearest.is_empty() => Self::hidden(text, &path),
            _ => Self::of_path(text, step_after(text, &nearest), nearest),
        }
    }

    /// Creates the error of a path that the caller may not see: the same error as if its root did not
    /// exist.
    pub fn hidden(text: &str, path: &PathName<'_>) -> Self {
        let reason = match path {
            PathName::Traffic(walk) => match walk.root {
                Root::Gateway { .. } => PathErrorReason::GatewayNotFound,
                // Also the reason for a Service without routes.
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

    /// The number of the gRPC code.
    pub fn number(&self) -> i32 {
        match self.code {
            FailureCode::Cancelled => 1,
            FailureCode::InvalidArgument => 3,
            FailureCode::NotFound => 5,
            FailureCode::Aborted => 10,
        }
    }

    /// Converts the error to that of one path of a batch.
    pub fn path_error(&self) -> v1::PathError {
        v1::PathError {
            code: self.number(),
            reason: self.reason.clone(),
            message: self.message.clone(),
            nearest: self.nearest.clone(),
        }
    }
}

/// The reason "not found" for the first segment after a prefix.
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

/// The longest prefix of a path name that is an existing, visible path.
fn nearest(snapshot: &Snapshot, text: &str, visibility: &dyn Visibility) -> String {
    let mut prefix = text;
    while let Some((above, _)) = prefix.rsplit_once('/') {
        let exists = PathName::parse(above).is_ok_and(|path| snapshot.look_up(&path).is_some());
        if exists && visibility.includes_path(above) {
            return above.to_owned();
        }
        prefix = above;
    }
    String::new()
}

/// Truncates a name of a request for error messages. They are headers of HTTP/2: many clients refuse
/// long ones, and their bytes do not count as held for the caller.
pub fn shortened(text: &str) -> Cow<'_, str> {
    const MAX_BYTES: usize = 300;
    match text.get(..text.floor_char_boundary(MAX_BYTES)) {
        Some(kept) if kept.len() < text.len() => format!("{kept}...").into(),
        _ => text.into(),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
