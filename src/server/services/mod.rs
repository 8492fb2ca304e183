//! The gRPC services.

pub(in crate::server) mod effective_policy;
pub(in crate::server) mod health;
mod listings;
pub(in crate::server) mod policy_insight;
pub(in crate::server) mod status;
pub(in crate::server) mod watch;
