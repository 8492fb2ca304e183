//! Finds the nodes that policies affect (specification 9.3): on paths where a policy contributes, the nodes
//! that it is attached to and all nodes below them. A section also affects its object, in part.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};

use super::automaton::StateId;
use super::kind_survey::KindSurvey;
use super::paths::{ChainId, ChainTable, PathEngine};
use super::selection::PathSelection;
use super::survey::Survey;
use crate::effective::{AttachmentChain, PolicyKind};
use crate::model::{GroupKind, InternalError, NodeKey, ObjectKey, OrInternal, PolicyRef, Section};
use crate::profile::PolicyClass;
use crate::store::NamespacedName;
use crate::topology::{NodeId, TrieNodeId};

/// The leading nodes of chains, with the trie nodes and states where paths have these nodes.
type Prefixes = BTreeMap<Vec<NodeId>, Vec<(TrieNodeId, StateId)>>;

/// Caches the policies of a kind that contribute to each chain, with the nodes that they are attached to.
struct Contributors<'e> {
    engine: &'e PathEngine,
    by_chain: HashMap<ChainId, Vec<(usize, Vec<NodeId>)>>,
}

impl PathEngine {
    /// The nodes that a policy affects on the paths of a selection, or on all paths, sorted. A kind for which this fails
    /// becomes UNKNOWN.
    pub fn affected_by(
        &self,
        number: usize,
        slot: usize,
        selection: Option<&PathSelection>,
    ) -> Vec<NodeId> {
        let Some(kind) = self.world.kinds().get(number) else {
            return Vec::new();
        };
        self.try_affected_by(number, kind, slot, selection)
            .unwrap_or_else(|error| {
                kind.fail(error);
                Vec::new()
            })
    }

    fn try_affected_by(
        &self,
        number: usize,
        kind: &PolicyKind,
        slot: usize,
        selection: Option<&PathSelection>,
    ) -> Result<Vec<NodeId>, InternalError> {
        if kind.profile().class == PolicyClass::Direct {
            return self.affected_directly(number, kind, slot, selection);
        }
        let mut chains = ChainTable::new(self, number, kind);
        let mut contributors = Contributors::new(self);
        let mut found = BTreeSet::new();
        let kind_survey = KindSurvey::new(self, kind)?;
        let first_step = |state, node| {
            if selection.is_some_and(|selection| !selection.ends_at(node, state)) {
                return Ok(None);
            }
            let object = self.object_kind(node)?;
            let Some(chain) = chains.at_scope(state, object)? else {
                return Ok(None);
            };
            let contributing = contributors.of(kind, chain, &chains)?;
            let own = contributing.iter().find(|(policy, _)| *policy == slot);
            let Some((_, nodes)) = own else {
                return Ok(None);
            };
            let mut steps = chains.chain(chain)?.steps.iter();
            Ok(steps.find(|step| nodes.contains(&step.node)).copied())
        };
        let first_steps = kind_survey.steps_above(first_step, |state| {
            let chain = self.chain(number, state)?;
            Ok(chain.map(|chain| chain.steps).unwrap_or_default())
        })?;
        let entries = kind_survey.survey.entries().iter().zip(first_steps);
        let entries = entries.filter(|(entry, _)| is_selected(selection, entry.node));
        for (entry, first_steps) in entries.filter(|(_, steps)| !steps.is_empty()) {
            let Some(chain) = self.chain(number, entry.state.0)? else {
                continue;
            };
            let mut steps = chain.steps.iter();
            let first = steps.position(|step| first_steps.contains(step));
            let first = first.or_internal("a step of a chain")?;
            for (node, prefix) in kind_survey.nodes(entry, &chain)? {
                if first < prefix {
                    self.affect(node, &mut found);
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The nodes that a policy of a direct kind affects: those that it is attached to, on paths where it contributes.
    fn affected_directly(
        &self,
        number: usize,
        kind: &PolicyKind,
        slot: usize,
        selection: Option<&PathSelection>,
    ) -> Result<Vec<NodeId>, InternalError> {
        let mut chains = ChainTable::new(self, number, kind);
        let mut contributors = Contributors::new(self);
        let mut found = BTreeSet::new();
        let survey;
        let entries = match selection {
            Some(selection) => selection.entries(),
            None => {
                survey = self.survey()?;
                survey.entries()
            }
        };
        for group in self.groups(entries, false)? {
            let Some(chain) = chains.at_scope(group.state, group.object)? else {
                continue;
            };
            for (policy, nodes) in contributors.of(kind, chain, &chains)? {
                if *policy == slot {
                    nodes.iter().for_each(|node| self.affect(*node, &mut found));
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Adds a node, and for a section the node of its whole object.
    fn affect(&self, node: NodeId, found: &mut BTreeSet<NodeId>) {
        found.insert(node);
        let key = self.world.topology().key(node);
        if key.section.is_some() {
            let whole = NodeKey::whole(key.object.clone());
            found.extend(self.world.topology().node(&whole));
        }
    }

    /// The policies that affect an object or section on the paths of a selection, or on all paths, by its key as in
    /// specification 11.16. A kind for which this fails becomes UNKNOWN.
    pub fn affecting(
        &self,
        object: &ObjectKey,
        section: Option<&str>,
        selection: Option<&PathSelection>,
    ) -> Vec<(GroupKind, PolicyRef)> {
        let survey = match self.survey() {
            Ok(survey) => survey,
            Err(error) => {
                self.fail(error);
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for node in self.named_nodes(object, section) {
            let mut parts = vec![node];
            if self.world.topology().key(node).section.is_none() {
                parts.extend(self.sections(object));
            }
            for (number, kind) in self.world.kinds().iter().enumerate() {
                let policies = self.affecting_of((number, kind), &parts, &survey, selection);
                let policies = policies.unwrap_or_else(|error| {
                    kind.fail(error);
                    BTreeMap::new()
                });
                let named = policies.into_values();
                found.extend(named.map(|policy| (kind.profile().policy.clone(), policy)));
            }
        }
        found
    }

    /// The policies of a kind that affect at least one of `parts`, sorted by name.
    fn affecting_of(
        &self,
        (number, kind): (usize, &PolicyKind),
        parts: &[NodeId],
        survey: &Survey<StateId>,
        selection: Option<&PathSelection>,
    ) -> Result<BTreeMap<NamespacedName, PolicyRef>, InternalError> {
        let mut found = BTreeMap::new();
        if kind.nodes.is_empty() {
            return Ok(found);
        }
        let mut chains = ChainTable::new(self, number, kind);
        let mut contributors = Contributors::new(self);
        let mut add_policy = |slot: usize| -> Result<(), InternalError> {
            let key = &kind.policy_at(slot).or_internal("a policy")?.key;
            let name = (key.namespace.clone(), key.name.clone());
            found.insert(name, PolicyRef::of(key));
            Ok(())
        };
        if kind.profile().class == PolicyClass::Direct {
            let entries = selection.map_or(survey.entries(), PathSelection::entries);
            for group in self.groups(entries, false)? {
                let Some(chain) = chains.at_scope(group.state, group.object)? else {
                    continue;
                };
                for (slot, nodes) in contributors.of(kind, chain, &chains)? {
                    if nodes.iter().any(|node| parts.contains(node)) {
                        add_policy(*slot)?;
                    }
                }
            }
            return Ok(found);
        }
        for (prefix, starts) in self.prefixes(number, kind, parts, survey)? {
            let mut scopes: HashSet<ChainId> = HashSet::new();
            self.below(&starts, selection, |state, node| {
                let object = self.object_kind(node)?;
                scopes.extend(chains.at_scope(state, object)?);
                Ok(())
            })?;
            let mut scopes: Vec<ChainId> = scopes.into_iter().collect();
            scopes.sort_unstable();
            for chain in scopes {
                for (slot, nodes) in contributors.of(kind, chain, &chains)? {
                    if nodes.iter().any(|node| prefix.contains(node)) {
                        add_policy(*slot)?;
                    }
                }
            }
        }
        Ok(found)
    }

    /// Finds the paths through `parts` as a kind considers them: the nodes of the chain down to there, and
    /// the trie nodes with their states.
    fn prefixes(
        &self,
        number: usize,
        kind: &PolicyKind,
        parts: &[NodeId],
        survey: &Survey<StateId>,
    ) -> Result<Prefixes, InternalError> {
        let mut found = Prefixes::new();
        let mut add = |chain: &AttachmentChain, length: usize, node, state| {
            let nodes = chain.steps.iter().take(length).map(|step| step.node);
            let nodes: Vec<NodeId> = nodes.collect();
            if !nodes.is_empty() {
                found.entry(nodes).or_default().push((node, state));
            }
        };
        let topology = self.world.topology();
        let is_namespace = |node: &NodeId| {
            let key = topology.key(*node);
            topology.namespace(&key.object.name) == Some(*node)
        };
        if parts.iter().any(is_namespace) {
            let kind_survey = KindSurvey::new(self, kind)?;
            for entry in kind_survey.survey.entries() {
                let Some(chain) = self.chain(number, entry.state.0)? else {
                    continue;
                };
                for (node, prefix) in kind_survey.nodes(entry, &chain)? {
                    if parts.contains(&node) {
                        add(&chain, prefix, entry.node, entry.state.0);
                    }
                }
            }
            return Ok(found);
        }
        for entry in survey.entries() {
            if self.trie.root(entry.node).is_some() {
                let Some(chain) = self.chain(number, entry.state)? else {
                    continue;
                };
                for (node, prefix) in self.root_prefixes(kind, entry.node, &chain)? {
                    if parts.contains(&node) {
                        add(&chain, prefix, entry.node, entry.state);
                    }
                }
                continue;
            }
            let node = self.trie.node(entry.node)?;
            let (kind_of_root, _) = self.automaton.end(entry.state)?;
            if parts.contains(&node.node)
                && kind.keeps(kind_of_root, node.level)
                && let Some(chain) = self.chain(number, entry.state)?
            {
                add(&chain, chain.steps.len(), entry.node, entry.state);
            }
        }
        Ok(found)
    }

    /// Visits the trie nodes at and below `starts` where paths of a selection end, each once in each state.
    fn below(
        &self,
        starts: &[(TrieNodeId, StateId)],
        selection: Option<&PathSelection>,
        mut visit: impl FnMut(StateId, TrieNodeId) -> Result<(), InternalError>,
    ) -> Result<(), InternalError> {
        let mut pending = starts.to_vec();
        let mut visited: HashSet<(TrieNodeId, StateId)> = HashSet::new();
        while let Some((id, state)) = pending.pop() {
            if !is_selected(selection, id) || !visited.insert((id, state)) {
                continue;
            }
            if selection.is_none_or(|selection| selection.ends_at(id, state)) {
                visit(state, id)?;
            }
            let node = self.trie.node(id)?;
            for child in self.trie.below(node) {
                pending.push((child, self.after(state, child)?));
            }
        }
        Ok(())
    }

    /// The nodes of an object or section, by its key as in specification 11.16.
    fn named_nodes(&self, object: &ObjectKey, section: Option<&str>) -> Vec<NodeId> {
        let topology = self.world.topology();
        let Some(section) = section else {
            let whole = topology.node(&NodeKey::whole(object.clone()));
            return whole.into_iter().collect();
        };
        let text = format!("{object}#{section}");
        let mut found = self.sections(object);
        let listener = Section::Listener(section.into());
        found.extend(topology.node(&NodeKey::section(object.clone(), listener)));
        found.sort_unstable();
        found.dedup();
        found.retain(|node| topology.describe(*node) == text);
        found
    }

    /// The sections of an object.
    fn sections(&self, object: &ObjectKey) -> Vec<NodeId> {
        let whole = NodeKey::whole(object.clone());
        let Some(whole) = self.world.topology().node(&whole) else {
            return Vec::new();
        };
        self.world.topology().sections(whole)
    }
}

/// Whether a path of a selection goes through a trie node.
fn is_selected(selection: Option<&PathSelection>, node: TrieNodeId) -> bool {
    selection.is_none_or(|selection| selection.goes_through(node))
}

impl<'e> Contributors<'e> {
    fn new(engine: &'e PathEngine) -> Self {
        Self {
            engine,
            by_chain: HashMap::new(),
        }
    }

    fn of(
        &mut self,
        kind: &PolicyKind,
        chain: ChainId,
        chains: &ChainTable<'_>,
    ) -> Result<&[(usize, Vec<NodeId>)], InternalError> {
        if !self.by_chain.contains_key(&chain) {
            let contribution = self.engine.world.contribution(kind, chains.chain(chain)?);
            self.by_chain.insert(chain, contribution.contributors);
        }
        let existing = self.by_chain.get(&chain).map(Vec::as_slice);
        existing.or_internal("the contributors to a chain")
    }
}
