//! Finds the objects that act on a selection of paths.

use hashbrown::HashSet;

use super::paths::PathEngine;
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
        Ok(self.world.acting_objects(&steps, sees))
    }
}
