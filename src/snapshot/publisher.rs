//! From worlds to snapshots, each sharing with the one before what did not change.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::{Encoder, Snapshot, Tails, Version, Work};
use entail_core::effective::World;
use entail_core::engine::{Engine, StateId, Update};
use entail_core::model::{GroupKind, Outcome, PathName, PathReason};
use entail_core::routing::Matcher;
use entail_core::store::{Changed, Difference, Profiles, Store, route_kind};
use entail_core::topology::Topology;

/// Makes snapshots of a world that follows its store.
#[derive(Debug)]
pub struct Publisher {
    engine: Engine,
    encoder: Encoder,
    paths: u64,
    /// What became of answers since the last snapshot.
    touched: Touched,
    matcher: Arc<Matcher>,
}

/// How the answers of a snapshot differ from those of the one before.
#[derive(Clone, Debug)]
pub(super) enum Touched {
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

/// The world behind a snapshot, read when it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    pub(super) store: Store,
    profiles: Profiles,
    pub(super) topology: Arc<Topology>,
    pub(super) matcher: Arc<Matcher>,
    world: OnceLock<Arc<World>>,
}

impl Publisher {
    /// Computes and encodes every answer of a world.
    pub fn new(world: World) -> Self {
        let engine = Engine::new(world);
        let mut encoder = Encoder::default();
        encoder.all(engine.world(), engine.machine());
        Self {
            paths: engine.plan().paths(),
            engine,
            encoder,
            touched: Touched::All,
            matcher: Arc::default(),
        }
    }

    /// Follows a store in which some objects are others than before. Returns whether some answer
    /// may be another now.
    pub fn follow(&mut self, store: Store, changed: &Changed) -> bool {
        let before = Arc::clone(self.engine.world().topology());
        let update = self.engine.follow(store, changed);
        let is_same = Arc::ptr_eq(&before, self.engine.world().topology());
        // A route may match other requests and leave all paths as they are.
        let mut whole = changed.iter().filter(|(_, how)| **how == Difference::Whole);
        if !is_same || whole.any(|(key, _)| route_kind(&key.kind).is_some()) {
            self.matcher = Arc::new(self.matcher.next());
        }
        match update {
            Update::Nothing => false,
            Update::Tracks(tracks) => {
                let (world, machine) = (self.engine.world(), self.engine.machine());
                let replaced = self.encoder.again(world, machine, &tracks);
                let differs = !replaced.is_empty();
                self.touched.add(replaced);
                differs
            }
            Update::All => {
                self.encoder.all(self.engine.world(), self.engine.machine());
                self.paths = self.engine.plan().paths();
                self.touched = Touched::All;
                true
            }
        }
    }

    /// The world as it is now. Its policies stand in no order.
    pub fn world(&self) -> &World {
        self.engine.world()
    }

    /// How many policies of each kind there are, by outcome (SEMANTICS §3.3).
    pub fn outcomes(&self) -> BTreeMap<(GroupKind, Outcome), usize> {
        self.engine.outcomes()
    }

    /// What was done since the start.
    pub fn work(&self) -> Work {
        Work {
            readings: self.engine.readings(),
            ..self.encoder.work()
        }
    }

    /// A snapshot of what is known now.
    pub fn snapshot(&mut self, version: Version) -> Snapshot {
        let next = Touched::States {
            since: version.generation,
            states: Vec::new(),
        };
        let touched = std::mem::replace(&mut self.touched, next);
        let now = self.engine.world();
        Snapshot {
            tails: Tails::of(now, &version),
            version,
            plan: Arc::clone(self.engine.plan()),
            ways: Arc::clone(self.engine.machine().ways()),
            bodies: self.encoder.bodies().clone(),
            touched,
            distinct: self.encoder.distinct(),
            paths: self.paths,
            behind: Behind {
                store: now.store().clone(),
                profiles: now.profiles().clone(),
                topology: Arc::clone(now.topology()),
                matcher: Arc::clone(&self.matcher),
                world: OnceLock::new(),
            },
            statuses: OnceLock::new(),
        }
    }

    /// A snapshot of a world that nothing was exchanged in.
    pub(super) fn of(world: World, version: Version) -> Snapshot {
        let mut publisher = Self::new(world);
        let mut snapshot = publisher.snapshot(version);
        snapshot.behind.world = OnceLock::from(Arc::new(publisher.engine.into_world()));
        snapshot
    }
}

impl Touched {
    fn add(&mut self, more: Vec<StateId>) {
        if let Self::States { states, .. } = self {
            states.extend(more);
        }
    }
}

impl Snapshot {
    /// Computes and encodes every answer of a world.
    pub fn build(world: World, version: Version) -> Self {
        Publisher::of(world, version)
    }
}

impl Behind {
    /// Why something is no path; nothing is read for it.
    pub fn why_not(&self, path: &PathName<'_>) -> PathReason {
        let found = self.topology.locate(&self.store, path);
        found.err().unwrap_or(PathReason::NotAPath)
    }

    /// The world; the first call reads it.
    pub fn world(&self) -> &Arc<World> {
        self.world
            .get_or_init(|| Arc::new(World::full(self.store.clone(), &self.profiles)))
    }
}
