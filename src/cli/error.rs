//! Exit statuses and errors of commands.

use std::io;
use std::process::ExitCode;

use crate::app::AppError;
use crate::insight::{FailureCode, QueryError};

/// The exit status of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Exit code 0.
    Success,
    /// Exit code 1: findings such as a failed test case or a lost value, or a name that is not found.
    Findings,
    /// Exit code 2: the command line is invalid.
    Usage,
    /// Exit code 3: some input is unreadable, or the answer is incomplete.
    Incomplete,
}

/// An error that ends a command. Messages are in lower case: what failed, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// No object, path or policy has the name.
    #[error("{0}")]
    NotFound(String),
    /// Input is unreadable, or the server is unreachable.
    #[error("{0}")]
    Unreadable(String),
    /// Standard output cannot be written.
    #[error("failed to write the output: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// The exit status of this error.
    pub fn exit(&self) -> ExitStatus {
        match self {
            CliError::Usage(_) => ExitStatus::Usage,
            CliError::NotFound(_) => ExitStatus::Findings,
            CliError::Unreadable(_) => ExitStatus::Incomplete,
            // The reader closed the pipe, as in `entail get | head`.
            CliError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitStatus::Success
            }
            CliError::Output(_) => ExitStatus::Incomplete,
        }
    }

    /// Prints the error on standard error, and returns the exit code.
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
                FailureCode::Aborted | FailureCode::Cancelled => {
                    CliError::Unreadable(failure.message)
                }
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
    fn errors_have_their_exit_statuses() {
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
