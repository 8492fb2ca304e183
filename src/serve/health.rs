//! The health that probes and load balancers ask for (`grpc.health.v1`).

use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use super::generated::effective_policy_service_server::EffectivePolicyServiceServer;
use super::generated::policy_insight_service_server::PolicyInsightServiceServer;
use super::insights::Insights;
use super::policies::Policies;

/// The service that is always SERVING: the process lives and answers.
const LIVENESS: &str = "liveness";

/// The services whose health follows the snapshot: SERVING once there is one, for good. A source
/// that fails later makes answers stale, not unhealthy.
const FOLLOWING: [&str; 3] = [
    "",
    <EffectivePolicyServiceServer<Policies> as NamedService>::NAME,
    <PolicyInsightServiceServer<Insights> as NamedService>::NAME,
];

/// The server's health, the same on all listeners.
#[derive(Clone, Debug)]
pub struct Health {
    /// Beside the services.
    beside: HealthReporter,
    /// On the listener that serves health alone. It outlives the other: probes are answered while
    /// requests drain.
    alone: HealthReporter,
}

impl Health {
    /// The health of a server without a snapshot.
    pub async fn new() -> Self {
        let health = Self {
            beside: HealthReporter::new(),
            alone: HealthReporter::new(),
        };
        // A new reporter calls `""` SERVING.
        health.report(ServingStatus::NotServing).await;
        for reporter in [&health.beside, &health.alone] {
            reporter
                .set_service_status(LIVENESS, ServingStatus::Serving)
                .await;
        }
        health
    }

    /// Says that there is a snapshot.
    pub async fn ready(&self) {
        self.report(ServingStatus::Serving).await;
    }

    /// Says that the server stops. Those who watch beside the services are told so and their
    /// streams end, since a server drains only when streams do.
    pub(super) async fn stopping(&self) {
        self.report(ServingStatus::NotServing).await;
        let mut beside = self.beside.clone();
        for service in FOLLOWING.iter().chain([&LIVENESS]) {
            beside.clear_service_status(service).await;
        }
    }

    async fn report(&self, status: ServingStatus) {
        for service in FOLLOWING {
            self.beside.set_service_status(service, status).await;
            self.alone.set_service_status(service, status).await;
        }
    }

    pub(super) fn beside(&self) -> HealthServer<HealthService> {
        server(&self.beside)
    }

    pub(super) fn alone(&self) -> HealthServer<HealthService> {
        server(&self.alone)
    }
}

fn server(reporter: &HealthReporter) -> HealthServer<HealthService> {
    HealthServer::new(HealthService::from_health_reporter(reporter.clone()))
}
