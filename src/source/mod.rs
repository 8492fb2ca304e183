//! Where objects come from. A source yields [`Change`](entail_core::model::Change)s and interprets
//! nothing: it knows neither topology nor policies.

pub mod checkpoint;
pub mod cluster;
pub mod manifests;
mod object;
