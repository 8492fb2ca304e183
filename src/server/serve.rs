//! The server: runs the services on listeners until shutdown.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::api::descriptors;
use crate::api::envoy::authorization_server::AuthorizationServer;
use crate::api::server_stubs::effective_policy_service_server::EffectivePolicyServiceServer;
use crate::api::server_stubs::policy_insight_service_server::PolicyInsightServiceServer;
use crate::server::admission::bounds::BoundCounters;
use crate::server::admission::concurrency::ConcurrencyLimiter;
use crate::server::admission::connections::{ConnectionLimits, ConnectionTable};
use crate::server::admission::held_bytes::{HeldBytes, UNREAD_TICKS};
use crate::server::admission::limits::PROBE_REQUEST_BYTES;
use crate::server::console;
use crate::server::envoy::{AuthorizationHandler, EnvoyCounters, EnvoySettings};
use crate::server::services::effective_policy::EffectivePolicyHandler;
use crate::server::services::policy_insight::PolicyInsightHandler;
use crate::server::transport::connection::{AcceptConfig, Acceptor};
use crate::server::transport::fast_path::FastPathService;
use crate::server::transport::http2::serve;
use crate::server::{
    AccessRules, BoundListener, Certificates, Health, Limits, RequestCounters, ServiceContext,
    TokenAuthenticator,
};

/// How long a new connection may be silent before it gives way to others first.
const ARRIVAL: Duration = Duration::from_secs(1);

/// Error that stops the server before its shutdown.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The descriptors for reflection cannot be decoded.
    #[error("failed to build the reflection service: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The task of a listener failed.
    #[error("a listener failed: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// The gRPC services with their limits and access rules.
#[derive(Debug)]
pub struct Server {
    answers: ServiceContext,
    health: Health,
    limits: Limits,
    security: Security,
    envoy: Option<Arc<EnvoySettings>>,
    envoy_counters: Arc<EnvoyCounters>,
    request_counters: Arc<RequestCounters>,
    concurrency: Arc<ConcurrencyLimiter>,
    bounds: Arc<BoundCounters>,
    held_bytes: Arc<HeldBytes>,
    connections: Arc<ConnectionTable>,
    /// The connections of the health listener.
    probes: Arc<ConnectionTable>,
    /// The connections of the console.
    browsers: Arc<ConnectionTable>,
    /// The runtime of the console and of requests of low priority; that of the connections if `None`.
    background: Option<Handle>,
}

/// What callers make the server hold.
#[derive(Clone, Debug)]
pub struct CallerLoad {
    /// The limiter that counts the requests in progress.
    pub concurrency: Arc<ConcurrencyLimiter>,
    /// The counters of exceeded bounds.
    pub bounds: Arc<BoundCounters>,
    /// The bytes that are held for callers.
    pub held_bytes: Arc<HeldBytes>,
    /// The open connections, without those of the health listener and of the console.
    pub connections: Arc<ConnectionTable>,
    /// The open connections of the console.
    pub browsers: Arc<ConnectionTable>,
}

/// The listeners of a server.
#[derive(Debug, Default)]
pub struct ListenerSet {
    /// Listeners of all gRPC services.
    pub all: Vec<BoundListener>,
    /// Listener of the health service alone.
    pub health: Option<BoundListener>,
    /// Listener of the console.
    pub console: Option<BoundListener>,
}

impl From<BoundListener> for ListenerSet {
    fn from(listener: BoundListener) -> Self {
        Self {
            all: vec![listener],
            ..Self::default()
        }
    }
}

/// TLS and access control.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// Certificates for TLS on all TCP listeners except the health listener; plain TCP without.
    pub certificates: Option<Arc<Certificates>>,
    /// What callers over TLS may call and see.
    pub callers: AccessRules,
    /// Authenticates tokens for access reviews of `PolicyInsightService` over TCP; without it, that
    /// service does not restrict replies by the rights of the caller in the cluster.
    pub reviews: Option<Arc<dyn TokenAuthenticator>>,
}

impl Server {
    /// Creates a server without the service for Envoy.
    pub fn new(
        answers: ServiceContext,
        health: Health,
        limits: Limits,
        security: Security,
    ) -> Self {
        let concurrency = Arc::new(ConcurrencyLimiter::new(&limits));
        let (held_bytes, bounds) = (HeldBytes::new(&limits), Arc::<BoundCounters>::default());
        let table = |sizes: ConnectionLimits| {
            let shared = (&held_bytes, concurrency.busy());
            ConnectionTable::new(sizes, &limits, shared, &bounds)
        };
        let connections = table(ConnectionLimits {
            total: limits.connections,
            per_client: limits.connections_per_client,
            arrival: ARRIVAL,
        });
        let probes = table(ConnectionLimits {
            total: limits.health_connections,
            per_client: limits.health_connections.div_ceil(2),
            arrival: ARRIVAL,
        });
        // All browsers are on this machine.
        let browsers = table(ConnectionLimits {
            total: console::CONNECTIONS,
            per_client: console::CONNECTIONS,
            arrival: ARRIVAL,
        });
        Self {
            answers,
            health,
            limits,
            security,
            envoy: None,
            envoy_counters: Arc::default(),
            request_counters: Arc::default(),
            concurrency,
            bounds,
            held_bytes,
            connections,
            probes,
            browsers,
            background: None,
        }
    }

    /// Adds the external authorization service for Envoy if there are settings for it.
    #[must_use]
    pub fn with_envoy(self, settings: Option<EnvoySettings>) -> Self {
        let envoy = settings.map(Arc::new);
        Self { envoy, ..self }
    }

    /// Serves the console, and requests that no data plane waits for, on another runtime than the one that [`Self::run`]
    /// is called on.
    #[must_use]
    pub fn with_background(self, runtime: Handle) -> Self {
        let background = Some(runtime);
        Self { background, ..self }
    }

    /// Returns the counters of answered requests.
    pub fn request_counters(&self) -> Arc<RequestCounters> {
        Arc::clone(&self.request_counters)
    }

    /// Returns the counters of the service for Envoy.
    pub fn envoy_counters(&self) -> Arc<EnvoyCounters> {
        Arc::clone(&self.envoy_counters)
    }

    fn concurrency(&self) -> Arc<ConcurrencyLimiter> {
        Arc::clone(&self.concurrency)
    }

    /// Returns what callers make the server hold, for metrics.
    pub fn load(&self) -> CallerLoad {
        CallerLoad {
            concurrency: self.concurrency(),
            bounds: self.bounds(),
            held_bytes: Arc::clone(&self.held_bytes),
            connections: Arc::clone(&self.connections),
            browsers: Arc::clone(&self.browsers),
        }
    }

    fn bounds(&self) -> Arc<BoundCounters> {
        Arc::clone(&self.bounds)
    }

    /// Serves on listeners until `shutdown` completes. Then sets the health to NOT_SERVING, stops accepting connections, and waits up to
    /// `drain` for the requests in progress.
    ///
    /// # Errors
    /// Returns an error if a listener failed.
    pub async fn run(
        self,
        listeners: ListenerSet,
        drain: Duration,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let (stop, stop_health) = (CancellationToken::new(), CancellationToken::new());
        let services = self.fast_path(self.services(&stop)?);
        let mut serving = JoinSet::new();
        let accept_config = self.accept_config();
        for listener in listeners.all {
            serving.spawn(accept(
                (listener, accept_config.clone()),
                services.clone(),
                self.limits.clone(),
                stop.clone(),
            ));
        }
        if let Some(listener) = listeners.console {
            let runtime = self.background.clone().unwrap_or_else(Handle::current);
            let accept_config = self.plain(&self.browsers);
            let (limits, stop) = (self.limits.clone(), stop.clone());
            let follows = self.security.reviews.is_none();
            let console = async move {
                let (acceptor, _file) = Acceptor::of(listener);
                let listener = (acceptor, accept_config);
                console::serve(listener, services, (&limits, follows), stop).await;
            };
            serving.spawn_on(console, &runtime);
        }
        let mut probes = JoinSet::new();
        if let Some(listener) = listeners.health {
            let health = self.health_alone();
            // Kubelet probes do not use TLS.
            let accept_config = self.plain(&self.probes);
            probes.spawn(accept(
                (listener, accept_config),
                health,
                self.limits.clone(),
                stop_health.clone(),
            ));
        }
        tokio::select! {
            () = shutdown => {}
            () = self.end_unread() => {}
            Some(result) = serving.join_next() => result?,
            Some(result) = probes.join_next() => result?,
        }
        tracing::info!(drain_seconds = drain.as_secs(), "stopping");
        self.health.stopping().await;
        stop.cancel();
        if tokio::time::timeout(drain, join_all(&mut serving))
            .await
            .is_err()
        {
            tracing::warn!(
                "requests were still in progress after the drain timeout; closing their connections"
            );
        }
        stop_health.cancel();
        // Streams of `Health/Watch` on the probe listener never end by themselves.
        probes.abort_all();
        Ok(())
    }

    fn accept_config(&self) -> AcceptConfig {
        AcceptConfig {
            connections: Arc::clone(&self.connections),
            certificates: self.security.certificates.clone(),
            callers: Arc::new(self.security.callers.clone()),
            setup: self.limits.connection_setup,
        }
    }

    /// Accepts connections without TLS, which have limits of their own.
    fn plain(&self, connections: &Arc<ConnectionTable>) -> AcceptConfig {
        AcceptConfig {
            certificates: None,
            connections: Arc::clone(connections),
            ..self.accept_config()
        }
    }

    /// Ends the connections whose callers do not read their replies. Never completes.
    async fn end_unread(&self) {
        let interval = self.limits.reply_progress / UNREAD_TICKS;
        loop {
            tokio::time::sleep(interval).await;
            let tick = self.held_bytes.advance();
            self.connections.end_unread(tick);
            self.probes.end_unread(tick);
            self.browsers.end_unread(tick);
        }
    }

    /// The service of the health listener.
    fn health_alone(&self) -> FastPathService {
        let health = self.health.probe_service();
        let health = health.max_decoding_message_size(PROBE_REQUEST_BYTES);
        let snapshots = Arc::clone(self.answers.subscriptions.snapshots());
        let routes = Routes::new(health).prepare();
        FastPathService::of_health_alone(snapshots, &self.limits, routes, self.bounds())
    }

    /// Wraps the services in the fast path for look-ups.
    fn fast_path(&self, services: Routes) -> FastPathService {
        let snapshots = Arc::clone(self.answers.subscriptions.snapshots());
        let counters = (self.request_counters(), self.concurrency());
        let shared = (self.bounds(), self.background.clone());
        FastPathService::new(snapshots, &self.limits, services, counters, shared)
    }

    fn services(&self, stop: &CancellationToken) -> Result<Routes, ServeError> {
        let Limits { request_bytes, .. } = self.limits;
        let api = descriptors(self.envoy.is_some());
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(&api)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let policies = EffectivePolicyHandler::new(
            self.answers.clone(),
            self.concurrency(),
            &self.limits,
            stop.clone(),
        );
        let insights = PolicyInsightHandler::new(
            self.answers.clone(),
            self.security.reviews.clone(),
            &self.limits,
        );
        let routes = Routes::new(
            EffectivePolicyServiceServer::new(policies).max_decoding_message_size(request_bytes),
        );
        let envoy = self.envoy.as_ref().map(|settings| {
            let envoy = AuthorizationHandler::new(
                self.answers.clone(),
                Arc::clone(settings),
                self.envoy_counters(),
            );
            AuthorizationServer::new(envoy).max_decoding_message_size(request_bytes)
        });
        let routes = match envoy {
            Some(envoy) => routes.add_service(envoy),
            None => routes,
        };
        Ok(routes
            .add_service(
                PolicyInsightServiceServer::new(insights).max_decoding_message_size(request_bytes),
            )
            .add_service(
                self.health
                    .main_service()
                    .max_decoding_message_size(PROBE_REQUEST_BYTES),
            )
            .add_service(
                reflection()
                    .build_v1()?
                    .max_decoding_message_size(PROBE_REQUEST_BYTES),
            )
            .add_service(
                reflection()
                    .build_v1alpha()?
                    .max_decoding_message_size(PROBE_REQUEST_BYTES),
            )
            .prepare())
    }
}

async fn join_all(tasks: &mut JoinSet<()>) {
    while let Some(result) = tasks.join_next().await {
        if let Err(error) = result {
            tracing::warn!(%error, "listener failed");
        }
    }
}

/// Serves on one listener until `stop` is cancelled and its connections are closed.
async fn accept(
    (listener, accept_config): (BoundListener, AcceptConfig),
    services: FastPathService,
    limits: Limits,
    stop: CancellationToken,
) {
    let (acceptor, _file) = Acceptor::of(listener);
    serve((acceptor, accept_config), services, &limits, stop).await;
}
