//! Access control: names in client certificates, access rules, and access reviews of a cluster.

pub(in crate::server) mod peer;
pub(in crate::server) mod review;
pub(in crate::server) mod rules;
