//! The admission webhook of a server: its settings, and its tasks beside the server.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{ServeSettings, cluster};
use crate::server::{
    BoundListener, Certificates, ReviewCounters, Server, Webhook, WebhookSettings,
};
use crate::subscription::SubscriptionHub;

/// Maximum time that reviews in progress may delay the end of the process.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The webhook while it serves.
pub(super) struct AdmissionTasks {
    counters: Arc<ReviewCounters>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    reloading: JoinHandle<()>,
}

/// Starts the webhook on its listener, if one is configured, and on a runtime. It answers from the snapshots of a server.
pub(super) fn start(
    (settings, runtime): (&ServeSettings, &Handle),
    certificates: Option<Arc<Certificates>>,
    (server, subscriptions): (&Server, &Arc<SubscriptionHub>),
    listener: Option<BoundListener>,
) -> Option<AdmissionTasks> {
    let (admission, certificates, listener) =
        (settings.admission.as_ref()?, certificates?, listener?);
    let access = settings.inputs.cluster.as_ref();
    let filter = access.map(cluster::watch_filter).unwrap_or_default();
    let webhook = Webhook::new(
        Arc::clone(subscriptions),
        WebhookSettings {
            read: Arc::new(move |object| filter.read(object)),
            full_names: admission.full_names,
        },
        Arc::clone(&certificates),
        (settings.limits.clone(), server.load().bounds),
    );
    let stop = CancellationToken::new();
    Some(AdmissionTasks {
        counters: webhook.counters(),
        serving: runtime.spawn(webhook.run(listener, stop.clone(), DRAIN_TIMEOUT)),
        reloading: runtime.spawn(certificates.watch_files()),
        stop,
    })
}

impl AdmissionTasks {
    /// The counters of reviews.
    pub fn counters(&self) -> Arc<ReviewCounters> {
        Arc::clone(&self.counters)
    }

    /// Answers the reviews in progress, and ends.
    pub async fn shut_down(self) {
        self.reloading.abort();
        self.stop.cancel();
        if let Err(error) = self.serving.await {
            tracing::error!(%error, "the admission webhook failed");
        }
    }
}
