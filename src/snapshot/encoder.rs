//! Encodes answers, each distinct one once, and keeps what did not change.

use std::hash::BuildHasher;
use std::num::NonZero;
use std::sync::{Arc, Weak};
use std::thread;

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashMap};

use super::{KindAnswer, PathAnswer};
use crate::api::{combined_etag, effective_policy_with_spec, policies_field, result_field};
use entail_core::effective::{AnswerKey, World};
use entail_core::engine::{Automaton, ChainStateId, StateId};
use entail_core::model::{ChunkedVec, InternalError};

/// A kind's chain state, and whether it is asked above the effective level.
type ChainStateKey = (usize, ChainStateId, bool);

/// The encoded answers of a world.
#[derive(Debug, Default)]
pub struct AnswerEncoder {
    parts: HashMap<ChainStateKey, (Arc<AnswerKey>, Option<Arc<KindAnswer>>)>,
    /// What was answered before the world was read anew.
    before: HashMap<Arc<AnswerKey>, Option<Arc<KindAnswer>>>,
    /// Parts by the hash of their bytes.
    by_bytes: HashMap<u64, Vec<Weak<KindAnswer>>>,
    by_parts: HashMap<Vec<usize>, Weak<PathAnswer>>,
    hasher: DefaultHashBuilder,
    bodies: ChunkedVec<Arc<PathAnswer>>,
    /// How many states share a body.
    uses: HashMap<usize, usize>,
    work: BuildStats,
}

/// The answer to a question.
enum AnswerLookup {
    /// From before.
    Cached(Arc<AnswerKey>, Option<Arc<KindAnswer>>),
    /// Merged now; nothing if it says nothing.
    Merged(Arc<AnswerKey>, Option<KindAnswer>),
}

/// Questions that are worth a thread of their own.
const MIN_ANSWERS_PER_THREAD: usize = 500;

/// What was done since the start; a change that touches little does little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuildStats {
    /// Answers merged.
    pub merged: u64,
    /// Bytes encoded.
    pub encoded: u64,
    /// States whose body was replaced.
    pub replaced: u64,
    /// Times that the world was read from scratch, but for the first.
    pub rebuilds: u64,
    /// Different answers of single kinds that are held now.
    pub parts: usize,
    /// Different bodies that say something and are held now.
    pub bodies: usize,
}

impl AnswerEncoder {
    /// The bodies of all states of a world that was read anew. What has been answered before is not
    /// answered again.
    pub(super) fn encode_all(&mut self, world: &World, automaton: &Automaton) {
        let known = std::mem::take(&mut self.parts);
        self.before = known.into_values().collect();
        let held = std::mem::take(&mut self.bodies);
        self.answer_all(world, automaton);
        let mut bodies = Vec::with_capacity(automaton.len());
        self.uses.clear();
        for state in 0..automaton.len() {
            let state = StateId::try_from(state).unwrap_or(StateId::MAX);
            let body = self.body(world, automaton, state);
            *self.uses.entry(address(&body)).or_default() += 1;
            bodies.push(body);
        }
        drop(held);
        self.work.replaced += bodies.len() as u64;
        self.bodies = ChunkedVec::new(&bodies);
        self.before = HashMap::new();
        self.forget();
    }

    /// The bodies of the states on chain states that came to something else. Returns the states that have
    /// another body now.
    pub(super) fn encode_changed(
        &mut self,
        world: &World,
        automaton: &Automaton,
        dirty: &[(usize, ChainStateId)],
    ) -> Vec<StateId> {
        let mut states: Vec<StateId> = Vec::new();
        // What they held is kept until the end: an equal answer is the same body.
        let mut held = Vec::new();
        for &(kind, chain_state) in dirty {
            for inherited_only in [false, true] {
                held.extend(self.parts.remove(&(kind, chain_state, inherited_only)));
            }
            let on_track = automaton.states_in(kind, chain_state);
            states.extend(on_track.unwrap_or_else(|error| fail(world, error)));
        }
        states.sort_unstable();
        states.dedup();
        let mut replaced = Vec::new();
        for state in states {
            let body = self.body(world, automaton, state);
            let old = self.bodies.get(state as usize).map(address);
            if old == Some(address(&body)) {
                continue;
            }
            replaced.push(state);
            *self.uses.entry(address(&body)).or_default() += 1;
            if let Some(old) = old
                && let Some(count) = self.uses.get_mut(&old)
            {
                *count -= 1;
                if *count == 0 {
                    self.uses.remove(&old);
                }
            }
            self.bodies.set(state as usize, body);
        }
        self.work.replaced += replaced.len() as u64;
        self.forget();
        replaced
    }

    /// The answer where something is missing that cannot be. It says nothing, and its etag is that
    /// of no other answer.
    pub(super) fn unknown() -> Arc<PathAnswer> {
        let etag = "unknown";
        Arc::new(PathAnswer {
            result: super::shared_bytes(result_field(std::iter::empty(), etag)),
            etag: etag.into(),
            parts: Vec::new(),
        })
    }

    /// The bodies by state.
    pub(super) fn bodies(&self) -> &ChunkedVec<Arc<PathAnswer>> {
        &self.bodies
    }

    /// How many different bodies there are.
    pub(super) fn distinct(&self) -> usize {
        self.uses.len()
    }

    /// What was done since the start.
    pub fn stats(&self) -> BuildStats {
        let alive = |part: &&Weak<KindAnswer>| part.strong_count() > 0;
        let bodies = self.by_parts.iter();
        BuildStats {
            parts: self.by_bytes.values().flatten().filter(alive).count(),
            bodies: bodies
                .filter(|(parts, body)| !parts.is_empty() && body.strong_count() > 0)
                .count(),
            ..self.work
        }
    }

    fn body(&mut self, world: &World, automaton: &Automaton, state: StateId) -> Arc<PathAnswer> {
        let mut parts = Vec::new();
        let chain_states = automaton.chain_states(world, state);
        for (kind, chain_state, inherited_only) in
            chain_states.unwrap_or_else(|error| fail(world, error))
        {
            parts.extend(self.part(world, automaton, (kind, chain_state, inherited_only)));
        }
        let key: Vec<usize> = parts.iter().map(address).collect();
        if let Some(known) = self.by_parts.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        let tag = combined_etag(parts.iter().map(|part| &*part.etag));
        let policies = parts.iter().map(|part| part.bytes.as_ref());
        let result = super::shared_bytes(result_field(policies, &tag));
        self.work.encoded += result.len() as u64;
        let body = Arc::new(PathAnswer {
            result,
            etag: tag.into(),
            parts,
        });
        self.by_parts.insert(key, Arc::downgrade(&body));
        body
    }

    /// The encoded answer of a kind; `None` if it says nothing.
    fn part(
        &mut self,
        world: &World,
        automaton: &Automaton,
        key: ChainStateKey,
    ) -> Option<Arc<KindAnswer>> {
        if let Some((_, part)) = self.parts.get(&key) {
            return part.clone();
        }
        let answer = self.answer(world, automaton, key)?;
        self.keep(key, answer)
    }

    /// Answers what all states ask, on as many threads as there are when it is much.
    fn answer_all(&mut self, world: &World, automaton: &Automaton) {
        let states = (0..automaton.len()).filter_map(|state| StateId::try_from(state).ok());
        let mut keys: Vec<ChainStateKey> = states
            .flat_map(|state| {
                let chain_states = automaton.chain_states(world, state);
                chain_states.unwrap_or_else(|error| fail(world, error))
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let share = keys.len().div_ceil(threads).max(MIN_ANSWERS_PER_THREAD);
        let this = &*self;
        let answered = |chunk: &[ChainStateKey]| -> Vec<(ChainStateKey, AnswerLookup)> {
            let answer = |&key: &ChainStateKey| Some((key, this.answer(world, automaton, key)?));
            chunk.iter().filter_map(answer).collect()
        };
        let answers = thread::scope(|scope| {
            let (first, others) = keys.split_at(share.min(keys.len()));
            let there = others.chunks(share).map(|chunk| {
                let thread = thread::Builder::new().spawn_scoped(scope, || answered(chunk));
                (chunk, thread)
            });
            let there: Vec<_> = there.collect();
            let mut answers = answered(first);
            for (chunk, thread) in there {
                // What cannot be done there, where no thread is to be had, is done here.
                let told = thread.ok().and_then(|thread| thread.join().ok());
                answers.extend(told.unwrap_or_else(|| answered(chunk)));
            }
            answers
        });
        for (key, answer) in answers {
            self.keep(key, answer);
        }
    }

    /// The answer to a question, known from before or merged now.
    fn answer(
        &self,
        world: &World,
        automaton: &Automaton,
        key: ChainStateKey,
    ) -> Option<AnswerLookup> {
        let (number, chain_state, inherited_only) = key;
        let kind = world.kinds().get(number)?;
        let chain = match automaton.chain(number, chain_state, inherited_only) {
            Ok(chain) => chain?,
            Err(error) => {
                kind.fail(error);
                return None;
            }
        };
        let answer_key = Arc::new(world.answer_key(kind, &chain));
        if let Some(known) = self.before.get(&answer_key) {
            return Some(AnswerLookup::Cached(answer_key, known.clone()));
        }
        let (effective, spec) = world.answer_json(kind, &chain);
        let policy = &kind.profile().policy;
        let part = (spec.is_some() || !effective.is_empty()).then(|| {
            let message = effective_policy_with_spec(policy, &effective, spec);
            KindAnswer {
                kind: policy.clone(),
                bytes: Bytes::from(policies_field(&message)),
                etag: message.etag,
            }
        });
        Some(AnswerLookup::Merged(answer_key, part))
    }

    /// Keeps an answer; what was merged is counted.
    fn keep(&mut self, key: ChainStateKey, answer: AnswerLookup) -> Option<Arc<KindAnswer>> {
        let (answer_key, part) = match answer {
            AnswerLookup::Cached(answer_key, part) => (answer_key, part),
            AnswerLookup::Merged(answer_key, part) => {
                self.work.merged += 1;
                (answer_key, part.map(|part| self.encoded(part)))
            }
        };
        self.parts.insert(key, (answer_key, part.clone()));
        part
    }

    /// A part; one with the same bytes, if there is one.
    fn encoded(&mut self, part: KindAnswer) -> Arc<KindAnswer> {
        self.work.encoded += part.bytes.len() as u64;
        let hash = self.hasher.hash_one(&part.bytes);
        let alike = self.by_bytes.entry(hash).or_default();
        alike.retain(|known| known.strong_count() > 0);
        let same = alike.iter().filter_map(Weak::upgrade);
        if let Some(known) = same.into_iter().find(|known| **known == part) {
            return known;
        }
        let part = Arc::new(part);
        alike.push(Arc::downgrade(&part));
        part
    }

    /// Forgets what nothing uses any more, now and then: as much as there is in use may be left.
    fn forget(&mut self) {
        if self.by_parts.len() > 2 * self.uses.len() + 64 {
            self.by_parts.retain(|_, body| body.strong_count() > 0);
        }
        if self.by_bytes.len() > 2 * self.parts.len() + 64 {
            self.by_bytes.retain(|_, alike| {
                alike.retain(|part| part.strong_count() > 0);
                !alike.is_empty()
            });
        }
    }
}

/// Makes all kinds unknown; returns nothing.
fn fail<T: Default>(world: &World, error: InternalError) -> T {
    world.kinds().iter().for_each(|kind| kind.fail(error));
    T::default()
}

/// Where it lies: one and the same has one address while it lives.
fn address<T>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).addr()
}
