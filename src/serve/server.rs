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
use super::envoy_generated::authorization_server::AuthorizationServer;
use super::generated::effective_policy_service_server::EffectivePolicyServiceServer;
use super::generated::policy_insight_service_server::PolicyInsightServiceServer;
use super::hot::Hot;
use super::insights::Insights;
use super::listen::Socket;
use super::policies::Policies;
use super::{AllowLists, Answers, Certificates, Health, Limits, Listener, Tally};
use crate::wire::DESCRIPTORS;

/// Why the server stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The descriptors for reflection are broken.
    #[error("reflection cannot be served: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// A listener failed.
    #[error("serving failed: {0}")]
    Transport(#[from] tonic::transport::Error),
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
}

/// Who may connect, and ask what.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// TCP listeners speak TLS with these, but for the one of health alone.
    pub certificates: Option<Arc<Certificates>>,
    /// Who may ask what, of those who connect over TLS.
    pub lists: AllowLists,
}

impl Server {
    /// A server that answers from snapshots and tells its health.
    pub fn new(answers: Answers, health: Health, limits: Limits, security: Security) -> Self {
        Self {
            answers,
            health,
            limits,
            security,
            envoy: None,
            tally: Arc::default(),
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
            Some(ended) = serving.join_next() => ended??,
            Some(ended) = probes.join_next() => ended??,
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
            lists: Arc::new(self.security.lists.clone()),
            watches: self.limits.watches_per_connection,
        }
    }

    /// Services with the short way to stored bytes before them.
    fn hot(&self, services: Routes) -> Hot {
        let snapshots = Arc::clone(&self.answers.snapshots);
        let tally = self.tally();
        Hot::new(snapshots, self.limits.reply_bytes, services, tally)
    }

    fn services(&self, stop: &CancellationToken) -> Result<Routes, ServeError> {
        let Limits { request_bytes, .. } = self.limits;
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let policies = Policies::new(self.answers.clone(), &self.limits, stop.clone());
        let insights = Insights::new(self.answers.clone(), &self.limits);
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

async fn all(tasks: &mut JoinSet<Result<(), tonic::transport::Error>>) {
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a listener ended badly"),
            Err(error) => tracing::warn!(%error, "a listener ended badly"),
        }
    }
}

/// Serves on one listener until it is told to stop and its connections are done.
async fn accept<S, B>(
    (listener, door): (Listener, Door),
    services: S,
    limits: Limits,
    stop: CancellationToken,
) -> Result<(), tonic::transport::Error>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes, Error = tonic::Status> + Send + 'static,
{
    let stopped = stop.cancelled_owned();
    let (incoming, _file) = match listener.socket {
        Socket::Tcp(socket) => (Listening::Tcp(socket), None),
        Socket::Unix(socket, file) => (Listening::Unix(socket), Some(file)),
    };
    let incoming = connections(incoming, door);
    transport(&limits)
        .serve_with_incoming_shutdown(services, incoming, stopped)
        .await
}

fn transport(limits: &Limits) -> tonic::transport::Server {
    tonic::transport::Server::builder()
        .max_concurrent_streams(limits.streams)
        .concurrency_limit_per_connection(limits.requests_per_connection)
        .http2_max_header_list_size(limits.header_bytes)
        .http2_keepalive_interval(Some(limits.keepalive))
        .http2_keepalive_timeout(Some(limits.keepalive_timeout))
        .max_connection_age(limits.connection_age)
        .max_connection_age_grace(limits.connection_grace)
}
