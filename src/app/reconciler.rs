//! Applies updates of the source to the object cache and publishes snapshots. One task does both, so
//! snapshots are published in order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::checkpoints::CheckpointData;
use super::cluster::cluster_problems;
use super::cluster::desired_after;
use super::load::source_problems;
use super::metrics::LONG_BUILD;
use super::object_cache::epoch;
use super::problem_log::ProblemLog;
use super::shared_state::{SharedState, record_now, whole_millis};
use super::sync_time::SyncTime;
use crate::background;
use crate::insight::{SourceProblem, SourceProblems};
use crate::server::Health;
use crate::snapshot::{Snapshot, Version};
use crate::source::cluster::{self, DesiredKinds};
use crate::source::manifests::Scan;
use crate::telemetry::Metrics;
use entail_core::model::{Change, Str};

/// How often a checkpoint is written if only the sync time changes.
const CHECKPOINT_REFRESH_INTERVAL: Duration = Duration::from_secs(600);
/// How often `synced_at` is compared with the clock.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// One update of a source.
pub(super) struct SourceUpdate {
    /// Sequence number of the update; 0 if the source does not count them.
    number: u64,
    change: Change,
    /// All current problems of the source, with their locations.
    problems: SourceProblems,
    /// Whether some input is missing. Before the first snapshot the server is then not ready,
    /// unless partial answers are allowed.
    is_partial: bool,
    /// Whether the first read of some kinds is in progress. The first snapshot waits for it, even
    /// if partial answers are allowed.
    is_loading: bool,
    /// When the source was last in sync, if it reports that.
    synced_at: Option<Instant>,
}

impl From<Scan> for SourceUpdate {
    fn from(scan: Scan) -> Self {
        Self {
            number: 0,
            is_partial: scan.is_partial(),
            is_loading: false,
            problems: source_problems(&scan.problems),
            // A scan that could read all is in sync with the files.
            synced_at: scan.is_in_sync().then(Instant::now),
            change: scan.change,
        }
    }
}

impl From<cluster::ClusterUpdate> for SourceUpdate {
    fn from(update: cluster::ClusterUpdate) -> Self {
        Self {
            number: update.number,
            is_partial: !update.is_complete,
            is_loading: update.is_loading,
            problems: cluster_problems(update.problems),
            change: update.change,
            synced_at: update.synced_at.map(Into::into),
        }
    }
}

/// Publishes a snapshot after every change of the source.
///
/// The `synced_at` of a snapshot is the time at which its source was last in sync: for files, the
/// last scan that found a change and could read all; for a cluster, the oldest of the times at which
/// each kind last received an event. If only `synced_at` changes, the snapshot keeps its generation.
pub(super) struct Reconciler {
    pub shared: SharedState,
    pub source_problems: watch::Sender<Arc<SourceProblems>>,
    pub health: Health,
    /// Whether to publish the first snapshot even if some input cannot be read.
    pub allow_partial: bool,
    /// When the process started, for the log.
    pub started: Instant,
    /// Channel of the kinds that the cluster source should watch.
    pub desired_kinds: Option<watch::Sender<DesiredKinds>>,
    /// When the source of the restored checkpoint was last in sync.
    pub restored_at: Option<SystemTime>,
    /// Channel of the checkpoint writer.
    pub checkpoint_channel: Option<watch::Sender<Option<CheckpointData>>>,
    pub metrics: Arc<Metrics>,
}

/// State of the reconciler between updates.
struct ReconcilerState {
    reconciler: Reconciler,
    epoch: Str,
    generation: u64,
    /// When the source was last in sync.
    synced_at: SyncTime,
    /// Number of changed objects that no snapshot contains yet.
    pending: usize,
    /// Whether the last snapshot could not be built.
    has_failed: bool,
    problem_log: ProblemLog,
    /// Generation and sync time of the data that was last sent to the checkpoint writer.
    last_checkpoint: Option<(u64, SystemTime)>,
}

/// How to build a snapshot.
struct Build {
    version: Version,
    /// Whether to apply the changes alone.
    hold: bool,
    /// Whether some input could not be read and nothing stands for it; `None` if that is as before.
    lacks_input: Option<bool>,
}

impl Build {
    fn of(version: Version) -> Self {
        Self {
            version,
            hold: false,
            lacks_input: None,
        }
    }
}

/// Result of applying changes to the object cache.
struct BuildResult {
    /// The new snapshot, if one was needed.
    snapshot: Option<Snapshot>,
    /// Problems of the profiles.
    profile_problems: BTreeSet<String>,
    /// Number of objects that changed.
    changed: usize,
    /// Number of objects.
    objects: usize,
    /// The kinds to read, for a cluster source.
    desired_kinds: Option<DesiredKinds>,
}

impl Reconciler {
    /// Processes updates until the source closes the channel.
    pub async fn run<S: Into<SourceUpdate>>(self, mut updates: mpsc::Receiver<S>) {
        let mut running = ReconcilerState {
            synced_at: SyncTime::restored(self.restored_at),
            reconciler: self,
            epoch: epoch(),
            generation: 0,
            pending: 0,
            has_failed: false,
            problem_log: ProblemLog::default(),
            last_checkpoint: None,
        };
        if running.reconciler.restored_at.is_some() {
            running.publish_restored().await;
        }
        let mut clock_check = tokio::time::interval(CLOCK_CHECK_INTERVAL);
        loop {
            let first = tokio::select! {
                first = updates.recv() => match first {
                    Some(first) => first,
                    None => break,
                },
                _ = clock_check.tick() => {
                    running.follow_clock();
                    continue;
                }
            };
            // Updates that arrived while the last snapshot was built are applied together.
            let mut changes = Vec::new();
            let mut last: SourceUpdate = first.into();
            while let Ok(next) = updates.try_recv() {
                changes.push(std::mem::take(&mut last.change));
                last = next.into();
            }
            changes.push(std::mem::take(&mut last.change));
            running.reconcile(changes, &last).await;
        }
        running.source_ended().await;
    }
}

impl ReconcilerState {
    /// Publishes a snapshot of the restored checkpoint.
    async fn publish_restored(&mut self) {
        let started = Instant::now();
        let version = self.next_version();
        match self.build(Vec::new(), Build::of(version)).await {
            Ok(BuildResult {
                snapshot: Some(snapshot),
                objects,
                ..
            }) => self.publish(snapshot, objects, started).await,
            Ok(_) => {}
            Err(error) => {
                tracing::error!(%error, "failed to build a snapshot from the checkpoint");
            }
        }
    }

    fn next_version(&self) -> Version {
        Version {
            epoch: self.epoch.clone(),
            generation: self.generation + 1,
            synced_at: self.synced_at.shown().map(Into::into).unwrap_or_default(),
        }
    }

    /// Applies the changes of one or more updates, the last of which is `update`, and publishes a
    /// snapshot if something that it says may have changed.
    async fn reconcile(&mut self, changes: Vec<Change>, update: &SourceUpdate) {
        let started = Instant::now();
        self.report_problems(update);
        let is_later = self.synced_at.advance(update.synced_at);
        let is_first = self.generation == 0;
        let must_be_complete = update.is_loading || !self.reconciler.allow_partial;
        let hold = is_first && update.is_partial && must_be_complete;
        let build = Build {
            version: self.next_version(),
            hold,
            lacks_input: Some(update.is_partial),
        };
        let result = match self.build(changes, build).await {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(%error, "failed to build a snapshot; the last one stays in use");
                // Some changes may have been applied: the next update builds a snapshot even if
                // it changes nothing.
                self.has_failed = true;
                return;
            }
        };
        self.pending += result.changed;
        let changes = &self.reconciler.shared.progress.changes;
        changes.fetch_add(result.changed as u64, Ordering::Relaxed);
        if let (Some(channel), Some(desired)) =
            (&self.reconciler.desired_kinds, result.desired_kinds)
        {
            let _ = channel.send_replace(DesiredKinds {
                after: update.number,
                ..desired
            });
        }
        if let Some(snapshot) = result.snapshot {
            self.problem_log.log_new(result.profile_problems, "profile");
            self.publish(snapshot, result.objects, started).await;
        } else if hold && !update.is_loading && !update.problems.problems.is_empty() {
            tracing::error!(
                problems = update.problems.problems.len(),
                "not ready: some input cannot be read; fix it or set `--allow-partial`"
            );
        } else if is_later && !is_first {
            self.publish_sync_time();
        }
        self.save_checkpoint(update);
    }

    /// Publishes the current answers again with the new `synced_at`.
    fn publish_sync_time(&self) {
        let at = self.synced_at.shown().map(Into::into).unwrap_or_default();
        if let Some(snapshot) = self
            .reconciler
            .shared
            .subscriptions
            .snapshots()
            .with(|current| current.with_synced_at(at))
        {
            self.reconciler
                .shared
                .subscriptions
                .publish(Arc::new(snapshot));
        }
    }

    /// Publishes `synced_at` again if the clock was set back.
    fn follow_clock(&mut self) {
        if self.synced_at.follow_clock() && self.generation > 0 {
            self.publish_sync_time();
        }
    }

    /// Sends the current objects to the checkpoint writer, if they are complete and differ from the
    /// last checkpoint.
    fn save_checkpoint(&mut self, update: &SourceUpdate) {
        let (Some(channel), Some(synced_at)) =
            (&self.reconciler.checkpoint_channel, self.synced_at.shown())
        else {
            return;
        };
        let is_new = self.last_checkpoint.is_none_or(|(generation, at)| {
            let later = synced_at.duration_since(at).unwrap_or_default();
            generation != self.generation || later >= CHECKPOINT_REFRESH_INTERVAL
        });
        if update.is_partial || self.generation == 0 || !is_new {
            return;
        }
        self.last_checkpoint = Some((self.generation, synced_at));
        let cache = self.reconciler.shared.cache();
        let states = cache.states();
        channel.send_replace(Some(CheckpointData {
            store: cache.store().clone(),
            states: states.map(|(kind, state)| (kind.clone(), state)).collect(),
            synced_at,
        }));
    }

    /// Applies changes. Then builds a snapshot, unless `hold` is set, or the last one exists and has the same content.
    async fn build(
        &self,
        changes: Vec<Change>,
        Build {
            version,
            hold,
            lacks_input,
        }: Build,
    ) -> Result<BuildResult, tokio::task::JoinError> {
        let shared = self.reconciler.shared.clone();
        let is_cluster = self.reconciler.desired_kinds.is_some();
        let is_needed = version.generation == 1 || self.has_failed;
        let started = Instant::now();
        let metrics = Arc::clone(&self.reconciler.metrics);
        let task = background::spawn_blocking(move || {
            let _building = shared.progress.begin_build();
            let mut cache = shared.cache();
            let begun = Instant::now();
            let changed = changes.into_iter().map(|change| cache.apply(change)).sum();
            // A cluster has a state for each kind.
            if let Some(lacks_input) = lacks_input.filter(|_| !is_cluster) {
                cache.set_lacks_input(lacks_input);
            }
            let must_build = !hold && (is_needed || cache.has_effect());
            let snapshot = must_build.then(|| cache.snapshot(version));
            if snapshot.is_some() {
                metrics.observe_build(begun.elapsed());
            }
            BuildResult {
                snapshot,
                profile_problems: cache.problems(),
                changed,
                objects: cache.objects(),
                desired_kinds: is_cluster.then(|| desired_after(&cache, 0)),
            }
        });
        tokio::pin!(task);
        loop {
            // A writer that does not come back is told each time, until it does.
            match timeout(LONG_BUILD, &mut task).await {
                Ok(built) => return built,
                Err(_) => tracing::warn!(
                    seconds = started.elapsed().as_secs(),
                    "a snapshot is being computed for long; the last one stays in use"
                ),
            }
        }
    }

    async fn publish(&mut self, snapshot: Snapshot, objects: usize, started: Instant) {
        self.generation = snapshot.version().generation;
        let (paths, answers) = (snapshot.paths(), snapshot.distinct_answers());
        let old = self
            .reconciler
            .shared
            .subscriptions
            .publish(Arc::new(snapshot));
        // Freeing a large snapshot is slow, so it is neither done here nor by the last reader.
        drop(background::spawn_blocking(move || drop(old)));
        self.reconciler.metrics.observe_publish(started.elapsed());
        record_now(&self.reconciler.shared.progress.published);
        let millis = whole_millis(started.elapsed());
        let changed = std::mem::take(&mut self.pending);
        self.has_failed = false;
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
            let millis = whole_millis(self.reconciler.started.elapsed());
            tracing::info!(objects, paths, answers, millis, "ready");
        }
    }

    /// Makes the problems of the source available to GetServerStatus and logs the new ones.
    fn report_problems(&mut self, update: &SourceUpdate) {
        let current = Arc::new(update.problems.clone());
        self.reconciler
            .source_problems
            .send_if_modified(|previous| {
                let differs = **previous != *current;
                *previous = Arc::clone(&current);
                differs
            });
        let problems = update.problems.problems.iter();
        let lines = problems.map(ToString::to_string);
        self.problem_log.log_new(lines.collect(), "source");
    }

    /// Reports that the source stopped, unless the server is shutting down: nothing that is known is current any more.
    async fn source_ended(&mut self) {
        let is_stopping = &self.reconciler.shared.progress.is_stopping;
        if is_stopping.load(Ordering::Relaxed) {
            return;
        }
        tracing::error!("the source stopped; the last snapshot stays in use");
        self.reconciler
            .source_problems
            .send_modify(|source_problems| {
                let mut current = SourceProblems::clone(source_problems);
                current.problems.push(SourceProblem {
                    location: "source".to_owned(),
                    message: "source stopped: restart the server and see its log".to_owned(),
                    code: None,
                });
                *source_problems = Arc::new(current);
            });
        let change = self.reconciler.shared.cache().as_stale();
        let started = Instant::now();
        match self
            .build(vec![change], Build::of(self.next_version()))
            .await
        {
            Ok(BuildResult {
                snapshot: Some(snapshot),
                objects,
                ..
            }) if self.generation > 0 => self.publish(snapshot, objects, started).await,
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "failed to build a snapshot of stale kinds"),
        }
    }
}
