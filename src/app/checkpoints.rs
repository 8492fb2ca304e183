//! Restores the last checkpoint at the start and writes new ones in the background.

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
use crate::background;
use crate::config::ServeSettings;
use crate::source::checkpoint::{Checkpoint, CheckpointError, CheckpointSource};
use crate::source::cluster::{Cluster, KnownObjects};
use entail_core::model::{Change, GroupKind, KindState, SourceState};
use entail_core::store::Store;

/// Maximum time to wait at shutdown for the last checkpoint.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum time between attempts to write a checkpoint after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The content of a checkpoint to be written.
#[derive(Clone, Debug)]
pub(super) struct CheckpointData {
    pub store: Store,
    pub states: BTreeMap<GroupKind, SourceState>,
    pub synced_at: SystemTime,
}

/// Writes the latest [`CheckpointData`] of a channel to a file; values that were replaced before
/// they could be written are skipped.
pub(super) struct CheckpointWriter {
    path: PathBuf,
    cluster: Cluster,
    /// Minimum time between checkpoints.
    interval: Duration,
    progress: Arc<ReconcilerProgress>,
}

/// A running [`CheckpointWriter`].
#[derive(Debug)]
pub(super) struct CheckpointTask {
    task: JoinHandle<()>,
    /// Cancelled at shutdown, so that the task does not wait any longer.
    shutdown: CancellationToken,
}

/// The part of a restored checkpoint that the source needs.
#[derive(Debug)]
pub(super) struct RestoredCheckpoint {
    pub known: KnownObjects,
    pub synced_at: SystemTime,
}

impl CheckpointWriter {
    pub fn new(
        path: PathBuf,
        cluster: Cluster,
        interval: Duration,
        progress: Arc<ReconcilerProgress>,
    ) -> Self {
        Self {
            path,
            cluster,
            interval,
            progress,
        }
    }

    /// The source, with the UID of the cluster if that is known.
    fn source(&self, uid: Option<&str>) -> CheckpointSource {
        CheckpointSource {
            cluster_uid: uid.map(str::to_owned),
            url: self.cluster.url.clone(),
            filter: self.cluster.filter.to_string(),
        }
    }

    /// Adds the objects of the checkpoint to the object cache; kinds that were complete become
    /// stale. Returns `None` if there is no checkpoint, or if it cannot be used, which is logged. While the API server
    /// does not respond, it is not known which cluster this is; the objects are then verified later.
    pub async fn restore(&self, cache: &mut ObjectCache) -> Option<RestoredCheckpoint> {
        let path = self.path.display();
        let ignore = |error| tracing::warn!("ignoring checkpoint {path}: {error}");
        let read = Checkpoint::read(&self.path).map_err(ignore).ok()??;
        // The API server is asked only if there is something to compare.
        let uid = self.cluster.uid().await;
        let expected = self.source(uid.as_deref().ok());
        read.source.check(&expected).map_err(ignore).ok()?;
        let mut known = KnownObjects::default();
        if let Err(error) = uid {
            tracing::warn!("the cluster of checkpoint {path} is not verified yet: {error}");
            known.unverified = read.source.cluster_uid;
        }
        let mut states = Vec::new();
        for (kind, state) in &read.states {
            let state = match state {
                SourceState::Complete | SourceState::Stale => SourceState::Stale,
                other => *other,
            };
            if state == SourceState::Stale {
                known.objects.insert(kind.clone(), Default::default());
            }
            states.push(KindState {
                kind: kind.clone(),
                state,
            });
        }
        for object in &read.objects {
            let kind = known.objects.entry(object.key.kind.clone()).or_default();
            kind.insert(object.key.clone());
        }
        // The clock may have been set back since the checkpoint was written.
        let synced_at = read.synced_at.min(SystemTime::now());
        let objects = read.objects.len();
        cache.apply(Change {
            upserts: read.objects,
            states,
            ..Change::default()
        });
        tracing::info!(
            objects,
            "restored checkpoint {path}; kinds are STALE until the source has been read"
        );
        Some(RestoredCheckpoint { known, synced_at })
    }

    /// Starts the task that writes the values of a channel until the channel is closed.
    pub fn start(self, mut latest: watch::Receiver<Option<CheckpointData>>) -> CheckpointTask {
        let this = Arc::new(self);
        let shutdown = CancellationToken::new();
        let stopping = shutdown.clone();
        let task = tokio::spawn(async move {
            // `changed` returns an unseen value even after the channel is closed, so the last
            // value is always written.
            while latest.changed().await.is_ok() {
                let data = latest.borrow_and_update().clone();
                let Some(data) = data else { continue };
                // Retries until there is newer data.
                while !this.write(data.clone()).await && !stopping.is_cancelled() {
                    let retry_interval = this.interval.max(RETRY_INTERVAL);
                    let _elapsed = timeout(retry_interval, stopping.cancelled()).await;
                    if latest.has_changed().unwrap_or(true) {
                        break;
                    }
                }
                let _elapsed = timeout(this.interval, stopping.cancelled()).await;
            }
        });
        CheckpointTask { task, shutdown }
    }

    /// Writes a checkpoint; returns whether it succeeded.
    async fn write(self: &Arc<Self>, data: CheckpointData) -> bool {
        let path = self.path.display();
        let result = self.try_write(data).await;
        match result {
            Ok(()) => record_now(&self.progress.checkpoint),
            Err(ref error) => {
                let failures = &self.progress.checkpoint_failures;
                failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!("failed to write checkpoint {path}: {error}");
            }
        }
        result.is_ok()
    }

    /// Writes a checkpoint. One that does not say of which cluster it is could be taken for that of another.
    async fn try_write(self: &Arc<Self>, data: CheckpointData) -> Result<(), CheckpointError> {
        let uid = self.cluster.uid().await;
        let uid = uid.map_err(CheckpointError::UnknownCluster)?;
        let source = self.source(Some(uid));
        let this = Arc::clone(self);
        let write = background::spawn_blocking(move || {
            let objects = data.store.objects().cloned().collect();
            let checkpoint = Checkpoint {
                source,
                synced_at: data.synced_at,
                states: data.states,
                objects,
            };
            checkpoint.write(&this.path)
        });
        write
            .await
            .unwrap_or_else(|error| Err(io::Error::from(error).into()))
    }
}

/// The restored checkpoint, and the task that writes new ones. Without `--checkpoint` it is empty.
#[derive(Default)]
pub(super) struct CheckpointManager {
    /// When the source of the restored checkpoint was last in sync.
    pub synced_at: Option<SystemTime>,
    /// The objects of the restored checkpoint.
    pub known: KnownObjects,
    /// The channel of the task.
    pub sender: Option<watch::Sender<Option<CheckpointData>>>,
    task: Option<CheckpointTask>,
}

impl CheckpointManager {
    /// Restores the last checkpoint and starts to write new ones, if `--checkpoint` is set.
    pub async fn start(
        settings: &ServeSettings,
        cluster: Option<&Cluster>,
        cache: &mut ObjectCache,
        progress: &Arc<ReconcilerProgress>,
    ) -> Self {
        let (Some(path), Some(cluster)) = (&settings.checkpoint, cluster) else {
            return Self::default();
        };
        let writer = CheckpointWriter::new(
            path.clone(),
            cluster.clone(),
            settings.checkpoint_pause,
            Arc::clone(progress),
        );
        let restored = writer.restore(cache).await;
        let (sender, receiver) = watch::channel(None);
        Self {
            synced_at: restored.as_ref().map(|restored| restored.synced_at),
            known: restored.map(|restored| restored.known).unwrap_or_default(),
            sender: Some(sender),
            task: Some(writer.start(receiver)),
        }
    }

    /// Waits until the last checkpoint is written, at most [`FINAL_WRITE_TIMEOUT`]. The sender of
    /// the channel must have been dropped.
    pub async fn shut_down(self) {
        let Some(running) = self.task else { return };
        running.shutdown.cancel();
        if timeout(FINAL_WRITE_TIMEOUT, running.task).await.is_err() {
            tracing::warn!("timed out while writing the last checkpoint");
        }
    }
}
