//! The admission webhook of a server: its settings, and its tasks beside the server.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{AppError, ServeSettings, cluster};
use crate::server::{
    BoundListener, Certificates, HttpVersion, ReviewCounters, Server, Webhook, WebhookSettings,
};
use crate::subscription::SubscriptionHub;

/// Maximum time that reviews in progress may delay the end of the process.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The webhook while it serves.
pub(super) struct AdmissionTasks {
    counters: Arc<ReviewCounters>,
    certificates: Arc<Certificates>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    reloading: JoinHandle<()>,
}

/// Loads the certificates of the webhook, if one is configured.
pub(super) fn certificates(
    settings: &ServeSettings,
) -> Result<Option<Arc<Certificates>>, AppError> {
    let admission = settings.admission.as_ref();
    let loaded = admission
        .map(|admission| Certificates::load(admission.tls.clone(), HttpVersion::Http1))
        .transpose()
        .map_err(|error| AppError::Input(vec![error.to_string()]))?;
    Ok(loaded.map(Arc::new))
}

/// Starts the webhook on its listener, if one is configured. It answers from the snapshots of a server.
pub(super) fn start(
    settings: &ServeSettings,
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
        serving: tokio::spawn(webhook.run(listener, stop.clone(), DRAIN_TIMEOUT)),
        reloading: tokio::spawn(Arc::clone(&certificates).watch_files()),
        certificates,
        stop,
    })
}

impl AdmissionTasks {
    /// What metrics are read from.
    pub fn metrics(&self) -> (Arc<ReviewCounters>, Arc<Certificates>) {
        (Arc::clone(&self.counters), Arc::clone(&self.certificates))
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
