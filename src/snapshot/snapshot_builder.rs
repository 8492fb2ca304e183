//! Builds snapshots. Each snapshot shares its unchanged parts with the previous one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::{AnswerEncoder, BuildStats, ReplyTail, Snapshot, Version};
use entail_core::effective::World;
use entail_core::engine::{Engine, EngineUpdate, StateId};
use entail_core::model::{GroupKind, ObjectKey, Outcome, PathErrorReason, PathName};
use entail_core::routing::RequestRouter;
use entail_core::store::{ChangeKind, ChangeSet, Store};

/// Builds snapshots of a world that follows its store.
#[derive(Debug)]
pub struct SnapshotBuilder {
    engine: Engine,
    encoder: AnswerEncoder,
    /// The engine of the last snapshot, if the answers are still those of this snapshot.
    published: Option<Arc<Engine>>,
    paths: u64,
    /// The changed answers since the last snapshot.
    answer_delta: AnswerDelta,
    router: Arc<RequestRouter>,
    /// Replaced when the paths and their states are found anew, so that numbers mean something else.
    lineage: Arc<()>,
    /// The objects that differ from the last snapshot.
    changed: BTreeSet<ObjectKey>,
}

/// The difference between the answers of a snapshot and those of the previous one.
#[derive(Clone, Debug)]
pub(crate) enum AnswerDelta {
    /// The paths may differ, or there is no previous snapshot.
    All,
    /// Only the answers of some states differ.
    States {
        /// The generation of the previous snapshot.
        since: u64,
        /// The states, each at least once.
        states: Vec<StateId>,
    },
}

/// The engine of a snapshot, and the router.
#[derive(Clone, Debug)]
pub(super) struct LazyWorld {
    pub(super) engine: Arc<Engine>,
    pub(super) router: Arc<RequestRouter>,
}

impl SnapshotBuilder {
    /// Computes and encodes every answer of a world.
    pub fn new(world: World) -> Self {
        let engine = Engine::new(world);
        let mut encoder = AnswerEncoder::default();
        encoder.encode_all(&engine, None);
        Self {
            paths: engine.trie().paths(),
            engine,
            encoder,
            published: None,
            answer_delta: AnswerDelta::All,
            router: Arc::default(),
            lineage: Arc::default(),
            changed: BTreeSet::new(),
        }
    }

    /// Applies the changed objects of a store. Returns whether an answer may have changed.
    pub fn update(&mut self, store: Store, changed: &ChangeSet) -> bool {
        let before = Arc::clone(self.engine.world().topology());
        let published = self.published.take();
        let update = self.engine.follow(store, changed);
        self.changed.extend(changed.keys().cloned());
        let is_same = Arc::ptr_eq(&before, self.engine.world().topology());
        // A changed route may match other requests without changing any path.
        let routes = self.engine.world().store();
        let mut matching = changed.iter().filter(|(_, how)| **how > ChangeKind::Status);
        if !is_same || matching.any(|(key, _)| routes.route_kind(&key.kind).is_some()) {
            self.router = Arc::new(self.router.successor());
        }
        match update {
            EngineUpdate::Nothing => {
                self.published = published;
                false
            }
            EngineUpdate::ChainStates(chain_states) => {
                let replaced = self.encoder.encode_changed(&self.engine, &chain_states);
                let differs = !replaced.is_empty();
                self.answer_delta.add(replaced);
                differs
            }
            EngineUpdate::Paths {
                chain_states,
                added,
                removed,
            } => {
                self.encoder
                    .encode_paths(&self.engine, &chain_states, added, &removed);
                self.paths = self.engine.trie().paths();
                self.answer_delta = AnswerDelta::All;
                true
            }
            EngineUpdate::All => {
                self.encoder.encode_all(&self.engine, published.as_deref());
                self.paths = self.engine.trie().paths();
                self.answer_delta = AnswerDelta::All;
                self.lineage = Arc::default();
                true
            }
        }
    }

    /// Whether anything that a snapshot says can depend on the changes of a store: an answer, a status, a finding or the
    /// rule of a request. Removes the changes that were changed back.
    pub fn depends_on(&self, store: &Store, changed: &mut ChangeSet) -> bool {
        let before = self.world().store();
        changed.retain(|key, change| {
            let difference = store.difference(before, key);
            *change = difference.unwrap_or(*change);
            difference.is_some()
        });
        let mut changed = changed.iter();
        let depends = |(key, change): (&ObjectKey, &ChangeKind)| {
            let versions = (before.get(key), store.get(key));
            self.world()
                .depends_on(key, *change, versions.0, versions.1)
        };
        changed.any(depends)
            || before.lacks_input() != store.lacks_input()
            || !before.states().eq(store.states())
    }

    /// The current world.
    pub fn world(&self) -> &World {
        self.engine.world()
    }

    /// Number of policies of each kind, by outcome (specification 3.3).
    pub fn outcomes(&self) -> BTreeMap<(GroupKind, Outcome), usize> {
        self.engine.outcomes()
    }

    /// Counters of the work since the start.
    pub fn stats(&self) -> BuildStats {
        BuildStats {
            rebuilds: self.engine.rebuilds(),
            ..self.encoder.stats()
        }
    }

    /// Builds a snapshot of the current world.
    pub fn snapshot(&mut self, version: Version) -> Snapshot {
        let next = AnswerDelta::States {
            since: version.generation,
            states: Vec::new(),
        };
        let answer_delta = std::mem::replace(&mut self.answer_delta, next);
        let now = self.engine.world();
        let engine = Arc::new(self.engine.clone());
        self.published = Some(Arc::clone(&engine));
        Snapshot {
            reply_tail: ReplyTail::of(now, &version),
            version,
            trie: Arc::clone(self.engine.trie()),
            transitions: Arc::clone(self.engine.automaton().transitions()),
            bodies: self.encoder.bodies().clone(),
            answer_delta,
            distinct: self.encoder.distinct(),
            unknown: AnswerEncoder::unknown(),
            failed: AtomicBool::new(false),
            paths: self.paths,
            lazy_world: LazyWorld {
                engine,
                router: Arc::clone(&self.router),
            },
            statuses: OnceLock::new(),
            unknown_kinds: OnceLock::new(),
            assertion_memo: Arc::default(),
            lineage: Arc::clone(&self.lineage),
            changed: std::mem::take(&mut self.changed).into_iter().collect(),
        }
    }

    /// Builds a snapshot of a single world.
    pub(super) fn of(world: World, version: Version) -> Snapshot {
        Self::new(world).snapshot(version)
    }
}

impl AnswerDelta {
    fn add(&mut self, more: Vec<StateId>) {
        if let Self::States { states, .. } = self {
            states.extend(more);
        }
    }
}

impl Snapshot {
    /// Computes and encodes every answer of a world.
    pub fn build(world: World, version: Version) -> Self {
        SnapshotBuilder::of(world, version)
    }
}

impl LazyWorld {
    /// The reason why a path does not exist.
    pub fn path_reason(&self, path: &PathName<'_>) -> PathErrorReason {
        let found = self.engine.world().locate(path);
        found.err().unwrap_or(PathErrorReason::NotAPath)
    }
}
