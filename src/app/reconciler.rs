//! The one writer: from changes of the sources to the next snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{mpsc, watch};

use super::checkpoints::CheckpointData;
use super::load::source_problems;
use super::object_cache::epoch;
use super::problem_log::ProblemLog;
use super::shared_state::{SharedState, record_now};
use crate::insight::SourceProblems;
use crate::server::Health;
use crate::snapshot::{Snapshot, Version};
use crate::source::cluster::{self, DesiredKinds};
use crate::source::manifests::Scan;
use crate::telemetry::Metrics;
use entail_core::model::{Change, GroupKind, Str};

/// How much later the same objects have to be in step to be kept once more.
const CHECKPOINT_REFRESH_INTERVAL: Duration = Duration::from_secs(600);

/// One step of a source.
pub(super) struct SourceUpdate {
    /// Its number, if the source counts them.
    number: u64,
    change: Change,
    /// All that is wrong now: where, and what.
    problems: SourceProblems,
    /// Whether less is known than there is: a server that has just started is then not ready.
    is_partial: bool,
    /// Whether more is on its way: it is waited for, even by a server that may be partial.
    is_loading: bool,
    /// When the source was known to be in step last, if it tells.
    synced_at: Option<SystemTime>,
}

impl From<Scan> for SourceUpdate {
    fn from(scan: Scan) -> Self {
        Self {
            number: 0,
            is_partial: scan.is_partial(),
            is_loading: false,
            problems: source_problems(&scan.problems),
            change: scan.change,
            // What a look at files found is in step with them.
            synced_at: Some(SystemTime::now()),
        }
    }
}

impl From<cluster::ClusterUpdate> for SourceUpdate {
    fn from(step: cluster::ClusterUpdate) -> Self {
        Self {
            number: step.number,
            is_partial: !step.is_complete,
            is_loading: step.is_loading,
            problems: SourceProblems {
                problems: step.problems,
            },
            change: step.change,
            synced_at: step.synced_at,
        }
    }
}

/// Publishes snapshots.
///
/// `synced_at` of a snapshot is when its source was last known to be in step: for files when
/// something new was found, for a cluster when the server last said something of the kind that it
/// has been silent about longest. A snapshot that only that changes of keeps its generation.
pub(super) struct Reconciler {
    pub shared: SharedState,
    pub source_problems: watch::Sender<Arc<SourceProblems>>,
    pub health: Health,
    /// Whether to publish although something could not be read at the start.
    pub allow_partial: bool,
    /// When the process began, for the log.
    pub started: Instant,
    /// Tells a cluster which kinds to follow.
    pub wanted: Option<watch::Sender<DesiredKinds>>,
    /// When what the intake has from before the start was in step.
    pub restored_at: Option<SystemTime>,
    /// Where what is known goes to be kept.
    pub checkpoint_channel: Option<watch::Sender<Option<CheckpointData>>>,
    pub metrics: Arc<Metrics>,
}

/// What the writer remembers between changes.
struct ReconcilerState {
    reconciler: Reconciler,
    epoch: Str,
    generation: u64,
    /// When the source was in step last.
    synced_at: Option<SystemTime>,
    /// Objects changed that no snapshot has.
    pending: usize,
    problem_log: ProblemLog,
    /// The generation that was given away to be kept last, and when it was in step.
    last_checkpoint: Option<(u64, SystemTime)>,
}

/// What was built, and from how many objects.
struct BuildResult {
    snapshot: Option<Snapshot>,
    /// Why profiles are refused.
    refused: BTreeSet<String>,
    changed: usize,
    objects: usize,
    wanted: Option<BTreeSet<GroupKind>>,
}

impl Reconciler {
    /// Takes steps until there are no more.
    pub async fn run<S: Into<SourceUpdate>>(self, mut steps: mpsc::Receiver<S>) {
        let mut running = ReconcilerState {
            synced_at: self.restored_at,
            reconciler: self,
            epoch: epoch(),
            generation: 0,
            pending: 0,
            problem_log: ProblemLog::default(),
            last_checkpoint: None,
        };
        if running.reconciler.restored_at.is_some() {
            running.publish_restored().await;
        }
        while let Some(first) = steps.recv().await {
            // What has gathered while the last snapshot was built is one step.
            let mut changes = Vec::new();
            let mut last: SourceUpdate = first.into();
            while let Ok(next) = steps.try_recv() {
                changes.push(std::mem::take(&mut last.change));
                last = next.into();
            }
            changes.push(std::mem::take(&mut last.change));
            running.reconcile(changes, &last).await;
        }
        running.source_ended();
    }
}

impl ReconcilerState {
    /// Publishes what is known from before the start.
    async fn publish_restored(&mut self) {
        let began = Instant::now();
        let version = self.next_version();
        match self.build(Vec::new(), version, false).await {
            Ok(BuildResult {
                snapshot: Some(snapshot),
                objects,
                ..
            }) => self.publish(snapshot, objects, began).await,
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "the checkpoint cannot be used"),
        }
    }

    fn next_version(&self) -> Version {
        Version {
            epoch: Arc::clone(&self.epoch),
            generation: self.generation + 1,
            synced_at: self.synced_at.map(Into::into).unwrap_or_default(),
        }
    }

    /// Takes one step.
    async fn reconcile(&mut self, changes: Vec<Change>, input: &SourceUpdate) {
        let began = Instant::now();
        self.report_problems(input);
        // A clock that was set back must not pin the time in the future.
        let before = self.synced_at.map(|at| at.min(SystemTime::now()));
        let is_later = input.synced_at > before;
        self.synced_at = input.synced_at.max(before);
        let is_first = self.generation == 0;
        let waits = input.is_loading || !self.reconciler.allow_partial;
        let hold = is_first && input.is_partial && waits;
        let built = match self.build(changes, self.next_version(), hold).await {
            Ok(built) => built,
            Err(error) => {
                tracing::error!(%error, "no snapshot could be built: the last one stays in use");
                // It is not known what was applied: the next change builds anew.
                self.pending += 1;
                return;
            }
        };
        self.pending += built.changed;
        let changes = &self.reconciler.shared.progress.changes;
        changes.fetch_add(built.changed as u64, Ordering::Relaxed);
        if let (Some(channel), Some(kinds)) = (&self.reconciler.wanted, built.wanted) {
            let after = input.number;
            let _ = channel.send_replace(DesiredKinds { kinds, after });
        }
        if let Some(snapshot) = built.snapshot {
            self.problem_log.log_new(built.refused, "profile");
            self.publish(snapshot, built.objects, began).await;
        } else if hold && !input.is_loading && !input.problems.problems.is_empty() {
            tracing::error!(
                problems = input.problems.problems.len(),
                "not ready: something cannot be read; correct it, or allow partial answers \
                 with `--allow-partial`"
            );
        } else if is_later && !is_first {
            self.publish_sync_time();
        }
        self.save_checkpoint(input);
    }

    /// Publishes the same answers as in step at a later time.
    fn publish_sync_time(&self) {
        let at = self.synced_at.map(Into::into).unwrap_or_default();
        if let Some(snapshot) = self
            .reconciler
            .shared
            .snapshots
            .with(|now| now.with_synced_at(at))
        {
            self.reconciler.shared.snapshots.publish(Arc::new(snapshot));
        }
    }

    /// Gives what is known to whoever keeps it, if it is all that is wanted.
    fn save_checkpoint(&mut self, input: &SourceUpdate) {
        let (Some(kept), Some(synced_at)) = (&self.reconciler.checkpoint_channel, self.synced_at)
        else {
            return;
        };
        let is_new = self.last_checkpoint.is_none_or(|(generation, at)| {
            let later = synced_at.duration_since(at).unwrap_or_default();
            generation != self.generation || later >= CHECKPOINT_REFRESH_INTERVAL
        });
        if input.is_partial || self.generation == 0 || !is_new {
            return;
        }
        self.last_checkpoint = Some((self.generation, synced_at));
        let cache = self.reconciler.shared.cache();
        let states = cache.states();
        kept.send_replace(Some(CheckpointData {
            store: cache.store().clone(),
            states: states.map(|(kind, state)| (kind.clone(), state)).collect(),
            synced_at,
        }));
    }

    /// Applies changes and builds a snapshot, if something changed or there is none yet.
    async fn build(
        &self,
        changes: Vec<Change>,
        version: Version,
        hold: bool,
    ) -> Result<BuildResult, tokio::task::JoinError> {
        let shared = self.reconciler.shared.clone();
        let asks = self.reconciler.wanted.is_some();
        let needed = version.generation == 1 || self.pending > 0;
        tokio::task::spawn_blocking(move || {
            let mut cache = shared.cache();
            let changed = changes.into_iter().map(|change| cache.apply(change)).sum();
            let build = !hold && (needed || changed > 0);
            BuildResult {
                snapshot: build.then(|| cache.snapshot(version)),
                refused: cache.problems(),
                changed,
                objects: cache.objects(),
                wanted: asks.then(|| cache.wanted().clone()),
            }
        })
        .await
    }

    async fn publish(&mut self, snapshot: Snapshot, objects: usize, began: Instant) {
        self.generation = snapshot.version().generation;
        let (paths, answers) = (snapshot.paths(), snapshot.distinct_answers());
        let old = self.reconciler.shared.snapshots.publish(Arc::new(snapshot));
        // Freeing a large snapshot takes its time: not here, and never a reader's.
        drop(tokio::task::spawn_blocking(move || drop(old)));
        self.reconciler.metrics.observe_publish(began.elapsed());
        record_now(&self.reconciler.shared.progress.published);
        let millis = began.elapsed().as_millis();
        let changed = std::mem::take(&mut self.pending);
        let generation = self.generation;
        tracing::info!(
            generation,
            changed,
            objects,
            paths,
            answers,
            millis,
            "published"
        );
        if generation == 1 {
            self.reconciler.health.ready().await;
            let millis = self.reconciler.started.elapsed().as_millis();
            tracing::info!(objects, paths, answers, millis, "ready");
        }
    }

    /// Tells the problems of a scan to those who ask for the status, and new ones to the log.
    fn report_problems(&mut self, input: &SourceUpdate) {
        let now = Arc::new(input.problems.clone());
        self.reconciler.source_problems.send_if_modified(|before| {
            let differs = **before != *now;
            *before = Arc::clone(&now);
            differs
        });
        let problems = input.problems.problems.iter();
        let lines = problems.map(|(place, message)| format!("{place}: {message}"));
        self.problem_log.log_new(lines.collect(), "source");
    }

    /// The source has ended, which it never should.
    fn source_ended(&self) {
        let is_stopping = &self.reconciler.shared.progress.is_stopping;
        if is_stopping.load(Ordering::Relaxed) {
            return;
        }
        tracing::error!("the source is no longer followed: the last snapshot stays in use");
        self.reconciler
            .source_problems
            .send_modify(|source_problems| {
                let mut now = SourceProblems::clone(source_problems);
                let message = "no longer followed: restart the server, and see its log".to_owned();
                now.problems.push(("source".to_owned(), message));
                *source_problems = Arc::new(now);
            });
    }
}
