//! TLS certificates of the server and of trusted CAs.

pub(in crate::server) mod certificates;
