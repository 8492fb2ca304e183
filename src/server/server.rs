//! The server: services on listeners, until it is told to stop.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::service::Routes;

use crate::api::descriptors;
use crate::api::envoy::authorization_server::AuthorizationServer;
use crate::server::admission::concurrency::ConcurrencyLimiter;
use crate::server::envoy::{AuthorizationHandler, EnvoySettings};
use crate::server::generated::effective_policy_service_server::EffectivePolicyServiceServer;
use crate::server::generated::policy_insight_service_server::PolicyInsightServiceServer;
use crate::server::services::effective_policy::EffectivePolicyHandler;
use crate::server::services::policy_insight::PolicyInsightHandler;
use crate::server::transport::connection::{AcceptConfig, Acceptor, connections};
use crate::server::transport::fast_path::FastPathService;
use crate::server::transport::http2::serve;
use crate::server::transport::listener::Socket;
use crate::server::{
    AccessRules, BoundListener, Certificates, Health, Limits, RequestCounters, ServiceContext,
    TokenAuthenticator,
};

/// Why the server stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The descriptors for reflection are broken.
    #[error("reflection cannot be served: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// A listener's task failed.
    #[error("serving failed: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Services with their limits.
#[derive(Debug)]
pub struct Server {
    answers: ServiceContext,
    health: Health,
    limits: Limits,
    security: Security,
    envoy: Option<Arc<EnvoySettings>>,
    request_counters: Arc<RequestCounters>,
    concurrency: Arc<ConcurrencyLimiter>,
}

/// Who may connect, and ask what.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// TCP listeners speak TLS with these, but for the one of health alone.
    pub certificates: Option<Arc<Certificates>>,
    /// Who may ask what, of those who connect over TLS.
    pub callers: AccessRules,
    /// Tells what callers over TCP may get, if questions of people are held to that.
    pub reviews: Option<Arc<dyn TokenAuthenticator>>,
}

impl Server {
    /// A server that answers from snapshots and tells its health.
    pub fn new(
        answers: ServiceContext,
        health: Health,
        limits: Limits,
        security: Security,
    ) -> Self {
        let concurrency = Arc::new(ConcurrencyLimiter::new(&limits));
        Self {
            answers,
            health,
            limits,
            security,
            envoy: None,
            request_counters: Arc::default(),
            concurrency,
        }
    }

    /// The same, which Envoy may ask about requests if there are settings for it.
    #[must_use]
    pub fn with_envoy(self, settings: Option<EnvoySettings>) -> Self {
        let envoy = settings.map(Arc::new);
        Self { envoy, ..self }
    }

    /// The requests that it has answered.
    pub fn request_counters(&self) -> Arc<RequestCounters> {
        Arc::clone(&self.request_counters)
    }

    /// What it works on now.
    pub fn concurrency(&self) -> Arc<ConcurrencyLimiter> {
        Arc::clone(&self.concurrency)
    }

    /// Serves on listeners, and health alone on another, until `shutdown` is done; then the health
    /// is NOT_SERVING, nothing more is accepted and what is under way may end within `drain`.
    ///
    /// # Errors
    /// A listener failed.
    pub async fn run(
        self,
        listeners: Vec<BoundListener>,
        health_alone: Option<BoundListener>,
        drain: Duration,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let (stop, stop_health) = (CancellationToken::new(), CancellationToken::new());
        let services = self.fast_path(self.services(&stop)?);
        let mut serving = JoinSet::new();
        let accept_config = self.accept_config();
        for listener in listeners {
            serving.spawn(accept(
                (listener, accept_config.clone()),
                services.clone(),
                self.limits.clone(),
                stop.clone(),
            ));
        }
        let mut probes = JoinSet::new();
        if let Some(listener) = health_alone {
            let health = Routes::new(self.health.probe_service()).prepare();
            // Probes speak no TLS, and have room of their own.
            let accept_config = AcceptConfig {
                certificates: None,
                ..self.accept_config()
            };
            probes.spawn(accept(
                (listener, accept_config),
                health,
                self.limits.clone(),
                stop_health.clone(),
            ));
        }
        tokio::select! {
            () = shutdown => {}
            Some(ended) = serving.join_next() => ended?,
            Some(ended) = probes.join_next() => ended?,
        }
        tracing::info!(drain_seconds = drain.as_secs(), "stopping");
        self.health.stopping().await;
        stop.cancel();
        if tokio::time::timeout(drain, all(&mut serving))
            .await
            .is_err()
        {
            tracing::warn!(
                "requests were still under way after the drain timeout: they are cut off"
            );
        }
        stop_health.cancel();
        // Probes that watch never end their streams.
        probes.abort_all();
        Ok(())
    }

    fn accept_config(&self) -> AcceptConfig {
        AcceptConfig {
            permits: Arc::new(Semaphore::new(self.limits.connections)),
            certificates: self.security.certificates.clone(),
            callers: Arc::new(self.security.callers.clone()),
            limits: Arc::new(self.limits.clone()),
        }
    }

    /// Services with the short way to stored bytes before them.
    fn fast_path(&self, services: Routes) -> FastPathService {
        let snapshots = Arc::clone(&self.answers.snapshots);
        let counted = (self.request_counters(), self.concurrency());
        FastPathService::new(snapshots, &self.limits, services, counted)
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
            let envoy = AuthorizationHandler::new(self.answers.clone(), Arc::clone(settings));
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
                    .max_decoding_message_size(request_bytes),
            )
            .add_service(
                reflection()
                    .build_v1()?
                    .max_decoding_message_size(request_bytes),
            )
            .add_service(
                reflection()
                    .build_v1alpha()?
                    .max_decoding_message_size(request_bytes),
            )
            .prepare())
    }
}

async fn all(tasks: &mut JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::warn!(%error, "a listener ended badly");
        }
    }
}

/// Serves on one listener until it is told to stop and its connections are done.
async fn accept<S, B>(
    (listener, accept_config): (BoundListener, AcceptConfig),
    services: S,
    limits: Limits,
    stop: CancellationToken,
) where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = tonic::Status> + Send + 'static,
{
    let (incoming, _file) = match listener.socket {
        Socket::Tcp(socket) => (Acceptor::Tcp(socket), None),
        Socket::Unix(socket, file) => (Acceptor::Unix(socket), Some(file)),
    };
    let incoming = connections(incoming, accept_config);
    serve(incoming, services, &limits, stop).await;
}
