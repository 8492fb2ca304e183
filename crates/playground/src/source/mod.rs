//! Manifests, read by the modules of the server: the playground must not read them in another way.

#![allow(dead_code, reason = "the server uses the rest")]

pub mod manifests;
#[path = "../../../../src/source/object.rs"]
pub mod object;
#[path = "../../../../src/source/shape.rs"]
mod shape;
