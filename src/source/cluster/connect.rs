//! Creates the client of the API server.

use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;
use kube::client::ClientBuilder;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tokio::sync::OnceCell;

use super::reviews::ResourceNames;
use super::{ApiRequestRecorder, WatchFilter};

/// How to connect to a cluster, and which of its objects to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Path of the kubeconfig. Default: `KUBECONFIG`, then `~/.kube/config`, then the service
    /// account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context.
    pub context: Option<String>,
    /// Which objects to read.
    pub filter: WatchFilter,
}

/// The client of a cluster.
#[derive(Clone)]
pub struct Cluster {
    pub(super) client: Client,
    /// Records the requests to the API server.
    pub calls: ApiRequestRecorder,
    /// URL of the API server.
    pub url: String,
    /// Which objects to read.
    pub filter: Arc<WatchFilter>,
    /// See [`Cluster::uid`].
    pub(super) uid: Arc<OnceCell<String>>,
    /// Resource names of the desired kinds, for access reviews.
    pub(super) resources: ResourceNames,
}

/// Why the client of a cluster cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The kubeconfig is missing or invalid.
    #[error("kubeconfig{}: {source}; set `--kubeconfig` and `--context`", place(.file))]
    Kubeconfig {
        /// Path of the file, if one was given.
        file: Option<PathBuf>,
        /// The cause.
        source: kube::config::KubeconfigError,
    },
    /// There is neither a kubeconfig nor a service account of a pod.
    #[error("no cluster is configured: {0}; set `--kubeconfig`")]
    NoConfig(#[from] kube::config::InferConfigError),
    /// The settings are not valid for a client.
    #[error("failed to create the API client: {0}")]
    Client(#[from] kube::Error),
}

fn place(file: &Option<PathBuf>) -> String {
    file.as_ref()
        .map_or(String::new(), |file| format!(" {}", file.display()))
}

impl Cluster {
    /// Creates a client. The API server is not contacted yet.
    ///
    /// # Errors
    /// Returns an error if there is no kubeconfig, or if it is invalid.
    pub async fn connect(access: &ClusterConfig) -> Result<Self, ClusterError> {
        let kubeconfig_error = |source| ClusterError::Kubeconfig {
            file: access.kubeconfig.clone(),
            source,
        };
        let options = KubeConfigOptions {
            context: access.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = match (&access.kubeconfig, &access.context) {
            (Some(file), _) => {
                let kubeconfig = Kubeconfig::read_from(file).map_err(kubeconfig_error)?;
                let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
                config.map_err(kubeconfig_error)?
            }
            (None, Some(_)) => Config::from_kubeconfig(&options)
                .await
                .map_err(kubeconfig_error)?,
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
            uid: Arc::default(),
            resources: ResourceNames::default(),
        })
    }
}
