//! Reaching the API server.

use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;
use kube::client::ClientBuilder;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

use super::reviews::ResourceNames;
use super::{ApiRequestRecorder, WatchFilter};

/// How to reach a cluster: by a kubeconfig, or as the pod that this is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The kubeconfig; else `KUBECONFIG`, the user's own one, or the pod's account.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; else its current one.
    pub context: Option<String>,
    /// What is kept of it.
    pub filter: WatchFilter,
}

/// A cluster that is asked.
#[derive(Clone)]
pub struct Cluster {
    pub(super) client: Client,
    /// What was asked of it.
    pub calls: ApiRequestRecorder,
    /// Where it is.
    pub url: String,
    /// What is kept of it.
    pub filter: Arc<WatchFilter>,
    /// Under which names it serves what it is asked for.
    pub(super) resources: ResourceNames,
}

/// Why a cluster cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig{}: {source}; name one with `--kubeconfig`, and a context with `--context`", place(.file))]
    Kubeconfig {
        /// The file, if one was named.
        file: Option<PathBuf>,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// There is neither a kubeconfig nor a pod's account.
    #[error("no cluster is configured: {0}; name a kubeconfig with `--kubeconfig`")]
    NoConfig(#[from] kube::config::InferConfigError),
    /// The settings lead to no client.
    #[error("the cluster cannot be asked: {0}")]
    Client(#[from] kube::Error),
}

fn place(file: &Option<PathBuf>) -> String {
    file.as_ref()
        .map_or(String::new(), |file| format!(" {}", file.display()))
}

impl Cluster {
    /// Prepares a client; nothing is asked yet.
    ///
    /// # Errors
    /// Settings that lead to no cluster.
    pub async fn connect(access: &ClusterConfig) -> Result<Self, ClusterError> {
        let refused = |source| ClusterError::Kubeconfig {
            file: access.kubeconfig.clone(),
            source,
        };
        let options = KubeConfigOptions {
            context: access.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = match (&access.kubeconfig, &access.context) {
            (Some(file), _) => {
                let read = Kubeconfig::read_from(file).map_err(refused)?;
                let config = Config::from_custom_kubeconfig(read, &options).await;
                config.map_err(refused)?
            }
            (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(refused)?,
            (None, None) => Config::infer().await?,
        };
        let url = config.cluster_url.to_string();
        let calls = ApiRequestRecorder::default();
        let client = ClientBuilder::try_from(config)?.with_layer(&calls).build();
        Ok(Self {
            client,
            calls,
            url,
            filter: Arc::new(access.filter.clone()),
            resources: ResourceNames::default(),
        })
    }
}
