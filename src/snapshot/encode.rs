//! Encodes answers, each distinct one once, and keeps what did not change.

use std::hash::BuildHasher;
use std::num::NonZero;
use std::sync::{Arc, Weak};
use std::thread;

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashMap};

use super::{Body, Part};
use crate::api::{etag_of_all, policies_field, result_field, with_spec};
use entail_core::effective::{Question, World};
use entail_core::engine::{Machine, StateId, TrackId};
use entail_core::model::Chunks;

/// A kind's track, and whether it is asked above the effective level.
type Asked = (usize, TrackId, bool);

/// The encoded answers of a world.
#[derive(Debug, Default)]
pub struct Encoder {
    parts: HashMap<Asked, (Arc<Question>, Option<Arc<Part>>)>,
    /// What was answered before the world was read anew.
    before: HashMap<Arc<Question>, Option<Arc<Part>>>,
    /// Parts by the hash of their bytes.
    by_bytes: HashMap<u64, Vec<Weak<Part>>>,
    by_parts: HashMap<Vec<usize>, Weak<Body>>,
    hasher: DefaultHashBuilder,
    bodies: Chunks<Arc<Body>>,
    /// How many states share a body.
    uses: HashMap<usize, usize>,
    work: Work,
}

/// The answer to a question.
enum Answer {
    /// From before.
    Known(Arc<Question>, Option<Arc<Part>>),
    /// Merged now; nothing if it says nothing.
    Merged(Arc<Question>, Option<Part>),
}

/// Questions that are worth a thread of their own.
const WORTH_A_THREAD: usize = 500;

/// What was done since the start; a change that touches little does little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Answers merged.
    pub merged: u64,
    /// Bytes encoded.
    pub encoded: u64,
    /// States whose body was replaced.
    pub replaced: u64,
    /// Times that the world was read from scratch, but for the first.
    pub readings: u64,
    /// Different answers of single kinds that are held now.
    pub parts: usize,
    /// Different bodies that say something and are held now.
    pub bodies: usize,
}

impl Encoder {
    /// The bodies of all states of a world that was read anew. What has been answered before is not
    /// answered again.
    pub(super) fn all(&mut self, world: &World, machine: &Machine) {
        let known = std::mem::take(&mut self.parts);
        self.before = known.into_values().collect();
        let held = std::mem::take(&mut self.bodies);
        self.answer_all(world, machine);
        let mut bodies = Vec::with_capacity(machine.len());
        self.uses.clear();
        for state in 0..machine.len() {
            let state = StateId::try_from(state).unwrap_or(StateId::MAX);
            let body = self.body(world, machine, state);
            *self.uses.entry(address(&body)).or_default() += 1;
            bodies.push(body);
        }
        drop(held);
        self.work.replaced += bodies.len() as u64;
        self.bodies = Chunks::new(&bodies);
        self.before = HashMap::new();
        self.forget();
    }

    /// The bodies of the states on tracks that came to something else. Returns the states that have
    /// another body now.
    pub(super) fn again(
        &mut self,
        world: &World,
        machine: &Machine,
        dirty: &[(usize, TrackId)],
    ) -> Vec<StateId> {
        let mut states: Vec<StateId> = Vec::new();
        // What they held is kept until the end: an equal answer is the same body.
        let mut held = Vec::new();
        for &(kind, track) in dirty {
            for inherited_only in [false, true] {
                held.extend(self.parts.remove(&(kind, track, inherited_only)));
            }
            states.extend(machine.states_on(kind, track));
        }
        states.sort_unstable();
        states.dedup();
        let mut replaced = Vec::new();
        for state in states {
            let body = self.body(world, machine, state);
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

    /// The bodies by state.
    pub(super) fn bodies(&self) -> &Chunks<Arc<Body>> {
        &self.bodies
    }

    /// How many different bodies there are.
    pub(super) fn distinct(&self) -> usize {
        self.uses.len()
    }

    /// What was done since the start.
    pub fn work(&self) -> Work {
        let alive = |part: &&Weak<Part>| part.strong_count() > 0;
        let bodies = self.by_parts.iter();
        Work {
            parts: self.by_bytes.values().flatten().filter(alive).count(),
            bodies: bodies
                .filter(|(parts, body)| !parts.is_empty() && body.strong_count() > 0)
                .count(),
            ..self.work
        }
    }

    fn body(&mut self, world: &World, machine: &Machine, state: StateId) -> Arc<Body> {
        let mut parts = Vec::new();
        for (kind, track, inherited_only) in machine.tracks(world, state) {
            parts.extend(self.part(world, machine, (kind, track, inherited_only)));
        }
        let key: Vec<usize> = parts.iter().map(address).collect();
        if let Some(known) = self.by_parts.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        let tag = etag_of_all(parts.iter().map(|part| &*part.etag));
        let policies = parts.iter().map(|part| part.bytes.as_ref());
        let result = super::shared(result_field(policies, &tag));
        self.work.encoded += result.len() as u64;
        let body = Arc::new(Body {
            result,
            etag: tag.into(),
            parts,
        });
        self.by_parts.insert(key, Arc::downgrade(&body));
        body
    }

    /// The encoded answer of a kind; `None` if it says nothing.
    fn part(&mut self, world: &World, machine: &Machine, asked: Asked) -> Option<Arc<Part>> {
        if let Some((_, part)) = self.parts.get(&asked) {
            return part.clone();
        }
        let answer = self.answer(world, machine, asked)?;
        self.keep(asked, answer)
    }

    /// Answers what all states ask, on as many threads as there are when it is much.
    fn answer_all(&mut self, world: &World, machine: &Machine) {
        let states = (0..machine.len()).filter_map(|state| StateId::try_from(state).ok());
        let mut asked: Vec<Asked> = states.flat_map(|s| machine.tracks(world, s)).collect();
        asked.sort_unstable();
        asked.dedup();
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let share = asked.len().div_ceil(threads).max(WORTH_A_THREAD);
        let this = &*self;
        let answered = |chunk: &[Asked]| -> Vec<(Asked, Answer)> {
            let answer = |&asked: &Asked| Some((asked, this.answer(world, machine, asked)?));
            chunk.iter().filter_map(answer).collect()
        };
        let answers = thread::scope(|scope| {
            let (first, others) = asked.split_at(share.min(asked.len()));
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
        for (asked, answer) in answers {
            self.keep(asked, answer);
        }
    }

    /// The answer to a question, known from before or merged now.
    fn answer(&self, world: &World, machine: &Machine, asked: Asked) -> Option<Answer> {
        let (number, track, inherited_only) = asked;
        let frames = machine.frames(number, track, inherited_only)?;
        let kind = world.kinds().get(number)?;
        let question = Arc::new(world.question(kind, &frames));
        if let Some(known) = self.before.get(&question) {
            return Some(Answer::Known(question, known.clone()));
        }
        let (effective, spec) = world.written_answer(kind, &frames);
        let policy = &kind.profile().policy;
        let part = (spec.is_some() || !effective.is_silent()).then(|| {
            let message = with_spec(policy, &effective, spec);
            Part {
                kind: policy.clone(),
                bytes: Bytes::from(policies_field(&message)),
                etag: message.etag,
            }
        });
        Some(Answer::Merged(question, part))
    }

    /// Keeps an answer; what was merged is counted.
    fn keep(&mut self, asked: Asked, answer: Answer) -> Option<Arc<Part>> {
        let (question, part) = match answer {
            Answer::Known(question, part) => (question, part),
            Answer::Merged(question, part) => {
                self.work.merged += 1;
                (question, part.map(|part| self.encoded(part)))
            }
        };
        self.parts.insert(asked, (question, part.clone()));
        part
    }

    /// A part; one with the same bytes, if there is one.
    fn encoded(&mut self, part: Part) -> Arc<Part> {
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

/// Where it lies: one and the same has one address while it lives.
fn address<T>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).addr()
}
