//! Connections to the API server.
//!
//! The client of kube negotiates HTTP/1.1, which needs a connection for each watch. The clients here negotiate HTTP/2
//! and fall back to HTTP/1.1: one for discovery, probes and reviews, and one for up to
//! [`MAX_WATCHES_PER_CONNECTION`] watches.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Client;
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::Config;
use tower::retry::RetryLayer;
use tower::timeout::Timeout;
use tower::util::option_layer;
use tower::{BoxError, Layer, ServiceExt};

use super::{ApiRequestRecorder, ClusterError};

/// Watches that share a connection. An API server allows 100 requests at once on a connection by default; the client
/// would let further ones wait for ever.
const MAX_WATCHES_PER_CONNECTION: usize = 64;
/// Timeout of connecting, with the handshake of TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between HTTP/2 pings.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// A connection whose ping is not answered within this time is closed.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// The clients of the watches, created as they are needed. Clones share them.
#[derive(Clone)]
pub(super) struct WatchConnections {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    calls: ApiRequestRecorder,
    /// Used if no further client can be created.
    control: Client,
    existing: Mutex<Vec<WatchConnection>>,
}

/// A client for one watch. It counts for its connection while it exists.
#[derive(Clone)]
pub(super) struct WatchConnection {
    pub client: Client,
    /// As many references as there are watches, and one.
    users: Arc<()>,
}

impl WatchConnections {
    pub fn new(config: Config, calls: &ApiRequestRecorder, control: Client) -> Self {
        Self {
            inner: Arc::new(Inner {
                config,
                calls: calls.clone(),
                control,
                existing: Mutex::default(),
            }),
        }
    }

    /// Returns the client of a connection with fewer than [`MAX_WATCHES_PER_CONNECTION`] watches.
    pub fn acquire(&self) -> WatchConnection {
        let existing = self.inner.existing.lock();
        let mut existing = existing.unwrap_or_else(PoisonError::into_inner);
        let mut each = existing.iter();
        let has_room =
            |each: &&WatchConnection| Arc::strong_count(&each.users) <= MAX_WATCHES_PER_CONNECTION;
        if let Some(connection) = each.find(has_room) {
            return connection.clone();
        }
        let created = watch_client(&self.inner.config, &self.inner.calls);
        let client = created.unwrap_or_else(|error| {
            tracing::warn!("failed to create a further client of the API server: {error}");
            self.inner.control.clone()
        });
        let connection = WatchConnection {
            client,
            users: Arc::default(),
        };
        existing.push(connection.clone());
        connection
    }
}

/// Creates the client of discovery, probes and reviews. It repeats requests that the server is too busy for.
pub(super) fn control_client(
    config: &Config,
    calls: &ApiRequestRecorder,
) -> Result<Client, ClusterError> {
    client(config, calls, config.default_retry)
}

/// Creates a client of watches. It repeats nothing: the watches have their own back-off.
fn watch_client(config: &Config, calls: &ApiRequestRecorder) -> Result<Client, ClusterError> {
    client(config, calls, false)
}

fn client(
    config: &Config,
    calls: &ApiRequestRecorder,
    repeats: bool,
) -> Result<Client, ClusterError> {
    if config.proxy_url.is_some() {
        // Proxies are not compiled in: kube says so.
        let builder = ClientBuilder::try_from(config.clone())?;
        return Ok(builder.with_layer(calls).build());
    }
    let http = HttpClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build::<_, Body>(connector(config)?);
    let service = config
        .extra_headers_layer()?
        .layer(http.map_err(BoxError::from));
    let service = option_layer(config.auth_layer()?).layer(service);
    let retries = repeats.then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let service = option_layer(retries).layer(service);
    let service = config.base_uri_layer().layer(service);
    Ok(Client::new(
        calls.layer(service),
        config.default_namespace.clone(),
    ))
}

/// TCP and TLS, with a timeout.
fn connector(
    config: &Config,
) -> Result<impl Connect + Clone + Send + Sync + 'static, ClusterError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(PING_INTERVAL));
    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name
            .clone()
            .try_into()
            .map_err(|_| ClusterError::ServerName(name.clone()))?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let tls = tls.enable_all_versions().wrap_connector(tcp);
    let connector = Timeout::new(tls, CONNECT_TIMEOUT);
    Ok(ServiceExt::<Uri>::map_future(connector, Box::pin))
}
