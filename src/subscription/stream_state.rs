//! What one stream has sent, and its difference to a snapshot.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::path_list::{PathEntry, PathList};
use super::request::Subscription;
use super::update::{NewAnswer, StreamUpdate};
use crate::api::v1;
use crate::snapshot::{PathAnswer, Snapshot};

/// The etag of an answer, as a number.
type EtagBits = u128;

/// What one stream has sent to its caller. The size grows with the distinct answers, and not with
/// the paths: path names are in the shared [`PathList`].
#[derive(Debug)]
pub struct StreamState {
    subscription: Subscription,
    /// The paths that were sent.
    paths: Option<Arc<PathList>>,
    /// The etags of the answers that were sent, by slot of `paths`.
    sent: Vec<EtagBits>,
    /// The answers that the caller has.
    answers: HashMap<EtagBits, SentAnswer>,
    /// The number of the last new answer.
    last_number: u32,
    /// The states of kinds that were sent.
    kinds: Vec<v1::KindState>,
    /// The mesh roots with policies for their own clients that were sent.
    client_roots: Vec<String>,
}

/// An answer that the caller has.
#[derive(Clone, Copy, Debug, Default)]
struct SentAnswer {
    /// Its number on this stream; `None` if the caller received it on an earlier stream.
    number: Option<u32>,
    /// Number of slots with this answer.
    uses: u32,
}

impl StreamState {
    /// Creates the state of a stream that has sent nothing.
    pub fn new(subscription: Subscription) -> Self {
        Self {
            subscription,
            paths: None,
            sent: Vec::new(),
            answers: HashMap::new(),
            last_number: 0,
            kinds: Vec::new(),
            client_roots: Vec::new(),
        }
    }

    /// The paths that were sent, if they are still the paths of a snapshot.
    pub fn paths_of(&self, snapshot: &Snapshot) -> Option<Arc<PathList>> {
        let paths = self.paths.as_ref().filter(|paths| paths.is_of(snapshot));
        paths.map(Arc::clone)
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
        let mut update = StreamUpdate::of(Arc::clone(paths));
        let before = self.paths.replace(Arc::clone(paths));
        let is_first = before.is_none();
        match before {
            None => self.add_first(snapshot, paths, &mut update),
            Some(before) if Arc::ptr_eq(&before, paths) => {
                self.add_changed_answers(snapshot, paths, seen, &mut update);
            }
            Some(before) => self.add_changed_paths(snapshot, &before, paths, &mut update),
        }
        let kinds = self.subscription.incomplete(snapshot);
        let has_new_roots = self.client_roots != paths.client_roots();
        let has_changes = !update.is_empty() || self.kinds != kinds || has_new_roots;
        if !is_due && !is_first && !has_changes {
            return None;
        }
        if is_first || has_new_roots {
            self.client_roots = paths.client_roots().to_vec();
            update.client_roots = Some(self.client_roots.clone());
        }
        self.kinds = kinds;
        update.set_tail(self.subscription.token(snapshot), snapshot, &self.kinds);
        Some(update)
    }

    /// Adds all paths, unless the caller has them already from an earlier stream.
    fn add_first(&mut self, snapshot: &Snapshot, paths: &PathList, update: &mut StreamUpdate) {
        if self.subscription.is_resumed_at(snapshot) {
            for slot in (0..).take(paths.slots()) {
                let etag = self.etag(paths.answer(snapshot, slot));
                self.sent.push(etag);
                self.answers.entry(etag).or_default().uses += 1;
            }
            return;
        }
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
        update: &mut StreamUpdate,
    ) {
        let mut replaced = Vec::new();
        for slot in paths.changed_after(seen) {
            let answer = paths.answer(snapshot, slot);
            let etag = self.etag(answer);
            let Some(sent) = self.sent.get_mut(slot as usize) else {
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
        update: &mut StreamUpdate,
    ) {
        let sent = std::mem::take(&mut self.sent);
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
                    && etag_of(&sent, old) == etag_of(&self.sent, entry)
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
    fn drop_unused(&mut self, update: &mut StreamUpdate) {
        let used: HashSet<u32> = update.paths.iter().map(|(_, number)| *number).collect();
        for answer in self.answers.values_mut() {
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
        update: &mut StreamUpdate,
    ) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(paths.slots());
        for slot in (0..).take(paths.slots()) {
            let answer = paths.answer(snapshot, slot);
            let etag = self.etag(answer);
            self.sent.push(etag);
            numbers.push(self.add_answer(etag, answer, update));
        }
        numbers
    }

    /// Adds one use of an answer; returns its number. An answer without a number gets the next one
    /// and is sent with the update.
    fn add_answer(
        &mut self,
        etag: EtagBits,
        answer: &PathAnswer,
        update: &mut StreamUpdate,
    ) -> u32 {
        let sent = self.answers.entry(etag).or_default();
        sent.uses += 1;
        if let Some(number) = sent.number {
            return number;
        }
        // No stream lives long enough for 4 billion answers.
        self.last_number = self.last_number.saturating_add(1);
        sent.number = Some(self.last_number);
        let new_answer = NewAnswer::of(answer, &self.subscription.kinds);
        update.new_answers.insert(self.last_number, new_answer);
        self.last_number
    }

    /// Removes one use of each answer. The caller forgets the answers without uses.
    fn release(&mut self, etags: &[EtagBits], update: &mut StreamUpdate) {
        for etag in etags {
            let Some(answer) = self.answers.get_mut(etag) else {
                continue;
            };
            answer.uses = answer.uses.saturating_sub(1);
            if answer.uses == 0 {
                update.removed_bodies.extend(answer.number);
                self.answers.remove(etag);
            }
        }
    }

    /// The etag of the followed kinds of an answer.
    fn etag(&self, answer: &PathAnswer) -> EtagBits {
        let etag = answer.etag_of(&self.subscription.kinds);
        // Etags are 128 bits in hexadecimal; the only other one is that of an internal error.
        EtagBits::from_str_radix(&etag, 16).unwrap_or_default()
    }
}

fn number_of(numbers: &[u32], entry: &PathEntry) -> u32 {
    numbers
        .get(entry.slot as usize)
        .copied()
        .unwrap_or_default()
}
