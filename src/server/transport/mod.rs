//! HTTP/2 and connections: what happens to bytes before a service sees a message.

pub(in crate::server) mod body;
pub(in crate::server) mod connection;
pub(in crate::server) mod fast_path;
pub(in crate::server) mod http2;
pub(in crate::server) mod listener;
pub(in crate::server) mod request_counters;
