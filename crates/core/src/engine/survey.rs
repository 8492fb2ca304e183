//! Counts the paths that reach each trie node in each state, without walking every path. Paths that reach
//! a trie node in the same state continue alike.

use super::automaton::StateId;
use super::paths::PathEngine;
use crate::model::{GroupKind, InternalError, OrInternal};
use crate::topology::{NodeId, TrieNodeId};

/// The number of paths that are named as samples.
pub const SAMPLE_SIZE: usize = 3;

/// A number of paths, with the first of them as samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCount {
    /// The number of paths.
    pub count: u64,
    /// The numbers of the first paths in the order of all paths; `u64::MAX` if there are fewer.
    first: [u64; SAMPLE_SIZE],
}

/// The paths that reach a trie node in one state.
#[derive(Clone, Copy, Debug)]
pub struct SurveyEntry<S> {
    /// The trie node.
    pub node: TrieNodeId,
    /// The state.
    pub state: S,
    /// The paths.
    pub paths: PathCount,
    next: u32,
}

/// A trie node where a survey begins.
#[derive(Clone, Copy, Debug)]
pub struct SurveyStart<S> {
    /// The trie node.
    pub node: TrieNodeId,
    /// The state there.
    pub state: S,
    /// The number of the path to the trie node in the order of all paths.
    pub number: u64,
}

/// The states in which paths reach each trie node.
#[derive(Debug)]
pub struct Survey<S> {
    heads: Vec<u32>,
    entries: Vec<SurveyEntry<S>>,
}

/// The paths that end in one state at objects of one kind.
#[derive(Clone, Copy, Debug)]
pub struct PathGroup<'e> {
    /// The state.
    pub state: StateId,
    /// The kind of the objects.
    pub object: &'e GroupKind,
    /// The node that the paths end at, if the groups are by node.
    pub node: Option<NodeId>,
    /// The paths.
    pub paths: PathCount,
}

/// Ends the list of a trie node's entries.
const END: u32 = u32::MAX;

impl Default for PathCount {
    fn default() -> Self {
        Self {
            count: 0,
            first: [u64::MAX; SAMPLE_SIZE],
        }
    }
}

impl PathCount {
    /// Counts one path, given by its number.
    pub fn one(number: u64) -> Self {
        let mut sample = Self::default();
        sample.add(number);
        sample.count = 1;
        sample
    }

    /// Adds other paths.
    pub fn join(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        for number in other.numbers() {
            self.add(number);
        }
    }

    /// The numbers of the first paths, ascending.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        self.first.into_iter().filter(|number| *number != u64::MAX)
    }

    /// The paths whose numbers are higher by `by`.
    fn moved(&self, by: u64) -> Self {
        Self {
            count: self.count,
            first: self.first.map(|number| number.saturating_add(by)),
        }
    }

    fn add(&mut self, mut number: u64) {
        for kept in &mut self.first {
            if number == *kept {
                return;
            }
            if number < *kept {
                std::mem::swap(&mut number, kept);
            }
        }
    }
}

impl<S> SurveyEntry<S> {
    /// An entry for one path, given by its number.
    pub fn one(node: TrieNodeId, state: S, number: u64) -> Self {
        Self {
            node,
            state,
            paths: PathCount::one(number),
            next: END,
        }
    }
}

impl<S: Copy + PartialEq> Survey<S> {
    /// Follows all paths from some trie nodes down. `step` returns the state after one more trie node.
    ///
    /// # Errors
    /// A trie node is missing, or `step` fails.
    pub fn from(
        engine: &PathEngine,
        starts: impl Iterator<Item = SurveyStart<S>>,
        mut step: impl FnMut(S, TrieNodeId) -> Result<S, InternalError>,
    ) -> Result<Self, InternalError> {
        let trie = engine.trie();
        let mut survey = Self {
            heads: vec![END; trie.len()],
            entries: Vec::with_capacity(trie.len()),
        };
        for start in starts {
            survey.add(start.node, start.state, PathCount::one(start.number))?;
        }
        // Parents have higher numbers than their children, so each node comes after all nodes above it.
        for id in trie.ids().rev() {
            let mut at = *survey.heads.get(id.index()).or_internal("a trie node")?;
            if at == END {
                continue;
            }
            let node = trie.node(id)?;
            while at != END {
                let entry = *survey
                    .entries
                    .get(at as usize)
                    .or_internal("a survey entry")?;
                let mut offset = 1;
                for child in trie.below(node) {
                    let state = step(entry.state, child)?;
                    survey.add(child, state, entry.paths.moved(offset))?;
                    offset += trie.size(child);
                }
                at = entry.next;
            }
        }
        Ok(survey)
    }

    fn add(&mut self, node: TrieNodeId, state: S, paths: PathCount) -> Result<(), InternalError> {
        let head = self
            .heads
            .get_mut(node.index())
            .or_internal("a trie node")?;
        let mut at = *head;
        while at != END {
            let entry = self
                .entries
                .get_mut(at as usize)
                .or_internal("a survey entry")?;
            if entry.state == state {
                entry.paths.join(&paths);
                return Ok(());
            }
            at = entry.next;
        }
        let number = u32::try_from(self.entries.len()).ok();
        let number = number.or_internal("a free entry number")?;
        self.entries.push(SurveyEntry {
            node,
            state,
            paths,
            next: *head,
        });
        *head = number;
        Ok(())
    }

    /// Consumes the survey and returns its entries.
    pub fn into_entries(self) -> Vec<SurveyEntry<S>> {
        self.entries
    }

    /// All entries, in no particular order.
    pub fn entries(&self) -> &[SurveyEntry<S>] {
        &self.entries
    }

    /// The numbers of a trie node's entries.
    pub(super) fn at(&self, node: TrieNodeId) -> impl Iterator<Item = usize> + '_ {
        let mut at = self.heads.get(node.index()).copied().unwrap_or(END);
        std::iter::from_fn(move || {
            let number = at as usize;
            at = self.entries.get(number)?.next;
            Some(number)
        })
    }

    /// The number of the entry of a trie node and a state.
    pub(super) fn number(&self, node: TrieNodeId, state: S) -> Option<usize> {
        let mut numbers = self.at(node);
        numbers.find(|&at| self.entries.get(at).is_some_and(|e| e.state == state))
    }
}

impl PathEngine {
    /// All roots as starts of a survey. `begin` returns the state at a root.
    pub(super) fn starts<S>(
        &self,
        mut begin: impl FnMut(TrieNodeId) -> Result<S, InternalError>,
    ) -> Result<Vec<SurveyStart<S>>, InternalError> {
        let mut number = 0;
        let mut found = Vec::new();
        for (root, _) in self.trie.roots() {
            found.push(SurveyStart {
                node: root,
                state: begin(root)?,
                number,
            });
            number += self.trie.size(root);
        }
        Ok(found)
    }

    /// Counts all paths.
    ///
    /// # Errors
    /// A trie node or a state is missing.
    pub fn survey(&self) -> Result<Survey<StateId>, InternalError> {
        let starts = self.starts(|root| self.after(0, root))?;
        self.survey_from(starts.into_iter())
    }

    /// Counts the paths from some trie nodes down.
    ///
    /// # Errors
    /// A trie node or a state is missing.
    pub fn survey_from(
        &self,
        starts: impl Iterator<Item = SurveyStart<StateId>>,
    ) -> Result<Survey<StateId>, InternalError> {
        Survey::from(self, starts, |state, node| self.after(state, node))
    }

    /// Groups the paths of entries by state and by the kind of object that they end at, and by node if
    /// `by_node` is true. Sorted by state.
    ///
    /// # Errors
    /// A trie node is missing.
    pub fn groups<'e>(
        &'e self,
        entries: &[SurveyEntry<StateId>],
        by_node: bool,
    ) -> Result<Vec<PathGroup<'e>>, InternalError> {
        let mut kinds: Vec<&'e GroupKind> = Vec::new();
        let mut found: hashbrown::HashMap<(StateId, usize, Option<NodeId>), PathCount> =
            hashbrown::HashMap::new();
        for entry in entries {
            let node = self.trie.node(entry.node)?;
            let object = &self.world.topology().key(node.node).object.kind;
            let existing = kinds.iter().position(|kind| *kind == object);
            let kind = existing.unwrap_or(kinds.len());
            if existing.is_none() {
                kinds.push(object);
            }
            let key = (entry.state, kind, by_node.then_some(node.node));
            found.entry(key).or_default().join(&entry.paths);
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        let group = |((state, kind, node), paths): ((StateId, usize, Option<NodeId>), _)| {
            let object = *kinds.get(kind).or_internal("a kind of objects")?;
            Ok(PathGroup {
                state,
                object,
                node,
                paths,
            })
        };
        found.into_iter().map(group).collect()
    }

    /// The names of the samples.
    ///
    /// # Errors
    /// There is no path with the number of a sample.
    pub fn names(&self, sample: &PathCount) -> Result<Vec<String>, InternalError> {
        let numbers = sample.numbers();
        numbers.map(|number| self.trie.name_at(number)).collect()
    }
}
