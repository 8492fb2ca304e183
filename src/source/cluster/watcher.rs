//! Watches all desired kinds: runs discovery, starts and stops the watches, and sends their events in
//! batches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture, OptionFuture};
use kube::core::ApiResource;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::backoff::random_up_to;
use super::change_collector::ChangeCollector;
use super::discovery::{DiscoverySchedule, Served};
use super::freshness::FreshnessClock;
use super::kind_watch::{self, KindUpdate, KnownState, WatchEvent, WatchEventSender};
use super::listed_state::ReadVersion;
use super::{Cluster, ClusterUpdate, DesiredKinds, KnownObjects, ObjectParts};
use entail_core::model::GroupKind;
use entail_core::store::Projection;

/// Maximum number of events that wait to be collected.
const EVENT_QUEUE_CAPACITY: usize = 1_024;
/// How often an update is sent if only `synced_at` changes.
const SYNC_REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// How often the age of what was heard of each kind is checked.
const FRESHNESS_INTERVAL: Duration = Duration::from_secs(1);
/// How long events are collected for one update.
const BATCH_WINDOW: Duration = Duration::from_millis(10);
/// A deadline that is not reached.
const NEVER: Duration = Duration::from_secs(3600);

/// What a discovery has found out.
struct Discovered {
    /// The UID of the cluster, if it was asked for and is known.
    uid: Option<String>,
    served: Served,
}

/// The state of all watches of a cluster.
pub(super) struct ClusterWatcher {
    pub(super) cluster: Cluster,
    desired: watch::Receiver<DesiredKinds>,
    discovery: DiscoverySchedule,
    events: mpsc::Sender<WatchEvent>,
    tasks: JoinSet<()>,
    pub(super) watches: BTreeMap<GroupKind, KindWatch>,
    /// Desired kinds that are not served.
    unserved: BTreeSet<GroupKind>,
    /// Desired kinds with an established CRD that discovery does not return yet.
    awaiting_discovery: BTreeSet<GroupKind>,
    /// Kinds that had a CRD at some discovery.
    kinds_with_crd: BTreeSet<GroupKind>,
    pub(super) collector: ChangeCollector,
    /// Number of the last update.
    number: u64,
    /// Number of the last update that can change the desired kinds.
    last_deciding_update: u64,
    /// UID of the cluster of the restored checkpoint, until it has been compared.
    unverified: Option<String>,
    /// Number of started watch tasks.
    started_watches: u64,
    /// Problems and completeness of the last update.
    last_sent: Option<(Vec<(String, String)>, bool)>,
    pub(super) synced_at: Option<Instant>,
}

/// The watch of a kind.
pub(super) struct KindWatch {
    resource: ApiResource,
    /// URL path of the resource.
    pub(super) path: String,
    /// The parts of objects that are kept.
    parts: ObjectParts,
    /// The last version that was read of the kind.
    version: ReadVersion,
    task: AbortHandle,
    /// Number of the task: events of an aborted task may still be in the queue.
    number: u64,
}

/// Watches the desired kinds and sends updates until the receiver is gone. `known` are the objects
/// of a restored checkpoint, which the receiver has already.
pub async fn watch(
    cluster: Cluster,
    desired: watch::Receiver<DesiredKinds>,
    known: KnownObjects,
    updates: mpsc::Sender<ClusterUpdate>,
) {
    let (sender, mut events) = mpsc::channel(EVENT_QUEUE_CAPACITY);
    let mut recoveries = cluster.health.recoveries();
    let mut watcher = ClusterWatcher::new(cluster, desired, known, sender);
    let mut discovering: Option<BoxFuture<'static, Discovered>> = None;
    // When the collected changes are sent, if there are any.
    let mut flush_at: Option<Instant> = None;
    let mut sync_report = interval(SYNC_REPORT_INTERVAL);
    let mut freshness = FreshnessClock::default();
    let mut freshness_check = interval(FRESHNESS_INTERVAL);
    freshness_check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let flush = flush_at.unwrap_or_else(|| Instant::now() + NEVER);
        let is_discovering = discovering.is_some();
        tokio::select! {
            () = updates.closed() => return,
            changed = watcher.desired.changed() => {
                if changed.is_err() {
                    return;
                }
                watcher.follow_desired();
            }
            () = sleep_until(watcher.discovery.due_at), if !is_discovering => {
                discovering = Some(watcher.begin_discovery());
            }
            Some(discovered) = OptionFuture::from(discovering.as_mut()), if is_discovering => {
                discovering = None;
                watcher.finish_discovery(discovered);
            }
            Ok(()) = recoveries.changed() => watcher.discovery.retry(),
            Some(event) = events.recv() => watcher.handle(event),
            _ = freshness_check.tick() => watcher.check_freshness(&mut freshness),
            _ = sync_report.tick() => {
                // While events wait, the sent objects are not in sync.
                let is_later = flush_at.is_none() && events.is_empty() && watcher.has_later_sync();
                if is_later && updates.send(watcher.next_update()).await.is_err() {
                    return;
                }
            }
            () = sleep_until(flush), if flush_at.is_some() => {
                flush_at = None;
                if watcher.has_changes() && updates.send(watcher.next_update()).await.is_err() {
                    return;
                }
                continue;
            }
        }
        if flush_at.is_none() && watcher.has_changes() {
            flush_at = Some(Instant::now() + BATCH_WINDOW);
        }
    }
}

impl ClusterWatcher {
    fn new(
        cluster: Cluster,
        desired: watch::Receiver<DesiredKinds>,
        known: KnownObjects,
        events: mpsc::Sender<WatchEvent>,
    ) -> Self {
        let mut collector = ChangeCollector::default();
        collector.seed(known.objects);
        let start_delay = random_up_to(cluster.timeouts.start_jitter);
        let mut tasks = JoinSet::new();
        tasks.spawn(cluster.health.clone().run());
        Self {
            cluster,
            desired,
            discovery: DiscoverySchedule::new(start_delay),
            events,
            tasks,
            watches: BTreeMap::new(),
            unserved: BTreeSet::new(),
            awaiting_discovery: BTreeSet::new(),
            kinds_with_crd: BTreeSet::new(),
            collector,
            number: 0,
            last_deciding_update: 0,
            unverified: known.unverified,
            started_watches: 0,
            last_sent: None,
            synced_at: None,
        }
    }

    /// Applies changed desired kinds: runs discovery at once.
    fn follow_desired(&mut self) {
        self.discovery.follow(&self.desired.borrow_and_update());
    }

    /// Begins the discovery of the desired kinds, and of the UID of the cluster if a checkpoint is to be compared with it:
    /// if the API server did not respond at the start, it is asked again with each discovery.
    fn begin_discovery(&mut self) -> BoxFuture<'static, Discovered> {
        let desired = self.desired.borrow_and_update().clone();
        let with_crd = desired.kinds.iter();
        let with_crd = with_crd.filter(|kind| self.collector.crd(kind).is_some());
        self.kinds_with_crd.extend(with_crd.cloned());
        let served = self.discovery.begin(&self.cluster, desired);
        let has_checkpoint = self.unverified.is_some();
        let cluster = self.cluster.clone();
        let uid = async move {
            match has_checkpoint {
                true => cluster.uid().await.map(str::to_owned).ok(),
                false => None,
            }
        };
        future::join(uid, served)
            .map(|(uid, served)| Discovered { uid, served })
            .boxed()
    }

    /// Watches the desired kinds that are served.
    fn finish_discovery(&mut self, Discovered { uid, served }: Discovered) {
        if let Some(uid) = uid {
            self.verify_checkpoint(&uid);
        }
        match served {
            Ok(served) => {
                self.discovery.finish(None);
                self.cluster.resources.update(&served);
                let desired = self.discovery.asked_for.clone();
                self.update_watches(&desired, served);
            }
            Err(error) => {
                self.cluster.health.suspect();
                self.discovery.finish(Some(error));
            }
        }
    }

    /// Discards the objects of the restored checkpoint if they are of another cluster than the one with this UID.
    fn verify_checkpoint(&mut self, uid: &str) {
        let Some(expected) = self.unverified.take() else {
            return;
        };
        if uid != expected {
            tracing::warn!(
                "discarding the objects of the checkpoint: it is of the cluster `{expected}`, and this is `{uid}`"
            );
            self.collector.discard_restored();
        }
    }

    /// Stops the watches of kinds that are no longer desired or served, and starts the missing ones.
    fn update_watches(&mut self, desired: &DesiredKinds, served: BTreeMap<GroupKind, ApiResource>) {
        self.stop_watches(&desired.kinds, &served);
        for kind in &desired.kinds {
            match served.get(kind) {
                None if self.watches.contains_key(kind) => {}
                // Restored objects stay in use until the kind is known to be deleted.
                None if self.collector.is_restored(kind) && !self.is_deleted(kind) => {}
                // The CRD is established: discovery returns the kind soon.
                None if self.collector.crd(kind) == Some(true) => {
                    self.unserved.remove(kind);
                    if self.awaiting_discovery.insert(kind.clone()) {
                        self.collector.start(kind);
                    }
                }
                None if self.unserved.insert(kind.clone()) => {
                    self.awaiting_discovery.remove(kind);
                    self.collector.mark_not_served(kind);
                }
                Some(resource) => {
                    let current = self.watches.get(kind);
                    let parts = desired.parts_of(kind);
                    let is_current = |current: &KindWatch| {
                        current.resource == *resource && current.parts == parts
                    };
                    if current.is_some_and(is_current) {
                        continue;
                    }
                    self.unserved.remove(kind);
                    self.awaiting_discovery.remove(kind);
                    match current {
                        // Served at another version, or other parts of objects are needed: the objects stay in
                        // use until the new list.
                        Some(current) => {
                            current.task.abort();
                            match current.parts == parts {
                                true => self.collector.mark_stale(kind),
                                false => self.collector.mark_outdated(kind),
                            }
                        }
                        None => self.collector.start(kind),
                    }
                    self.start_watch(kind, resource, parts);
                }
                None => {}
            }
        }
        // Removes the results of finished tasks.
        while self.tasks.try_join_next().is_some() {}
    }

    /// Stops the watches of kinds that are no longer desired, or that were deleted.
    fn stop_watches(
        &mut self,
        desired: &BTreeSet<GroupKind>,
        served: &BTreeMap<GroupKind, ApiResource>,
    ) {
        let obsolete: Vec<GroupKind> = self
            .watches
            .keys()
            .filter(|kind| {
                let is_deleted = !served.contains_key(*kind) && self.is_deleted(kind);
                !desired.contains(*kind) || is_deleted
            })
            .cloned()
            .collect();
        for kind in obsolete {
            if let Some(watch) = self.watches.remove(&kind) {
                watch.task.abort();
            }
            self.collector.remove(&kind);
        }
        // Kinds without a watch: unserved, awaiting discovery, or restored.
        let tracked = self.collector.kinds();
        let undesired = tracked
            .filter(|kind| !desired.contains(*kind) && !self.watches.contains_key(*kind))
            .cloned();
        let undesired: Vec<GroupKind> = undesired.collect();
        for kind in undesired {
            self.unserved.remove(&kind);
            self.awaiting_discovery.remove(&kind);
            self.collector.remove(&kind);
        }
    }

    /// Starts the watch of a kind.
    fn start_watch(&mut self, kind: &GroupKind, resource: &ApiResource, parts: ObjectParts) {
        self.started_watches += 1;
        let number = self.started_watches;
        let sender = WatchEventSender {
            kind: kind.clone(),
            parts,
            number,
            tx: self.events.clone(),
        };
        let known = KnownState {
            was_read: self.collector.was_read(kind),
            version: self
                .watches
                .get(kind)
                .map(|watch| watch.version.clone())
                .unwrap_or_default(),
        };
        let version = known.version.clone();
        let cluster = self.cluster.clone();
        let task = kind_watch::watch_kind(cluster, resource.clone(), sender, known);
        let watch = KindWatch {
            resource: resource.clone(),
            path: kind_watch::url_path(resource),
            parts,
            version,
            task: self.tasks.spawn(task),
            number,
        };
        self.watches.insert(kind.clone(), watch);
    }

    /// Reports whether a kind that was served was deleted with its CRD. Discovery alone does not
    /// prove it: an API server that has just started does not return all kinds at once.
    fn is_deleted(&self, kind: &GroupKind) -> bool {
        let had_crd = self.kinds_with_crd.contains(kind) || self.collector.is_restored(kind);
        had_crd && self.collector.knows_crds() && self.collector.crd(kind).is_none()
    }

    /// Collects an event of a watch; events of aborted tasks are ignored.
    fn handle(&mut self, event: WatchEvent) {
        let WatchEvent {
            kind,
            number,
            update,
        } = event;
        if self
            .watches
            .get(&kind)
            .is_none_or(|current| current.number != number)
        {
            return;
        }
        if kind.is_crd() {
            self.discovery.follow_crds();
        }
        collect(&mut self.collector, &kind, update);
    }

    /// See [`ClusterUpdate::is_complete`].
    pub(super) fn is_complete(&self) -> bool {
        self.discovery.error.is_none()
            && !self.discovery.is_pending()
            && self.collector.is_complete()
            && !self.awaits_desired_kinds()
    }

    /// See [`ClusterUpdate::is_loading`].
    fn is_loading(&self) -> bool {
        self.discovery.is_pending() || self.awaits_desired_kinds() || self.collector.is_loading()
    }

    /// Reports whether the desired kinds do not yet reflect all updates that can change them.
    fn awaits_desired_kinds(&self) -> bool {
        self.desired.borrow().after < self.last_deciding_update
    }

    fn problems(&self) -> Vec<(String, String)> {
        let mut problems = self.collector.problems();
        let url = &self.cluster.url;
        let discovery = self.discovery.error.iter();
        problems.extend(discovery.map(|error| (url.clone(), error.clone())));
        problems
    }

    fn has_changes(&self) -> bool {
        let current = (self.problems(), self.is_complete());
        !self.collector.is_empty() || self.last_sent.as_ref() != Some(&current)
    }

    /// Takes the collected changes as the next update.
    fn next_update(&mut self) -> ClusterUpdate {
        let (change, decides) = self.collector.take_change();
        self.number += 1;
        if decides {
            self.last_deciding_update = self.number;
        }
        let (problems, is_complete) = (self.problems(), self.is_complete());
        self.last_sent = Some((problems.clone(), is_complete));
        self.synced_at = self.last_sync().max(self.synced_at);
        ClusterUpdate {
            number: self.number,
            change,
            problems,
            is_complete,
            is_loading: self.is_loading(),
            synced_at: self.synced_at,
        }
    }
}

/// Collects an event of the watch of a kind. A policy kind that must not be read any more loses its objects with the
/// same change that makes it FORBIDDEN: whoever revokes the right does not want them to be served. The objects that
/// determine paths and profiles stay. Without them paths would not be found, grants would be missing, and policies would
/// be read by another profile, which a caller can take for "no policy".
fn collect(collector: &mut ChangeCollector, kind: &GroupKind, update: KindUpdate) {
    let is_lost = matches!(update, KindUpdate::Forbidden(_)) && collector.was_read(kind);
    if is_lost && !Projection::may_affect_topology(kind) {
        collector.apply(kind, KindUpdate::Listed(Vec::new()));
    }
    collector.apply(kind, update);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use entail_core::model::{Object, ObjectKey, SourceState};

    #[test]
    fn a_forbidden_kind_loses_its_objects_unless_all_answers_depend_on_them() {
        let kinds = [
            (GroupKind::new("example.com", "Widget"), 1),
            (GroupKind::crd(), 0),
            (GroupKind::new("entail.dev", "PolicyProfile"), 0),
            (GroupKind::new("gateway.networking.k8s.io", "HTTPRoute"), 0),
            (GroupKind::new("example.com", "RedisRoute"), 0),
        ];
        for (kind, deleted) in kinds {
            let key = ObjectKey::new(kind.clone(), "", "one");
            let object = Arc::new(Object::new(key, serde_json::json!({})));
            let mut collector = ChangeCollector::default();
            collector.start(&kind);
            collect(&mut collector, &kind, KindUpdate::Listed(vec![object]));
            collector.take_change();
            collect(
                &mut collector,
                &kind,
                KindUpdate::Forbidden("denied".to_owned()),
            );
            // Both are one change: there is no snapshot in which the kind is complete and has no objects.
            let (change, _) = collector.take_change();
            let states: Vec<SourceState> = change.states.iter().map(|new| new.state).collect();
            assert_eq!(states, [SourceState::Forbidden], "{kind}");
            assert_eq!(change.deletes.len(), deleted, "{kind}");
        }
    }
}
