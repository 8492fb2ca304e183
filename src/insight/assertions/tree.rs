//! Counts the paths of an assertion by their verdicts, and follows changes: what is below a trie node is counted once for
//! each state and context in which paths reach it, and again only if something below it has changed.
//!
//! Within one lineage of snapshots, a trie node never has other children, and a state is always the same state. So what
//! was counted remains true until an answer below, or an object that the assertion reads, is another one.

use std::mem;

use hashbrown::{HashMap, HashSet};

use super::document::Assertion;
use super::filter::{PathContext, PathScope};
use super::verdict::{Verdict, VerdictId, Verdicts};
use crate::insight::Budget;
use crate::snapshot::Snapshot;
use entail_core::engine::StateId;
use entail_core::model::{InternalError, Level, OrInternal};
use entail_core::topology::{NodeId, TrieNodeId};

/// A set of paths by their verdicts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Paths that are as expected.
    pub passed: u64,
    /// Paths that are not, without the excepted ones.
    pub failed: u64,
    /// Paths of which it is not known, without the excepted ones.
    pub unknown: u64,
    /// The number of paths that are not as expected, or not known to be, by the exception that counts for them.
    pub excepted: Vec<(u16, u64)>,
    /// The first paths that failed or are not known: their numbers in the order of paths, relative to the trie node.
    pub samples: Vec<(u64, VerdictId)>,
}

/// What lies below a trie node that paths reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CountedNode {
    node: TrieNodeId,
    state: StateId,
    context: PathContext,
}

/// What was counted at and below a place.
#[derive(Debug, Default)]
struct Entry {
    counts: Counts,
    /// The entries of the children, each with the number of its first path relative to this one's.
    children: Vec<(usize, u64)>,
    /// The entries whose child this is.
    parents: Vec<usize>,
    /// The states of the paths that are counted here and not in a child.
    states: Vec<StateId>,
    /// The nodes of the objects that the verdicts about these paths depend on.
    nodes: Vec<NodeId>,
    is_stale: bool,
}

/// The counts of an assertion.
#[derive(Debug, Default)]
pub(super) struct CountTree {
    index: HashMap<CountedNode, usize>,
    places: Vec<CountedNode>,
    entries: Vec<Entry>,
    /// The number of links from entries to children, and from children to entries.
    links: usize,
    /// The number of links when the entries of places that no path leads to were dropped last.
    live: usize,
}

/// As many links may be those of places that no path leads to, and as many as there are of others.
const MAX_LEFT: usize = 16;

/// What counting reads.
pub(super) struct Counting<'c> {
    pub snapshot: &'c Snapshot,
    pub assertion: &'c Assertion,
    pub scope: &'c PathScope<'c>,
    pub verdicts: &'c mut Verdicts,
    /// Maximum number of samples.
    pub samples: usize,
    /// The work that the caller may cause.
    pub budget: &'c Budget,
}

impl Counting<'_> {
    /// The verdict about the path that ends in a state, with a context.
    pub fn verdict(&mut self, (state, context): (StateId, PathContext)) -> VerdictId {
        match self.scope.not_decided(context) {
            Some(what) => self.verdicts.not_known(what),
            None => self
                .verdicts
                .of(self.snapshot, self.assertion, (state, context)),
        }
    }
}

impl Counts {
    /// Adds one path.
    pub fn add(
        &mut self,
        (verdict, id): (&Verdict, VerdictId),
        exception: Option<u16>,
        number: u64,
        most: usize,
    ) {
        let count = match (verdict, exception) {
            (Verdict::Passed, _) => &mut self.passed,
            (_, Some(exception)) => return self.add_excepted(exception, 1),
            (Verdict::Failed(_), None) => &mut self.failed,
            (Verdict::Unknown(_), None) => &mut self.unknown,
        };
        *count += 1;
        if *verdict != Verdict::Passed && self.samples.len() < most {
            self.samples.push((number, id));
        }
    }

    /// Adds the paths of a child whose first path has a number.
    fn join(&mut self, child: &Self, first: u64, most: usize) {
        self.passed += child.passed;
        self.failed += child.failed;
        self.unknown += child.unknown;
        for (exception, count) in &child.excepted {
            self.add_excepted(*exception, *count);
        }
        let left = most.saturating_sub(self.samples.len());
        let samples = child.samples.iter().take(left);
        self.samples
            .extend(samples.map(|(number, id)| (first + number, *id)));
    }

    fn add_excepted(&mut self, exception: u16, count: u64) {
        let mut excepted = self.excepted.iter_mut();
        match excepted.find(|(of, _)| *of == exception) {
            Some((_, sum)) => *sum += count,
            None => self.excepted.push((exception, count)),
        }
    }

    /// The number of paths.
    pub fn paths(&self) -> u64 {
        let excepted: u64 = self.excepted.iter().map(|(_, count)| count).sum();
        self.passed + self.failed + self.unknown + excepted
    }
}

impl CountTree {
    /// Marks what has to be counted again: what has a path in one of the states, or reads one of the nodes.
    pub fn mark(&mut self, states: &HashSet<StateId>, nodes: &HashSet<NodeId>) {
        let mut stale = Vec::new();
        for (number, entry) in self.entries.iter().enumerate() {
            let has_state = || entry.states.iter().any(|state| states.contains(state));
            let has_node = || entry.nodes.iter().any(|node| nodes.contains(node));
            if (!states.is_empty() && has_state()) || (!nodes.is_empty() && has_node()) {
                stale.push(number);
            }
        }
        while let Some(number) = stale.pop() {
            if let Some(entry) = self.entries.get_mut(number)
                && !mem::replace(&mut entry.is_stale, true)
            {
                stale.extend(&entry.parents);
            }
        }
    }

    /// Counts all paths; those of places that are not marked are known.
    ///
    /// # Errors
    /// A trie node or a state is missing.
    pub fn count(&mut self, counting: &mut Counting<'_>) -> Result<Counts, InternalError> {
        let engine = counting.snapshot.engine();
        let (mut all, mut first, mut roots) = (Counts::default(), 0, Vec::new());
        for (root, _) in engine.trie().roots() {
            if let Some(context) = counting.scope.step(PathContext::default(), root)? {
                let state = engine.after(0, root)?;
                let place = CountedNode {
                    node: root,
                    state,
                    context,
                };
                let number = self.at(place, counting)?;
                roots.push(number);
                let entry = self.entries.get(number).or_internal("an entry")?;
                all.join(&entry.counts, first, counting.samples);
            }
            first += engine.trie().size(root);
        }
        // Changed routes and Gateways leave trie nodes behind.
        if self.links > 2 * self.live + MAX_LEFT {
            self.sweep(roots)?;
        }
        Ok(all)
    }

    /// Drops the entries of places that no path leads to any more: those that are not below the entries of roots.
    fn sweep(&mut self, roots: Vec<usize>) -> Result<(), InternalError> {
        let mut numbers: HashMap<usize, usize> = HashMap::with_capacity(self.index.len());
        let mut kept = Vec::with_capacity(self.entries.len());
        let mut next = roots;
        while let Some(number) = next.pop() {
            if numbers.contains_key(&number) {
                continue;
            }
            numbers.insert(number, kept.len());
            let entry = self.entries.get_mut(number).or_internal("an entry")?;
            let entry = mem::take(entry);
            next.extend(entry.children.iter().map(|(child, _)| *child));
            let place = *self.places.get(number).or_internal("a place")?;
            kept.push((place, entry));
        }
        let new = |old: usize| numbers.get(&old).copied();
        self.links = 0;
        (self.places, self.entries) = kept.into_iter().unzip();
        for entry in &mut self.entries {
            for (child, _) in &mut entry.children {
                *child = new(*child).or_internal("an entry")?;
            }
            let parents = mem::take(&mut entry.parents).into_iter();
            entry.parents = parents.filter_map(new).collect();
            self.links += entry.children.len() + entry.parents.len();
        }
        self.live = self.links;
        let places = self.places.iter().enumerate();
        self.index = places.map(|(number, place)| (*place, number)).collect();
        Ok(())
    }

    /// Counts what is at and below a place. Returns the number of its entry.
    fn at(
        &mut self,
        place: CountedNode,
        counting: &mut Counting<'_>,
    ) -> Result<usize, InternalError> {
        let known = self.index.get(&place).copied();
        let mut entry = match known {
            None => Entry::default(),
            Some(number) => {
                let entry = self.entries.get_mut(number).or_internal("an entry")?;
                if !entry.is_stale {
                    return Ok(number);
                }
                mem::take(entry)
            }
        };
        entry.is_stale = false;
        let number = match known {
            Some(number) => number,
            None => {
                self.index.insert(place, self.entries.len());
                self.places.push(place);
                self.entries.push(Entry::default());
                self.entries.len() - 1
            }
        };
        if entry.states.is_empty() && !entry.children.is_empty() {
            self.join_children(&mut entry, counting)?;
        } else {
            entry.counts = Counts::default();
            entry.states.clear();
            entry.nodes.clear();
            self.links = self.links.saturating_sub(entry.children.len());
            entry.children.clear();
            self.collect(&mut entry, (place, 0), number, counting)?;
        }
        *self.entries.get_mut(number).or_internal("an entry")? = entry;
        Ok(number)
    }

    /// Counts the children of an entry again of which all paths are counted in children.
    fn join_children(
        &mut self,
        entry: &mut Entry,
        counting: &mut Counting<'_>,
    ) -> Result<(), InternalError> {
        let mut counts = Counts::default();
        for &(child, first) in &entry.children {
            let child = match self.entries.get(child).or_internal("an entry")?.is_stale {
                true => {
                    let place = *self.places.get(child).or_internal("a place")?;
                    self.at(place, counting)?
                }
                false => child,
            };
            let child = self.entries.get(child).or_internal("an entry")?;
            counts.join(&child.counts, first, counting.samples);
        }
        entry.counts = counts;
        Ok(())
    }

    /// Counts a place and what is below it into an entry. `first` is the number of its path relative to the entry's.
    fn collect(
        &mut self,
        entry: &mut Entry,
        (place, first): (CountedNode, u64),
        number: usize,
        counting: &mut Counting<'_>,
    ) -> Result<(), InternalError> {
        let (engine, most) = (counting.snapshot.engine(), counting.samples);
        // The caller is gone: the counts are not used.
        if !counting.budget.step() {
            return Ok(());
        }
        if counting.scope.selects(place.context, place.node)? {
            let id = counting.verdict((place.state, place.context));
            let verdict = (counting.verdicts.get(id), id);
            let exception = place.context.exception;
            entry.counts.add(verdict, exception, first, most);
            entry.states.push(place.state);
            let objects = counting.assertion.expectation.objects();
            entry.nodes.extend(place.context.read_by(objects).nodes());
        }
        let trie = engine.trie();
        let mut next = first + 1;
        for child in trie.below(counting.scope.node(place.node)?) {
            if let Some(context) = counting.scope.step(place.context, child)? {
                let below = CountedNode {
                    node: child,
                    state: engine.after(place.state, child)?,
                    context,
                };
                if self.has_entry(child, counting)? {
                    let at = self.at(below, counting)?;
                    let found = self.entries.get_mut(at).or_internal("an entry")?;
                    if !found.parents.contains(&number) {
                        found.parents.push(number);
                        self.links += 1;
                    }
                    self.links += 1;
                    entry.counts.join(&found.counts, next, most);
                    entry.children.push((at, next));
                } else {
                    self.collect(entry, (below, next), number, counting)?;
                }
            }
            next += trie.size(child);
        }
        Ok(())
    }

    /// Whether what is below a trie node has an entry of its own: down to Routes, and above the paths themselves.
    fn has_entry(&self, node: TrieNodeId, counting: &Counting<'_>) -> Result<bool, InternalError> {
        let level = counting.scope.node(node)?.level;
        Ok(level <= Level::Route && level < counting.assertion.filter.level)
    }
}
