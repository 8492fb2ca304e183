//! The server and the commands of entail. This library exists for the binary, tests and benches;
//! the public API for other programs is in `entail-core` and `entail-client`.
//!
//! `docs/architecture.md` describes the modules and which of them may import which.

pub mod api;
pub mod app;
mod background;
mod bounded_value;
pub mod cli;
pub mod config;
mod cores;
pub mod insight;
mod printable;
pub mod server;
pub mod snapshot;
pub mod source;
pub mod subscription;
pub mod telemetry;
pub mod verify;
