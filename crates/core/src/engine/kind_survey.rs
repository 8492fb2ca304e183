//! Surveys the paths as one policy kind considers them: with the Namespaces that the kind adds above the
//! objects of a path.

use hashbrown::HashMap;

use super::automaton::StateId;
use super::paths::PathEngine;
use super::survey::{Survey, SurveyEntry};
use crate::effective::{AttachmentChain, PathRoot, PolicyKind};
use crate::model::{InternalError, Level, OrInternal};
use crate::topology::{NodeId, PathStep, TrieNode, TrieNodeId};

/// The number of a list of Namespaces.
pub(super) type ListId = u32;

/// A state, the Namespaces on the path that a kind considers, and whether the last trie node added one of
/// them.
pub(super) type KindState = (StateId, ListId, bool);

/// Numbers lists of Namespaces. Equal lists have the same number.
#[derive(Debug, Default)]
struct NamespaceLists {
    lists: Vec<Vec<NodeId>>,
    ids: HashMap<Vec<NodeId>, ListId>,
}

/// A survey of the paths as one kind considers them, with their Namespaces.
pub(super) struct KindSurvey<'e> {
    engine: &'e PathEngine,
    kind: &'e PolicyKind,
    pub(super) survey: Survey<KindState>,
    lists: NamespaceLists,
}

impl NamespaceLists {
    fn id(&mut self, nodes: Vec<NodeId>) -> ListId {
        if let Some(&existing) = self.ids.get(&nodes) {
            return existing;
        }
        let id = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        self.lists.push(nodes.clone());
        self.ids.insert(nodes, id);
        id
    }

    fn get(&self, id: ListId) -> Result<&[NodeId], InternalError> {
        let list = self.lists.get(id as usize).map(Vec::as_slice);
        list.or_internal("a list of Namespaces")
    }
}

impl<'e> KindSurvey<'e> {
    pub(super) fn new(engine: &'e PathEngine, kind: &'e PolicyKind) -> Result<Self, InternalError> {
        let mut lists = NamespaceLists::default();
        let empty = lists.id(Vec::new());
        let mut step = |above: KindState, id: TrieNodeId| -> Result<KindState, InternalError> {
            let (next, nodes) = step(engine, kind, &lists, above, id)?;
            Ok(match nodes {
                Some(nodes) => (next, lists.id(nodes), true),
                None => (next, above.1, false),
            })
        };
        let starts = engine.starts(|root| step((0, empty, false), root))?;
        let survey = Survey::from(engine, starts.into_iter(), &mut step)?;
        Ok(Self {
            engine,
            kind,
            survey,
            lists,
        })
    }

    /// Computes for each entry which steps of its chain `ends` returns for it or for an entry below it.
    /// `chain` returns the steps of the chain at a state.
    pub(super) fn steps_above(
        &self,
        mut ends: impl FnMut(StateId, TrieNodeId) -> Result<Option<PathStep>, InternalError>,
        chain: impl Fn(StateId) -> Result<Vec<PathStep>, InternalError>,
    ) -> Result<Vec<Vec<PathStep>>, InternalError> {
        let engine = self.engine;
        let entries = self.survey.entries();
        let mut above: Vec<Vec<PathStep>> = vec![Vec::new(); entries.len()];
        // Children have lower numbers than their parents, so they are computed first.
        for id in engine.trie.ids() {
            let node = engine.trie.node(id)?;
            for number in self.survey.at(id) {
                let entry = entries.get(number).or_internal("a survey entry")?;
                let mut found: Vec<PathStep> = ends(entry.state.0, id)?.into_iter().collect();
                for child in engine.trie.below(node) {
                    let state = self.below(entry.state, child)?;
                    let below = self.survey.number(child, state);
                    let below = below.or_internal("a survey entry below another")?;
                    for step in above.get(below).or_internal("a survey entry")? {
                        if !found.contains(step) {
                            found.push(*step);
                        }
                    }
                }
                if !found.is_empty() {
                    let steps = chain(entry.state.0)?;
                    found.retain(|step| steps.contains(step));
                }
                *above.get_mut(number).or_internal("a survey entry")? = found;
            }
        }
        Ok(above)
    }

    fn below(&self, above: KindState, child: TrieNodeId) -> Result<KindState, InternalError> {
        let (next, nodes) = step(self.engine, self.kind, &self.lists, above, child)?;
        Ok(match nodes {
            Some(nodes) => {
                let list = self.lists.ids.get(&nodes).copied();
                (next, list.or_internal("a list of Namespaces")?, true)
            }
            None => (next, above.1, false),
        })
    }

    /// The nodes that an entry's trie node adds to the path, each with the number of steps of the chain at
    /// it or above it.
    pub(super) fn nodes(
        &self,
        entry: &SurveyEntry<KindState>,
        chain: &AttachmentChain,
    ) -> Result<Vec<(NodeId, usize)>, InternalError> {
        let engine = self.engine;
        let topology = engine.world.topology();
        let node = engine.trie.node(entry.node)?;
        if engine.trie.root(entry.node).is_some() {
            return engine.root_prefixes(self.kind, entry.node, chain);
        }
        let (kind_of_root, _) = engine.automaton.end(entry.state.0)?;
        let mut found = Vec::new();
        let steps = &chain.steps;
        if !self.kind.keeps(kind_of_root, node.level) {
            return Ok(found);
        }
        found.push((node.node, steps.len()));
        let own_step = PathStep {
            node: node.node,
            level: node.level,
        };
        // Without the step of the node itself, the chain ends at the Namespace or above it.
        let above = steps.len() - usize::from(steps.last() == Some(&own_step));
        let namespace = self.kind.namespace_above(topology, kind_of_root, node);
        let added = namespace.filter(|_| entry.state.2);
        found.extend(added.map(|namespace| (namespace, above)));
        Ok(found)
    }
}

/// The state after one more trie node, and the Namespaces on the path if the trie node adds one.
fn step(
    engine: &PathEngine,
    kind: &PolicyKind,
    lists: &NamespaceLists,
    (state, list, _): KindState,
    id: TrieNodeId,
) -> Result<(StateId, Option<Vec<NodeId>>), InternalError> {
    let next = engine.after(state, id)?;
    let node = engine.trie.node(id)?;
    if let Some(root) = engine.trie.root(id) {
        let root = PathRoot::of(node, root);
        let steps = kind.steps_to_root(engine.world.topology(), root, node.level);
        let namespaces = steps.iter().filter(|step| step.level == Level::Namespace);
        let namespaces: Vec<NodeId> = namespaces.map(|step| step.node).collect();
        return Ok((next, (!namespaces.is_empty()).then_some(namespaces)));
    }
    let (root, _) = engine.automaton.end(next)?;
    let namespace = kind.namespace_above(engine.world.topology(), root, node);
    let above = lists.get(list)?;
    let added = namespace.filter(|namespace| !above.contains(namespace));
    let with = |namespace| above.iter().copied().chain([namespace]).collect();
    Ok((next, added.map(with)))
}

impl PathEngine {
    /// The nodes down to the root at a trie node as a kind considers them, each with the number of steps of the
    /// root's chain at it or above it.
    pub(super) fn root_prefixes(
        &self,
        kind: &PolicyKind,
        id: TrieNodeId,
        chain: &AttachmentChain,
    ) -> Result<Vec<(NodeId, usize)>, InternalError> {
        let node = self.trie.node(id)?;
        let root = PathRoot::of(node, self.trie.root(id).or_internal("a root")?);
        let mut prefix = 0;
        let steps = kind.steps_to_root(self.world.topology(), root, node.level);
        let nodes = steps.into_iter().map(|step| {
            prefix += usize::from(chain.steps.contains(&step));
            (step.node, prefix)
        });
        Ok(nodes.collect())
    }
}

impl PolicyKind {
    /// The Namespace of a trie node's object, if the kind considers it above nodes of this level.
    fn namespace_above(
        &self,
        topology: &crate::topology::Topology,
        root: crate::topology::RootKind,
        node: &TrieNode,
    ) -> Option<NodeId> {
        let key = topology.key(node.node);
        let reached = key.section.is_none()
            && self.sees_namespace(node.level)
            && self.keeps(root, node.level);
        topology
            .namespace(&key.object.namespace)
            .filter(|_| reached)
    }
}
