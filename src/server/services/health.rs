//! The health that probes and load balancers ask for (`grpc.health.v1`).

use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::server::generated::effective_policy_service_server::EffectivePolicyServiceServer;
use crate::server::generated::policy_insight_service_server::PolicyInsightServiceServer;
use crate::server::services::effective_policy::EffectivePolicyHandler;
use crate::server::services::policy_insight::PolicyInsightHandler;

/// The service that is always SERVING: the process lives and answers.
const LIVENESS: &str = "liveness";

/// The services whose health follows the snapshot: SERVING once there is one, for good. A source
/// that fails later makes answers stale, not unhealthy.
const READINESS_SERVICES: [&str; 3] = [
    "",
    <EffectivePolicyServiceServer<EffectivePolicyHandler> as NamedService>::NAME,
    <PolicyInsightServiceServer<PolicyInsightHandler> as NamedService>::NAME,
];

/// The server's health, the same on all listeners.
#[derive(Clone, Debug)]
pub struct Health {
    /// Beside the services.
    main_reporter: HealthReporter,
    /// On the listener that serves health alone. It outlives the other: probes are answered while
    /// requests drain.
    probe_reporter: HealthReporter,
}

impl Health {
    /// The health of a server without a snapshot.
    pub async fn new() -> Self {
        let health = Self {
            main_reporter: HealthReporter::new(),
            probe_reporter: HealthReporter::new(),
        };
        // A new reporter calls `""` SERVING.
        health.report(ServingStatus::NotServing).await;
        for reporter in [&health.main_reporter, &health.probe_reporter] {
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
    pub(in crate::server) async fn stopping(&self) {
        self.report(ServingStatus::NotServing).await;
        let mut main_reporter = self.main_reporter.clone();
        for service in READINESS_SERVICES.iter().chain([&LIVENESS]) {
            main_reporter.clear_service_status(service).await;
        }
    }

    async fn report(&self, status: ServingStatus) {
        for service in READINESS_SERVICES {
            self.main_reporter.set_service_status(service, status).await;
            self.probe_reporter
                .set_service_status(service, status)
                .await;
        }
    }

    pub(in crate::server) fn main_service(&self) -> HealthServer<HealthService> {
        server(&self.main_reporter)
    }

    pub(in crate::server) fn probe_service(&self) -> HealthServer<HealthService> {
        server(&self.probe_reporter)
    }
}

fn server(reporter: &HealthReporter) -> HealthServer<HealthService> {
    HealthServer::new(HealthService::from_health_reporter(reporter.clone()))
}
