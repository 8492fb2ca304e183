//! Following all kinds that are wanted.

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

/// Words of watches that may wait.
const EVENT_QUEUE_CAPACITY: usize = 1_024;
/// How long the server may take to say what it serves: everything else waits for it.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to tell when all was in step last, where nothing else is told.
const SYNC_REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// How long words are gathered for one step.
const BATCH_WINDOW: Duration = Duration::from_millis(10);
/// After a CRD has changed it takes a while until the server serves its kind: when to look, one
/// pause after the other,
const DISCOVERY_BACKOFF: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];
/// and from then on.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(60);

/// What follows the kinds.
struct ClusterWatcher {
    cluster: Cluster,
    wanted: watch::Receiver<DesiredKinds>,
    /// The kinds that were looked for.
    asked: BTreeSet<GroupKind>,
    events: mpsc::Sender<WatchEvent>,
    tasks: JoinSet<()>,
    followed: BTreeMap<GroupKind, KindWatch>,
    absent: BTreeSet<GroupKind>,
    /// Kinds that the server is about to serve.
    awaited: BTreeSet<GroupKind>,
    /// Kinds that had a CRD.
    kinds_with_crd: BTreeSet<GroupKind>,
    collector: ChangeCollector,
    /// Why the server does not say what it serves.
    discovery_error: Option<String>,
    /// The last step, and the last one that decides what is wanted.
    number: u64,
    decided: u64,
    /// How many looks there were since a CRD changed, and when the next one is due.
    looks: usize,
    look_at: Instant,
    /// Whether a CRD has changed since.
    is_due: bool,
    /// Whether the server was asked what it serves, and has answered or failed to.
    has_looked: bool,
    /// How many tasks were begun.
    started_watches: u64,
    last_sent: Option<(Vec<(String, String)>, bool)>,
    synced_at: Option<SystemTime>,
}

/// A kind that is followed.
struct KindWatch {
    resource: ApiResource,
    task: AbortHandle,
    /// The number of the task: words of one that was ended may still come.
    number: u64,
}

/// Follows the kinds that are wanted and sends what is new, beginning with what is known already.
/// Ends when nobody receives any more.
pub async fn watch(
    cluster: Cluster,
    wanted: watch::Receiver<DesiredKinds>,
    known: KnownObjects,
    tx: mpsc::Sender<ClusterUpdate>,
) {
    let (sender, mut events) = mpsc::channel(EVENT_QUEUE_CAPACITY);
    let mut collector = ChangeCollector::default();
    collector.seed(known);
    let mut watcher = ClusterWatcher {
        cluster,
        wanted,
        asked: BTreeSet::new(),
        events: sender,
        tasks: JoinSet::new(),
        followed: BTreeMap::new(),
        absent: BTreeSet::new(),
        awaited: BTreeSet::new(),
        kinds_with_crd: BTreeSet::new(),
        collector,
        discovery_error: Some("the server has not been asked yet".to_owned()),
        number: 0,
        decided: 0,
        looks: 0,
        look_at: Instant::now(),
        is_due: false,
        has_looked: false,
        started_watches: 0,
        last_sent: None,
        synced_at: None,
    };
    let mut due: Option<Instant> = None;
    let mut beat = tokio::time::interval(SYNC_REPORT_INTERVAL);
    loop {
        let flush = due.unwrap_or_else(|| Instant::now() + DISCOVERY_INTERVAL);
        tokio::select! {
            () = tx.closed() => return,
            changed = watcher.wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                watcher.update_wanted().await;
            }
            () = sleep_until(watcher.look_at) => watcher.discover().await,
            Some(event) = events.recv() => watcher.handle(event),
            _ = beat.tick() => {
                // Words that wait are not in what was told.
                let is_later = due.is_none() && events.is_empty() && watcher.has_later_sync();
                if is_later && tx.send(watcher.next_update()).await.is_err() {
                    return;
                }
            }
            () = sleep_until(flush), if due.is_some() => {
                due = None;
                if watcher.has_changes() && tx.send(watcher.next_update()).await.is_err() {
                    return;
                }
                continue;
            }
        }
        if due.is_none() && watcher.has_changes() {
            due = Some(Instant::now() + BATCH_WINDOW);
        }
    }
}

impl ClusterWatcher {
    /// Takes what is wanted now; kinds that are new are looked for at once.
    async fn update_wanted(&mut self) {
        let differs = self.wanted.borrow_and_update().kinds != self.asked;
        if differs {
            self.looks = 0;
            self.discover().await;
        }
    }

    /// Asks what is served, and follows what is wanted of it.
    async fn discover(&mut self) {
        let wanted = self.wanted.borrow_and_update().kinds.clone();
        self.is_due = false;
        let by_crds = wanted
            .iter()
            .filter(|kind| self.collector.crd(kind).is_some());
        self.kinds_with_crd.extend(by_crds.cloned());
        let pause = DISCOVERY_BACKOFF
            .get(self.looks)
            .copied()
            .unwrap_or(DISCOVERY_INTERVAL);
        self.looks += 1;
        let served = timeout(DISCOVERY_TIMEOUT, discovery::served(&self.cluster, &wanted)).await;
        let served = match served {
            Ok(served) => served.map_err(|error| kind_watch::error_chain(&error)),
            Err(_) => Err("the server does not say in time what it serves".to_owned()),
        };
        match served {
            Ok(served) => {
                self.discovery_error = None;
                self.cluster.resources.update(&served);
                self.follow(&wanted, served);
            }
            Err(why) => {
                // Tried again soon: without an answer nothing new can be followed.
                self.looks = self.looks.min(DISCOVERY_BACKOFF.len() - 2);
                self.discovery_error = Some(why);
            }
        }
        self.has_looked = true;
        self.asked = wanted;
        self.look_at = Instant::now() + pause;
    }

    fn follow(&mut self, wanted: &BTreeSet<GroupKind>, served: BTreeMap<GroupKind, ApiResource>) {
        let over: Vec<GroupKind> = self
            .followed
            .iter()
            .filter(|(kind, _)| match served.get(*kind) {
                Some(_) => !wanted.contains(*kind),
                None => !wanted.contains(*kind) || self.is_gone(kind),
            })
            .map(|(kind, _)| kind.clone())
            .collect();
        for kind in over {
            if let Some(followed) = self.followed.remove(&kind) {
                followed.task.abort();
            }
            self.collector.end(&kind);
        }
        let told = self.collector.kinds();
        let unwanted =
            told.filter(|kind| !wanted.contains(*kind) && !self.followed.contains_key(*kind));
        let unwanted: Vec<GroupKind> = unwanted.cloned().collect();
        for kind in unwanted {
            self.absent.remove(&kind);
            self.awaited.remove(&kind);
            self.collector.end(&kind);
        }
        for kind in wanted {
            match served.get(kind) {
                None if self.followed.contains_key(kind) => {}
                // What was known before the start stays until it is known to be gone.
                None if self.collector.is_seed(kind) && !self.is_gone(kind) => {}
                // Its CRD says that it is served: it is on its way.
                None if self.collector.crd(kind) == Some(true) => {
                    self.absent.remove(kind);
                    if self.awaited.insert(kind.clone()) {
                        self.collector.begin(kind);
                    }
                }
                None if self.absent.insert(kind.clone()) => {
                    self.awaited.remove(kind);
                    self.collector.mark_not_served(kind);
                }
                Some(resource) => {
                    let known = self.followed.get(kind);
                    if known.is_some_and(|known| known.resource == *resource) {
                        continue;
                    }
                    self.absent.remove(kind);
                    self.awaited.remove(kind);
                    match known {
                        // Served at another version: what is known stays in use until its list.
                        Some(known) => {
                            known.task.abort();
                            self.collector.mark_stale(kind);
                        }
                        None => self.collector.begin(kind),
                    }
                    self.start_watch(kind, resource);
                }
                None => {}
            }
        }
        // Tasks that were ended are done with.
        while self.tasks.try_join_next().is_some() {}
    }

    /// Follows a kind from now on.
    fn start_watch(&mut self, kind: &GroupKind, resource: &ApiResource) {
        self.started_watches += 1;
        let number = self.started_watches;
        let sender = WatchEventSender {
            kind: kind.clone(),
            number,
            tx: self.events.clone(),
        };
        let following = kind_watch::follow(self.cluster.clone(), resource.clone(), sender);
        let followed = KindWatch {
            resource: resource.clone(),
            task: self.tasks.spawn(following),
            number,
        };
        self.followed.insert(kind.clone(), followed);
    }

    /// Whether a kind that was served is gone for good: with its CRD. A server that starts does not
    /// list all at once, and what is known stays in use until it does.
    fn is_gone(&self, kind: &GroupKind) -> bool {
        let of_crd = self.kinds_with_crd.contains(kind) || self.collector.is_seed(kind);
        of_crd && self.collector.knows_crds() && self.collector.crd(kind).is_none()
    }

    fn handle(&mut self, event: WatchEvent) {
        let WatchEvent {
            kind,
            number,
            update,
        } = event;
        if self
            .followed
            .get(&kind)
            .is_none_or(|now| now.number != number)
        {
            return;
        }
        if kind.is_crd() {
            self.looks = 0;
            self.is_due = true;
            self.look_at = self.look_at.min(Instant::now() + DISCOVERY_BACKOFF[0]);
        }
        self.collector.apply(&kind, update);
    }

    fn is_complete(&self) -> bool {
        self.discovery_error.is_none()
            && !self.is_due
            && self.collector.is_complete()
            && self.wanted.borrow().after >= self.decided
    }

    /// Whether something is still on its way: what cannot be read is not.
    fn is_loading(&self) -> bool {
        let is_behind = self.wanted.borrow().after < self.decided;
        !self.has_looked || self.is_due || is_behind || self.collector.is_loading()
    }

    fn problems(&self) -> Vec<(String, String)> {
        let mut problems = self.collector.problems();
        let url = &self.cluster.url;
        let discovery = self.discovery_error.iter();
        problems.extend(discovery.map(|why| (url.clone(), why.clone())));
        problems
    }

    fn has_changes(&self) -> bool {
        let now = (self.problems(), self.is_complete());
        !self.collector.is_empty() || self.last_sent.as_ref() != Some(&now)
    }

    /// When all kinds that can be read were in step last.
    fn last_sync(&self) -> Option<SystemTime> {
        if !self.is_complete() || self.collector.has_stale_kinds() {
            return None;
        }
        let read = self.followed.iter();
        let read = read.filter(|(kind, _)| self.collector.is_known(kind));
        let calls = &self.cluster.calls;
        let heard =
            read.map(|(_, followed)| calls.last_contact(&kind_watch::url_path(&followed.resource)));
        // A kind that nothing was heard of is not in step.
        heard.min().flatten()
    }

    /// Whether all was in step later than was told.
    fn has_later_sync(&self) -> bool {
        let now = self.last_sync();
        now.is_some() && now > self.synced_at
    }

    /// What is new.
    fn next_update(&mut self) -> ClusterUpdate {
        let (change, decides) = self.collector.take_change();
        self.number += 1;
        if decides {
            self.decided = self.number;
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
