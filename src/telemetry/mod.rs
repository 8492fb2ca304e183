//! What the process tells of itself: logs on standard error, metrics, and whether it is ready.

mod admin;
mod bounded;
mod log;
mod metrics;

pub use admin::{AdminServer, AdminState, Readiness};
pub use log::{LogControl, LogFormat, LogSettings, init, log_control};
pub use metrics::{Metric, MetricValues, Metrics};
