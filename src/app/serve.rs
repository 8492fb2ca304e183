//! Assembles and runs the server: listeners, source and reconciler.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::admission::{self, AdmissionTasks};
use super::checkpoints::CheckpointManager;
use super::load::{limits, read_profiles};
use super::metrics::{self, MetricsSource};
use super::object_cache::ObjectCache;
use super::reconciler::Reconciler;
use super::shared_state::{ReconcilerProgress, SharedState};
use super::sockets::{BoundAddresses, BoundListeners};
use super::{AppError, ServeSettings, cluster, reviews};
use crate::background::BackgroundRuntime;
use crate::config::{InsightAuth, ListenConfig, read_callers, read_envoy};
use crate::insight::SourceProblems;
use crate::server::{
    AccessRules, Certificates, EnvoySettings, Health, HttpVersion, ListenerSet, Security, Server,
    ServiceContext, TlsFiles,
};
use crate::source::cluster::{Cluster, DesiredKinds, KnownObjects};
use crate::source::manifests::{KindScopes, Manifests, watch as watch_manifests};
use crate::telemetry;

/// Maximum number of updates of the source that wait for the reconciler.
const UPDATE_QUEUE_CAPACITY: usize = 4;
/// Maximum time that background work may delay the end of the process.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Initializes logging, starts a runtime and serves until SIGTERM or SIGINT.
///
/// # Errors
/// Returns an error if the settings or profiles are invalid, or if a listener fails.
pub fn run(settings: ServeSettings) -> Result<(), AppError> {
    settings.check().map_err(AppError::Usage)?;
    telemetry::init(&settings.log).map_err(|error| AppError::Usage(vec![error]))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("entail")
        .build()
        .map_err(|error| AppError::Process(format!("failed to start the runtime: {error}")))?;
    let result = runtime.block_on(async {
        let stop = stop_signal().map_err(|error| {
            AppError::Process(format!("failed to install signal handlers: {error}"))
        })?;
        serve(settings, |_| {}, stop).await
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    match &result {
        Ok(()) => tracing::info!("stopped"),
        Err(error) => tracing::error!(%error, "stopped"),
    }
    result
}

/// Installs the handlers of SIGTERM and SIGINT and returns a future that completes on the first
/// signal. A signal that arrives before the future is polled is not lost.
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

/// Serves until `shutdown` completes.
///
/// Calls `bound` with the addresses as soon as clients may connect. Until the first snapshot is
/// published, requests fail with UNAVAILABLE and health is NOT_SERVING.
///
/// Manifests and clusters are watched. The files of `--profiles` are read once; to change a profile
/// while the server runs, add it to the manifests as a PolicyProfile object.
///
/// # Errors
/// Returns an error if the settings or profiles are invalid, or if a listener fails.
pub async fn serve(
    settings: ServeSettings,
    bound: impl FnOnce(&BoundAddresses),
    shutdown: impl Future<Output = ()>,
) -> Result<(), AppError> {
    let started = Instant::now();
    let checked = settings.check().map_err(AppError::Usage)?;
    let runtime = start_background_runtime()?;
    // Requests and connections of callers never wait in one queue with what publishes snapshots.
    let callers_runtime = start_background_runtime()?;
    let (mut cache, cluster) = inputs(&settings).await?;
    let security = security(&settings, &checked, cluster.as_ref())?;
    let admission_certificates = admission_certificates(&settings)?;
    let envoy = envoy(&settings)?;
    let mut sockets = BoundListeners::bind(&settings, &checked).await?;
    bound(&sockets.announce(&settings)?);

    let progress = Arc::<ReconcilerProgress>::default();
    let mut checkpoints =
        CheckpointManager::start(&settings, cluster.as_ref(), &mut cache, &progress).await;
    let scopes = cache.scopes();
    let (desired, desired_receiver) = cluster::desired_kinds(&cache);
    let shared = SharedState::of(cache, &progress);
    let (source_problems, problems_receiver) = watch::channel(Arc::<SourceProblems>::default());
    let context = service_context(&shared, &problems_receiver);
    let (certificates, health) = (security.certificates.clone(), Health::new().await);
    let server = Server::new(context, health.clone(), settings.limits.clone(), security)
        .with_envoy(envoy)
        .with_background(callers_runtime.handle().clone());
    let admission = admission::start(
        (&settings, runtime.handle()),
        admission_certificates.clone(),
        (&server, &shared.subscriptions),
        sockets.admission.take(),
    );
    let metrics_source = MetricsSource {
        reviews: admission.as_ref().map(AdmissionTasks::counters),
        calls: cluster.as_ref().map(|cluster| cluster.calls.clone()),
        certificates: [
            ("", certificates.clone()),
            ("admission_", admission_certificates),
        ],
        ..MetricsSource::of(&server, shared.clone(), problems_receiver)
    };
    let (metrics, _admin) = metrics::serve_metrics(metrics_source, sockets.admin)?;
    let reconciler = Reconciler {
        shared,
        source_problems,
        health,
        allow_partial: settings.inputs.allow_partial,
        started,
        desired_kinds: cluster.is_some().then_some(desired),
        restored_at: checkpoints.synced_at,
        checkpoint_channel: checkpoints.sender.take(),
        metrics,
    };
    let cluster = cluster.map(|cluster| (cluster, desired_receiver));
    let source = Source::new(&settings, cluster, scopes, &mut checkpoints);
    let background = start_background(source, reconciler, certificates, runtime.handle());
    let listeners = (sockets.served, settings.drain_timeout);
    let tasks = (background, admission, progress);
    let result = run_until(server, listeners, tasks, shutdown).await;
    checkpoints.shut_down().await;
    result
}

/// The tasks that watch the source, publish snapshots, check assertions and reload certificates.
struct BackgroundTasks {
    tasks: JoinSet<()>,
    /// Cancelled when no more snapshots are published because of an internal error.
    failed: CancellationToken,
}

/// Runs the task that publishes snapshots. If it panics, the server ends: nothing would say that answers are old.
async fn supervise(
    reconciling: impl Future<Output = ()> + Send + 'static,
    failed: CancellationToken,
) {
    // A set, because it ends with this task.
    let mut task = JoinSet::new();
    task.spawn(reconciling);
    if let Some(Err(error)) = task.join_next().await
        && error.is_panic()
    {
        tracing::error!("the task that publishes snapshots failed; the server stops");
        failed.cancel();
    }
}

/// Starts the runtime for all that data planes do not wait for: they are served on the runtime of the caller.
fn start_background_runtime() -> Result<BackgroundRuntime, AppError> {
    BackgroundRuntime::start()
        .map_err(|error| AppError::Process(format!("failed to start a runtime: {error}")))
}

/// What requests are answered from besides the snapshots.
fn service_context(
    shared: &SharedState,
    source_problems: &watch::Receiver<Arc<SourceProblems>>,
) -> ServiceContext {
    ServiceContext {
        change: super::change_world,
        subscriptions: Arc::clone(&shared.subscriptions),
        source_problems: source_problems.clone(),
    }
}

/// Runs the server until shutdown, which ends the background tasks, and then ends the webhook. The server also ends if no
/// more snapshots are published.
async fn run_until(
    server: Server,
    (listeners, drain): (ListenerSet, Duration),
    (mut background, admission, progress): (
        BackgroundTasks,
        Option<AdmissionTasks>,
        Arc<ReconcilerProgress>,
    ),
    shutdown: impl Future<Output = ()>,
) -> Result<(), AppError> {
    let failed = background.failed.clone();
    let shutdown = async {
        tokio::select! {
            () = shutdown => {}
            () = failed.cancelled() => {}
        }
        progress.is_stopping.store(true, Ordering::Relaxed);
        background.tasks.shutdown().await;
    };
    let result = server.run(listeners, drain, shutdown).await;
    // If a listener failed, `shutdown` did not complete and the background tasks still run.
    background.tasks.shutdown().await;
    if let Some(admission) = admission {
        admission.shut_down().await;
    }
    result?;
    match failed.is_cancelled() {
        true => Err(AppError::Process(
            "internal error: no snapshots are published any more: see the log".to_owned(),
        )),
        false => Ok(()),
    }
}

/// The source of objects to watch.
enum Source {
    Cluster(Cluster, watch::Receiver<DesiredKinds>, KnownObjects),
    Manifests(Manifests, Duration),
}

impl Source {
    fn new(
        settings: &ServeSettings,
        cluster: Option<(Cluster, watch::Receiver<DesiredKinds>)>,
        scopes: KindScopes,
        checkpoints: &mut CheckpointManager,
    ) -> Self {
        if let Some((cluster, desired)) = cluster {
            return Self::Cluster(cluster, desired, std::mem::take(&mut checkpoints.known));
        }
        let manifests = settings.inputs.manifests.clone();
        let manifests = Manifests::new(manifests, scopes).with_limits(limits(&settings.inputs));
        Self::Manifests(manifests, settings.poll)
    }
}

/// Starts the tasks that watch the source, publish snapshots, check assertions and reload certificates. They end with
/// the returned set, so nothing is published while the server drains.
fn start_background(
    source: Source,
    reconciler: Reconciler,
    certificates: Option<Arc<Certificates>>,
    runtime: &Handle,
) -> BackgroundTasks {
    let failed = CancellationToken::new();
    let mut background = JoinSet::new();
    let shared = reconciler.shared.clone();
    background.spawn_on(shared.assertions.follow(shared.subscriptions), runtime);
    if let Some(certificates) = certificates {
        background.spawn_on(certificates.watch_files(), runtime);
    }
    match source {
        Source::Cluster(cluster, desired_kinds, known) => {
            let (sender, updates) = mpsc::channel(UPDATE_QUEUE_CAPACITY);
            let watching = cluster::watch(cluster, desired_kinds, known, sender);
            background.spawn_on(watching, runtime);
            background.spawn_on(supervise(reconciler.run(updates), failed.clone()), runtime);
        }
        Source::Manifests(manifests, poll_interval) => {
            let (sender, scans) = mpsc::channel(UPDATE_QUEUE_CAPACITY);
            let watching = watch_manifests(manifests, sender, poll_interval);
            background.spawn_on(watching, runtime);
            background.spawn_on(supervise(reconciler.run(scans), failed.clone()), runtime);
        }
    }
    BackgroundTasks {
        tasks: background,
        failed,
    }
}

/// Creates the object cache, and the client of the cluster if one is configured.
async fn inputs(settings: &ServeSettings) -> Result<(ObjectCache, Option<Cluster>), AppError> {
    let cache = ObjectCache::new(read_profiles(
        &settings.inputs.profiles,
        &settings.inputs.controllers,
    )?);
    Ok(
        match cluster::connect_if_configured(&settings.inputs).await? {
            Some(cluster) => (cache.with_kind_states(), Some(cluster)),
            None => (cache, None),
        },
    )
}

/// Reads the file of `--envoy-config`, if it is set.
fn envoy(settings: &ServeSettings) -> Result<Option<EnvoySettings>, AppError> {
    let read = settings.envoy.as_deref().map(read_envoy);
    read.transpose().map_err(AppError::Input)
}

/// Loads the certificates of some files, for connections with a version of HTTP.
fn load_certificates(
    files: Option<&TlsFiles>,
    version: HttpVersion,
) -> Result<Option<Arc<Certificates>>, AppError> {
    let loaded = files.map(|files| Certificates::load(files.clone(), version));
    let loaded = loaded.transpose();
    let loaded = loaded.map_err(|error| AppError::Input(vec![error.to_string()]))?;
    Ok(loaded.map(Arc::new))
}

/// Loads the certificates of the admission webhook, if it is served.
fn admission_certificates(settings: &ServeSettings) -> Result<Option<Arc<Certificates>>, AppError> {
    let files = settings.admission.as_ref().map(|admission| &admission.tls);
    load_certificates(files, HttpVersion::Http1)
}

/// Loads certificates and access rules.
fn security(
    settings: &ServeSettings,
    checked: &ListenConfig,
    cluster: Option<&Cluster>,
) -> Result<Security, AppError> {
    let certificates = load_certificates(settings.tls.as_ref(), HttpVersion::Http2)?;
    let rules = settings.callers.as_deref().map(read_callers);
    let callers = match rules.transpose().map_err(AppError::Input)? {
        Some(rules) => AccessRules::Rules(rules),
        None => AccessRules::AllowLists(checked.lists.clone()),
    };
    let is_open = checked.all.iter().any(|address| !address.is_local());
    let is_listed = settings.callers.is_some() || !checked.lists.data_plane.is_empty();
    if settings.insight_auth == InsightAuth::Kubernetes && is_open && !is_listed {
        tracing::warn!(
            "PolicyInsightService requires Kubernetes authorization, but every client may use \
             EffectivePolicyService: restrict it with `--data-plane-san` or `--callers`"
        );
    }
    Ok(Security {
        certificates,
        callers,
        reviews: match settings.insight_auth {
            InsightAuth::None => None,
            InsightAuth::Kubernetes => cluster.map(reviews::cluster_reviews),
        },
    })
}
