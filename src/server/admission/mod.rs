//! How much is answered at once: limits, permits, deadlines.

pub(in crate::server) mod blocking_pool;
pub(in crate::server) mod concurrency;
pub(in crate::server) mod deadline;
pub(in crate::server) mod limits;
