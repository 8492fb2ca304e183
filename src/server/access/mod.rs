//! Who may call what: names in certificates, access rules, reviews by a cluster.

pub(in crate::server) mod peer;
pub(in crate::server) mod review;
pub(in crate::server) mod rules;
