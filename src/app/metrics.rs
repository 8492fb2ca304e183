//! Collects the metrics and the readiness of the server when they are requested.
//!
//! `docs/operations.md` describes each metric.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::AppError;
use super::object_cache::ObjectCache;
use super::shared_state::SharedState;
use crate::api::ALL_KINDS;
use crate::insight::SourceProblems;
use crate::server::{
    BoundListener, CallerLoad, Certificates, EnvoyCounters, RequestCounters, ReviewCounters,
    Server, StdListener,
};
use crate::snapshot::{BuildStats, Snapshot};
use crate::source::cluster::{ApiRequestCounts, ApiRequestRecorder};
use crate::telemetry::{
    AdminServer, AdminState, HistogramValue, Metric, Metrics, Readiness, log_control,
    process_metrics,
};
use entail_client::EnumName;
use entail_core::model::{InternalError, SourceState};
use entail_core::routing::PatternStats;

/// Everything that metrics and readiness are read from.
pub(super) struct MetricsSource {
    pub shared: SharedState,
    pub source_problems: watch::Receiver<Arc<SourceProblems>>,
    pub request_counters: Arc<RequestCounters>,
    pub load: CallerLoad,
    pub envoy: Arc<EnvoyCounters>,
    pub calls: Option<ApiRequestRecorder>,
    /// The certificates of the server and of the admission webhook, with the beginnings of their names.
    pub certificates: [(&'static str, Option<Arc<Certificates>>); 2],
    /// The counters of the admission webhook.
    pub reviews: Option<Arc<ReviewCounters>>,
    /// The metrics of objects as they were when the object cache was last free.
    pub object_metrics: Mutex<Vec<Metric>>,
}

/// A snapshot that takes longer is told by readiness.
pub(super) const LONG_BUILD: Duration = Duration::from_secs(30);

type Labels = Vec<(&'static str, String)>;

impl MetricsSource {
    /// Reads from a server, without a cluster and certificates.
    pub fn of(
        server: &Server,
        shared: SharedState,
        source_problems: watch::Receiver<Arc<SourceProblems>>,
    ) -> Self {
        Self {
            shared,
            source_problems,
            request_counters: server.request_counters(),
            load: server.load(),
            envoy: server.envoy_counters(),
            calls: None,
            certificates: [("", None), ("", None)],
            reviews: None,
            object_metrics: Mutex::default(),
        }
    }

    /// Collects all metrics except the histograms of [`Metrics`].
    pub fn read(&self) -> Vec<Metric> {
        let build = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        let mut metrics = vec![Metric::gauges(
            "entail_build_info",
            "Version of the running server",
            vec![(build, 1.0)],
        )];
        metrics.extend(
            self.shared
                .subscriptions
                .snapshots()
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
            "Requests by service and code; a stream is counted by its first reply",
            requests.collect(),
        ));
        metrics.push(self.request_durations());
        metrics.extend(self.request_metrics());
        metrics.extend(self.caller_metrics());
        metrics.extend(self.review_metrics());
        let counts = self
            .calls
            .as_ref()
            .map(ApiRequestRecorder::counts)
            .unwrap_or_default();
        metrics.extend(api_metrics(&counts));
        metrics.push(self.unread_kinds());
        metrics.extend(self.source_metrics());
        metrics.extend(self.shared.assertions.metrics());
        metrics.extend(self.certificate_metrics());
        metrics.extend(process_metrics());
        metrics
    }

    /// Kinds of a cluster whose first read takes long.
    fn unread_kinds(&self) -> Metric {
        let unread = self.calls.as_ref().map(ApiRequestRecorder::unread);
        let unread = unread.unwrap_or_default().into_iter();
        let unread = unread.map(|(kind, time)| {
            let labels: Labels = vec![("kind", kind.to_string())];
            (labels, time.as_secs_f64())
        });
        Metric::gauges(
            "entail_kind_unread_seconds",
            "For how long a kind has been waited for that has not been read within 10 s",
            unread.collect(),
        )
    }

    /// Latencies of requests, by service and method.
    fn request_durations(&self) -> Metric {
        let durations = self.request_counters.durations().into_iter();
        let durations = durations.map(|durations| {
            let labels = vec![
                ("service", durations.service.to_owned()),
                ("method", durations.method.to_owned()),
            ];
            let value = HistogramValue {
                sum: durations.sum,
                buckets: durations.buckets,
            };
            (labels, value)
        });
        Metric::histograms(
            "entail_request_duration_seconds",
            "Seconds from the headers of a request to its reply; a stream counts by its start",
            durations.collect(),
        )
    }

    /// Requests in flight and watch streams.
    fn request_metrics(&self) -> [Metric; 7] {
        let ledger = self.shared.subscriptions.ledger();
        let held = ledger.total();
        let ended = ledger.ended().into_iter();
        let ended = ended.map(|(reason, count)| (vec![("reason", reason.to_owned())], count));
        let requests = self.load.concurrency.requests().into_iter();
        let requests = requests.map(|(pool, count)| (vec![("for", pool.to_owned())], count as f64));
        [
            Metric::gauges(
                "entail_requests_under_way",
                "Requests in flight",
                requests.collect(),
            ),
            Metric::gauge(
                "entail_watches",
                "Open watch streams",
                self.load.concurrency.watches() as f64,
            ),
            Metric::gauge(
                "entail_watched_paths",
                "Paths followed by watch streams; equal subscriptions count once",
                held.paths as f64,
            ),
            Metric::gauge(
                "entail_watch_bytes",
                "Memory that watch streams hold; what they share counts once",
                held.bytes as f64,
            ),
            Metric::counters(
                "entail_watches_ended",
                "Watch streams that ended, by reason",
                ended.collect(),
            ),
            Metric::counter(
                "entail_envoy_conversions",
                "Answers converted to metadata, headers and rules for Envoy",
                self.envoy.conversions.load(Ordering::Relaxed),
            ),
            Metric::counter(
                "entail_envoy_too_large",
                "Requests of Envoy whose answer exceeds a limit",
                self.envoy.too_large.load(Ordering::Relaxed),
            ),
        ]
    }

    /// What callers make the server hold, and how often they exceeded a bound.
    fn caller_metrics(&self) -> [Metric; 3] {
        let counts = self.load.bounds.counts().into_iter();
        let counts = counts.map(|(bound, count)| (vec![("bound", bound.to_owned())], count));
        [
            Metric::counters(
                "entail_bounds_exceeded",
                "Requests refused and connections ended because of a bound",
                counts.collect(),
            ),
            Metric::gauge(
                "entail_connections",
                "Open connections, without those of the health listener",
                self.load.connections.count() as f64,
            ),
            Metric::gauge(
                "entail_held_bytes",
                "Bytes of replies that are not written and of requests that are not complete",
                self.load.held_bytes.held() as f64,
            ),
        ]
    }

    /// Reviews of the admission webhook.
    fn review_metrics(&self) -> Vec<Metric> {
        let Some(counters) = &self.reviews else {
            return Vec::new();
        };
        let counts = counters
            .counts()
            .map(|(outcome, count)| (vec![("outcome", outcome.to_owned())], count));
        let durations = counters.durations();
        let durations = HistogramValue {
            sum: durations.sum,
            buckets: durations.buckets,
        };
        vec![
            Metric::counters(
                "entail_admission_reviews",
                "Admission reviews by outcome",
                counts.collect(),
            ),
            Metric::histograms(
                "entail_admission_review_duration_seconds",
                "Seconds from a complete admission review to its answer",
                vec![(Vec::new(), durations)],
            ),
        ]
    }

    /// Counts objects and policies, and reads the counters of the work. While the reconciler builds a snapshot, they
    /// are those of before: whoever asks does not wait for it. Blocks the reconciler for the time of counting.
    fn object_metrics(&self) -> Vec<Metric> {
        let last = self.object_metrics.lock();
        let mut last = last.unwrap_or_else(PoisonError::into_inner);
        let changes = self.shared.progress.changes.load(Ordering::Relaxed);
        // Before the first time there is nothing else to tell.
        let cache = match last.is_empty() {
            true => Some(self.shared.cache()),
            false => self.shared.try_cache(),
        };
        if let Some(cache) = cache {
            *last = kind_metrics(&cache);
            last.extend(work_metrics(changes, cache.stats()));
        }
        let mut metrics = last.clone();
        let busy = self.shared.progress.build_time().unwrap_or_default();
        metrics.push(Metric::gauge(
            "entail_build_under_way_seconds",
            "For how long the current snapshot has been computed; 0 if none is",
            busy.as_secs_f64(),
        ));
        metrics
    }

    /// Reloads and expiry of certificates.
    fn certificate_metrics(&self) -> [Metric; 3] {
        let all = self.certificates.iter();
        let all = all.filter_map(|(prefix, certificates)| Some((prefix, certificates.as_ref()?)));
        // Reported as 0 without certificates, so that alerts can refer to them.
        let (mut reloads, mut failures) = (0, 0);
        let mut expiries = Vec::new();
        for (prefix, certificates) in all {
            let (reloaded, failed) = certificates.reloads();
            (reloads, failures) = (reloads + reloaded, failures + failed);
            for (name, at) in certificates.expiries() {
                let labels: Labels = vec![("certificate", format!("{prefix}{name}"))];
                expiries.push((labels, at as f64));
            }
        }
        [
            Metric::counter("entail_tls_reloads", "Certificate reloads", reloads),
            Metric::counter(
                "entail_tls_reload_failures",
                "Failed certificate reloads",
                failures,
            ),
            Metric::gauges(
                "entail_certificate_expiry_timestamp_seconds",
                "Unix time at which the first certificate of a file expires",
                expiries,
            ),
        ]
    }

    /// Metrics of sources and checkpoints.
    fn source_metrics(&self) -> Vec<Metric> {
        let problems = self.source_problems.borrow().problems.len();
        let mut metrics = vec![Metric::gauge(
            "entail_source_problems",
            "Problems in the sources",
            problems as f64,
        )];
        let progress = &self.shared.progress;
        metrics.push(Metric::gauge(
            "entail_checkpoint_written_timestamp_seconds",
            "Unix time of the last checkpoint; 0 for none",
            seconds(&progress.checkpoint),
        ));
        metrics.push(Metric::counter(
            "entail_checkpoint_failures",
            "Checkpoints that could not be written",
            progress.checkpoint_failures.load(Ordering::Relaxed),
        ));
        metrics.push(Metric::counter(
            "entail_internal_errors",
            "Internal errors that made policy kinds UNKNOWN",
            InternalError::count(),
        ));
        let published = seconds(&progress.published);
        metrics.push(Metric::gauge(
            "entail_snapshot_published_timestamp_seconds",
            "Unix time of the last published snapshot; 0 for none",
            published,
        ));
        metrics
    }

    /// Whether the server answers look-ups, with the state of each kind and the problems of the
    /// sources.
    pub fn readiness(&self) -> Readiness {
        let mut lines = Vec::new();
        let is_stopping = self.shared.progress.is_stopping.load(Ordering::Relaxed);
        if is_stopping {
            lines.push("stopping".to_owned());
        }
        let has_snapshot = self.shared.subscriptions.snapshots().with(|snapshot| {
            let version = snapshot.version();
            lines.push(format!("generation {}", version.generation));
            lines.push(format!("synced at {}", version.synced_at));
            for kind in snapshot.kinds() {
                lines.push(format!("{} {}", kind.kind, kind.state().name()));
            }
        });
        let has_snapshot = has_snapshot.is_some();
        if !has_snapshot {
            lines.push("no snapshot yet".to_owned());
        }
        let busy = self.shared.progress.build_time();
        if let Some(busy) = busy.filter(|busy| *busy >= LONG_BUILD) {
            lines.push(format!("computing a snapshot for {} s", busy.as_secs()));
        }
        let source_problems = self.source_problems.borrow();
        let problems = source_problems.problems.iter();
        let problems = problems.map(ToString::to_string);
        Readiness {
            is_ready: has_snapshot && !is_stopping,
            lines,
            problems: problems.collect(),
        }
    }
}

/// Metrics of objects and policies by kind.
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
    let states = cache
        .states()
        .map(|(kind, state)| (kind.to_string(), state));
    // While input is not read, any kind may lack objects, as the replies say.
    let all = store.lacks_input();
    let all = all.then(|| (ALL_KINDS.to_owned(), SourceState::Stale));
    let states = states.chain(all).map(|(kind, state)| {
        let labels: Labels = vec![("kind", kind), ("state", state.name().to_owned())];
        (labels, 1.0)
    });
    vec![
        Metric::gauges("entail_objects", "Objects by kind", objects),
        Metric::gauges(
            "entail_policies",
            "Policies by the outcome of their references",
            policies,
        ),
        Metric::gauges(
            "entail_kind_state",
            "State of each kind; 1 for the current state",
            states.collect(),
        ),
    ]
}

/// Counters of the work since the start.
fn work_metrics(changes: u64, work: BuildStats) -> Vec<Metric> {
    vec![
        Metric::counter("entail_changes", "Objects changed", changes),
        Metric::counter(
            "entail_answers_merged",
            "Answers merged from their policies",
            work.merged,
        ),
        Metric::counter(
            "entail_bytes_encoded",
            "Bytes of answers encoded",
            work.encoded,
        ),
        Metric::counter(
            "entail_answers_replaced",
            "Answers replaced on paths",
            work.replaced,
        ),
        Metric::counter("entail_full_rebuilds", "Full rebuilds", work.rebuilds),
    ]
}

fn snapshot_metrics(snapshot: &Snapshot) -> Vec<Metric> {
    let version = snapshot.version();
    let synced = &version.synced_at;
    let synced_at = synced.seconds as f64 + f64::from(synced.nanos) / 1e9;
    let mut metrics = vec![
        Metric::gauge(
            "entail_snapshot_generation",
            "Generation of the current snapshot",
            version.generation as f64,
        ),
        Metric::gauge(
            "entail_snapshot_synced_timestamp_seconds",
            "Unix time at which all sources were last in sync",
            synced_at,
        ),
        Metric::gauge("entail_paths", "Addressable paths", snapshot.paths() as f64),
        Metric::gauge(
            "entail_answers",
            "Distinct answers",
            snapshot.distinct_answers() as f64,
        ),
        Metric::gauges(
            "entail_unknown_answers",
            "Distinct answers of a kind in which something is not known",
            unknown_answers(snapshot),
        ),
    ];
    metrics.extend(pattern_metrics(snapshot.pattern_stats()));
    metrics
}

/// What the regular expressions of Routes cost.
fn pattern_metrics(stats: PatternStats) -> [Metric; 4] {
    [
        Metric::gauge(
            "entail_route_regex_bytes",
            "Memory of the compiled regular expressions of routes",
            stats.bytes as f64,
        ),
        Metric::counter(
            "entail_route_regex_compilations",
            "How often the regular expressions of a route were compiled",
            stats.compiled,
        ),
        Metric::counter(
            "entail_route_regex_evictions",
            "How often compiled regular expressions of a route were dropped for others",
            stats.dropped,
        ),
        Metric::counter(
            "entail_route_regex_too_large",
            "Regular expressions that were not compiled because those of their route are too large",
            stats.not_decided,
        ),
    ]
}

/// Distinct answers in which something is not known, by kind and reason.
fn unknown_answers(snapshot: &Snapshot) -> Vec<(Labels, f64)> {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for unknown in snapshot.unknown_kinds() {
        let key = (&*unknown.state.kind, &*unknown.state.reason);
        *counts.entry(key).or_default() += unknown.answers;
    }
    let counts = counts.into_iter();
    let labelled = counts.map(|((kind, reason), count)| {
        let labels = vec![("kind", kind.to_owned()), ("reason", reason.to_owned())];
        (labels, count as f64)
    });
    labelled.collect()
}

/// Metrics of requests to the API server. Without a cluster they have no values, but their names
/// are reported, so that alerts can refer to them.
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
            "List requests to the API server, by page",
            of(|c| c.lists),
        ),
        Metric::counters(
            "entail_api_watches",
            "Watch requests to the API server",
            of(|c| c.watches),
        ),
        Metric::counters(
            "entail_api_watches_opened",
            "Watch requests accepted by the API server",
            of(|c| c.opened),
        ),
        Metric::counters(
            "entail_api_failures",
            "Lists and watches that failed, were denied, or ended early",
            of(|c| c.failures),
        ),
        Metric::counters(
            "entail_api_reviews",
            "TokenReview, SubjectAccessReview and SelfSubjectAccessReview requests",
            of(|c| c.reviews),
        ),
        Metric::counters(
            "entail_api_writes",
            "Write requests to the API server; always 0",
            of(|c| c.writes),
        ),
    ]
}

/// Converts milliseconds to seconds.
fn seconds(millis: &AtomicU64) -> f64 {
    millis.load(Ordering::Relaxed) as f64 / 1e3
}

/// Creates the metrics, and starts the admin server if it has listeners.
///
/// # Errors
/// Returns an error if the admin server cannot be started.
pub(super) fn serve_metrics(
    source: MetricsSource,
    listeners: Vec<BoundListener>,
) -> Result<(Arc<Metrics>, Option<AdminServer>), AppError> {
    let source = Arc::new(source);
    let readiness_source = Arc::clone(&source);
    let metrics = Arc::new(Metrics::new(move || source.read()));
    if listeners.is_empty() {
        return Ok((metrics, None));
    }
    let state = AdminState {
        metrics: Arc::clone(&metrics),
        ready: Arc::new(move || readiness_source.readiness()),
        log: log_control(),
    };
    let listeners: Result<Vec<StdListener>, _> =
        listeners.into_iter().map(BoundListener::into_std).collect();
    let started = listeners.and_then(|listeners| AdminServer::start(&state, listeners));
    let failed = |error| AppError::Process(format!("failed to start the admin server: {error}"));
    Ok((metrics, Some(started.map_err(failed)?)))
}
