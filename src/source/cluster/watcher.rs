//! Watches all desired kinds: runs discovery, starts and stops the watches, and sends their events in
//! batches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use kube::core::ApiResource;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use super::change_collector::ChangeCollector;
use super::kind_watch::{self, WatchEvent, WatchEventSender};
use super::{Cluster, ClusterUpdate, DesiredKinds, KnownObjects, discovery};
use entail_core::model::GroupKind;

/// Maximum number of events that wait to be collected.
const EVENT_QUEUE_CAPACITY: usize = 1_024;
/// Timeout of discovery, during which no events are collected.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often an update is sent if only `synced_at` changes.
const SYNC_REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// How long events are collected for one update.
const BATCH_WINDOW: Duration = Duration::from_millis(10);
/// Delays between the first discoveries after a CRD has changed: the server takes a while to serve
/// the kind.
const DISCOVERY_BACKOFF: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];
/// Delay between discoveries after those of [`DISCOVERY_BACKOFF`].
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(60);

/// The state of all watches of a cluster.
struct ClusterWatcher {
    cluster: Cluster,
    desired: watch::Receiver<DesiredKinds>,
    /// The desired kinds at the last discovery, and those of which only the target references are kept.
    discovered_for: (BTreeSet<GroupKind>, BTreeSet<GroupKind>),
    events: mpsc::Sender<WatchEvent>,
    tasks: JoinSet<()>,
    watches: BTreeMap<GroupKind, KindWatch>,
    /// Desired kinds that are not served.
    unserved: BTreeSet<GroupKind>,
    /// Desired kinds with an established CRD that discovery does not return yet.
    awaiting_discovery: BTreeSet<GroupKind>,
    /// Kinds that had a CRD at some discovery.
    kinds_with_crd: BTreeSet<GroupKind>,
    collector: ChangeCollector,
    /// Why the last discovery failed.
    discovery_error: Option<String>,
    /// Number of the last update.
    number: u64,
    /// Number of the last update that can change the desired kinds.
    last_deciding_update: u64,
    /// Number of discoveries since a CRD changed.
    discoveries: usize,
    /// When the next discovery is due.
    discover_at: Instant,
    /// Whether a CRD has changed since the last discovery.
    needs_discovery: bool,
    /// Whether discovery has run, with or without success.
    has_discovered: bool,
    /// UID of the cluster of the restored checkpoint, until it has been compared.
    unverified: Option<String>,
    /// Number of started watch tasks.
    started_watches: u64,
    /// Problems and completeness of the last update.
    last_sent: Option<(Vec<(String, String)>, bool)>,
    synced_at: Option<SystemTime>,
}

/// The watch of a kind.
struct KindWatch {
    resource: ApiResource,
    /// Whether only the target references of objects are kept.
    targets_only: bool,
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
    let mut collector = ChangeCollector::default();
    collector.seed(known.objects);
    let mut watcher = ClusterWatcher {
        cluster,
        desired,
        discovered_for: Default::default(),
        events: sender,
        tasks: JoinSet::new(),
        watches: BTreeMap::new(),
        unserved: BTreeSet::new(),
        awaiting_discovery: BTreeSet::new(),
        kinds_with_crd: BTreeSet::new(),
        collector,
        discovery_error: Some("API discovery has not run yet".to_owned()),
        number: 0,
        last_deciding_update: 0,
        discoveries: 0,
        discover_at: Instant::now(),
        needs_discovery: false,
        has_discovered: false,
        unverified: known.unverified,
        started_watches: 0,
        last_sent: None,
        synced_at: None,
    };
    // When the collected changes are sent, if there are any.
    let mut flush_at: Option<Instant> = None;
    let mut sync_report = tokio::time::interval(SYNC_REPORT_INTERVAL);
    loop {
        let flush = flush_at.unwrap_or_else(|| Instant::now() + DISCOVERY_INTERVAL);
        tokio::select! {
            () = updates.closed() => return,
            changed = watcher.desired.changed() => {
                if changed.is_err() {
                    return;
                }
                watcher.update_desired().await;
            }
            () = sleep_until(watcher.discover_at) => watcher.discover().await,
            Some(event) = events.recv() => watcher.handle(event),
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
    /// Applies changed desired kinds: runs discovery at once.
    async fn update_desired(&mut self) {
        let differs = {
            let desired = self.desired.borrow_and_update();
            let (kinds, targets_only) = &self.discovered_for;
            desired.kinds != *kinds || desired.targets_only != *targets_only
        };
        if differs {
            self.discoveries = 0;
            self.discover().await;
        }
    }

    /// Runs discovery and watches the desired kinds that are served.
    async fn discover(&mut self) {
        let (desired, targets_only) = {
            let desired = self.desired.borrow_and_update();
            (desired.kinds.clone(), desired.targets_only.clone())
        };
        self.needs_discovery = false;
        let with_crd = desired
            .iter()
            .filter(|kind| self.collector.crd(kind).is_some());
        self.kinds_with_crd.extend(with_crd.cloned());
        let delay = DISCOVERY_BACKOFF
            .get(self.discoveries)
            .copied()
            .unwrap_or(DISCOVERY_INTERVAL);
        self.discoveries += 1;
        self.verify_checkpoint().await;
        let discovery = discovery::served_resources(&self.cluster, &desired);
        let served = match timeout(DISCOVERY_TIMEOUT, discovery).await {
            Ok(served) => served.map_err(|error| kind_watch::error_chain(&error)),
            Err(_) => Err("API discovery timed out".to_owned()),
        };
        match served {
            Ok(served) => {
                self.discovery_error = None;
                self.cluster.resources.update(&served);
                self.update_watches(&desired, &targets_only, served);
            }
            Err(error) => {
                // Without discovery no watch can be started, so the delay stays short.
                self.discoveries = self.discoveries.min(DISCOVERY_BACKOFF.len() - 2);
                self.discovery_error = Some(error);
            }
        }
        self.has_discovered = true;
        self.discovered_for = (desired, targets_only);
        self.discover_at = Instant::now() + delay;
    }

    /// Discards the objects of the restored checkpoint if they are of another cluster. If the API server did not respond
    /// at the start, this is known only now. Tried again at each discovery: without the API server nothing can be listed.
    async fn verify_checkpoint(&mut self) {
        let Some(expected) = &self.unverified else {
            return;
        };
        let Ok(uid) = self.cluster.uid().await else {
            return;
        };
        if uid != expected {
            tracing::warn!(
                "discarding the objects of the checkpoint: it is of the cluster `{expected}`, and this is `{uid}`"
            );
            self.collector.discard_restored();
        }
        self.unverified = None;
    }

    /// Stops the watches of kinds that are no longer desired or served, and starts the missing ones.
    fn update_watches(
        &mut self,
        desired: &BTreeSet<GroupKind>,
        targets_only: &BTreeSet<GroupKind>,
        served: BTreeMap<GroupKind, ApiResource>,
    ) {
        self.stop_watches(desired, &served);
        for kind in desired {
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
                    let targets_only = targets_only.contains(kind);
                    let is_current = |current: &KindWatch| {
                        current.resource == *resource && current.targets_only == targets_only
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
                            match current.targets_only == targets_only {
                                true => self.collector.mark_stale(kind),
                                false => self.collector.mark_outdated(kind),
                            }
                        }
                        None => self.collector.start(kind),
                    }
                    self.start_watch(kind, resource, targets_only);
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
    fn start_watch(&mut self, kind: &GroupKind, resource: &ApiResource, targets_only: bool) {
        self.started_watches += 1;
        let number = self.started_watches;
        let sender = WatchEventSender {
            kind: kind.clone(),
            targets_only,
            number,
            tx: self.events.clone(),
        };
        let task = kind_watch::watch_kind(self.cluster.clone(), resource.clone(), sender);
        let watch = KindWatch {
            resource: resource.clone(),
            targets_only,
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
            self.discoveries = 0;
            self.needs_discovery = true;
            let soon = Instant::now() + DISCOVERY_BACKOFF[0];
            self.discover_at = self.discover_at.min(soon);
        }
        self.collector.apply(&kind, update);
    }

    /// See [`ClusterUpdate::is_complete`].
    fn is_complete(&self) -> bool {
        self.discovery_error.is_none()
            && !self.needs_discovery
            && self.collector.is_complete()
            && !self.awaits_desired_kinds()
    }

    /// See [`ClusterUpdate::is_loading`].
    fn is_loading(&self) -> bool {
        !self.has_discovered
            || self.needs_discovery
            || self.awaits_desired_kinds()
            || self.collector.is_loading()
    }

    /// Reports whether the desired kinds do not yet reflect all updates that can change them.
    fn awaits_desired_kinds(&self) -> bool {
        self.desired.borrow().after < self.last_deciding_update
    }

    fn problems(&self) -> Vec<(String, String)> {
        let mut problems = self.collector.problems();
        let url = &self.cluster.url;
        let discovery = self.discovery_error.iter();
        problems.extend(discovery.map(|error| (url.clone(), error.clone())));
        problems
    }

    fn has_changes(&self) -> bool {
        let current = (self.problems(), self.is_complete());
        !self.collector.is_empty() || self.last_sent.as_ref() != Some(&current)
    }

    /// Returns when all readable kinds were last in sync; `None` if they are not in sync now.
    fn last_sync(&self) -> Option<SystemTime> {
        if !self.is_complete() || self.collector.has_stale_kinds() {
            return None;
        }
        let readable = self.watches.iter();
        let readable = readable.filter(|(kind, _)| self.collector.is_complete_kind(kind));
        let calls = &self.cluster.calls;
        let contacts =
            readable.map(|(_, watch)| calls.last_contact(&kind_watch::url_path(&watch.resource)));
        // `None` is the minimum: a kind without any contact is not in sync.
        contacts.min().flatten()
    }

    /// Reports whether all kinds were in sync later than the last update says.
    fn has_later_sync(&self) -> bool {
        let last_sync = self.last_sync();
        last_sync.is_some() && last_sync > self.synced_at
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
