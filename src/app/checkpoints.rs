//! Checkpoints: written behind the writer, read at the start.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::object_cache::ObjectCache;
use super::shared_state::{ReconcilerProgress, record_now};
use crate::config::ServeSettings;
use crate::source::checkpoint::Checkpoint;
use crate::source::cluster::{Cluster, KnownObjects};
use entail_core::model::{Change, GroupKind, KindState, SourceState};
use entail_core::store::Store;

/// How long the last checkpoint may hold up the end of the process.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait, at least, after a checkpoint that could not be written.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// What is to be written.
#[derive(Clone, Debug)]
pub(super) struct CheckpointData {
    pub store: Store,
    pub states: BTreeMap<GroupKind, SourceState>,
    pub synced_at: SystemTime,
}

/// Writes what it is given; of what has gathered meanwhile, the last.
#[derive(Debug)]
pub(super) struct CheckpointWriter {
    path: PathBuf,
    source: String,
    /// How long to wait after each.
    pause: Duration,
    progress: Arc<ReconcilerProgress>,
}

/// A checkpointer at work.
#[derive(Debug)]
pub(super) struct CheckpointTask {
    task: JoinHandle<()>,
    end: CancellationToken,
}

/// What a checkpoint says, ready for the intake and for the source.
#[derive(Debug)]
pub(super) struct RestoredCheckpoint {
    pub known: KnownObjects,
    pub synced_at: SystemTime,
}

impl CheckpointWriter {
    pub fn new(
        path: PathBuf,
        source: String,
        pause: Duration,
        progress: Arc<ReconcilerProgress>,
    ) -> Self {
        Self {
            path,
            source,
            pause,
            progress,
        }
    }

    /// Puts what was known last into the intake, as stale. A checkpoint that cannot be used is told
    /// in the log, and the start is cold.
    pub fn restore(&self, cache: &mut ObjectCache) -> Option<RestoredCheckpoint> {
        let path = self.path.display();
        let read = match Checkpoint::read(&self.path, &self.source) {
            Ok(read) => read?,
            Err(error) => {
                tracing::warn!("checkpoint {path} is refused, the start is cold: {error}");
                return None;
            }
        };
        let mut known: KnownObjects = BTreeMap::new();
        let mut states = Vec::new();
        for (kind, state) in &read.states {
            let state = match state {
                SourceState::Complete | SourceState::Stale => SourceState::Stale,
                other => *other,
            };
            if state == SourceState::Stale {
                known.insert(kind.clone(), Default::default());
            }
            states.push(KindState {
                kind: kind.clone(),
                state,
            });
        }
        for object in &read.objects {
            let kind = known.entry(object.key.kind.clone()).or_default();
            kind.insert(object.key.clone());
        }
        // Whatever clock it was written by: nothing is in step in the future.
        let synced_at = read.synced_at.min(SystemTime::now());
        let objects = read.objects.len();
        cache.apply(Change {
            upserts: read.objects,
            states,
            ..Change::default()
        });
        tracing::info!(
            objects,
            "starting from checkpoint {path}, stale until the source is read"
        );
        Some(RestoredCheckpoint { known, synced_at })
    }

    /// Writes from now on what the channel has last.
    pub fn start(self, mut inputs: watch::Receiver<Option<CheckpointData>>) -> CheckpointTask {
        let this = Arc::new(self);
        let end = CancellationToken::new();
        let ending = end.clone();
        let task = tokio::spawn(async move {
            // What was not seen when the channel closes is written all the same.
            while inputs.changed().await.is_ok() {
                let now = inputs.borrow_and_update().clone();
                let Some(now) = now else { continue };
                // Where the disk refuses it is tried again, unless there is something newer.
                while !this.write(now.clone()).await && !ending.is_cancelled() {
                    let _ended = timeout(this.pause.max(RETRY_INTERVAL), ending.cancelled()).await;
                    if inputs.has_changed().unwrap_or(true) {
                        break;
                    }
                }
                let _ended = timeout(this.pause, ending.cancelled()).await;
            }
        });
        CheckpointTask { task, end }
    }

    /// Whether it is on the disk.
    async fn write(self: &Arc<Self>, inputs: CheckpointData) -> bool {
        let this = Arc::clone(self);
        let written = tokio::task::spawn_blocking(move || {
            let objects = inputs.store.objects().cloned().collect();
            let checkpoint = Checkpoint {
                source: this.source.clone(),
                synced_at: inputs.synced_at,
                states: inputs.states,
                objects,
            };
            checkpoint.write(&this.path)
        });
        let path = self.path.display();
        let written = written
            .await
            .unwrap_or_else(|error| Err(io::Error::from(error).into()));
        match written {
            Ok(()) => record_now(&self.progress.checkpoint),
            Err(ref error) => {
                let failures = &self.progress.checkpoint_failures;
                failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!("checkpoint {path} cannot be written: {error}");
            }
        }
        written.is_ok()
    }
}

/// What keeps checkpoints, and what the last one said.
#[derive(Default)]
pub(super) struct CheckpointManager {
    pub synced_at: Option<SystemTime>,
    pub known: KnownObjects,
    pub inputs: Option<watch::Sender<Option<CheckpointData>>>,
    keeping: Option<CheckpointTask>,
}

impl CheckpointManager {
    /// Puts the last checkpoint into the intake and begins to keep others, if that is wanted.
    pub fn of(
        settings: &ServeSettings,
        cluster: Option<&Cluster>,
        cache: &mut ObjectCache,
        progress: &Arc<ReconcilerProgress>,
    ) -> Self {
        let (Some(path), Some(cluster)) = (&settings.checkpoint, cluster) else {
            return Self::default();
        };
        let checkpoints = CheckpointWriter::new(
            path.clone(),
            format!("{}{}", cluster.url, cluster.filter),
            settings.checkpoint_pause,
            Arc::clone(progress),
        );
        let warm = checkpoints.restore(cache);
        let (inputs, taken) = watch::channel(None);
        Self {
            synced_at: warm.as_ref().map(|warm| warm.synced_at),
            known: warm.map(|warm| warm.known).unwrap_or_default(),
            inputs: Some(inputs),
            keeping: Some(checkpoints.start(taken)),
        }
    }

    /// Waits for the last checkpoint. Whoever gives work has ended before.
    pub async fn end(self) {
        let Some(keeping) = self.keeping else { return };
        keeping.end.cancel();
        if timeout(FINAL_WRITE_TIMEOUT, keeping.task).await.is_err() {
            tracing::warn!("the last checkpoint took too long and may be missing");
        }
    }
}
