//! Listeners, connections and HTTP: the layers below the services.

pub(in crate::server) mod batched_writes;
pub(in crate::server) mod body;
pub(in crate::server) mod connection;
pub(in crate::server) mod executor;
pub(in crate::server) mod fast_path;
pub(in crate::server) mod http1;
pub(in crate::server) mod http2;
pub(in crate::server) mod listener;
pub(in crate::server) mod messages;
pub(in crate::server) mod request_counters;
mod turn_waker;
