//! Finds the objects that act on a selection of paths.

use std::collections::BTreeSet;

use hashbrown::HashSet;

use super::paths::{ChainId, ChainTable, PathEngine};
use super::selection::PathSelection;
use crate::effective::ActingObjects;
use crate::model::{InternalError, Level, ObjectKey};
use crate::topology::{PathStep, TrieNode};

impl PathEngine {
    /// Returns the objects that act on the paths of a selection: what a part of the world needs so that answers on these
    /// paths stay the same. Routes of which `sees` is true stay without the listeners that they lost to others.
    ///
    /// # Errors
    /// A trie node, a state or a chain is missing.
    pub fn acting_objects(
        &self,
        selection: &PathSelection,
        sees: &dyn Fn(&ObjectKey) -> bool,
    ) -> Result<ActingObjects, InternalError> {
        let mut steps: HashSet<PathStep> = HashSet::new();
        for id in selection.nodes() {
            let TrieNode { node, level, .. } = *self.trie.node(id)?;
            let class = self.trie.root(id).and_then(|root| root.class);
            let nodes = [Some(node), self.trie.reference(id)].into_iter().flatten();
            steps.extend(nodes.map(|node| PathStep { node, level }));
            steps.extend(class.map(|node| PathStep {
                node,
                level: Level::GatewayClass,
            }));
        }
        let named = self.named_objects(selection)?;
        Ok(self.world.acting_objects(&steps, named, sees))
    }

    /// The objects that policies name in their rules and that the answers on the paths of a selection depend on.
    fn named_objects(
        &self,
        selection: &PathSelection,
    ) -> Result<BTreeSet<ObjectKey>, InternalError> {
        let mut named = BTreeSet::new();
        for (number, kind) in self.world.kinds().iter().enumerate() {
            let mut policies = kind.policies();
            if policies.all(|(_, policy)| policy.named_objects.is_empty()) {
                continue;
            }
            let mut chains = ChainTable::new(self, number, kind);
            let mut visited: HashSet<ChainId> = HashSet::new();
            let mut slots: HashSet<usize> = HashSet::new();
            for entry in selection.entries() {
                let (root, end) = self.automaton.end(entry.state)?;
                if !kind.reaches_effective_level(root, end) {
                    continue;
                }
                let chain = chains.at(entry.state)?;
                let Some(chain) = chain.filter(|chain| visited.insert(*chain)) else {
                    continue;
                };
                // What policies say counts nowhere on a path of which it is not known whether they act.
                if chains.chain(chain)?.is_unknown() {
                    continue;
                }
                // By the policies of each chain, because chains times policies are too many in a large world.
                let acting = kind.acting_slots(chains.chain(chain)?);
                slots.extend(acting);
            }
            let policies = slots.iter().filter_map(|slot| kind.policy_at(*slot));
            named.extend(policies.flat_map(|policy| policy.named_objects.iter().cloned()));
        }
        Ok(named)
    }
}
