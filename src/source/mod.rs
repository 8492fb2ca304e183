//! Sources of objects: manifests, clusters and checkpoints.
//!
//! A source yields [`Change`](entail_core::model::Change)s. It does not interpret objects: topology
//! and policies are the business of `entail_core`.

pub mod checkpoint;
pub mod cluster;
pub mod manifests;
mod object;
mod shape;
