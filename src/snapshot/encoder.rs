//! Encodes answers. Equal answers are encoded once, unchanged answers are kept.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use super::answer_table::{AnswerTable, ChainStateKey};
use super::{AnsweredPolicies, EncodedPolicy, KindAnswer, PathAnswer};
use crate::api::{
    combined_etag, effective_policy_without_etag, result_field, result_of_policy, v1,
};
use crate::cores::cores;
use entail_core::effective::{AnswerKey, AttachmentChain, PolicyKind, SharedGroups, World};
use entail_core::engine::{Automaton, ChainStateId, Engine, StateId};
use entail_core::model::{ChunkedVec, GroupKind, InternalError};

/// The encoded answers of a world.
#[derive(Debug, Default)]
pub struct AnswerEncoder {
    /// The answers of chain states.
    of_kinds: AnswerTable,
    /// The answers of states.
    bodies: ChunkedVec<Arc<PathAnswer>>,
    /// All of both by the etags of their policies, so that equal ones are one.
    known: HashTable<KnownAnswer>,
    hasher: DefaultHashBuilder,
    /// The answer of states that no path reaches.
    nothing: Option<Arc<PathAnswer>>,
    /// The number of answers that states have.
    distinct: usize,
    work: BuildStats,
}

/// An answer that was encoded, and may be gone.
#[derive(Debug)]
struct KnownAnswer {
    answer: Weak<PathAnswer>,
    /// The hash of the etags of its policies.
    hash: u32,
}

/// The answer of a chain state.
enum FoundAnswer {
    /// The one with the same key before the world was rebuilt.
    Kept(Arc<PathAnswer>),
    /// A new one; `None` if it is empty.
    Merged(Option<PathAnswer>),
}

/// The answers before the world was rebuilt. Keys are needed only then, so that they are not stored.
type AnswersByKey = HashMap<AnswerKey, Arc<PathAnswer>>;

/// Number of shares of a long list of answers for each thread.
const SHARES_PER_THREAD: usize = 8;
/// Minimum number of answers for which a thread is started.
const MIN_ANSWERS_PER_SHARE: usize = 100;

/// Counters of the work since the start, and current sizes. The work of a change grows with the
/// answers that it affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuildStats {
    /// Number of merged answers.
    pub merged: u64,
    /// Number of encoded bytes.
    pub encoded: u64,
    /// Number of states whose answer was replaced.
    pub replaced: u64,
    /// Number of rebuilds of the world after the first.
    pub rebuilds: u64,
    /// Current number of distinct answers of single kinds.
    pub parts: usize,
    /// Current number of distinct answers of paths that are not empty.
    pub bodies: usize,
}

impl AnswerEncoder {
    /// Encodes the answers of all states of a new or rebuilt world. With the engine whose answers were encoded last, those
    /// whose [`AnswerKey`] is unchanged are reused.
    pub(super) fn encode_all(&mut self, engine: &Engine, before: Option<&Engine>) {
        let (world, automaton) = (engine.world(), engine.automaton());
        // Kept until the end, so that equal answers stay the same object.
        let previous = (
            std::mem::take(&mut self.of_kinds),
            std::mem::take(&mut self.bodies),
        );
        let known = before.map(|before| answers_by_key(before, &previous.0));
        let states: Vec<StateId> = (0..automaton.len())
            .filter_map(|s| s.try_into().ok())
            .collect();
        self.answer_all(world, automaton, &states, &known.unwrap_or_default());
        let mut bodies = Vec::with_capacity(automaton.len());
        for answer in self.known.iter().filter_map(|known| known.answer.upgrade()) {
            answer.uses.store(0, Ordering::Relaxed);
        }
        self.distinct = 0;
        for state in states {
            let body = self.body(world, automaton, state);
            self.count_use(&body);
            bodies.push(body);
        }
        self.work.replaced += bodies.len() as u64;
        self.bodies = ChunkedVec::new(&bodies);
        drop(previous);
        self.forget();
    }

    /// Encodes the answers of the states with changed chain states. Returns the states whose answer
    /// changed.
    pub(super) fn encode_changed(
        &mut self,
        engine: &Engine,
        dirty: &[(usize, ChainStateId)],
    ) -> Vec<StateId> {
        self.encode_states(engine, dirty, Vec::new())
    }

    /// Encodes the answers of the states that paths reach now, of those with changed chain states, and drops those of
    /// the states that paths reach no more.
    pub(super) fn encode_paths(
        &mut self,
        engine: &Engine,
        dirty: &[(usize, ChainStateId)],
        added: Vec<StateId>,
        removed: &[StateId],
    ) {
        let nothing = Arc::clone(self.nothing.get_or_insert_with(Self::unknown));
        while self.bodies.len() < engine.automaton().len() {
            self.bodies.push(Arc::clone(&nothing));
        }
        // Kept until the end, so that equal answers stay the same object.
        let previous = removed
            .iter()
            .filter_map(|state| self.bodies.get(*state as usize));
        let previous: Vec<_> = previous.cloned().collect();
        self.encode_states(engine, dirty, added);
        for &state in removed {
            self.put(state, Arc::clone(&nothing));
        }
        self.drop_unreached(engine, removed);
        drop(previous);
        self.forget();
    }

    /// Drops the answers of chain states that only states have which no path reaches any more: they keep their policies.
    fn drop_unreached(&mut self, engine: &Engine, removed: &[StateId]) {
        let (world, automaton) = (engine.world(), engine.automaton());
        for &state in removed {
            let chain_states = automaton.chain_states(world, state);
            for (kind, chain_state, _) in chain_states.unwrap_or_else(|error| fail(world, error)) {
                let mut reached = match engine.states_in(kind, chain_state) {
                    Ok(reached) => reached,
                    Err(error) => return fail(world, error),
                };
                if reached.next().is_none() {
                    for inherited_only in [false, true] {
                        self.of_kinds.remove(&(kind, chain_state, inherited_only));
                    }
                }
            }
        }
    }

    /// Encodes the answers of some states and of those with changed chain states. Returns the states whose answer
    /// changed.
    fn encode_states(
        &mut self,
        engine: &Engine,
        dirty: &[(usize, ChainStateId)],
        mut states: Vec<StateId>,
    ) -> Vec<StateId> {
        let (world, automaton) = (engine.world(), engine.automaton());
        // Kept until the end, so that equal answers stay the same object.
        let mut previous = Vec::new();
        for &(kind, chain_state) in dirty {
            for inherited_only in [false, true] {
                previous.extend(self.of_kinds.remove(&(kind, chain_state, inherited_only)));
            }
            match engine.states_in(kind, chain_state) {
                Ok(with_chain_state) => states.extend(with_chain_state),
                Err(error) => fail(world, error),
            }
        }
        states.sort_unstable();
        states.dedup();
        self.answer_all(world, automaton, &states, &HashMap::new());
        let mut replaced = Vec::new();
        for state in states {
            let body = self.body(world, automaton, state);
            if self.put(state, body) {
                replaced.push(state);
            }
        }
        self.work.replaced += replaced.len() as u64;
        self.forget();
        replaced
    }

    /// Replaces the answer of a state. Returns whether it is another one.
    fn put(&mut self, state: StateId, body: Arc<PathAnswer>) -> bool {
        let old = self.bodies.get(state as usize).cloned();
        if old.as_ref().map(address) == Some(address(&body)) {
            return false;
        }
        self.count_use(&body);
        if let Some(old) = old.filter(|old| !self.is_nothing(old)) {
            let was_last = old.uses.fetch_sub(1, Ordering::Relaxed) == 1;
            self.distinct -= usize::from(was_last);
        }
        self.bodies.set(state as usize, body);
        true
    }

    /// Counts that one more state has an answer.
    fn count_use(&mut self, answer: &Arc<PathAnswer>) {
        if !self.is_nothing(answer) {
            let is_first = answer.uses.fetch_add(1, Ordering::Relaxed) == 0;
            self.distinct += usize::from(is_first);
        }
    }

    /// Whether an answer is that of states which no path reaches. It is not one of those that there are.
    fn is_nothing(&self, answer: &Arc<PathAnswer>) -> bool {
        let nothing = self.nothing.as_ref();
        nothing.is_some_and(|nothing| Arc::ptr_eq(nothing, answer))
    }

    /// The hash of the etags of an answer's policies.
    fn hash_of(&self, answer: &PathAnswer) -> u32 {
        self.hash_of_etags(answer.kinds().map(KindAnswer::etag_bytes))
    }

    fn hash_of_etags<'e>(&self, etags: impl Iterator<Item = &'e [u8]>) -> u32 {
        let mut hasher = self.hasher.build_hasher();
        etags.for_each(|etag| etag.hash(&mut hasher));
        u32::try_from(hasher.finish() >> 32).unwrap_or_default()
    }

    /// Returns the answer after an internal error. It is empty, and its etag differs from that of every
    /// other answer.
    pub(super) fn unknown() -> Arc<PathAnswer> {
        let etag = "unknown";
        let result = result_field(std::iter::empty(), etag);
        Arc::new(PathAnswer::several(result, etag.len(), Box::default()))
    }

    /// The answers by state.
    pub(super) fn bodies(&self) -> &ChunkedVec<Arc<PathAnswer>> {
        &self.bodies
    }

    /// Number of distinct answers.
    pub(super) fn distinct(&self) -> usize {
        self.distinct
    }

    /// Counters of the work since the start.
    pub fn stats(&self) -> BuildStats {
        let mut stats = self.work;
        for known in &self.known {
            if let Some(answer) = known.answer.upgrade() {
                let is_used = answer.uses.load(Ordering::Relaxed) > 0;
                stats.parts += usize::from(answer.one().is_some());
                stats.bodies += usize::from(is_used && !answer.is_empty());
            }
        }
        stats
    }

    /// Returns the answer of a state.
    fn body(&mut self, world: &World, automaton: &Automaton, state: StateId) -> Arc<PathAnswer> {
        let chain_states = automaton.chain_states(world, state);
        let chain_states = chain_states.unwrap_or_else(|error| fail(world, error));
        let answers = chain_states
            .into_iter()
            .map(|key| self.of_kind(world, automaton, key));
        let mut answers: Vec<_> = answers.filter(|answer| !answer.is_empty()).collect();
        match answers.len() {
            1 => answers.remove(0),
            _ => self.several(answers),
        }
    }

    /// Returns the answer of several kinds or of none.
    fn several(&mut self, answers: Vec<Arc<PathAnswer>>) -> Arc<PathAnswer> {
        let policies = answers.iter().filter_map(|answer| answer.one());
        let hash = self.hash_of_etags(policies.clone().map(KindAnswer::etag_bytes));
        // An answer keeps those of its kinds, so that no others have their addresses while it is there.
        let has_answers = |known: &PathAnswer| match &known.policies {
            AnsweredPolicies::Several { answers: of, .. } => {
                of.iter().map(address).eq(answers.iter().map(address))
            }
            AnsweredPolicies::One(_) => false,
        };
        if let Some(known) = self.find(hash, has_answers) {
            return known;
        }
        let tag = combined_etag(policies.map(KindAnswer::etag));
        let fields = answers.iter().flat_map(|answer| answer.kinds());
        let fields: Vec<Bytes> = fields.map(KindAnswer::field).collect();
        let result = result_field(fields.iter().map(AsRef::as_ref), &tag);
        self.work.encoded += result.len() as u64;
        self.add(hash, PathAnswer::several(result, tag.len(), answers.into()))
    }

    /// Returns the answer of one kind.
    fn of_kind(
        &mut self,
        world: &World,
        automaton: &Automaton,
        key: ChainStateKey,
    ) -> Arc<PathAnswer> {
        if let Some(answer) = self.of_kinds.get(&key) {
            return Arc::clone(answer);
        }
        match answers(world, automaton, &[key], &HashMap::new()).pop() {
            Some((key, answer)) => self.keep(key, answer),
            None => self.several(Vec::new()),
        }
    }

    /// Computes the answers of some states that are not there, in parallel if there are many.
    fn answer_all(
        &mut self,
        world: &World,
        automaton: &Automaton,
        states: &[StateId],
        before: &AnswersByKey,
    ) {
        let keys = states.iter().flat_map(|&state| {
            let chain_states = automaton.chain_states(world, state);
            chain_states.unwrap_or_else(|error| fail(world, error))
        });
        let mut keys: Vec<ChainStateKey> = keys
            .filter(|key| self.of_kinds.get(key).is_none())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let answers = in_shares(&keys, |share| {
            // The paths of a chain state above the effective level and those at it.
            let pairs = share.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
            pairs
                .flat_map(|keys| answers(world, automaton, keys, before))
                .collect()
        });
        for (key, answer) in answers {
            self.keep(key, answer);
        }
    }

    /// Stores the answer of a chain state.
    fn keep(&mut self, key: ChainStateKey, answer: FoundAnswer) -> Arc<PathAnswer> {
        let answer = match answer {
            FoundAnswer::Kept(answer) => answer,
            FoundAnswer::Merged(answer) => {
                self.work.merged += 1;
                match answer {
                    Some(answer) => self.one(answer),
                    None => self.several(Vec::new()),
                }
            }
        };
        self.of_kinds.insert(key, Arc::clone(&answer));
        answer
    }

    /// Returns the known answer that equals one of one kind, or adds this one.
    fn one(&mut self, answer: PathAnswer) -> Arc<PathAnswer> {
        self.work.encoded += answer.one().map_or(0, |one| one.policy.field.len() as u64);
        let hash = self.hash_of(&answer);
        match self.find(hash, |known| *known == answer) {
            Some(known) => known,
            None => self.add(hash, answer),
        }
    }

    /// The known answer with a hash for which `is_same` holds, if it is still there.
    fn find(&self, hash: u32, is_same: impl Fn(&PathAnswer) -> bool) -> Option<Arc<PathAnswer>> {
        let is_same = |known: &KnownAnswer| {
            let answer = || known.answer.upgrade();
            known.hash == hash && answer().is_some_and(|answer| is_same(&answer))
        };
        self.known.find(spread(hash), is_same)?.answer.upgrade()
    }

    /// Adds an answer that is not known.
    fn add(&mut self, hash: u32, answer: PathAnswer) -> Arc<PathAnswer> {
        let answer = Arc::new(answer);
        let known = KnownAnswer {
            answer: Arc::downgrade(&answer),
            hash,
        };
        self.known
            .insert_unique(spread(hash), known, |known| spread(known.hash));
        answer
    }

    /// Removes unused answers once they outnumber the used ones, so that the cost is amortized.
    fn forget(&mut self) {
        if self.known.len() > 2 * (self.of_kinds.len() + self.distinct) + 64 {
            self.known.retain(|known| known.answer.strong_count() > 0);
        }
    }
}

/// Returns the answers for keys of one chain state: those before the rebuild, or new ones. Its policies are merged once.
fn answers(
    world: &World,
    automaton: &Automaton,
    keys: &[ChainStateKey],
    before: &AnswersByKey,
) -> Vec<(ChainStateKey, FoundAnswer)> {
    let mut folded = None;
    let mut found = Vec::with_capacity(keys.len());
    for (place, &key) in (1..).zip(keys) {
        let Some((kind, chain)) = chain_of(world, automaton, key) else {
            continue;
        };
        let known = match before.is_empty() {
            true => None,
            false => before.get(&world.answer_key(kind, &chain)),
        };
        if let Some(answer) = known {
            found.push((key, FoundAnswer::Kept(Arc::clone(answer))));
            continue;
        }
        let fold = folded.take();
        let fold = fold.unwrap_or_else(|| world.fold_chain(kind, &chain));
        folded = (place < keys.len()).then(|| fold.clone());
        let (effective, spec) = fold.into_answer(chain.inherited_only());
        let policy = &kind.profile().policy;
        let answer = (spec.is_some() || !effective.is_empty()).then(|| {
            let message = effective_policy_without_etag(policy, &effective, spec);
            encode(policy.clone(), message)
        });
        found.push((key, FoundAnswer::Merged(answer)));
    }
    found
}

/// The kind and the chain of a chain state. An internal error makes the kind UNKNOWN.
fn chain_of<'w>(
    world: &'w World,
    automaton: &Automaton,
    (number, chain_state, inherited_only): ChainStateKey,
) -> Option<(&'w PolicyKind, AttachmentChain)> {
    let kind = world.kinds().get(number)?;
    match automaton.chain(number, chain_state, inherited_only) {
        Ok(chain) => Some((kind, chain?)),
        Err(error) => {
            kind.fail(error);
            None
        }
    }
}

/// The answers of an engine by their keys.
fn answers_by_key(engine: &Engine, answers: &AnswerTable) -> AnswersByKey {
    let (world, automaton) = (engine.world(), engine.automaton());
    let answers: Vec<(ChainStateKey, &Arc<PathAnswer>)> = answers.iter().collect();
    let keys = in_shares(&answers, |share| {
        let mut groups = SharedGroups::default();
        let keys = share.iter().filter_map(|&(key, answer)| {
            let (kind, chain) = chain_of(world, automaton, key)?;
            let mut answer_key = world.answer_key(kind, &chain);
            answer_key.share(&mut groups);
            Some((answer_key, Arc::clone(answer)))
        });
        keys.collect()
    });
    keys.into_iter().collect()
}

/// Applies a function to shares of a list, in parallel if it is long. Each thread takes the next share when it has done
/// one, because some take longer.
fn in_shares<T: Sync, R: Send>(items: &[T], of_share: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    let size = items.len().div_ceil(cores() * SHARES_PER_THREAD);
    let shares: Vec<&[T]> = items.chunks(size.max(MIN_ANSWERS_PER_SHARE)).collect();
    let next = AtomicUsize::new(0);
    let take_shares = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            match shares.get(number) {
                Some(share) => done.push((number, of_share(share))),
                None => return done,
            }
        }
    };
    let mut done: BTreeMap<usize, Vec<R>> = thread::scope(|scope| {
        let threads = (1..cores().min(shares.len()))
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, take_shares).ok());
        let threads: Vec<_> = threads.collect();
        let own = take_shares();
        let others = threads.into_iter().filter_map(|thread| thread.join().ok());
        others.flatten().chain(own).collect()
    });
    let shares = shares.into_iter().enumerate();
    // What a thread did that failed is done again.
    let results =
        shares.map(|(number, share)| done.remove(&number).unwrap_or_else(|| of_share(share)));
    results.flatten().collect()
}

/// Encodes the answer of a kind: the field `result` of a path that has no other.
fn encode(kind: GroupKind, message: v1::EffectivePolicy) -> PathAnswer {
    let unknown = message.unknown.clone().map(Box::new);
    let encoded = result_of_policy(message);
    PathAnswer {
        result: super::shared_bytes(encoded.result),
        policies: AnsweredPolicies::One(EncodedPolicy {
            kind,
            field: part(encoded.policies),
            etag: part(encoded.etag),
            unknown,
        }),
        uses: AtomicU32::new(0),
    }
}

/// The range of a part of an answer. Answers are much shorter than 4 GiB: the policies of a path fit into a reply.
fn part(range: Range<usize>) -> Range<u32> {
    let at = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
    at(range.start)..at(range.end)
}

/// Records an internal error, which makes all kinds UNKNOWN; returns an empty value.
fn fail<T: Default>(world: &World, error: InternalError) -> T {
    world.kinds().iter().for_each(|kind| kind.fail(error));
    T::default()
}

/// A hash of 32 bits as one of 64: tables use the lowest and the highest bits.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// The address of a shared value, which identifies it while it is alive.
fn address<T>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).addr()
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::api::etag;

    fn answer(etag: &str, policies: &[&[u8]]) -> PathAnswer {
        let result = result_field(policies.iter().copied(), etag);
        PathAnswer::several(result, etag.len(), Box::default())
    }

    #[test]
    fn an_answer_ends_with_its_etag() {
        let origin = v1::Origin {
            unit: "a.b".to_owned(),
            ..v1::Origin::default()
        };
        let mut policy = v1::EffectivePolicy {
            kind: "Foo".to_owned(),
            spec_json: Some("{}".to_owned()),
            spec_etag: etag(b"{}"),
            origins: vec![origin],
            strategy: "AtomicDefaults".to_owned(),
            inherited_only: true,
            ..v1::EffectivePolicy::default()
        };
        let one = encode(GroupKind::new("", "Foo"), policy.clone());
        policy.etag = etag(&policy.encode_to_vec());
        let body = v1::PolicyBody {
            policies: vec![policy.clone()],
        };
        let bytes = body.encode_to_vec();
        let alone = one.one().unwrap();
        assert_eq!((alone.etag(), &*alone.field()), (&*policy.etag, &*bytes));
        let tag = combined_etag([&*policy.etag].into_iter());
        let several = answer(&tag, &[&bytes]);
        assert_eq!((one.etag(), &one.result), (&*tag, &several.result));
        for answer in [
            answer("unknown", &[]),
            answer("two", &[&bytes, &bytes]),
            several,
            one,
        ] {
            let reply = v1::GetEffectivePoliciesResponse::decode(&*answer.result).unwrap();
            assert_eq!(reply.result.unwrap().etag, answer.etag());
        }
    }
}
