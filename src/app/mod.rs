//! The wiring: from inputs to a snapshot, once for commands and again and again for the server.

mod checkpoints;
mod cluster;
mod load;
mod metrics;
mod object_cache;
mod port_file;
mod problem_log;
mod reconciler;
mod reviews;
mod serve;
mod shared_state;
mod sockets;
mod values;

use crate::server::ServeError;

pub use crate::config::{ClusterSettings, Inputs, ServeSettings};
pub use load::{LoadedInputs, files_of, load};
pub use serve::{run, serve};
pub use sockets::BoundAddresses;
pub use values::{change_world, load_values, read_values, world_of};

/// Why a command or the server cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// Settings are wrong: each with what to do.
    #[error("{}", .0.join("\n"))]
    Usage(Vec<String>),
    /// Inputs cannot be read or are refused: each with its place.
    #[error("{}", .0.join("\n"))]
    Input(Vec<String>),
    /// An address cannot be listened on, or its file not be written.
    #[error("{0}")]
    Listen(String),
    /// The server stopped by itself.
    #[error("{0}")]
    Serve(#[from] ServeError),
    /// The process cannot do what it needs.
    #[error("{0}")]
    Process(String),
}

impl AppError {
    /// The exit code: 2 for wrong settings, 3 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            AppError::Usage(_) => 2,
            AppError::Input(_) | AppError::Listen(_) | AppError::Serve(_) => 3,
            AppError::Process(_) => 3,
        }
    }
}
