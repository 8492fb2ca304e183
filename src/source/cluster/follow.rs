//! Following all kinds that are wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use kube::core::ApiResource;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use super::gather::Gathered;
use super::kind::{self, Word, Words};
use super::{Cluster, Known, Step, Wanted, discover};
use entail_core::model::GroupKind;

/// Words of watches that may wait.
const WAITING: usize = 1_024;
/// How long the server may take to say what it serves: everything else waits for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often to tell when all was in step last, where nothing else is told.
const BEAT: Duration = Duration::from_secs(10);
/// How long words are gathered for one step.
const GATHER: Duration = Duration::from_millis(10);
/// After a CRD has changed it takes a while until the server serves its kind: when to look, one
/// pause after the other,
const LOOKS: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];
/// and from then on.
const LOOK: Duration = Duration::from_secs(60);

/// What follows the kinds.
struct Follower {
    cluster: Cluster,
    wanted: watch::Receiver<Wanted>,
    /// The kinds that were looked for.
    asked: BTreeSet<GroupKind>,
    words: mpsc::Sender<Word>,
    tasks: JoinSet<()>,
    followed: BTreeMap<GroupKind, Followed>,
    absent: BTreeSet<GroupKind>,
    /// Kinds that the server is about to serve.
    awaited: BTreeSet<GroupKind>,
    /// Kinds that had a CRD.
    of_crds: BTreeSet<GroupKind>,
    gathered: Gathered,
    /// Why the server does not say what it serves.
    undiscovered: Option<String>,
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
    begun: u64,
    told: Option<(Vec<(String, String)>, bool)>,
    synced_at: Option<SystemTime>,
}

/// A kind that is followed.
struct Followed {
    resource: ApiResource,
    task: AbortHandle,
    /// The number of the task: words of one that was ended may still come.
    number: u64,
}

/// Follows the kinds that are wanted and sends what is new, beginning with what is known already.
/// Ends when nobody receives any more.
pub async fn watch(
    cluster: Cluster,
    wanted: watch::Receiver<Wanted>,
    known: Known,
    tx: mpsc::Sender<Step>,
) {
    let (words, mut heard) = mpsc::channel(WAITING);
    let mut gathered = Gathered::default();
    gathered.seed(known);
    let mut follower = Follower {
        cluster,
        wanted,
        asked: BTreeSet::new(),
        words,
        tasks: JoinSet::new(),
        followed: BTreeMap::new(),
        absent: BTreeSet::new(),
        awaited: BTreeSet::new(),
        of_crds: BTreeSet::new(),
        gathered,
        undiscovered: Some("the server has not been asked yet".to_owned()),
        number: 0,
        decided: 0,
        looks: 0,
        look_at: Instant::now(),
        is_due: false,
        has_looked: false,
        begun: 0,
        told: None,
        synced_at: None,
    };
    let mut due: Option<Instant> = None;
    let mut beat = tokio::time::interval(BEAT);
    loop {
        let flush = due.unwrap_or_else(|| Instant::now() + LOOK);
        tokio::select! {
            () = tx.closed() => return,
            changed = follower.wanted.changed() => {
                if changed.is_err() {
                    return;
                }
                follower.want().await;
            }
            () = sleep_until(follower.look_at) => follower.look().await,
            Some(word) = heard.recv() => follower.hear(word),
            _ = beat.tick() => {
                // Words that wait are not in what was told.
                let is_later = due.is_none() && heard.is_empty() && follower.is_later();
                if is_later && tx.send(follower.step()).await.is_err() {
                    return;
                }
            }
            () = sleep_until(flush), if due.is_some() => {
                due = None;
                if follower.has_news() && tx.send(follower.step()).await.is_err() {
                    return;
                }
                continue;
            }
        }
        if due.is_none() && follower.has_news() {
            due = Some(Instant::now() + GATHER);
        }
    }
}

impl Follower {
    /// Takes what is wanted now; kinds that are new are looked for at once.
    async fn want(&mut self) {
        let differs = self.wanted.borrow_and_update().kinds != self.asked;
        if differs {
            self.looks = 0;
            self.look().await;
        }
    }

    /// Asks what is served, and follows what is wanted of it.
    async fn look(&mut self) {
        let wanted = self.wanted.borrow_and_update().kinds.clone();
        self.is_due = false;
        let by_crds = wanted
            .iter()
            .filter(|kind| self.gathered.crd(kind).is_some());
        self.of_crds.extend(by_crds.cloned());
        let pause = LOOKS.get(self.looks).copied().unwrap_or(LOOK);
        self.looks += 1;
        let served = timeout(PATIENCE, discover::served(&self.cluster, &wanted)).await;
        let served = match served {
            Ok(served) => served.map_err(|error| kind::chain(&error)),
            Err(_) => Err("the server does not say in time what it serves".to_owned()),
        };
        match served {
            Ok(served) => {
                self.undiscovered = None;
                self.cluster.resources.tell(&served);
                self.follow(&wanted, served);
            }
            Err(why) => {
                // Tried again soon: without an answer nothing new can be followed.
                self.looks = self.looks.min(LOOKS.len() - 2);
                self.undiscovered = Some(why);
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
            self.gathered.end(&kind);
        }
        let told = self.gathered.kinds();
        let unwanted =
            told.filter(|kind| !wanted.contains(*kind) && !self.followed.contains_key(*kind));
        let unwanted: Vec<GroupKind> = unwanted.cloned().collect();
        for kind in unwanted {
            self.absent.remove(&kind);
            self.awaited.remove(&kind);
            self.gathered.end(&kind);
        }
        for kind in wanted {
            match served.get(kind) {
                None if self.followed.contains_key(kind) => {}
                // What was known before the start stays until it is known to be gone.
                None if self.gathered.is_seed(kind) && !self.is_gone(kind) => {}
                // Its CRD says that it is served: it is on its way.
                None if self.gathered.crd(kind) == Some(true) => {
                    self.absent.remove(kind);
                    if self.awaited.insert(kind.clone()) {
                        self.gathered.begin(kind);
                    }
                }
                None if self.absent.insert(kind.clone()) => {
                    self.awaited.remove(kind);
                    self.gathered.absent(kind);
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
                            self.gathered.doubt(kind);
                        }
                        None => self.gathered.begin(kind),
                    }
                    self.begin(kind, resource);
                }
                None => {}
            }
        }
        // Tasks that were ended are done with.
        while self.tasks.try_join_next().is_some() {}
    }

    /// Follows a kind from now on.
    fn begin(&mut self, kind: &GroupKind, resource: &ApiResource) {
        self.begun += 1;
        let number = self.begun;
        let words = Words {
            kind: kind.clone(),
            number,
            tx: self.words.clone(),
        };
        let following = kind::follow(self.cluster.clone(), resource.clone(), words);
        let followed = Followed {
            resource: resource.clone(),
            task: self.tasks.spawn(following),
            number,
        };
        self.followed.insert(kind.clone(), followed);
    }

    /// Whether a kind that was served is gone for good: with its CRD. A server that starts does not
    /// list all at once, and what is known stays in use until it does.
    fn is_gone(&self, kind: &GroupKind) -> bool {
        let of_crd = self.of_crds.contains(kind) || self.gathered.is_seed(kind);
        of_crd && self.gathered.knows_crds() && self.gathered.crd(kind).is_none()
    }

    fn hear(&mut self, word: Word) {
        let Word { kind, number, said } = word;
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
            self.look_at = self.look_at.min(Instant::now() + LOOKS[0]);
        }
        self.gathered.take(&kind, said);
    }

    fn is_complete(&self) -> bool {
        self.undiscovered.is_none()
            && !self.is_due
            && self.gathered.is_settled()
            && self.wanted.borrow().after >= self.decided
    }

    /// Whether something is still on its way: what cannot be read is not.
    fn is_loading(&self) -> bool {
        let is_behind = self.wanted.borrow().after < self.decided;
        !self.has_looked || self.is_due || is_behind || self.gathered.is_loading()
    }

    fn problems(&self) -> Vec<(String, String)> {
        let mut problems = self.gathered.problems();
        let url = &self.cluster.url;
        let discovery = self.undiscovered.iter();
        problems.extend(discovery.map(|why| (url.clone(), why.clone())));
        problems
    }

    fn has_news(&self) -> bool {
        let now = (self.problems(), self.is_complete());
        !self.gathered.is_empty() || self.told.as_ref() != Some(&now)
    }

    /// When all kinds that can be read were in step last.
    fn in_step(&self) -> Option<SystemTime> {
        if !self.is_complete() || self.gathered.is_behind() {
            return None;
        }
        let read = self.followed.iter();
        let read = read.filter(|(kind, _)| self.gathered.is_known(kind));
        let calls = &self.cluster.calls;
        let heard = read.map(|(_, followed)| calls.heard(&kind::url_path(&followed.resource)));
        // A kind that nothing was heard of is not in step.
        heard.min().flatten()
    }

    /// Whether all was in step later than was told.
    fn is_later(&self) -> bool {
        let now = self.in_step();
        now.is_some() && now > self.synced_at
    }

    /// What is new.
    fn step(&mut self) -> Step {
        let (change, decides) = self.gathered.change();
        self.number += 1;
        if decides {
            self.decided = self.number;
        }
        let (problems, is_complete) = (self.problems(), self.is_complete());
        self.told = Some((problems.clone(), is_complete));
        self.synced_at = self.in_step().max(self.synced_at);
        Step {
            number: self.number,
            change,
            problems,
            is_complete,
            is_loading: self.is_loading(),
            synced_at: self.synced_at,
        }
    }
}
