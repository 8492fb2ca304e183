//! Questions and answers as messages: what the services and the commands both show.

mod ask;
mod explain;
mod failure;
mod look_up;
mod name;
mod paths;
mod policies;
mod status;

pub use ask::{Ask, AskError, Local};
pub use explain::explain;
pub use failure::{Failure, FailureCode};
pub use look_up::{MAX_BATCH, batch, get, get_ready, path_of};
pub use name::Subject;
pub use paths::list_paths;
pub use policies::{list_affected, list_policies};
pub use status::{Notes, server_status};
