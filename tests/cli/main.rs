//! The binary as people call it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod admission;
mod answers;
mod api_reference;
mod assertions;
mod builtin;
mod cases;
mod complete;
mod crds;
mod findings;
mod insight;
mod lost;
mod man;
mod matrix;
mod mcp;
mod mistakes;
mod names;
mod pull_requests;
mod readme;
mod unknown;
mod verify;
mod verify_origins;
mod waypoints;
mod why_not;
