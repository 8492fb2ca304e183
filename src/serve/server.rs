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

use super::connection::{Door, Listening, connections};
use super::envoy::{Envoy, EnvoySettings};
use super::generated::effective_policy_service_server::EffectivePolicyServiceServer;
use super::generated::policy_insight_service_server::PolicyInsightServiceServer;
use super::hot::Hot;
use super::insights::Insights;
use super::listen::Socket;
use super::load::Load;
use super::policies::Policies;
use super::transport::serve;
use super::{Answers, Callers, Certificates, Health, Limits, Listener, Reviews, Tally};
use crate::api::descriptors;
use crate::api::envoy::authorization_server::AuthorizationServer;

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
    answers: Answers,
    health: Health,
    limits: Limits,
    security: Security,
    envoy: Option<Arc<EnvoySettings>>,
    tally: Arc<Tally>,
    load: Arc<Load>,
}

/// Who may connect, and ask what.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// TCP listeners speak TLS with these, but for the one of health alone.
    pub certificates: Option<Arc<Certificates>>,
    /// Who may ask what, of those who connect over TLS.
    pub callers: Callers,
    /// Tells what callers over TCP may get, if questions of people are held to that.
    pub reviews: Option<Arc<dyn Reviews>>,
}

impl Server {
    /// A server that answers from snapshots and tells its health.
    pub fn new(answers: Answers, health: Health, limits: Limits, security: Security) -> Self {
        let load = Arc::new(Load::new(&limits));
        Self {
            answers,
            health,
            limits,
            security,
            envoy: None,
            tally: Arc::default(),
            load,
        }
    }

    /// The same, which Envoy may ask about requests if there are settings for it.
    #[must_use]
    pub fn with_envoy(self, settings: Option<EnvoySettings>) -> Self {
        let envoy = settings.map(Arc::new);
        Self { envoy, ..self }
    }

    /// The requests that it has answered.
    pub fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// What it works on now.
    pub fn load(&self) -> Arc<Load> {
        Arc::clone(&self.load)
    }

    /// Serves on listeners, and health alone on another, until `shutdown` is done; then the health
    /// is NOT_SERVING, nothing more is accepted and what is under way may end within `drain`.
    ///
    /// # Errors
    /// A listener failed.
    pub async fn run(
        self,
        listeners: Vec<Listener>,
        health_alone: Option<Listener>,
        drain: Duration,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let (stop, stop_health) = (CancellationToken::new(), CancellationToken::new());
        let services = self.hot(self.services(&stop)?);
        let mut serving = JoinSet::new();
        let door = self.door();
        for listener in listeners {
            serving.spawn(accept(
                (listener, door.clone()),
                services.clone(),
                self.limits.clone(),
                stop.clone(),
            ));
        }
        let mut probes = JoinSet::new();
        if let Some(listener) = health_alone {
            let health = Routes::new(self.health.alone()).prepare();
            // Probes speak no TLS, and have room of their own.
            let door = Door {
                certificates: None,
                ..self.door()
            };
            probes.spawn(accept(
                (listener, door),
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

    fn door(&self) -> Door {
        Door {
            permits: Arc::new(Semaphore::new(self.limits.connections)),
            certificates: self.security.certificates.clone(),
            callers: Arc::new(self.security.callers.clone()),
            limits: Arc::new(self.limits.clone()),
        }
    }

    /// Services with the short way to stored bytes before them.
    fn hot(&self, services: Routes) -> Hot {
        let snapshots = Arc::clone(&self.answers.snapshots);
        let counted = (self.tally(), self.load());
        Hot::new(snapshots, &self.limits, services, counted)
    }

    fn services(&self, stop: &CancellationToken) -> Result<Routes, ServeError> {
        let Limits { request_bytes, .. } = self.limits;
        let api = descriptors(self.envoy.is_some());
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(&api)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let policies = Policies::new(
            self.answers.clone(),
            self.load(),
            &self.limits,
            stop.clone(),
        );
        let insights = Insights::new(
            self.answers.clone(),
            self.security.reviews.clone(),
            &self.limits,
        );
        let routes = Routes::new(
            EffectivePolicyServiceServer::new(policies).max_decoding_message_size(request_bytes),
        );
        let envoy = self.envoy.as_ref().map(|settings| {
            let envoy = Envoy::new(self.answers.clone(), Arc::clone(settings));
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
                    .beside()
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
    (listener, door): (Listener, Door),
    services: S,
    limits: Limits,
    stop: CancellationToken,
) where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = tonic::Status> + Send + 'static,
{
    let (incoming, _file) = match listener.socket {
        Socket::Tcp(socket) => (Listening::Tcp(socket), None),
        Socket::Unix(socket, file) => (Listening::Unix(socket), Some(file)),
    };
    let incoming = connections(incoming, door);
    serve(incoming, services, &limits, stop).await;
}
