//! The server as a whole: listeners, the source, the writer.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::checkpoints::CheckpointManager;
use super::load::{limits, read_profiles};
use super::metrics::{self, MetricsSource};
use super::object_cache::ObjectCache;
use super::reconciler::Reconciler;
use super::shared_state::{ReconcilerProgress, SharedState};
use super::sockets::{BoundAddresses, BoundListeners};
use super::{AppError, ServeSettings, cluster, reviews};
use crate::config::{InsightAuth, ListenConfig, read_callers, read_envoy};
use crate::insight::SourceProblems;
use crate::server::{
    AccessRules, Certificates, EnvoySettings, Health, Security, Server, ServiceContext,
};
use crate::source::cluster::{Cluster, DesiredKinds, KnownObjects};
use crate::source::manifests::{KindScopes, Manifests, watch as follow};
use crate::telemetry;

/// Steps of the source that may wait for the writer.
const UPDATE_QUEUE_CAPACITY: usize = 4;
/// How long work that nobody waits for may hold up the end of the process.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the server until SIGTERM or SIGINT: logging, threads and all.
///
/// # Errors
/// Wrong settings, refused profiles, or listeners that fail.
pub fn run(settings: ServeSettings) -> Result<(), AppError> {
    settings.check().map_err(AppError::Usage)?;
    telemetry::init(&settings.log).map_err(|error| AppError::Usage(vec![error]))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("entail")
        .build()
        .map_err(|error| AppError::Process(format!("threads cannot be started: {error}")))?;
    let ended = runtime.block_on(async {
        let stop = stop_signal()
            .map_err(|error| AppError::Process(format!("signals cannot be caught: {error}")))?;
        serve(settings, |_| {}, stop).await
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    match &ended {
        Ok(()) => tracing::info!("stopped"),
        Err(error) => tracing::error!(%error, "stopped"),
    }
    ended
}

/// Catches the signals before anything else begins: one that comes early counts.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Serves until `shutdown` is done. `bound` is told where, as soon as callers may connect; until
/// the first snapshot they are told UNAVAILABLE and health is NOT_SERVING.
///
/// Manifests are followed. The files of `--profiles` are read once; profiles that are to change
/// while the server runs belong among the manifests.
///
/// # Errors
/// Wrong settings, refused profiles, or listeners that fail.
pub async fn serve(
    settings: ServeSettings,
    bound: impl FnOnce(&BoundAddresses),
    shutdown: impl Future<Output = ()>,
) -> Result<(), AppError> {
    let started = Instant::now();
    let checked = settings.check().map_err(AppError::Usage)?;
    let (mut cache, cluster) = inputs(&settings).await?;
    let security = security(&settings, &checked, cluster.as_ref())?;
    let envoy = envoy(&settings)?;
    let sockets = BoundListeners::bind(&settings, &checked).await?;
    bound(&sockets.announce(&settings)?);

    let progress = Arc::<ReconcilerProgress>::default();
    let mut checkpoints = CheckpointManager::of(&settings, cluster.as_ref(), &mut cache, &progress);
    let scopes = cache.scopes();
    let (wanted, wanting) = cluster::wanted(&cache);
    let shared = SharedState::of(cache, &progress);
    let (source_problems, told) = watch::channel(Arc::<SourceProblems>::default());
    let answers = ServiceContext {
        change: super::change_world,
        snapshots: Arc::clone(&shared.snapshots),
        source_problems: told.clone(),
    };
    let (certificates, health) = (security.certificates.clone(), Health::new().await);
    let server =
        Server::new(answers, health.clone(), settings.limits.clone(), security).with_envoy(envoy);
    let source_of_metrics = MetricsSource {
        shared: shared.clone(),
        source_problems: told,
        request_counters: server.request_counters(),
        concurrency: server.concurrency(),
        calls: cluster.as_ref().map(|cluster| cluster.calls.clone()),
        certificates: certificates.clone(),
    };
    let (metrics, _admin) = metrics::serve_metrics(source_of_metrics, sockets.admin)?;
    let reconciler = Reconciler {
        shared,
        source_problems,
        health,
        allow_partial: settings.inputs.allow_partial,
        started,
        wanted: cluster.is_some().then_some(wanted),
        restored_at: checkpoints.synced_at,
        checkpoint_channel: checkpoints.inputs.take(),
        metrics,
    };
    let known = std::mem::take(&mut checkpoints.known);
    let source = cluster.map(|cluster| Source::Cluster(cluster, wanting, known));
    let source = source.unwrap_or_else(|| Source::files(&settings, scopes));
    let mut background = start_background(source, reconciler, certificates);
    let shutdown = async {
        shutdown.await;
        progress.is_stopping.store(true, Ordering::Relaxed);
        background.shutdown().await;
    };
    let (all, health) = (sockets.all, sockets.health);
    let ended = server
        .run(all, health, settings.drain_timeout, shutdown)
        .await;
    // Where a listener failed, nobody has told the rest to end.
    background.shutdown().await;
    checkpoints.end().await;
    Ok(ended?)
}

/// Where objects come from.
enum Source {
    Cluster(Cluster, watch::Receiver<DesiredKinds>, KnownObjects),
    Manifests(Manifests, Duration),
}

impl Source {
    fn files(settings: &ServeSettings, scopes: KindScopes) -> Self {
        let manifests = settings.inputs.manifests.clone();
        let manifests = Manifests::new(manifests, scopes).with_limits(limits(&settings.inputs));
        Self::Manifests(manifests, settings.poll)
    }
}

/// Begins to follow the source. All of it ends with the set: nothing is published while the server
/// drains.
fn start_background(
    source: Source,
    reconciler: Reconciler,
    certificates: Option<Arc<Certificates>>,
) -> JoinSet<()> {
    let mut background = JoinSet::new();
    if let Some(certificates) = certificates {
        background.spawn(certificates.watch_files());
    }
    match source {
        Source::Cluster(cluster, wanting, known) => {
            let (steps, taken) = mpsc::channel(UPDATE_QUEUE_CAPACITY);
            background.spawn(cluster::watch(cluster, wanting, known, steps));
            background.spawn(reconciler.run(taken));
        }
        Source::Manifests(manifests, poll) => {
            let (scans, taken) = mpsc::channel(UPDATE_QUEUE_CAPACITY);
            background.spawn(follow(manifests, scans, poll));
            background.spawn(reconciler.run(taken));
        }
    }
    background
}

/// What takes objects, and the cluster that they are of if they are of one.
async fn inputs(settings: &ServeSettings) -> Result<(ObjectCache, Option<Cluster>), AppError> {
    let cache = ObjectCache::new(read_profiles(&settings.inputs.profiles)?);
    Ok(
        match cluster::connect_if_configured(&settings.inputs).await? {
            Some(cluster) => (cache.with_kind_states(), Some(cluster)),
            None => (cache, None),
        },
    )
}

/// What Envoy is told, if it may ask.
fn envoy(settings: &ServeSettings) -> Result<Option<EnvoySettings>, AppError> {
    let read = settings.envoy.as_deref().map(read_envoy);
    read.transpose().map_err(AppError::Input)
}

/// Who may connect, and ask what.
fn security(
    settings: &ServeSettings,
    checked: &ListenConfig,
    cluster: Option<&Cluster>,
) -> Result<Security, AppError> {
    let files = settings.tls.clone();
    let loaded = files.map(Certificates::load).transpose();
    let loaded = loaded.map_err(|error| AppError::Input(vec![error.to_string()]))?;
    let rows = settings.callers.as_deref().map(read_callers);
    let callers = match rows.transpose().map_err(AppError::Input)? {
        Some(rows) => AccessRules::Rules(rows),
        None => AccessRules::AllowLists(checked.lists.clone()),
    };
    let is_open = checked.all.iter().any(|address| !address.is_local());
    let is_listed = settings.callers.is_some() || !checked.lists.data_plane.is_empty();
    if settings.insight_auth == InsightAuth::Kubernetes && is_open && !is_listed {
        tracing::warn!(
            "questions of people are held to rights in the cluster, look-ups are not: say who may \
             look up with `--data-plane-san` or `--callers`"
        );
    }
    Ok(Security {
        certificates: loaded.map(Arc::new),
        callers,
        reviews: match settings.insight_auth {
            InsightAuth::None => None,
            InsightAuth::Kubernetes => cluster.map(reviews::cluster_reviews),
        },
    })
}
