//! The rules and the engine that follows them: the cases, random worlds, properties of any input,
//! and the work that a change causes. One program, because each costs a link and reads the cases.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod conformance;
mod corpus;
mod engine;
mod fuzzed;
mod matching;
mod oracle;
mod properties;
#[path = "../served/mod.rs"]
mod served;
#[path = "../../benches/world/mod.rs"]
mod world;
