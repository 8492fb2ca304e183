//! A selection of paths: those that a caller may see.

use hashbrown::HashSet;

use super::automaton::StateId;
use super::survey::SurveyEntry;
use crate::topology::TrieNodeId;

/// Some of all paths. Answers about a selection are as if other paths did not exist.
#[derive(Debug, Default)]
pub struct PathSelection {
    entries: Vec<SurveyEntry<StateId>>,
    ends: HashSet<(TrieNodeId, StateId)>,
    nodes: HashSet<TrieNodeId>,
}

impl PathSelection {
    /// Creates a selection of the paths that end at some entries, which go through the trie nodes of these entries and
    /// through those `above`.
    pub fn new(entries: Vec<SurveyEntry<StateId>>, above: HashSet<TrieNodeId>) -> Self {
        let mut nodes = above;
        nodes.extend(entries.iter().map(|entry| entry.node));
        Self {
            ends: entries
                .iter()
                .map(|entry| (entry.node, entry.state))
                .collect(),
            entries,
            nodes,
        }
    }

    /// The ends of the paths, with their states.
    pub fn entries(&self) -> &[SurveyEntry<StateId>] {
        &self.entries
    }

    /// Consumes the selection and returns its entries.
    pub fn into_entries(self) -> Vec<SurveyEntry<StateId>> {
        self.entries
    }

    /// The trie nodes on the paths.
    pub(super) fn nodes(&self) -> impl Iterator<Item = TrieNodeId> {
        self.nodes.iter().copied()
    }

    /// Whether a path ends at a trie node in a state.
    pub(super) fn ends_at(&self, node: TrieNodeId, state: StateId) -> bool {
        self.ends.contains(&(node, state))
    }

    /// Whether a path goes through a trie node, or ends there.
    pub(super) fn goes_through(&self, node: TrieNodeId) -> bool {
        self.nodes.contains(&node)
    }
}
