//! entail knows which policies are in effect on every Gateway > Route > Backend path of a
//! Kubernetes cluster, what they come to when their defaults and overrides are merged, and who
//! said each value.
//!
//! With the feature `client` alone it is [`client`] and the messages that it speaks: what a data plane
//! needs in its own process.
//!
//! The rules stand in `docs/semantics.md`; the rooms of this crate and what each may know in
//! `docs/architecture.md`.

#[cfg(feature = "server")]
pub mod app;
#[cfg(feature = "server")]
pub mod attach;
#[cfg(feature = "server")]
pub mod cli;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod expr;
#[cfg(feature = "server")]
pub mod insight;
#[cfg(feature = "server")]
pub mod merge;
pub mod model;
#[cfg(feature = "server")]
pub mod profile;
#[cfg(feature = "server")]
pub mod resolve;
#[cfg(feature = "server")]
pub mod serve;
#[cfg(feature = "server")]
pub mod snapshot;
#[cfg(feature = "server")]
pub mod source;
#[cfg(feature = "server")]
pub mod store;
#[cfg(feature = "server")]
pub mod telemetry;
#[cfg(feature = "server")]
pub mod topology;
pub mod wire;
