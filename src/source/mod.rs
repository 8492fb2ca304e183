//! Where objects come from. A source yields [`Change`](crate::model::Change)s and interprets
//! nothing: it knows neither topology nor policies.

pub mod manifests;
