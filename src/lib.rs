//! entail knows which policies are in effect on every Gateway > Route > Backend path of a
//! Kubernetes cluster, what they come to when their defaults and overrides are merged, and who
//! said each value.
//!
//! The rules stand in `docs/semantics.md`; the rooms of this crate and what each may know in
//! `docs/architecture.md`.

pub mod app;
pub mod attach;
pub mod cli;
pub mod client;
pub mod config;
pub mod expr;
pub mod insight;
pub mod merge;
pub mod model;
pub mod profile;
pub mod resolve;
pub mod serve;
pub mod snapshot;
pub mod source;
pub mod store;
pub mod telemetry;
pub mod topology;
pub mod wire;
