//! Finds the objects that act on a selection of paths.

use hashbrown::HashSet;

use super::paths::{ChainId, ChainTable, PathEngine};
use super::selection::PathSelection;
use crate::effective::{ActingObjects, AnswerSources};
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
        let sources = self.answer_sources(selection)?;
        Ok(self.world.acting_objects(&steps, sources, sees))
    }

    /// What the answers on the paths of a selection depend on or name, besides what is on these paths.
    fn answer_sources(&self, selection: &PathSelection) -> Result<AnswerSources, InternalError> {
        let mut sources = AnswerSources::default();
        for (number, kind) in self.world.kinds().iter().enumerate() {
            let mut policies = kind.policies();
            let names_objects = policies.any(|(_, policy)| !policy.named_objects.is_empty());
            let rejects = kind.acts_from_elsewhere() && kind.has_rejected_policies();
            if !names_objects && !rejects {
                continue;
            }
            let mut chains = ChainTable::new(self, number, kind);
            let mut visited: HashSet<ChainId> = HashSet::new();
            let mut slots: HashSet<usize> = HashSet::new();
            for entry in selection.entries() {
                let chain = chains.at(entry.state)?;
                let Some(chain) = chain.filter(|chain| visited.insert(*chain)) else {
                    continue;
                };
                let chain = chains.chain(chain)?;
                if rejects {
                    let rejected = kind.named_rejections(chain).into_iter();
                    sources.rejected.extend(rejected.map(|slot| (number, slot)));
                }
                // What policies say counts nowhere on a path of which it is not known whether they act.
                if names_objects && !chain.inherited_only() && !chain.is_unknown() {
                    // By the policies of each chain, because chains times policies are too many in a large world.
                    slots.extend(kind.acting_slots(chain));
                }
            }
            let policies = slots.iter().filter_map(|slot| kind.policy_at(*slot));
            let named = policies.flat_map(|policy| policy.named_objects.iter().cloned());
            sources.named.extend(named);
        }
        Ok(sources)
    }
}
