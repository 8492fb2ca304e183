//! From worlds to snapshots, each sharing with the one before what did not change.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::{AnswerEncoder, BuildStats, ReplyTail, Snapshot, Version};
use entail_core::effective::World;
use entail_core::engine::{Engine, EngineUpdate, PathEngine, StateId};
use entail_core::model::{GroupKind, Outcome, PathErrorReason, PathName};
use entail_core::routing::RequestRouter;
use entail_core::store::{ChangeKind, ChangeSet, Store, route_kind};

/// Makes snapshots of a world that follows its store.
#[derive(Debug)]
pub struct SnapshotBuilder {
    engine: Engine,
    encoder: AnswerEncoder,
    paths: u64,
    /// What became of answers since the last snapshot.
    answer_delta: AnswerDelta,
    router: Arc<RequestRouter>,
}

/// How the answers of a snapshot differ from those of the one before.
#[derive(Clone, Debug)]
pub(crate) enum AnswerDelta {
    /// The paths themselves may be others, or nothing came before.
    All,
    /// These states have another body than in the snapshot of a generation.
    States {
        /// That generation.
        since: u64,
        /// The states, each at least once.
        states: Vec<StateId>,
    },
}

/// The world behind a snapshot, with its paths.
#[derive(Clone, Debug)]
pub(super) struct LazyWorld {
    pub(super) paths: PathEngine,
    pub(super) router: Arc<RequestRouter>,
}

impl SnapshotBuilder {
    /// Computes and encodes every answer of a world.
    pub fn new(world: World) -> Self {
        let engine = Engine::new(world);
        let mut encoder = AnswerEncoder::default();
        encoder.encode_all(engine.world(), engine.automaton());
        Self {
            paths: engine.trie().paths(),
            engine,
            encoder,
            answer_delta: AnswerDelta::All,
            router: Arc::default(),
        }
    }

    /// Follows a store in which some objects are others than before. Returns whether some answer
    /// may be another now.
    pub fn update(&mut self, store: Store, changed: &ChangeSet) -> bool {
        let before = Arc::clone(self.engine.world().topology());
        let update = self.engine.follow(store, changed);
        let is_same = Arc::ptr_eq(&before, self.engine.world().topology());
        // A route may match other requests and leave all paths as they are.
        let mut whole = changed.iter().filter(|(_, how)| **how == ChangeKind::Whole);
        if !is_same || whole.any(|(key, _)| route_kind(&key.kind).is_some()) {
            self.router = Arc::new(self.router.successor());
        }
        match update {
            EngineUpdate::Nothing => false,
            EngineUpdate::ChainStates(chain_states) => {
                let (world, automaton) = (self.engine.world(), self.engine.automaton());
                let replaced = self.encoder.encode_changed(world, automaton, &chain_states);
                let differs = !replaced.is_empty();
                self.answer_delta.add(replaced);
                differs
            }
            EngineUpdate::All => {
                self.encoder
                    .encode_all(self.engine.world(), self.engine.automaton());
                self.paths = self.engine.trie().paths();
                self.answer_delta = AnswerDelta::All;
                true
            }
        }
    }

    /// The world as it is now.
    pub fn world(&self) -> &World {
        self.engine.world()
    }

    /// How many policies of each kind there are, by outcome (specification 3.3).
    pub fn outcomes(&self) -> BTreeMap<(GroupKind, Outcome), usize> {
        self.engine.outcomes()
    }

    /// What was done since the start.
    pub fn stats(&self) -> BuildStats {
        BuildStats {
            rebuilds: self.engine.rebuilds(),
            ..self.encoder.stats()
        }
    }

    /// A snapshot of what is known now.
    pub fn snapshot(&mut self, version: Version) -> Snapshot {
        let next = AnswerDelta::States {
            since: version.generation,
            states: Vec::new(),
        };
        let answer_delta = std::mem::replace(&mut self.answer_delta, next);
        let now = self.engine.world();
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
                paths: self.engine.paths().clone(),
                router: Arc::clone(&self.router),
            },
            statuses: OnceLock::new(),
        }
    }

    /// A snapshot of a world that nothing was exchanged in.
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
    /// Why something is no path; nothing is read for it.
    pub fn path_reason(&self, path: &PathName<'_>) -> PathErrorReason {
        let found = self.paths.world().locate(path);
        found.err().unwrap_or(PathErrorReason::NotAPath)
    }
}
