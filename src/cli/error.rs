//! How commands end.

use std::io;
use std::process::ExitCode;

use crate::app::AppError;
use crate::insight::{AskError, FailureCode};

/// How a command that did its work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is fine.
    Fine,
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
    pub fn exit(&self) -> Exit {
        match self {
            CliError::Usage(_) => Exit::Usage,
            CliError::NotFound(_) => Exit::Findings,
            CliError::Unreadable(_) => Exit::Incomplete,
            // Whoever reads has read enough, as in `entail get | head`.
            CliError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Fine,
            CliError::Output(_) => Exit::Incomplete,
        }
    }

    /// Tells it to people and gives the exit code.
    pub fn tell(&self) -> ExitCode {
        let exit = self.exit();
        if exit != Exit::Fine {
            super::output::say(&format!("error: {self}"));
        }
        exit.into()
    }
}

impl From<AskError> for CliError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Unreachable(why) => CliError::Unreadable(why),
            AskError::Failure(failure) => match failure.code {
                FailureCode::NotFound => CliError::NotFound(failure.message),
                FailureCode::InvalidArgument => CliError::Usage(failure.message),
                FailureCode::Aborted => CliError::Unreadable(failure.message),
            },
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Fine => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::Incomplete => 3,
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
        let wrong = AskError::from(Failure::invalid("X", "wrong"));
        assert_eq!(CliError::from(wrong).exit(), Exit::Usage);
        let gone = AskError::Unreachable("gone".to_owned());
        assert_eq!(CliError::from(gone).exit(), Exit::Incomplete);
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(CliError::from(pipe).exit(), Exit::Fine);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(CliError::from(full).exit(), Exit::Incomplete);
    }
}
