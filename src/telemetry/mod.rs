//! Observability of the process: logs on standard error, metrics, and readiness.

mod admin;
mod bounded;
mod log;
mod metrics;
mod process;

pub use admin::{AdminServer, AdminState, Readiness};
pub use log::{LogControl, LogFormat, LogSettings, init, log_control};
pub use metrics::{HistogramValue, Metric, MetricValues, Metrics};
pub use process::process_metrics;
