//! Which paths an update may have changed, so that two versions of a world can be compared without walking all paths.

use hashbrown::HashSet;

use super::automaton::StateId;
use super::{Engine, EngineUpdate, InPlaceUpdate};
use crate::model::{IndexVec, InternalError, Str};
use crate::topology::{NodeId, Topology, TrieNodeId};

/// The parts of the trie and the states that an update may have changed. Both versions of the world number the trie nodes
/// and states that they share alike.
#[derive(Debug)]
pub struct ChangedPaths {
    /// The states whose answers may differ.
    states: HashSet<StateId>,
    /// Of each trie node, whether it is that of a changed node or leads to one.
    leads_to_change: IndexVec<TrieNodeId, bool>,
}

/// The nodes whose policies or fields changed.
struct TouchedNodes<'t> {
    topology: &'t Topology,
    nodes: &'t HashSet<NodeId>,
    /// The names of the Namespaces among them.
    namespaces: HashSet<&'t Str>,
}

impl Engine {
    /// The paths that the last update may have changed; `None` if that may be all.
    ///
    /// # Errors
    /// The trie or the automaton refers to something that is missing.
    pub fn changed_paths(
        &self,
        updated: &InPlaceUpdate,
    ) -> Result<Option<ChangedPaths>, InternalError> {
        let trie = self.trie();
        let (chain_states, added) = match &updated.update {
            EngineUpdate::Nothing => (&[][..], &[][..]),
            EngineUpdate::ChainStates(chain_states) => (&**chain_states, &[][..]),
            EngineUpdate::Paths {
                chain_states,
                added,
                ..
            } => (&**chain_states, &**added),
            EngineUpdate::All => return Ok(None),
        };
        // There, the answers of a rule depend on the policies of other routes.
        if trie.has_delegating_rules() {
            return Ok(None);
        }
        let mut states: HashSet<StateId> = added.iter().copied().collect();
        for &(kind, chain_state) in chain_states {
            states.extend(self.states_in(kind, chain_state)?);
        }
        let touched = TouchedNodes::new(self.world().topology(), &updated.touched);
        let mut leads_to_change = IndexVec::with_capacity(trie.len());
        for (id, node) in trie.ids().zip(trie.nodes()) {
            let mut leads = touched.affects(node.node)
                || trie.reference(id).is_some_and(|node| touched.affects(node));
            // Children have lower numbers.
            for child in trie.below(node) {
                leads |= *leads_to_change.get(child)?;
            }
            leads_to_change.push(leads);
        }
        Ok(Some(ChangedPaths {
            states,
            leads_to_change,
        }))
    }
}

impl<'t> TouchedNodes<'t> {
    fn new(topology: &'t Topology, nodes: &'t HashSet<NodeId>) -> Self {
        let objects = nodes.iter().map(|&node| &topology.key(node).object);
        let namespaces = objects.filter(|object| object.kind.is_namespace());
        Self {
            topology,
            namespaces: namespaces.map(|object| &object.name).collect(),
            nodes,
        }
    }

    /// Whether the step of a path to a node adds a changed node to attachment chains: the node itself, or the Namespace of
    /// its object (specification 1.2).
    fn affects(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
            || (!self.namespaces.is_empty() && {
                let namespace = &self.topology.key(node).object.namespace;
                self.namespaces.contains(namespace)
            })
    }
}

impl ChangedPaths {
    /// Whether the answers of a path may differ, or those of a path below it, for a trie node with its state that both
    /// versions have.
    ///
    /// # Errors
    /// There is no such trie node.
    pub fn may_differ(&self, node: TrieNodeId, state: StateId) -> Result<bool, InternalError> {
        Ok(self.states.contains(&state) || *self.leads_to_change.get(node)?)
    }
}
