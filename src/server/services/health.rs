//! Health for probes and load balancers (`grpc.health.v1`).

use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::api::server_stubs::effective_policy_service_server::EffectivePolicyServiceServer;
use crate::api::server_stubs::policy_insight_service_server::PolicyInsightServiceServer;
use crate::server::services::effective_policy::EffectivePolicyHandler;
use crate::server::services::policy_insight::PolicyInsightHandler;

/// Service name for liveness probes: SERVING as long as the process responds.
const LIVENESS: &str = "liveness";

/// Service names for readiness: SERVING from the first snapshot until shutdown. A source that fails
/// later makes answers stale, not unhealthy.
const READINESS_SERVICES: [&str; 3] = [
    "",
    <EffectivePolicyServiceServer<EffectivePolicyHandler> as NamedService>::NAME,
    <PolicyInsightServiceServer<PolicyInsightHandler> as NamedService>::NAME,
];

/// The health of the server, the same on all listeners.
#[derive(Clone, Debug)]
pub struct Health {
    /// Reports on the listeners of the services.
    main_reporter: HealthReporter,
    /// Reports on the health listener, which still answers probes while requests drain.
    probe_reporter: HealthReporter,
}

impl Health {
    /// Creates the health of a server without a snapshot: NOT_SERVING, but alive.
    pub async fn new() -> Self {
        let health = Self {
            main_reporter: HealthReporter::new(),
            probe_reporter: HealthReporter::new(),
        };
        // A new reporter reports `""` as SERVING.
        health.report(ServingStatus::NotServing).await;
        for reporter in [&health.main_reporter, &health.probe_reporter] {
            reporter
                .set_service_status(LIVENESS, ServingStatus::Serving)
                .await;
        }
        health
    }

    /// Reports SERVING: there is a snapshot.
    pub async fn ready(&self) {
        self.report(ServingStatus::Serving).await;
    }

    /// Reports NOT_SERVING, and ends the `Watch` streams on the listeners of the services: the
    /// server is drained only when no stream is open.
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
