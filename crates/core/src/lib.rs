//! What an effective policy is: policy attachment on Gateway API objects (GEP-713), computed.
//!
//! This package reads Kubernetes objects and policy profiles, finds every path from a Gateway to a
//! backend, and merges the policies that are attached along it into one effective policy for each
//! policy kind. It keeps the origin of every value and follows changes incrementally.
//!
//! It is pure: synchronous and deterministic, without a clock, I/O, a Kubernetes client or gRPC. Bad
//! input is data: a policy that cannot be read has a status, and never causes a panic.
//!
//! The rules are in `docs/specification.md`; comments cite their numbers.
//!
//! Without the default feature `engine` only [`model`] is built.

#[cfg(feature = "engine")]
pub mod attach;
#[cfg(feature = "engine")]
pub mod effective;
#[cfg(feature = "engine")]
pub mod engine;
#[cfg(feature = "engine")]
pub mod expr;
#[cfg(feature = "engine")]
pub mod merge;
pub mod model;
#[cfg(feature = "engine")]
pub mod profile;
#[cfg(feature = "engine")]
pub mod routing;
#[cfg(feature = "engine")]
pub mod store;
#[cfg(feature = "engine")]
pub mod topology;
