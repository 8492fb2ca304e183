//! Immutable snapshots of all effective policies, and the cell with the current snapshot.
//!
//! A snapshot contains every answer in encoded form, equal answers once, and the world that they were
//! computed from with the trie and the automaton of its paths. Queries walk the same trie as
//! look-ups.

mod answer_table;
mod assertion_memo;
mod cell;
mod encoder;
mod in_progress;
mod reply_tail;
mod snapshot_builder;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hashbrown::HashSet;

pub use assertion_memo::{AssertionMemo, AssertionResults};
pub use cell::SnapshotCell;
pub use encoder::BuildStats;
pub use in_progress::InProgress;
pub(crate) use snapshot_builder::AnswerDelta;
pub use snapshot_builder::SnapshotBuilder;

use crate::api::{
    ETAG_LENGTH, EncodedGetEffectivePoliciesResponse, combined_etag, unknown_state, v1,
};
use encoder::AnswerEncoder;
use entail_core::effective::{Statuses, World};
use entail_core::engine::{Engine, PathEngine, StateId, Transitions};
use entail_core::model::{
    ChunkedVec, GroupKind, InternalError, ObjectKey, OrInternal, PathErrorReason, PathName, Str,
};
use entail_core::routing::{
    Dialect, EntryPoint, PatternStats, RequestParts, RoutingOptions, RoutingResult, RuleMiss,
    RuleTarget,
};
use entail_core::store::Projection;
use entail_core::topology::PathTrie;
use reply_tail::{ReplyTail, shared_bytes};
use snapshot_builder::LazyWorld;

/// The version of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// Identifies the run of the server: changes with every start.
    pub epoch: Str,
    /// Incremented with every published snapshot whose answers may differ from the previous one.
    pub generation: u64,
    /// The last time at which all sources were in sync.
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
    /// The difference to the answers of the previous snapshot.
    answer_delta: AnswerDelta,
    /// Number of distinct answers.
    distinct: usize,
    /// The answer after an internal error.
    unknown: Arc<PathAnswer>,
    /// Whether an internal error occurred.
    failed: AtomicBool,
    paths: u64,
    reply_tail: ReplyTail,
    lazy_world: LazyWorld,
    /// Computed on first use: look-ups do not need them.
    statuses: OnceLock<Arc<Statuses>>,
    unknown_kinds: OnceLock<Vec<UnknownKind>>,
    assertion_memo: Arc<AssertionMemo>,
    /// The same in snapshots in which equal numbers mean the same trie node or state.
    lineage: Arc<()>,
    /// The objects that differ from the snapshot of the previous generation.
    changed: Arc<[ObjectKey]>,
}

/// A kind that is unknown on some paths, for one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownKind {
    /// The kind, and what is not known.
    pub state: v1::KindState,
    /// Number of distinct answers of the kind that do not know it.
    pub answers: u64,
}

/// The encoded effective policies of all kinds on a path. Equal answers are one, so that there is one for each distinct
/// answer: it is small.
#[derive(Debug)]
pub struct PathAnswer {
    /// The encoded field `result` of a Get reply (`PathPolicies`), with its tag and length. Ends with the etag.
    result: Bytes,
    policies: AnsweredPolicies,
    /// The number of states that have it, which the encoder counts.
    uses: AtomicU32,
}

/// Where the effective policies of a [`PathAnswer`] are.
#[derive(Debug, PartialEq)]
enum AnsweredPolicies {
    /// That of one kind, as on most paths.
    One(EncodedPolicy),
    /// Those of several kinds, or of none: the answers of paths that have only one of them.
    Several {
        answers: Box<[Arc<PathAnswer>]>,
        /// Where the etag begins in `result`.
        etag_start: usize,
    },
}

/// The effective policy of one kind in a [`PathAnswer`] that has no other.
#[derive(Debug, PartialEq)]
struct EncodedPolicy {
    kind: GroupKind,
    /// Where `result` has the field `policies`, with its tag and length.
    field: Range<u32>,
    /// Where `result` has the etag of the policy.
    etag: Range<u32>,
    /// What the policy does not know.
    unknown: Option<Box<v1::Unknown>>,
}

/// The effective policy of one kind in an answer.
#[derive(Clone, Copy, Debug)]
struct KindAnswer<'a> {
    result: &'a Bytes,
    policy: &'a EncodedPolicy,
}

impl Snapshot {
    /// Returns a snapshot with the same answers and a later `synced_at`. Shares all answers.
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
            unknown_kinds: self.unknown_kinds.clone(),
            assertion_memo: Arc::clone(&self.assertion_memo),
            lineage: Arc::clone(&self.lineage),
            changed: Arc::clone(&self.changed),
            version,
        }
    }

    /// Returns the answer of a path; `None` if the path does not exist. Does not allocate: each segment
    /// of the name is two hash probes, one for the trie node and one for the state.
    pub fn look_up(&self, path: &PathName<'_>) -> Option<&Arc<PathAnswer>> {
        self.reach(path).unwrap_or_else(|error| {
            self.fail(error);
            Some(&self.unknown)
        })
    }

    fn reach(&self, path: &PathName<'_>) -> Result<Option<&Arc<PathAnswer>>, InternalError> {
        let (mut state, mut failure) = (0, None);
        let step = |node| match self.transitions.after(state, node) {
            Ok(next) => state = next,
            // Later steps fail, too, or come to nothing.
            Err(error) => failure = failure.or(Some(error)),
        };
        if !self.trie.walk(path, step)? {
            return Ok(None);
        }
        match failure {
            None => Ok(Some(self.body(state)?)),
            Some(error) => Err(error),
        }
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

    /// Whether trie nodes and states that both snapshots have are the same ones: an earlier and a later one between which
    /// nothing was built from scratch. Only the answers of states differ, and paths lead to other trie nodes.
    pub(crate) fn is_of_lineage(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.lineage, &other.lineage)
    }

    /// The objects that differ from the snapshot of the previous generation.
    pub(crate) fn changed(&self) -> &[ObjectKey] {
        &self.changed
    }

    /// The answers of all states, by their numbers.
    pub(crate) fn answers(&self) -> impl Iterator<Item = &Arc<PathAnswer>> {
        self.bodies.iter()
    }

    /// Returns the reply to a look-up of all kinds. Does not allocate.
    pub fn reply(&self, body: &PathAnswer) -> EncodedGetEffectivePoliciesResponse {
        EncodedGetEffectivePoliciesResponse {
            result: body.result.clone(),
            tail: self.get_tail().clone(),
        }
    }

    /// The last fields of every Get reply: version, time and states of kinds, encoded.
    pub fn get_tail(&self) -> &Bytes {
        match self.failed.load(Ordering::Relaxed) {
            true => self.reply_tail.failed(self.world(), &self.version),
            false => &self.reply_tail.get,
        }
    }

    /// The world that the answers were computed from.
    pub fn world(&self) -> &World {
        self.lazy_world.engine.world()
    }

    /// The world with the trie and the automaton of its paths.
    pub fn engine(&self) -> &PathEngine {
        self.lazy_world.engine.paths()
    }

    /// A copy of the engine, to find out what a change would do. It shares all that the change leaves as it is.
    pub fn fork(&self) -> Engine {
        self.lazy_world.engine.fork()
    }

    /// The results of assertions that are known.
    pub fn assertion_memo(&self) -> &AssertionMemo {
        &self.assertion_memo
    }

    /// The statuses of all policies; computed on the first call.
    pub fn statuses(&self) -> Arc<Statuses> {
        let statuses = self
            .statuses
            .get_or_init(|| Arc::new(self.engine().statuses()));
        Arc::clone(statuses)
    }

    /// The version of the snapshot.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The kinds whose state is not complete.
    pub fn kinds(&self) -> &[v1::KindState] {
        &self.reply_tail.kinds
    }

    /// Whether objects of a kind determine the paths or the profiles, so that all answers depend on
    /// the kind.
    pub fn affects_topology(kind: &GroupKind) -> bool {
        // Snapshots of different times declare different kinds of Routes.
        Projection::may_affect_topology(kind)
    }

    /// Whether a kind has a profile.
    pub fn has_profile(&self, kind: &GroupKind) -> bool {
        let mut kinds = self.world().profiled_kinds();
        kinds.any(|known| kind.names(&known.profile().policy))
    }

    /// Finds the rules that match a request, in the dialect of each Gateway's controller. The first request at a
    /// listener builds its index, which takes time proportional to its routes. With `fast_only`, the
    /// index is not built and the result is `None`.
    pub fn resolve(
        &self,
        entry_point: &EntryPoint,
        request: &RequestParts<'_>,
        options: RoutingOptions,
        fast_only: bool,
    ) -> Option<RoutingResult> {
        let lazy_world = &self.lazy_world;
        let world = lazy_world.engine.world();
        let controllers = world.controllers();
        lazy_world.router.find(
            (world.topology(), world.store()),
            &|controller| Dialect::of_controller(controllers.identities(controller)),
            entry_point,
            request,
            options,
            fast_only,
        )
    }

    /// Returns for each rule that a question is about, at each listener or Service that could send the request there, the
    /// first condition that fails.
    pub fn why_not(
        &self,
        entry_point: &EntryPoint,
        request: &RequestParts<'_>,
        options: RoutingOptions,
        target: &RuleTarget,
    ) -> Vec<RuleMiss> {
        let lazy_world = &self.lazy_world;
        let world = lazy_world.engine.world();
        let controllers = world.controllers();
        lazy_world.router.why_not(
            (world.topology(), world.store()),
            &|controller| Dialect::of_controller(controllers.identities(controller)),
            entry_point,
            request,
            options,
            target,
        )
    }

    /// Counts of the regular expressions of Routes since the start, and the memory of those that are compiled.
    pub fn pattern_stats(&self) -> PatternStats {
        self.lazy_world.router.pattern_stats()
    }

    /// Returns the paths of the listeners of a Gateway and of its ListenerSets; without a name, of all
    /// Gateways. Returns `None` if there are more than `limit` Gateways.
    pub fn listener_paths(
        &self,
        gateway: Option<(&str, &str)>,
        limit: usize,
    ) -> Option<Vec<String>> {
        self.world().topology().listener_paths(gateway, limit)
    }

    /// The reason why a path does not exist (specification 1.4).
    pub fn path_reason(&self, path: &PathName<'_>) -> PathErrorReason {
        self.lazy_world.path_reason(path)
    }

    /// Number of addressable paths.
    pub fn paths(&self) -> u64 {
        self.paths
    }

    /// The kinds that are unknown on some path, with the number of distinct answers, sorted; computed on the
    /// first call.
    pub fn unknown_kinds(&self) -> &[UnknownKind] {
        let all = || count_unknown(self.bodies.iter(), |_| true);
        self.unknown_kinds.get_or_init(all)
    }

    /// The kinds for which `includes` returns true that are unknown at some of the states, sorted.
    pub fn unknown_kinds_at(
        &self,
        states: impl IntoIterator<Item = StateId>,
        includes: impl Fn(&GroupKind) -> bool,
    ) -> Vec<UnknownKind> {
        let states = states.into_iter();
        count_unknown(states.map(|state| self.answer_at(Some(state))), includes)
    }

    /// Number of distinct answers.
    pub fn distinct_answers(&self) -> usize {
        self.distinct
    }
}

impl PartialEq for PathAnswer {
    /// Whether both say the same, however many states have them.
    fn eq(&self, other: &Self) -> bool {
        self.result == other.result && self.policies == other.policies
    }
}

impl PathAnswer {
    /// An answer of several kinds or of none, whose encoded field `result` ends with an etag of this length.
    fn several(result: Vec<u8>, etag: usize, answers: Box<[Arc<PathAnswer>]>) -> Self {
        Self {
            policies: AnsweredPolicies::Several {
                answers,
                etag_start: result.len().saturating_sub(etag),
            },
            result: shared_bytes(result),
            uses: AtomicU32::new(0),
        }
    }

    /// The etag of all kinds. Replicas return the same etag for equal answers.
    pub fn etag(&self) -> &str {
        let start = match self.policies {
            AnsweredPolicies::One(_) => self.result.len().saturating_sub(ETAG_LENGTH),
            AnsweredPolicies::Several { etag_start, .. } => etag_start,
        };
        let etag = self.result.get(start..).unwrap_or_default();
        std::str::from_utf8(etag).unwrap_or_default()
    }

    /// Whether the answer has no policies.
    fn is_empty(&self) -> bool {
        match &self.policies {
            AnsweredPolicies::One(_) => false,
            AnsweredPolicies::Several { answers, .. } => answers.is_empty(),
        }
    }

    /// The effective policy of the only kind.
    fn one(&self) -> Option<KindAnswer<'_>> {
        match &self.policies {
            AnsweredPolicies::One(policy) => Some(KindAnswer {
                result: &self.result,
                policy,
            }),
            AnsweredPolicies::Several { .. } => None,
        }
    }

    /// The effective policies of all kinds.
    fn kinds(&self) -> impl Iterator<Item = KindAnswer<'_>> {
        let others = match &self.policies {
            AnsweredPolicies::One(_) => &[][..],
            AnsweredPolicies::Several { answers, .. } => answers,
        };
        let others = others.iter().filter_map(|answer| answer.one());
        self.one().into_iter().chain(others)
    }

    /// The etag of a reply with some kinds; empty for all kinds.
    pub fn etag_of(&self, kinds: &[GroupKind]) -> String {
        if kinds.is_empty() {
            return self.etag().to_owned();
        }
        combined_etag(self.selected(kinds).map(KindAnswer::etag))
    }

    /// The encoded fields `policies` of some kinds, each with its tag and length; empty for all kinds.
    pub fn policies<'b>(&'b self, kinds: &'b [GroupKind]) -> impl Iterator<Item = Bytes> + 'b {
        self.selected(kinds).map(KindAnswer::field)
    }

    /// The encoded fields `policies` of some kinds, or of all if empty, that differ from those of another answer.
    pub fn policies_unlike<'b>(
        &'b self,
        other: &'b PathAnswer,
        kinds: &'b [GroupKind],
    ) -> impl Iterator<Item = Bytes> + 'b {
        let is_equal = |answer: &KindAnswer<'_>| {
            let mut others = other.kinds();
            others.any(|other| other.kind() == answer.kind() && other.etag() == answer.etag())
        };
        let unlike = self.selected(kinds);
        let unlike = unlike.filter(move |answer| !is_equal(answer));
        unlike.map(KindAnswer::field)
    }

    /// The etag and the encoded field `policies` of one kind, with its tag and length.
    pub(crate) fn policy(&self, kind: &GroupKind) -> Option<(&str, Bytes)> {
        let answer = self.kinds().find(|answer| answer.kind() == kind)?;
        Some((answer.etag(), answer.field()))
    }

    /// The kinds that are not fully known on the path, with what is not known; of some kinds, or of all if
    /// empty.
    pub fn unknown<'b>(
        &'b self,
        kinds: &'b [GroupKind],
    ) -> impl Iterator<Item = (&'b GroupKind, &'b v1::Unknown)> {
        self.selected(kinds)
            .filter_map(|answer| Some((answer.kind(), answer.policy.unknown.as_deref()?)))
    }

    fn selected<'b>(&'b self, kinds: &'b [GroupKind]) -> impl Iterator<Item = KindAnswer<'b>> {
        let is_named = |kind: &GroupKind| kinds.iter().any(|named| named.names(kind));
        let all = self.kinds();
        all.filter(move |answer| kinds.is_empty() || is_named(answer.kind()))
    }
}

impl<'a> KindAnswer<'a> {
    fn kind(self) -> &'a GroupKind {
        &self.policy.kind
    }

    /// The field `policies`, with its tag and length. Shares the bytes.
    fn field(self) -> Bytes {
        self.result.slice(range(&self.policy.field))
    }

    /// The etag of the policy.
    fn etag(self) -> &'a str {
        std::str::from_utf8(self.etag_bytes()).unwrap_or_default()
    }

    fn etag_bytes(self) -> &'a [u8] {
        let etag = self.result.get(range(&self.policy.etag));
        etag.unwrap_or_default()
    }
}

/// A range of small numbers as one of indexes.
fn range(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Counts the distinct answers of each kind that do not know it, by reason.
fn count_unknown<'b>(
    bodies: impl Iterator<Item = &'b Arc<PathAnswer>>,
    includes: impl Fn(&GroupKind) -> bool,
) -> Vec<UnknownKind> {
    let mut counts: BTreeMap<(String, &str, &str), u64> = BTreeMap::new();
    let mut seen: HashSet<usize> = HashSet::new();
    for KindAnswer { policy, .. } in bodies.flat_map(|body| body.kinds()) {
        if let Some(unknown) = &policy.unknown
            && seen.insert(std::ptr::from_ref(policy).addr())
            && includes(&policy.kind)
        {
            let key = (policy.kind.to_string(), &*unknown.reason, &*unknown.message);
            *counts.entry(key).or_default() += 1;
        }
    }
    let kinds = counts.into_iter();
    kinds
        .map(|((kind, reason, message), answers)| UnknownKind {
            state: unknown_state(kind, reason, message),
            answers,
        })
        .collect()
}
