//! Errors that only a bug of this program can cause.

use std::sync::atomic::{AtomicU64, Ordering};

/// Something that must exist is missing: a bug of this program. An answer that depends on it is
/// unknown; it is never the answer for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("internal error: {0} is missing")]
pub struct InternalError(&'static str);

/// The number of internal errors since the start.
static ERRORS: AtomicU64 = AtomicU64::new(0);

impl InternalError {
    /// Records that something is missing. Panics in builds with debug assertions.
    #[track_caller]
    pub fn missing(what: &'static str) -> Self {
        ERRORS.fetch_add(1, Ordering::Relaxed);
        debug_assert!(what.is_empty(), "internal error: {what} is missing");
        Self(what)
    }

    /// An error that did not happen, for tests of what becomes of one.
    #[cfg(any(test, feature = "judge"))]
    #[doc(hidden)]
    pub fn pretended(what: &'static str) -> Self {
        Self(what)
    }

    /// The number of internal errors since the start.
    pub fn count() -> u64 {
        ERRORS.load(Ordering::Relaxed)
    }
}

/// Turns what cannot be missing into an internal error where it is.
pub trait OrInternal<T> {
    /// The value.
    ///
    /// # Errors
    /// It is missing: the error is recorded with the name of what is missing.
    fn or_internal(self, what: &'static str) -> Result<T, InternalError>;
}

impl<T> OrInternal<T> for Option<T> {
    #[track_caller]
    fn or_internal(self, what: &'static str) -> Result<T, InternalError> {
        match self {
            Some(value) => Ok(value),
            None => Err(InternalError::missing(what)),
        }
    }
}
