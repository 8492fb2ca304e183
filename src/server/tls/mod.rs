//! Certificates of the server, and of the CAs that it trusts.

pub(in crate::server) mod certificates;
