//! How commands end.

use std::io;
use std::process::ExitCode;

use crate::app::AppError;
use crate::insight::{FailureCode, QueryError};

/// How a command that did its work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// All is fine.
    Success,
    /// It found what it looks for, such as a failed case.
    Findings,
    /// The command line is wrong.
    Usage,
    /// Not everything is known.
    Incomplete,
}

/// Why a command could not do its work. Messages are lower case: what was wrong, where, what to
/// do.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// Nothing has that name.
    #[error("{0}")]
    NotFound(String),
    /// Input cannot be read, or nobody answers.
    #[error("{0}")]
    Unreadable(String),
    /// The answer cannot be written.
    #[error("the answer cannot be written: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// The exit that it means.
    pub fn exit(&self) -> ExitStatus {
        match self {
            CliError::Usage(_) => ExitStatus::Usage,
            CliError::NotFound(_) => ExitStatus::Findings,
            CliError::Unreadable(_) => ExitStatus::Incomplete,
            // Whoever reads has read enough, as in `entail get | head`.
            CliError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitStatus::Success
            }
            CliError::Output(_) => ExitStatus::Incomplete,
        }
    }

    /// Tells it to people and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let exit = self.exit();
        if exit != ExitStatus::Success {
            super::render::console::print_error(&format!("error: {self}"));
        }
        exit.into()
    }
}

impl From<QueryError> for CliError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Unreachable(why) => CliError::Unreadable(why),
            QueryError::Failure(failure) => match failure.code {
                FailureCode::NotFound => CliError::NotFound(failure.message),
                FailureCode::InvalidArgument => CliError::Usage(failure.message),
                FailureCode::Aborted => CliError::Unreadable(failure.message),
            },
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        ExitCode::from(match exit {
            ExitStatus::Success => 0,
            ExitStatus::Findings => 1,
            ExitStatus::Usage => 2,
            ExitStatus::Incomplete => 3,
        })
    }
}

impl From<AppError> for CliError {
    fn from(error: AppError) -> Self {
        match error {
            AppError::Usage(_) => CliError::Usage(error.to_string()),
            _ => CliError::Unreadable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insight::Failure;

    #[test]
    fn failures_have_their_exits() {
        let wrong = QueryError::from(Failure::invalid("X", "wrong"));
        assert_eq!(CliError::from(wrong).exit(), ExitStatus::Usage);
        let gone = QueryError::Unreachable("gone".to_owned());
        assert_eq!(CliError::from(gone).exit(), ExitStatus::Incomplete);
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(CliError::from(pipe).exit(), ExitStatus::Success);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(CliError::from(full).exit(), ExitStatus::Incomplete);
    }
}
