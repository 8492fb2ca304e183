//! Builds snapshots from the inputs: once for commands, after every change for the server.

mod admission;
mod assertions;
mod checkpoints;
mod cluster;
mod load;
mod metrics;
mod object_cache;
mod port_file;
mod problem_log;
mod reconciler;
mod reports;
mod reviews;
mod revision;
mod serve;
mod shared_state;
mod sockets;
mod sync_time;
mod values;

use crate::server::ServeError;

pub use crate::config::{ClusterSettings, Inputs, ServeSettings};
pub use load::{LoadedInputs, files_of, load};
pub use reports::{ReportKinds, ReportWriter, WrittenReports};
pub use revision::{Revision, RevisionRange};
pub use serve::{run, serve};
pub use sockets::BoundAddresses;
pub use values::{change_world, load_values, load_values_with, read_values, world_of};

/// Why a command or the server ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// Invalid settings, one message each.
    #[error("{}", .0.join("\n"))]
    Usage(Vec<String>),
    /// Unreadable or invalid inputs, one message each with its location.
    #[error("{}", .0.join("\n"))]
    Input(Vec<String>),
    /// Failed to listen on an address, or to write the port file.
    #[error("{0}")]
    Listen(String),
    /// The server failed.
    #[error("{0}")]
    Serve(#[from] ServeError),
    /// The process failed to start a thread or to install a signal handler.
    #[error("{0}")]
    Process(String),
}

impl AppError {
    /// The exit code of the process: 2 for invalid settings, 3 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            AppError::Usage(_) => 2,
            AppError::Input(_) | AppError::Listen(_) | AppError::Serve(_) => 3,
            AppError::Process(_) => 3,
        }
    }
}
