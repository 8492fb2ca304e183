//! What a caller has been told, and how that differs from what a snapshot says.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::Subscription;
use super::update::{NewAnswer, StreamUpdate};
use crate::api::v1;
use crate::snapshot::{PathAnswer, PathEntry, PathList, Snapshot};

/// The etag of an answer.
type EtagBits = u128;

/// What a caller has been told.
#[derive(Debug)]
pub struct StreamState {
    subscription: Subscription,
    /// The paths that it was told.
    rows: Option<Arc<PathList>>,
    /// By slot of the paths: the etag of the answer that it was told.
    sent: Vec<EtagBits>,
    /// The answers that it holds.
    answers: HashMap<EtagBits, SentAnswer>,
    /// The last number given.
    last: u32,
    /// What it was told last beside paths: the kinds of which not everything is known, and the
    /// mesh roots of clients that are set apart.
    kinds: Vec<v1::KindState>,
    client_roots: Vec<String>,
}

/// An answer that a caller holds.
#[derive(Clone, Copy, Debug, Default)]
struct SentAnswer {
    /// Its number; none if it was told by another stream.
    number: Option<u32>,
    /// The slots that have it.
    uses: u32,
}

impl StreamState {
    /// Of a caller that has been told nothing.
    pub fn new(subscription: Subscription) -> Self {
        Self {
            subscription,
            rows: None,
            sent: Vec::new(),
            answers: HashMap::new(),
            last: 0,
            kinds: Vec::new(),
            client_roots: Vec::new(),
        }
    }

    /// The paths that the caller was told, if they are those of a snapshot.
    pub fn rows_of(&self, snapshot: &Snapshot) -> Option<Arc<PathList>> {
        let rows = self.rows.as_ref().filter(|rows| rows.is_of(snapshot));
        rows.map(Arc::clone)
    }

    /// What the caller has to be told for it to know what a snapshot says, if anything; `rows` are
    /// of that snapshot. Of paths that it was told before only those are looked at whose answers
    /// may have changed after publication `seen`. If nothing has changed and `is_due`, that is told:
    /// how fresh is what the caller knows.
    pub fn update(
        &mut self,
        snapshot: &Snapshot,
        rows: &Arc<PathList>,
        seen: u64,
        is_due: bool,
    ) -> Option<StreamUpdate> {
        let mut update = StreamUpdate::of(Arc::clone(rows));
        let before = self.rows.replace(Arc::clone(rows));
        let is_first = before.is_none();
        match before {
            None => self.begin(snapshot, rows, &mut update),
            Some(before) if Arc::ptr_eq(&before, rows) => {
                self.changed(snapshot, rows, seen, &mut update);
            }
            Some(before) => self.moved(snapshot, &before, rows, &mut update),
        }
        let kinds = self.subscription.incomplete(snapshot);
        let is_news =
            !update.is_empty() || self.kinds != kinds || self.client_roots != rows.client_roots();
        if !is_due && !is_first && !is_news {
            return None;
        }
        if is_first || self.client_roots != rows.client_roots() {
            self.client_roots = rows.client_roots().to_vec();
            update.client_roots = Some(self.client_roots.clone());
        }
        self.kinds = kinds;
        update.end(self.subscription.token(snapshot), snapshot, &self.kinds);
        Some(update)
    }

    /// Tells all paths, unless the caller holds them.
    fn begin(&mut self, snapshot: &Snapshot, rows: &PathList, update: &mut StreamUpdate) {
        if self.subscription.is_resumed_at(snapshot) {
            for slot in (0..).take(rows.slots()) {
                let tag = self.tag(snapshot, rows, slot);
                self.sent.push(tag);
                self.answers.entry(tag).or_default().uses += 1;
            }
            return;
        }
        update.reset = true;
        let numbers = self.take_all(snapshot, rows, update);
        let all = (0..).zip(rows.rows());
        update.paths = all.map(|(at, row)| (at, number(&numbers, row))).collect();
    }

    /// Tells what has changed among paths that are the same.
    fn changed(
        &mut self,
        snapshot: &Snapshot,
        rows: &PathList,
        seen: u64,
        update: &mut StreamUpdate,
    ) {
        let mut gone = Vec::new();
        for slot in rows.changed_after(seen) {
            let tag = self.tag(snapshot, rows, slot);
            let Some(told) = self.sent.get_mut(slot as usize) else {
                continue;
            };
            if *told == tag {
                continue;
            }
            gone.push(std::mem::replace(told, tag));
            let number = self.take(tag, snapshot.answer_of(rows, slot), update);
            let of_slot = rows.rows_of(slot).iter();
            update.paths.extend(of_slot.map(|&row| (row, number)));
        }
        self.release(&gone, update);
    }

    /// Tells how paths differ that are others now.
    fn moved(
        &mut self,
        snapshot: &Snapshot,
        before: &PathList,
        now: &PathList,
        update: &mut StreamUpdate,
    ) {
        let told = std::mem::take(&mut self.sent);
        let numbers = self.take_all(snapshot, now, update);
        let tag = |tags: &[EtagBits], row: &PathEntry| tags.get(row.slot as usize).copied();
        let mut old = before.rows().iter().peekable();
        for (at, row) in (0..).zip(now.rows()) {
            while let Some(gone) = old.next_if(|old| old.name < row.name) {
                update.removed.push(gone.name.clone());
            }
            let known = old.next_if(|old| old.name == row.name);
            let is_same = known.is_some_and(|old| {
                old.rule_index == row.rule_index && tag(&told, old) == tag(&self.sent, row)
            });
            if !is_same {
                update.paths.push((at, number(&numbers, row)));
            }
        }
        update.removed.extend(old.map(|gone| gone.name.clone()));
        self.release(&told, update);
        self.drop_unused(update);
    }

    /// Takes back the numbers of answers that no path of an update points to: of a stream that was
    /// resumed the caller holds them without a number.
    fn drop_unused(&mut self, update: &mut StreamUpdate) {
        let told: HashSet<u32> = update.paths.iter().map(|(_, number)| *number).collect();
        for held in self.answers.values_mut() {
            if let Some(number) = held.number.filter(|number| !told.contains(number))
                && update.new_answers.remove(&number).is_some()
            {
                held.number = None;
            }
        }
    }

    /// Takes the answers of all slots; returns their numbers.
    fn take_all(
        &mut self,
        snapshot: &Snapshot,
        rows: &PathList,
        update: &mut StreamUpdate,
    ) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(rows.slots());
        for slot in (0..).take(rows.slots()) {
            let tag = self.tag(snapshot, rows, slot);
            self.sent.push(tag);
            numbers.push(self.take(tag, snapshot.answer_of(rows, slot), update));
        }
        numbers
    }

    /// Takes an answer for one more slot; returns its number. One without a number gets one, and
    /// goes with the update.
    fn take(
        &mut self,
        tag: EtagBits,
        body: Option<&Arc<PathAnswer>>,
        update: &mut StreamUpdate,
    ) -> u32 {
        let held = self.answers.entry(tag).or_default();
        held.uses += 1;
        if let Some(number) = held.number {
            return number;
        }
        // No stream lives long enough for 4 billion answers.
        self.last = self.last.saturating_add(1);
        held.number = Some(self.last);
        if let Some(body) = body {
            let fresh = NewAnswer::of(body, &self.subscription.kinds);
            update.new_answers.insert(self.last, fresh);
        }
        self.last
    }

    /// Lets go of one use of each answer.
    fn release(&mut self, tags: &[EtagBits], update: &mut StreamUpdate) {
        for tag in tags {
            let Some(held) = self.answers.get_mut(tag) else {
                continue;
            };
            held.uses = held.uses.saturating_sub(1);
            if held.uses == 0 {
                update.forgotten.extend(held.number);
                self.answers.remove(tag);
            }
        }
    }

    fn tag(&self, snapshot: &Snapshot, rows: &PathList, slot: u32) -> EtagBits {
        let body = snapshot.answer_of(rows, slot);
        let etag = body.map(|body| body.etag_of(&self.subscription.kinds));
        // Etags are 128 bits, hexadecimal.
        etag.and_then(|etag| EtagBits::from_str_radix(&etag, 16).ok())
            .unwrap_or_default()
    }
}

fn number(numbers: &[u32], row: &PathEntry) -> u32 {
    numbers.get(row.slot as usize).copied().unwrap_or_default()
}
