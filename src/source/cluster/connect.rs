//! Creates the client of the API server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::connections::{self, WatchConnections};
use super::errors::error_chain;
use super::reviews::ResourceNames;
use super::server_health::ServerHealth;
use super::{ApiRequestRecorder, WatchFilter};

/// How to connect to a cluster, and which of its objects to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Path of the kubeconfig. Default: `KUBECONFIG`, then `~/.kube/config`, then the service
    /// account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context.
    pub context: Option<String>,
    /// Which objects to read.
    pub filter: WatchFilter,
    /// How long to wait for the API server.
    pub timeouts: ApiTimeouts,
}

/// How long to wait for the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiTimeouts {
    /// Maximum time until the headers of a watch and each part of a list arrive.
    pub request: Duration,
    /// A kind of which nothing was heard for this long is STALE.
    pub stale_after: Duration,
    /// A kind that is denied for this long by a server that is ready is FORBIDDEN, even if no review confirms it.
    pub forbidden_after: Duration,
    /// The first request to the server is sent within this time, so that the starts of many processes are spread.
    pub start_jitter: Duration,
    /// A kind that has not been read after this time is reported, with what it waits for.
    pub long_read: Duration,
}

impl ApiTimeouts {
    /// The usual value of [`long_read`](Self::long_read).
    pub const LONG_READ: Duration = Duration::from_secs(10);

    /// Maximum silence of a watch. Then the server is asked for its newest version and the watch is opened again, which a
    /// server that is well answers before the kind is STALE: not every server sends something each minute.
    pub(super) fn watch_silence(&self) -> Duration {
        self.stale_after.mul_f64(0.85).min(MAX_WATCH_SILENCE)
    }

    /// Maximum time of one page of a list. An API server itself ends a list after 60 s.
    pub(super) fn page(&self) -> Duration {
        self.request * 2 + Duration::from_secs(5)
    }
}

/// Upper bound of [`ApiTimeouts::watch_silence`].
const MAX_WATCH_SILENCE: Duration = Duration::from_secs(150);

/// The client of a cluster.
#[derive(Clone)]
pub struct Cluster {
    /// The client of discovery and reviews.
    pub(super) client: Client,
    /// The clients of watches.
    pub(super) connections: WatchConnections,
    pub(super) health: ServerHealth,
    /// Records the requests to the API server.
    pub calls: ApiRequestRecorder,
    /// URL of the API server.
    pub url: String,
    /// Which objects to read.
    pub filter: Arc<WatchFilter>,
    /// See [`Cluster::uid`].
    pub(super) uid: Arc<OnceCell<String>>,
    pub(super) timeouts: ApiTimeouts,
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
    /// The name for the certificate of the server is not valid.
    #[error("kubeconfig: `{0}` is not a valid `tls-server-name`")]
    ServerName(String),
}

fn place(file: &Option<PathBuf>) -> String {
    file.as_ref()
        .map_or(String::new(), |file| format!(" {}", file.display()))
}

impl Cluster {
    /// Sends a request, and waits for the JSON of the response.
    ///
    /// # Errors
    /// Returns why there is none: the request is malformed, or the API server refuses it or does not respond in time.
    pub(super) async fn request(
        &self,
        request: Result<http::Request<Vec<u8>>, http::Error>,
        limit: Duration,
    ) -> Result<Value, String> {
        let request = request.map_err(|error| error.to_string())?;
        let response = timeout(limit, self.client.request::<Value>(request)).await;
        let response = response.map_err(|_| "the API server does not respond".to_owned())?;
        response.map_err(|error| error_chain(&error))
    }

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
        let client = connections::control_client(&config, &calls)?;
        Ok(Self {
            health: ServerHealth::new(client.clone()),
            connections: WatchConnections::new(config, &calls, client.clone()),
            timeouts: access.timeouts,
            client,
            calls,
            url,
            filter: Arc::new(access.filter.clone()),
            uid: Arc::default(),
            resources: ResourceNames::default(),
        })
    }
}
