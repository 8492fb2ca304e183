//! Admission of connections and requests: limits, permits, deadlines and the pool for blocking work.

mod addresses;
pub(in crate::server) mod blocking_pool;
pub(in crate::server) mod bounds;
pub(in crate::server) mod concurrency;
pub(in crate::server) mod connections;
pub(in crate::server) mod deadline;
pub(in crate::server) mod held_bytes;
pub(in crate::server) mod limits;
pub(in crate::server) mod turns;
