//! Writes report objects to a cluster, for the command that does nothing else.

use serde_json::Value;
use tokio::runtime::Runtime;

use super::AppError;
use super::cluster::{connect, runtime};
use crate::config::ClusterSettings;
use crate::source::cluster::Cluster;

pub use crate::source::cluster::{ReportKinds, WrittenReports};

/// Writes the reports of one cluster.
pub struct ReportWriter {
    cluster: Cluster,
    kinds: ReportKinds,
    runtime: Runtime,
}

impl ReportWriter {
    /// Creates a writer. The API server is not contacted yet.
    ///
    /// # Errors
    /// The cluster is not configured, or a thread cannot be started.
    pub fn connect(access: &ClusterSettings, kinds: ReportKinds) -> Result<Self, AppError> {
        let runtime = runtime()?;
        Ok(Self {
            cluster: runtime.block_on(connect(access))?,
            kinds,
            runtime,
        })
    }

    /// Makes the reports of the cluster those that are given. With `keep`, others are not deleted.
    ///
    /// # Errors
    /// The reports of the cluster cannot be listed.
    pub fn write(&self, reports: &[Value], keep: bool) -> Result<WrittenReports, String> {
        let written = self.cluster.write_reports(self.kinds, reports, keep);
        self.runtime.block_on(written)
    }
}
