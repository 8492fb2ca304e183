//! Tests of the rules and the engine: conformance cases, random worlds, properties of arbitrary inputs,
//! and the work that a change causes. They are one program, because every program is linked separately
//! and reads the cases.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod assertions;
mod conformance;
mod corpus;
mod engine;
mod fuzzed;
mod gateways;
mod matching;
mod oracle;
mod properties;
#[path = "../served/mod.rs"]
mod served;
#[path = "../../benches/world/mod.rs"]
mod world;
