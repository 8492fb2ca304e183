//! Compares effective policies with the configuration that a proxy has: Envoy's `config_dump`.
//!
//! [`read_dump`] reads a dump as a stream and keeps what is compared; [`Verifier`] takes the effective policies
//! path by path and compares each field with its place in Envoy's configuration. The places are tables, one row
//! for each field (`rows::Row`); a field without a row is reported as not verifiable, never as the same.

mod compare;
mod convert;
mod dump;
mod envoy_gateway;
mod judge;
mod origins;
mod report;
mod rows;
mod shapes;
mod spec;

pub use compare::Verifier;
pub use dump::{DumpError, ProxyConfig, read_dump};
pub use report::{Finding, Group, Report, Summary, Verdict};
