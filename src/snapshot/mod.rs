//! The immutable snapshot that look-ups are answered from, and the one cell that holds it.
//!
//! A snapshot holds every answer encoded, equal answers once, and the world behind them with the
//! trie and the automaton of its paths: questions walk what look-ups walk.

mod cell;
mod encoder;
mod reply_tail;
mod snapshot_builder;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

pub use cell::SnapshotCell;
pub use encoder::BuildStats;
pub(crate) use snapshot_builder::AnswerDelta;
pub use snapshot_builder::SnapshotBuilder;

use crate::api::{EncodedGetEffectivePoliciesResponse, combined_etag, v1};
use encoder::AnswerEncoder;
use entail_core::effective::{Statuses, World};
use entail_core::engine::{PathEngine, StateId, Transitions};
use entail_core::model::{
    ChunkedVec, GroupKind, InternalError, OrInternal, PathErrorReason, PathName, Str,
};
use entail_core::routing::{EntryPoint, Request, RoutingOptions, RoutingResult};
use entail_core::store::Projection;
use entail_core::topology::PathTrie;
use reply_tail::{ReplyTail, shared_bytes};
use snapshot_builder::LazyWorld;

/// What a snapshot says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// Changes with every start of the server.
    pub epoch: Str,
    /// Grows by one with every published snapshot whose answers may differ from the last one's.
    pub generation: u64,
    /// When all sources were last known to be in step.
    pub synced_at: prost_types::Timestamp,
}

/// All answers of one generation.
#[derive(Debug)]
pub struct Snapshot {
    version: Version,
    trie: Arc<PathTrie>,
    transitions: Arc<Transitions>,
    /// The answer of each state.
    bodies: ChunkedVec<Arc<PathAnswer>>,
    /// How they differ from those of the snapshot before.
    answer_delta: AnswerDelta,
    distinct: usize,
    /// The answer where something was missing that cannot be.
    unknown: Arc<PathAnswer>,
    /// Whether something was.
    failed: AtomicBool,
    paths: u64,
    reply_tail: ReplyTail,
    lazy_world: LazyWorld,
    /// Computed when somebody asks: look-ups do not need them.
    statuses: OnceLock<Arc<Statuses>>,
}

/// The answer of a path: all kinds.
#[derive(Debug)]
pub struct PathAnswer {
    /// Field `result` of a Get reply: `PathPolicies` with its key and length.
    result: Bytes,
    /// Its etag.
    etag: Str,
    /// The kinds' answers.
    parts: Vec<Arc<KindAnswer>>,
}

/// The answer of one kind: field `policies`, with its key and length.
#[derive(Debug, PartialEq)]
struct KindAnswer {
    kind: GroupKind,
    bytes: Bytes,
    etag: String,
}

impl Snapshot {
    /// The same answers, known to be in step at a later time.
    #[must_use]
    pub fn with_synced_at(&self, at: prost_types::Timestamp) -> Self {
        let version = Version {
            synced_at: at,
            ..self.version.clone()
        };
        Self {
            reply_tail: self.reply_tail.at(&version),
            trie: Arc::clone(&self.trie),
            transitions: Arc::clone(&self.transitions),
            bodies: self.bodies.clone(),
            answer_delta: AnswerDelta::States {
                since: version.generation,
                states: Vec::new(),
            },
            distinct: self.distinct,
            unknown: Arc::clone(&self.unknown),
            failed: AtomicBool::new(self.failed.load(Ordering::Relaxed)),
            paths: self.paths,
            lazy_world: self.lazy_world.clone(),
            statuses: self.statuses.clone(),
            version,
        }
    }

    /// The answer of a path. Allocates nothing: the name is parsed in place, and each of its steps
    /// is two probes, one for the place and one for the state.
    pub fn look_up(&self, path: &PathName<'_>) -> Option<&PathAnswer> {
        self.reach(path).unwrap_or_else(|error| {
            self.fail(error);
            Some(&self.unknown)
        })
    }

    fn reach(&self, path: &PathName<'_>) -> Result<Option<&PathAnswer>, InternalError> {
        let mut state = Ok(0);
        let step = |place| {
            if let Ok(above) = state {
                state = self.transitions.after(above, place);
            }
        };
        if !self.trie.walk(path, step)? {
            return Ok(None);
        }
        Ok(Some(self.body(state?)?))
    }

    fn body(&self, state: StateId) -> Result<&Arc<PathAnswer>, InternalError> {
        let body = self.bodies.get(state as usize);
        body.or_internal("the answer of a state")
    }

    /// Records an internal error: all kinds are UNKNOWN from then on.
    pub(crate) fn fail(&self, error: InternalError) {
        self.engine().fail(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    /// The answer of a state. `None` is an internal error, as is a state without an answer.
    pub(crate) fn answer_at(&self, state: Option<StateId>) -> &Arc<PathAnswer> {
        let state = state.or_internal("a slot");
        let body = state.and_then(|state| self.body(state));
        body.unwrap_or_else(|error| {
            self.fail(error);
            &self.unknown
        })
    }

    /// The trie of all paths.
    pub(crate) fn trie(&self) -> &Arc<PathTrie> {
        &self.trie
    }

    /// The transitions of the automaton of all paths.
    pub(crate) fn transitions(&self) -> &Arc<Transitions> {
        &self.transitions
    }

    /// The difference between the answers of this snapshot and those of the previous one.
    pub(crate) fn answer_delta(&self) -> &AnswerDelta {
        &self.answer_delta
    }

    /// Whether both snapshots share the trie and the automaton, so that every path has the same
    /// state in both.
    pub(crate) fn has_paths_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.trie, &other.trie) && Arc::ptr_eq(&self.transitions, &other.transitions)
    }

    /// The reply to a look-up of all kinds. Allocates nothing.
    pub fn reply(&self, body: &PathAnswer) -> EncodedGetEffectivePoliciesResponse {
        EncodedGetEffectivePoliciesResponse {
            result: body.result.clone(),
            tail: self.get_tail().clone(),
        }
    }

    /// The fields that every Get reply of this snapshot ends with.
    pub fn get_tail(&self) -> &Bytes {
        match self.failed.load(Ordering::Relaxed) {
            true => &self.reply_tail.failed,
            false => &self.reply_tail.get,
        }
    }

    /// The world that the answers were computed from.
    pub fn world(&self) -> &World {
        self.lazy_world.paths.world()
    }

    /// The world with its paths, as look-ups walk them.
    pub fn engine(&self) -> &PathEngine {
        &self.lazy_world.paths
    }

    /// The statuses of all policies, computed once.
    pub fn statuses(&self) -> Arc<Statuses> {
        let statuses = self
            .statuses
            .get_or_init(|| Arc::new(self.engine().statuses()));
        Arc::clone(statuses)
    }

    /// What the snapshot says of itself.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The kinds of which not everything is known.
    pub fn kinds(&self) -> &[v1::KindState] {
        &self.reply_tail.kinds
    }

    /// Whether objects of a kind decide which paths there are, and what policies mean: all answers
    /// rest on them.
    pub fn affects_topology(kind: &GroupKind) -> bool {
        Projection::affects_topology(kind)
    }

    /// Whether a kind has a profile.
    pub fn has_profile(&self, kind: &GroupKind) -> bool {
        self.reply_tail.known.contains(kind)
    }

    /// The rules that a request takes (Gateway API, precedence). The first request at a listener
    /// makes its index, which takes as long as there are routes: with `fast_only` that is not done,
    /// and the answer is none.
    pub fn resolve(
        &self,
        entry_point: &EntryPoint,
        request: &Request,
        rules: RoutingOptions,
        fast_only: bool,
    ) -> Option<RoutingResult> {
        let lazy_world = &self.lazy_world;
        let world = lazy_world.paths.world();
        let world = (&**world.topology(), world.store());
        lazy_world
            .router
            .find(world, entry_point, request, rules, fast_only)
    }

    /// The names of the paths of all listeners that a Gateway has or admits; of all Gateways if none
    /// is named, and nothing if those are more than `most`.
    pub fn listener_paths(
        &self,
        gateway: Option<(&str, &str)>,
        most: usize,
    ) -> Option<Vec<String>> {
        self.world().topology().listener_paths(gateway, most)
    }

    /// Why something is no path (specification 1.4).
    pub fn path_reason(&self, path: &PathName<'_>) -> PathErrorReason {
        self.lazy_world.path_reason(path)
    }

    /// Addressable paths.
    pub fn paths(&self) -> u64 {
        self.paths
    }

    /// Distinct answers that they share.
    pub fn distinct_answers(&self) -> usize {
        self.distinct
    }
}

impl PathAnswer {
    /// Equal for equal answers, on every replica.
    pub fn etag(&self) -> &str {
        &self.etag
    }

    /// The etag of the kinds that are wanted, all if none are named: of the reply that has them
    /// alone.
    pub fn etag_of(&self, wanted: &[GroupKind]) -> String {
        if wanted.is_empty() {
            return self.etag.to_string();
        }
        combined_etag(self.wanted(wanted).map(|part| &*part.etag))
    }

    /// Field `policies` of the kinds that are wanted, one after the other, each with its key and
    /// length.
    pub fn policies<'b>(&'b self, wanted: &'b [GroupKind]) -> impl Iterator<Item = &'b Bytes> {
        self.wanted(wanted).map(|part| &part.bytes)
    }

    fn wanted<'b>(&'b self, wanted: &'b [GroupKind]) -> impl Iterator<Item = &'b Arc<KindAnswer>> {
        let parts = self.parts.iter();
        parts.filter(move |part| wanted.is_empty() || wanted.contains(&part.kind))
    }
}
