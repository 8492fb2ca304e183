//! The metrics, each read where it arises when somebody asks. `docs/operations.md` says what they
//! mean.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::AppError;
use super::object_cache::ObjectCache;
use super::shared_state::SharedState;
use crate::insight::SourceProblems;
use crate::server::{
    BoundListener, Certificates, ConcurrencyLimiter, RequestCounters, StdListener,
};
use crate::snapshot::{BuildStats, Snapshot};
use crate::source::cluster::{ApiRequestCounts, ApiRequestRecorder};
use crate::telemetry::{AdminServer, AdminState, Metric, Metrics, Readiness, log_control};
use entail_core::model::InternalError;

/// Where the figures are read.
pub(super) struct MetricsSource {
    pub shared: SharedState,
    pub source_problems: watch::Receiver<Arc<SourceProblems>>,
    pub request_counters: Arc<RequestCounters>,
    pub concurrency: Arc<ConcurrencyLimiter>,
    pub calls: Option<ApiRequestRecorder>,
    pub certificates: Option<Arc<Certificates>>,
}

type Labels = Vec<(&'static str, String)>;

impl MetricsSource {
    /// All metrics but those that are gathered over time.
    pub fn read(&self) -> Vec<Metric> {
        let build = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        let mut metrics = vec![Metric::gauges(
            "entail_build_info",
            "The version that runs",
            vec![(build, 1.0)],
        )];
        metrics.extend(
            self.shared
                .snapshots
                .with(snapshot_metrics)
                .into_iter()
                .flatten(),
        );
        metrics.extend(self.object_metrics());
        let requests = self.request_counters.counts().into_iter();
        let requests = requests.map(|(service, code, count)| {
            let labels = vec![("service", service.to_owned()), ("code", code.to_owned())];
            (labels, count)
        });
        metrics.push(Metric::counters(
            "entail_requests",
            "Requests answered; a stream counts by how it begins",
            requests.collect(),
        ));
        metrics.extend(self.request_metrics());
        let counts = self
            .calls
            .as_ref()
            .map(ApiRequestRecorder::counts)
            .unwrap_or_default();
        metrics.extend(api_metrics(&counts));
        metrics.extend(self.source_metrics());
        metrics
    }

    /// What callers have going on.
    fn request_metrics(&self) -> [Metric; 3] {
        let requests = self.concurrency.requests().into_iter();
        let requests = requests.map(|(what, count)| (vec![("for", what.to_owned())], count as f64));
        [
            Metric::gauges(
                "entail_requests_under_way",
                "Requests that are worked on",
                requests.collect(),
            ),
            Metric::gauge(
                "entail_watches",
                "Streams that follow paths",
                self.concurrency.watches() as f64,
            ),
            Metric::gauge(
                "entail_watched_paths",
                "Paths that are listed for them; equal lists once",
                self.shared.snapshots.watched_paths() as f64,
            ),
        ]
    }

    /// Objects, policies, and what was done. Waits for the writer, and holds it up for as long as
    /// counting takes.
    fn object_metrics(&self) -> Vec<Metric> {
        let cache = self.shared.cache();
        let changes = self.shared.progress.changes.load(Ordering::Relaxed);
        let mut metrics = kind_metrics(&cache);
        metrics.extend(work_metrics(changes, cache.stats()));
        metrics
    }

    /// Sources, checkpoints and certificates.
    fn source_metrics(&self) -> Vec<Metric> {
        let problems = self.source_problems.borrow().problems.len();
        let mut metrics = vec![Metric::gauge(
            "entail_source_problems",
            "What is wrong in the sources",
            problems as f64,
        )];
        let progress = &self.shared.progress;
        metrics.push(Metric::gauge(
            "entail_checkpoint_written_timestamp_seconds",
            "When a checkpoint was written last; 0 for never",
            seconds(&progress.checkpoint),
        ));
        metrics.push(Metric::counter(
            "entail_checkpoint_failures",
            "Checkpoints that could not be written",
            progress.checkpoint_failures.load(Ordering::Relaxed),
        ));
        metrics.push(Metric::counter(
            "entail_internal_errors",
            "Bugs that made answers unknown",
            InternalError::count(),
        ));
        // Without certificates they stay at 0: alerts find them all the same.
        let (reloads, failures) = self.certificates.as_ref().map_or((0, 0), |c| c.reloads());
        metrics.push(Metric::counter(
            "entail_tls_reloads",
            "Times that changed certificates were taken into use",
            reloads,
        ));
        metrics.push(Metric::counter(
            "entail_tls_reload_failures",
            "Times that changed certificates were refused",
            failures,
        ));
        let published = seconds(&progress.published);
        metrics.push(Metric::gauge(
            "entail_snapshot_published_timestamp_seconds",
            "When a snapshot was published last; 0 for never",
            published,
        ));
        metrics
    }

    /// Whether look-ups are answered, and what is wrong all the same.
    pub fn readiness(&self) -> Readiness {
        let mut lines = Vec::new();
        let is_stopping = self.shared.progress.is_stopping.load(Ordering::Relaxed);
        if is_stopping {
            lines.push("stopping".to_owned());
        }
        let told = self.shared.snapshots.with(|snapshot| {
            let version = snapshot.version();
            lines.push(format!("generation {}", version.generation));
            lines.push(format!("synced at {}", version.synced_at));
            for kind in snapshot.kinds() {
                lines.push(format!("{} {}", kind.kind, kind.state().as_str_name()));
            }
        });
        if told.is_none() {
            lines.push("no snapshot yet".to_owned());
        }
        let source_problems = self.source_problems.borrow();
        let problems = source_problems.problems.iter();
        let problems = problems.map(|(place, message)| format!("{place}: {message}"));
        Readiness {
            is_ready: told.is_some() && !is_stopping,
            lines,
            problems: problems.collect(),
        }
    }
}

/// Objects and policies.
fn kind_metrics(cache: &ObjectCache) -> Vec<Metric> {
    let store = cache.store();
    let objects = store.kinds().map(|kind| {
        let labels = vec![("kind", kind.to_string())];
        (labels, store.count(kind) as f64)
    });
    let objects = objects.collect();
    let policies = cache
        .outcomes()
        .into_iter()
        .map(|((kind, outcome), count)| {
            let labels = vec![("kind", kind.to_string()), ("outcome", outcome.to_string())];
            (labels, count as f64)
        });
    let policies = policies.collect();
    let states = cache.states().map(|(kind, state)| {
        let labels: Labels = vec![
            ("kind", kind.to_string()),
            ("state", state.name().to_owned()),
        ];
        (labels, 1.0)
    });
    vec![
        Metric::gauges("entail_objects", "Objects known", objects),
        Metric::gauges(
            "entail_policies",
            "Policies by what their references come to",
            policies,
        ),
        Metric::gauges(
            "entail_kind_state",
            "How much is known of each kind: 1 for the state that holds",
            states.collect(),
        ),
    ]
}

/// What was done.
fn work_metrics(changes: u64, work: BuildStats) -> Vec<Metric> {
    vec![
        Metric::counter("entail_changes", "Objects that truly changed", changes),
        Metric::counter(
            "entail_stacks_merged",
            "Stacks of policies merged",
            work.merged,
        ),
        Metric::counter(
            "entail_bytes_encoded",
            "Bytes of answers encoded",
            work.encoded,
        ),
        Metric::counter(
            "entail_states_replaced",
            "Answers of states replaced",
            work.replaced,
        ),
        Metric::counter(
            "entail_worlds_read",
            "Times that everything was read from scratch",
            work.rebuilds,
        ),
    ]
}

fn snapshot_metrics(snapshot: &Snapshot) -> Vec<Metric> {
    let version = snapshot.version();
    let synced = &version.synced_at;
    let synced_at = synced.seconds as f64 + f64::from(synced.nanos) / 1e9;
    vec![
        Metric::gauge(
            "entail_snapshot_generation",
            "The generation of the snapshot in use",
            version.generation as f64,
        ),
        Metric::gauge(
            "entail_snapshot_synced_timestamp_seconds",
            "When all sources were last known to be in step",
            synced_at,
        ),
        Metric::gauge("entail_paths", "Addressable paths", snapshot.paths() as f64),
        Metric::gauge(
            "entail_answers",
            "Distinct answers that paths share",
            snapshot.distinct_answers() as f64,
        ),
    ]
}

/// Without a cluster there are none: alerts find their names all the same.
fn api_metrics(counts: &BTreeMap<String, ApiRequestCounts>) -> Vec<Metric> {
    let of = |count: fn(&ApiRequestCounts) -> u64| {
        let counts = counts.iter();
        let labelled = counts.map(|(path, each)| {
            let labels: Labels = vec![("resource", path.clone())];
            (labels, count(each))
        });
        labelled.collect::<Vec<_>>()
    };
    vec![
        Metric::counters(
            "entail_api_lists",
            "Lists asked for, a page each",
            of(|c| c.lists),
        ),
        Metric::counters(
            "entail_api_watches",
            "Watches asked for, the first and those that resume it",
            of(|c| c.watches),
        ),
        Metric::counters(
            "entail_api_watches_opened",
            "Watches that the API server resumed",
            of(|c| c.opened),
        ),
        Metric::counters(
            "entail_api_reviews",
            "Questions about tokens and rights of callers",
            of(|c| c.reviews),
        ),
        Metric::counters(
            "entail_api_writes",
            "Requests that would change something: there are none",
            of(|c| c.writes),
        ),
    ]
}

fn seconds(moment: &AtomicU64) -> f64 {
    moment.load(Ordering::Relaxed) as f64 / 1e3
}

/// The metrics, and the server that tells them if there are listeners for it.
///
/// # Errors
/// The server cannot be started.
pub(super) fn serve_metrics(
    figures: MetricsSource,
    listeners: Vec<BoundListener>,
) -> Result<(Arc<Metrics>, Option<AdminServer>), AppError> {
    let figures = Arc::new(figures);
    let tells = Arc::clone(&figures);
    let metrics = Arc::new(Metrics::new(move || figures.read()));
    if listeners.is_empty() {
        return Ok((metrics, None));
    }
    let watched = AdminState {
        metrics: Arc::clone(&metrics),
        ready: Arc::new(move || tells.readiness()),
        log: log_control(),
    };
    let listeners: Result<Vec<StdListener>, _> =
        listeners.into_iter().map(BoundListener::into_std).collect();
    let started = listeners.and_then(|listeners| AdminServer::start(&watched, listeners));
    let failed = |error| AppError::Process(format!("the admin server cannot be started: {error}"));
    Ok((metrics, Some(started.map_err(failed)?)))
}
