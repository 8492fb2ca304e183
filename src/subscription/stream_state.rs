//! What one stream has sent, and its difference to a snapshot.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use hashbrown::{HashMap, HashSet};

use super::ledger::{Cost, Holding};
use super::path_list::{BLOCK, PathEntry, PathList, digest};
use super::request::Subscription;
use super::resume::EtagBits;
use super::update::{NewAnswer, StreamUpdate, UpdatePlan};
use super::watch_group::WatchGroup;
use crate::api::v1;
use crate::snapshot::{PathAnswer, Snapshot};

/// What one stream has sent to its caller, and what it follows.
#[derive(Debug)]
pub struct StreamState {
    subscription: Subscription,
    position: Arc<Position>,
}

/// What streams have sent to their callers. Streams of the same selection that have sent the same
/// share it. The size grows with the distinct answers, and not with the paths: path names are in the
/// shared [`PathList`].
#[derive(Clone, Debug, Default)]
pub(super) struct Position {
    /// The paths that were sent.
    paths: Option<Arc<PathList>>,
    /// The etags of the answers that were sent, by slot of `paths`.
    sent: Vec<EtagBits>,
    /// The answers that the caller has.
    answers: HashMap<EtagBits, SentAnswer>,
    /// The number of the last new answer.
    last_number: u32,
    /// The digests of the blocks of `paths` with their answers.
    blocks: Vec<EtagBits>,
    /// The digest of all blocks, by which a stream resumes.
    content: EtagBits,
    /// The states of kinds that were sent.
    kinds: Vec<v1::KindState>,
    /// The mesh roots with policies for their own clients that were sent.
    client_roots: Vec<String>,
    /// Also identifies the position.
    holding: Holding,
}

/// The steps that streams make to the paths of a list: streams that make the same step share the
/// update and the position that they reach.
#[derive(Debug, Default)]
pub(super) struct SharedSteps {
    by_key: HashMap<StepKey, SharedStep>,
    /// Number of steps after which those that no stream makes are removed.
    sweep_at: usize,
}

/// A step of streams: their selection, the position that they leave, and the snapshot that they
/// reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StepKey {
    selection: EtagBits,
    from: u64,
    /// The content in the resume token of a stream that has sent nothing, and the position that is known for it.
    resumed: Option<(EtagBits, u64)>,
    generation: u64,
    synced_at: (i64, i32),
}

#[derive(Debug)]
struct SharedStep {
    position: Weak<Position>,
    plan: Weak<UpdatePlan>,
    has_changes: bool,
}

/// What a stream sends, and the position that it then has.
struct Step {
    position: Arc<Position>,
    plan: Arc<UpdatePlan>,
    has_changes: bool,
}

/// An answer that the caller has.
#[derive(Clone, Copy, Debug, Default)]
struct SentAnswer {
    /// Its number on this stream; `None` if the caller received it on an earlier stream.
    number: Option<u32>,
    /// Number of slots with this answer.
    uses: u32,
}

/// Number of steps of one list that are remembered at least.
const SWEEP_AFTER: usize = 64;

impl SharedSteps {
    /// Returns the step with a key, and the position that it reaches, as far as streams still have
    /// them.
    fn get(&self, key: &StepKey, kinds: &[v1::KindState]) -> (Option<Arc<Position>>, Option<Step>) {
        let Some(shared) = self.by_key.get(key) else {
            return (None, None);
        };
        let position = shared.position.upgrade().filter(|p| p.kinds == kinds);
        let step = position.clone().zip(shared.plan.upgrade());
        let step = step.map(|(position, plan)| Step {
            position,
            plan,
            has_changes: shared.has_changes,
        });
        (position, step)
    }

    fn insert(&mut self, key: StepKey, step: &Step) {
        if self.by_key.len() > self.sweep_at + SWEEP_AFTER {
            self.by_key
                .retain(|_, shared| shared.position.strong_count() > 0);
            self.sweep_at = self.by_key.len();
        }
        let shared = SharedStep {
            position: Arc::downgrade(&step.position),
            plan: Arc::downgrade(&step.plan),
            has_changes: step.has_changes,
        };
        self.by_key.insert(key, shared);
    }
}

impl StreamState {
    /// Creates the state of a stream that has sent nothing.
    pub fn new(subscription: Subscription) -> Self {
        Self {
            subscription,
            position: Arc::default(),
        }
    }

    /// The group of the streams that follow the same paths.
    pub fn group(&self) -> &Arc<WatchGroup> {
        self.subscription.group()
    }

    /// The paths that were sent, if they are still the paths of a snapshot.
    pub fn paths_of(&self, snapshot: &Snapshot) -> Option<Arc<PathList>> {
        let paths = self.position.paths.as_ref();
        let paths = paths.filter(|paths| paths.is_of(snapshot));
        paths.map(Arc::clone)
    }

    /// What the stream holds in memory, with an update that it sends.
    pub(super) fn holdings(&self, update: Option<&StreamUpdate>) -> Vec<Holding> {
        let plan = update.map(StreamUpdate::plan);
        let mut held: Vec<Holding> = self.subscription.holdings().collect();
        held.push(self.position.holding.clone());
        held.extend(self.position.paths.iter().map(|paths| paths.holding()));
        held.extend(plan.map(|plan| plan.holding().clone()));
        held
    }

    /// Returns the update that brings the caller to a snapshot, and records it as sent. `paths` is
    /// the list for that snapshot. If the list is the one that was sent before, only the slots that
    /// a publication after `seen` marked are compared. If nothing has changed, returns an update
    /// without paths when `is_due`, which carries the new `synced_at`, and `None` otherwise.
    pub fn update(
        &mut self,
        snapshot: &Snapshot,
        paths: &Arc<PathList>,
        seen: u64,
        is_due: bool,
    ) -> Option<StreamUpdate> {
        let is_first = self.position.paths.is_none();
        let version = snapshot.version();
        let key = StepKey {
            selection: self.subscription.selection,
            from: self.position.holding.id(),
            resumed: self.subscription.resume_point().map(|point| {
                let position = point.position.as_ref();
                let known = position.map_or(0, |position| position.holding.id());
                (point.content, known)
            }),
            generation: version.generation,
            synced_at: (version.synced_at.seconds, version.synced_at.nanos),
        };
        let kinds = self.subscription.incomplete(snapshot);
        // Held while the step is computed, so that streams which wake together compute it once.
        let mut steps = paths.steps();
        let (known, step) = steps.get(&key, &kinds);
        let step = step.unwrap_or_else(|| {
            let mut step = self.step(snapshot, paths, seen, kinds);
            // A stream has made the step before and has finished it. The step has one result.
            step.position = known.unwrap_or(step.position);
            if !Arc::ptr_eq(&step.position, &self.position) {
                steps.insert(key, &step);
            }
            step
        });
        drop(steps);
        self.position = step.position;
        self.subscription.reached(&self.position);
        (is_due || is_first || step.has_changes).then(|| StreamUpdate::of(step.plan))
    }

    /// Computes the difference to a snapshot.
    fn step(
        &self,
        snapshot: &Snapshot,
        paths: &Arc<PathList>,
        seen: u64,
        kinds: Vec<v1::KindState>,
    ) -> Step {
        let mut plan = UpdatePlan::of(Arc::clone(paths));
        let is_first = self.position.paths.is_none();
        let has_new_roots = self.position.client_roots != paths.client_roots();
        let has_new_tail = has_new_roots || self.position.kinds != kinds || is_first;
        if !has_new_tail && !self.has_changes(snapshot, paths, seen) {
            let token = self.subscription.token(self.position.content);
            return Step {
                position: Arc::clone(&self.position),
                plan: Arc::new(plan.complete(token, snapshot, &kinds)),
                has_changes: false,
            };
        }
        let mut next = self.start(snapshot, paths);
        let before = next.paths.replace(Arc::clone(paths));
        let before = before.as_ref();
        let is_same_list = before.is_some_and(|before| Arc::ptr_eq(before, paths));
        let mut builder = StepBuilder {
            subscription: &self.subscription,
            position: &mut next,
        };
        match before {
            None => builder.add_first(snapshot, paths, &mut plan),
            Some(_) if is_same_list => {
                builder.add_changed_answers(snapshot, paths, seen, &mut plan);
            }
            Some(before) => builder.add_changed_paths(snapshot, before, paths, &mut plan),
        }
        next.set_content(paths, is_same_list.then_some(plan.paths.as_slice()));
        let has_changes = !plan.is_empty() || has_new_tail;
        if is_first || has_new_roots {
            next.client_roots = paths.client_roots().to_vec();
            plan.client_roots = Some(next.client_roots.clone());
        }
        next.kinds = kinds;
        next.holding = Holding::new(next.cost());
        let token = self.subscription.token(next.content);
        let plan = plan.complete(token, snapshot, &next.kinds);
        Step {
            position: Arc::new(next),
            plan: Arc::new(plan),
            has_changes,
        }
    }

    /// Whether the paths may have changed since the last update, or an answer has.
    fn has_changes(&self, snapshot: &Snapshot, paths: &Arc<PathList>, seen: u64) -> bool {
        let before = self.position.paths.as_ref();
        let is_same_list = before.is_some_and(|before| Arc::ptr_eq(before, paths));
        let mut changed = paths.changed_after(seen);
        !is_same_list
            || changed.any(|slot| {
                let etag = self.subscription.etag(paths.answer(snapshot, slot));
                self.position.sent.get(slot as usize) != Some(&etag)
            })
    }

    /// The position from which the next update leads: the last one, or that of the resume token if nothing was sent. The
    /// default position if the caller has nothing, or something unknown.
    fn start(&self, snapshot: &Snapshot, paths: &Arc<PathList>) -> Position {
        let Some(point) = self.subscription.resume_point() else {
            return Position::clone(&self.position);
        };
        let current = Position::of(&self.subscription, snapshot, paths);
        if current.content == point.content {
            return current;
        }
        let known = point.position.as_deref();
        known.map(Position::without_numbers).unwrap_or_default()
    }
}

impl Position {
    /// The position of a caller that has the paths and answers of a snapshot from an earlier stream.
    fn of(subscription: &Subscription, snapshot: &Snapshot, paths: &Arc<PathList>) -> Self {
        let mut position = Self {
            paths: Some(Arc::clone(paths)),
            ..Self::default()
        };
        for slot in (0..).take(paths.slots()) {
            let etag = subscription.etag(paths.answer(snapshot, slot));
            position.sent.push(etag);
            position.answers.entry(etag).or_default().uses += 1;
        }
        position.set_content(paths, None);
        position
    }

    /// The position of a caller that has the same from an earlier stream.
    fn without_numbers(&self) -> Self {
        let answers = self.answers.iter();
        let unnumbered = |(etag, answer): (&EtagBits, &SentAnswer)| {
            let uses = answer.uses;
            (*etag, SentAnswer { number: None, uses })
        };
        Self {
            paths: self.paths.clone(),
            sent: self.sent.clone(),
            answers: answers.map(unnumbered).collect(),
            blocks: self.blocks.clone(),
            content: self.content,
            ..Self::default()
        }
    }

    /// Computes the digest of the content; `changed` are the entries whose answers differ from before, with the numbers
    /// of their answers, if the paths are the same as before.
    fn set_content(&mut self, paths: &PathList, changed: Option<&[(u32, u32)]>) {
        match changed {
            None => {
                let blocks = 0..paths.blocks();
                let digests = blocks.map(|block| paths.content_digest(block, &self.sent));
                self.blocks = digests.collect();
            }
            Some(changed) => {
                let blocks = changed.iter().map(|(index, _)| *index as usize / BLOCK);
                let blocks: BTreeSet<usize> = blocks.collect();
                for block in blocks {
                    if let Some(digest) = self.blocks.get_mut(block) {
                        *digest = paths.content_digest(block, &self.sent);
                    }
                }
            }
        }
        self.content = digest(self.blocks.iter());
    }

    /// The digest of the paths and their answers.
    pub fn content(&self) -> EtagBits {
        self.content
    }

    /// What the position costs those who hold it, without its list of paths.
    pub fn holding(&self) -> &Holding {
        &self.holding
    }

    /// What the list of its paths costs.
    pub fn list_holding(&self) -> Option<Holding> {
        self.paths.as_ref().map(|paths| paths.holding())
    }

    #[cfg(test)]
    pub fn with_content(content: EtagBits, bytes: usize) -> Self {
        Self {
            content,
            holding: Holding::new(Cost { bytes, paths: 0 }),
            ..Self::default()
        }
    }

    /// The memory of the position without its list of paths.
    fn cost(&self) -> Cost {
        let entry = size_of::<(EtagBits, SentAnswer)>() + 1;
        let roots = self.client_roots.iter().map(|root| root.len() + 24);
        // The names of requested kinds without a profile are among them, as long as the caller likes.
        let kinds = self.kinds.iter().map(|state| {
            let texts = [&state.kind, &state.reason, &state.message];
            size_of::<v1::KindState>() + texts.map(String::len).iter().sum::<usize>()
        });
        Cost {
            bytes: 256
                + size_of::<EtagBits>() * (self.sent.capacity() + self.blocks.capacity())
                + entry * self.answers.capacity()
                + roots.sum::<usize>()
                + kinds.sum::<usize>(),
            paths: 0,
        }
    }
}

/// Computes the next position of a stream.
struct StepBuilder<'s> {
    subscription: &'s Subscription,
    position: &'s mut Position,
}

impl StepBuilder<'_> {
    /// Adds all paths.
    fn add_first(&mut self, snapshot: &Snapshot, paths: &PathList, update: &mut UpdatePlan) {
        update.reset = true;
        let numbers = self.add_all_answers(snapshot, paths, update);
        let entries = (0..).zip(paths.entries());
        update.paths = entries
            .map(|(index, entry)| (index, number_of(&numbers, entry)))
            .collect();
    }

    /// Adds the changed answers of paths that are the same as before.
    fn add_changed_answers(
        &mut self,
        snapshot: &Snapshot,
        paths: &PathList,
        seen: u64,
        update: &mut UpdatePlan,
    ) {
        let mut replaced = Vec::new();
        for slot in paths.changed_after(seen) {
            let answer = paths.answer(snapshot, slot);
            let etag = self.subscription.etag(answer);
            let Some(sent) = self.position.sent.get_mut(slot as usize) else {
                continue;
            };
            if *sent == etag {
                continue;
            }
            replaced.push(std::mem::replace(sent, etag));
            let number = self.add_answer(etag, answer, update);
            let entries = paths.entries_of(slot).iter();
            update.paths.extend(entries.map(|&index| (index, number)));
        }
        self.release(&replaced, update);
    }

    /// Adds the difference between two lists of paths. Both are sorted by name.
    fn add_changed_paths(
        &mut self,
        snapshot: &Snapshot,
        before: &PathList,
        after: &PathList,
        update: &mut UpdatePlan,
    ) {
        let sent = std::mem::take(&mut self.position.sent);
        let numbers = self.add_all_answers(snapshot, after, update);
        let etag_of =
            |etags: &[EtagBits], entry: &PathEntry| etags.get(entry.slot as usize).copied();
        let mut old_entries = before.entries().iter().peekable();
        for (index, entry) in (0..).zip(after.entries()) {
            while let Some(removed) = old_entries.next_if(|old| old.name < entry.name) {
                update.removed_paths.push(removed.name.clone());
            }
            let old = old_entries.next_if(|old| old.name == entry.name);
            let is_same = old.is_some_and(|old| {
                old.rule_indexes == entry.rule_indexes
                    && etag_of(&sent, old) == etag_of(&self.position.sent, entry)
            });
            if !is_same {
                update.paths.push((index, number_of(&numbers, entry)));
            }
        }
        update
            .removed_paths
            .extend(old_entries.map(|removed| removed.name.clone()));
        self.release(&sent, update);
        self.drop_unused(update);
    }

    /// Removes new answers that no path of an update refers to. On a resumed stream they are answers
    /// that the caller has without a number.
    fn drop_unused(&mut self, update: &mut UpdatePlan) {
        let used: HashSet<u32> = update.paths.iter().map(|(_, number)| *number).collect();
        for answer in self.position.answers.values_mut() {
            if let Some(number) = answer.number.filter(|number| !used.contains(number))
                && update.new_answers.remove(&number).is_some()
            {
                answer.number = None;
            }
        }
    }

    /// Adds one use of the answer of each slot; returns the numbers by slot.
    fn add_all_answers(
        &mut self,
        snapshot: &Snapshot,
        paths: &PathList,
        update: &mut UpdatePlan,
    ) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(paths.slots());
        for slot in (0..).take(paths.slots()) {
            let answer = paths.answer(snapshot, slot);
            let etag = self.subscription.etag(answer);
            self.position.sent.push(etag);
            numbers.push(self.add_answer(etag, answer, update));
        }
        numbers
    }

    /// Adds one use of an answer; returns its number. An answer without a number gets the next one
    /// and is sent with the update.
    fn add_answer(&mut self, etag: EtagBits, answer: &PathAnswer, update: &mut UpdatePlan) -> u32 {
        let sent = self.position.answers.entry(etag).or_default();
        sent.uses += 1;
        if let Some(number) = sent.number {
            return number;
        }
        // No stream lives long enough for 4 billion answers.
        self.position.last_number = self.position.last_number.saturating_add(1);
        sent.number = Some(self.position.last_number);
        let new_answer = NewAnswer::of(answer, &self.subscription.kinds);
        update
            .new_answers
            .insert(self.position.last_number, new_answer);
        self.position.last_number
    }

    /// Removes one use of each answer. The caller forgets the answers without uses.
    fn release(&mut self, etags: &[EtagBits], update: &mut UpdatePlan) {
        for etag in etags {
            let Some(answer) = self.position.answers.get_mut(etag) else {
                continue;
            };
            answer.uses = answer.uses.saturating_sub(1);
            if answer.uses == 0 {
                update.removed_bodies.extend(answer.number);
                self.position.answers.remove(etag);
            }
        }
    }
}

fn number_of(numbers: &[u32], entry: &PathEntry) -> u32 {
    numbers
        .get(entry.slot as usize)
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds_count_as_memory() {
        let state = v1::KindState {
            kind: "k".repeat(100_000),
            ..v1::KindState::default()
        };
        let position = Position {
            kinds: vec![state],
            ..Position::default()
        };
        assert!(position.cost().bytes > 100_000);
    }
}
