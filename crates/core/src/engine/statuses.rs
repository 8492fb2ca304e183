//! Computes the statuses of policies (specification 10). The effective and the overridden units of a
//! policy are computed once for each attachment chain and multiplied by the number of paths that have
//! the chain.

use hashbrown::{HashMap, HashSet};

use super::automaton::StateId;
use super::paths::{ChainId, ChainTable, PathEngine, has_ancestor};
use super::selection::PathSelection;
use super::survey::{PathCount, PathGroup, SurveyEntry};
use crate::effective::enforcement::EnforcementSummary;
use crate::effective::{PolicyKind, PolicyStatus, Statuses};
use crate::model::{
    Enforcement, InternalError, Level, NodeKey, ObjectKey, OrInternal, Outcome, PolicyRef, Unit,
    UnknownReason,
};
use crate::profile::{Ancestor, PolicyClass};
use crate::topology::NodeId;

/// The number of a set of roots; 0 is the empty set.
type SetId = u32;

/// Numbers sets of roots. Equal sets have the same number.
#[derive(Debug, Default)]
struct RootSets {
    sets: Vec<Vec<u32>>,
    ids: HashMap<Vec<u32>, SetId>,
    joined: HashMap<(SetId, SetId), SetId>,
}

/// The Gateways and mesh roots above each node that a policy is attached to.
#[derive(Debug)]
struct Ancestors {
    sets: RootSets,
    /// By node and its level.
    of_nodes: HashMap<(NodeId, Level), SetId>,
    /// By Namespace and the level of the nodes in it.
    of_namespaces: HashMap<(NodeId, Level), SetId>,
}

impl PathEngine {
    /// Computes the statuses of all policies. A kind for which this fails has no statuses and becomes
    /// UNKNOWN.
    pub fn statuses(&self) -> Statuses {
        match self.survey() {
            Ok(survey) => self.statuses_from(survey.entries(), None),
            Err(error) => {
                self.fail(error);
                Statuses::default()
            }
        }
    }

    /// Computes the statuses of all policies as if the paths of a selection were all paths.
    pub fn statuses_among(&self, selection: &PathSelection) -> Statuses {
        self.statuses_from(selection.entries(), Some(selection))
    }

    fn statuses_from(
        &self,
        entries: &[SurveyEntry<StateId>],
        selection: Option<&PathSelection>,
    ) -> Statuses {
        let found = self
            .groups(entries, false)
            .and_then(|groups| Ok((groups, self.ancestors(selection)?)));
        let (groups, ancestors) = match found {
            Ok(found) => found,
            Err(error) => {
                self.fail(error);
                return Statuses::default();
            }
        };
        let kinds = self.world.kinds().iter().enumerate();
        let kinds = kinds.map(|(number, kind)| {
            let statuses = self.statuses_of(number, kind, &groups, ancestors.as_ref());
            statuses.unwrap_or_else(|error| {
                kind.fail(error);
                Vec::new()
            })
        });
        Statuses {
            kinds: kinds.collect(),
        }
    }

    fn statuses_of(
        &self,
        number: usize,
        kind: &PolicyKind,
        groups: &[PathGroup<'_>],
        ancestors: Option<&Ancestors>,
    ) -> Result<Vec<PolicyStatus>, InternalError> {
        let slots = kind.slots();
        let mut summaries: Vec<EnforcementSummary> =
            (0..slots).map(|slot| kind.summary_of(slot)).collect();
        let mut overridden = vec![PathCount::default(); slots];
        if kind.policy_count() > 0 {
            let mut chains = ChainTable::new(self, number, kind);
            let mut scopes: Vec<PathCount> = Vec::new();
            let mut unknown: HashSet<ChainId> = HashSet::new();
            let has_unknown_paths = self.has_unknown_paths(kind)?;
            for group in groups {
                if has_unknown_paths && let Some(chain) = chains.at(group.state)? {
                    unknown.insert(chain);
                }
                let Some(chain) = chains.at_scope(group.state, group.object)? else {
                    continue;
                };
                scopes.resize(chains.len(), PathCount::default());
                let scope = scopes.get_mut(chain).or_internal("the scopes of a chain")?;
                scope.join(&group.paths);
            }
            for chain in unknown {
                let on_chain = kind.unknown_slots(chains.chain(chain)?, self.world.topology());
                for (slot, reason) in on_chain {
                    let summary = summaries.get_mut(slot).or_internal("a policy")?;
                    summary.note_unknown(reason);
                }
            }
            // Chains of paths that are not scopes count nothing.
            let scopes = scopes.iter().enumerate();
            for (chain, paths) in scopes.filter(|(_, paths)| paths.count > 0) {
                let contribution = self.world.contribution(kind, chains.chain(chain)?);
                for refusal in &contribution.refused {
                    let summary = summaries.get_mut(refusal.policy).or_internal("a policy")?;
                    summary.refuse(&refusal.message);
                }
                for share in &contribution.shares {
                    let summary = summaries.get_mut(share.policy).or_internal("a policy")?;
                    let count = usize::try_from(paths.count).unwrap_or(usize::MAX);
                    summary.paths = summary.paths.saturating_add(count);
                    summary.add(share);
                    if !share.lost.is_empty() {
                        summary.overridden_paths = summary.overridden_paths.saturating_add(count);
                        let overridden =
                            overridden.get_mut(share.policy).or_internal("a policy")?;
                        overridden.join(paths);
                    }
                }
            }
        }
        let mut statuses = vec![PolicyStatus::default(); slots];
        for (slot, _) in kind.policies() {
            let summary = summaries.get_mut(slot).or_internal("a policy")?;
            let overridden = overridden.get(slot).or_internal("a policy")?;
            summary.overridden_path_names = self.names(overridden)?;
            let mut status = kind.status(slot, summary);
            status.ancestors = self.ancestors_of(kind, slot, ancestors)?;
            *statuses.get_mut(slot).or_internal("a policy")? = status;
        }
        Ok(statuses)
    }

    /// Whether it is not known of some path whether a kind acts there, or with what (specification 1.8, 2.6).
    fn has_unknown_paths(&self, kind: &PolicyKind) -> Result<bool, InternalError> {
        if !self.world.topology().delegations.is_empty() {
            return Ok(true);
        }
        if !kind.has_controllers() && kind.waypoints.is_none() {
            return Ok(false);
        }
        for (root, _) in self.trie.roots() {
            if self.activity(kind, root)?.unknown().is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn ancestors_of(
        &self,
        kind: &PolicyKind,
        slot: usize,
        ancestors: Option<&Ancestors>,
    ) -> Result<Vec<ObjectKey>, InternalError> {
        let nodes = kind.ancestor_nodes(slot);
        let mut found: Vec<ObjectKey> = Vec::new();
        match kind.profile().status.ancestor {
            Ancestor::None => {}
            Ancestor::Target => {
                let objects = nodes.map(|(key, _)| &key.object);
                let root = NodeKey::root().object.kind;
                found.extend(objects.filter(|object| object.kind != root).cloned());
            }
            Ancestor::Gateway => {
                let ancestors = ancestors.or_internal("the ancestors of policies")?;
                let roots: Vec<_> = self.trie.roots().collect();
                for (key, group) in nodes {
                    let Some(node) = self.world.topology().node(key) else {
                        continue;
                    };
                    for root in ancestors.of(kind, node)? {
                        let (node, root) = roots.get(root as usize).or_internal("a root")?;
                        if group.is_for(&root.client) && self.activity(kind, *node)?.is_active() {
                            let node = self.trie.node(*node)?;
                            let key = self.world.topology().key(node.node);
                            found.push(key.object.clone());
                        }
                    }
                }
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// The nodes with policies of kinds whose statuses have Gateways as ancestors; `None` if there is no
    /// such kind.
    fn attached_below_gateways(&self) -> Option<HashSet<NodeId>> {
        let mut found = HashSet::new();
        let mut any = false;
        for kind in self.world.kinds() {
            if kind.profile().status.ancestor != Ancestor::Gateway {
                continue;
            }
            any = true;
            for (slot, _) in kind.policies() {
                let nodes = kind.ancestor_nodes(slot);
                let nodes = nodes.filter_map(|(key, _)| self.world.topology().node(key));
                found.extend(nodes);
            }
        }
        any.then_some(found)
    }

    /// Finds the roots above nodes with policies, on the paths of a selection; `None` if no status needs them.
    fn ancestors(
        &self,
        selection: Option<&PathSelection>,
    ) -> Result<Option<Ancestors>, InternalError> {
        let is_selected = |id| selection.is_none_or(|selection| selection.goes_through(id));
        let Some(policy_nodes) = self.attached_below_gateways() else {
            return Ok(None);
        };
        let topology = self.world.topology();
        let mut sets = RootSets::default();
        sets.id(Vec::new());
        let mut above: Vec<SetId> = vec![0; self.trie.len()];
        let mut found = Ancestors {
            sets,
            of_nodes: HashMap::new(),
            of_namespaces: HashMap::new(),
        };
        let top = topology.node(&NodeKey::root());
        for (number, (node, root)) in (0..).zip(self.trie.roots()) {
            if has_ancestor(root.kind) && is_selected(node) {
                let set = found.sets.id(vec![number]);
                *above.get_mut(node.index()).or_internal("a trie node")? = set;
                let class = root.class.map(|class| (class, Level::GatewayClass));
                let top = top.map(|top| (top, Level::Root));
                for key in class.into_iter().chain(top) {
                    found.join(false, key, set)?;
                }
            }
        }
        for id in self.trie.ids().rev() {
            let set = *above.get(id.index()).or_internal("a trie node")?;
            if set == 0 || !is_selected(id) {
                continue;
            }
            let node = self.trie.node(id)?;
            for child in self.trie.below(node) {
                let below = above.get_mut(child.index()).or_internal("a trie node")?;
                *below = found.sets.join(*below, set)?;
            }
            if policy_nodes.contains(&node.node) {
                found.join(false, (node.node, node.level), set)?;
            }
            let reference = self.trie.reference(id);
            if let Some(reference) = reference.filter(|node| policy_nodes.contains(node)) {
                found.join(false, (reference, node.level), set)?;
            }
            let key = topology.key(node.node);
            let namespace = topology.namespace(&key.object.namespace);
            if let Some(namespace) = namespace.filter(|node| policy_nodes.contains(node))
                && key.section.is_none()
            {
                found.join(true, (namespace, node.level), set)?;
            }
        }
        Ok(Some(found))
    }
}

impl RootSets {
    fn id(&mut self, set: Vec<u32>) -> SetId {
        if let Some(&existing) = self.ids.get(&set) {
            return existing;
        }
        let id = u32::try_from(self.sets.len()).unwrap_or(u32::MAX);
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }

    fn join(&mut self, a: SetId, b: SetId) -> Result<SetId, InternalError> {
        if a == b || b == 0 {
            return Ok(a);
        }
        if a == 0 {
            return Ok(b);
        }
        if let Some(&existing) = self.joined.get(&(a, b)) {
            return Ok(existing);
        }
        let mut all = self.get(a)?.to_vec();
        all.extend(self.get(b)?);
        all.sort_unstable();
        all.dedup();
        let id = self.id(all);
        self.joined.insert((a, b), id);
        Ok(id)
    }

    fn get(&self, id: SetId) -> Result<&[u32], InternalError> {
        let set = self.sets.get(id as usize).map(Vec::as_slice);
        set.or_internal("a root set")
    }
}

impl Ancestors {
    fn join(
        &mut self,
        lives_in: bool,
        key: (NodeId, Level),
        set: SetId,
    ) -> Result<(), InternalError> {
        let of = if lives_in {
            &mut self.of_namespaces
        } else {
            &mut self.of_nodes
        };
        let existing = of.entry(key).or_default();
        *existing = self.sets.join(*existing, set)?;
        Ok(())
    }

    /// The roots above a node, on paths as the kind considers them.
    fn of(&self, kind: &PolicyKind, node: NodeId) -> Result<Vec<u32>, InternalError> {
        let mut found = Vec::new();
        for level in Level::ALL {
            let set = self.of_nodes.get(&(node, level));
            if let Some(&set) = set.filter(|_| kind.sees(level)) {
                found.extend(self.sets.get(set)?);
            }
            let set = self.of_namespaces.get(&(node, level));
            if let Some(&set) = set.filter(|_| kind.sees(level) && kind.sees_namespace(level)) {
                found.extend(self.sets.get(set)?);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

impl PolicyKind {
    /// The summary of a policy before its paths are counted.
    pub(crate) fn summary_of(&self, slot: usize) -> EnforcementSummary {
        let mut references = self.attached(slot).into_iter().flat_map(|a| &a.references);
        let is_of_backend = |outcome| outcome == Outcome::BackendFilterNotEvaluated;
        let of_backend = references.any(|reference| is_of_backend(reference.outcome));
        EnforcementSummary::of_unknown(
            of_backend.then_some(UnknownReason::BackendFilterNotEvaluated),
        )
    }

    /// The status of a policy from its summary, without ancestors.
    pub(crate) fn status(&self, slot: usize, summary: &EnforcementSummary) -> PolicyStatus {
        let accepted = self.outcome(slot).0 == Outcome::Accepted;
        let has_status = !matches!(
            self.profile.class,
            PolicyClass::Listed | PolicyClass::Unprofiled
        );
        if !accepted || !has_status {
            return PolicyStatus::default();
        }
        let refusal = summary.refused_everywhere().cloned();
        if let Some(refusal) = refusal.or_else(|| self.refused_on_targets(slot)) {
            return PolicyStatus {
                refused: Some(refusal),
                ..PolicyStatus::default()
            };
        }
        let by = summary.overridden_by.iter();
        let by = by.filter_map(|&policy| self.policy_at(policy));
        let mut overridden_by: Vec<PolicyRef> = by.map(|p| PolicyRef::of(&p.key)).collect();
        overridden_by.sort();
        let in_force = summary.in_force();
        PolicyStatus {
            in_force: Some(in_force),
            unknown: summary.unknown.filter(|_| in_force == Enforcement::Unknown),
            refused: None,
            overridden_by,
            ancestors: Vec::new(),
            paths: summary.paths,
            overridden_paths: summary.overridden_paths,
            overridden_units: summary
                .overridden_units
                .iter()
                .map(Unit::to_string)
                .collect(),
            overridden_path_names: summary.overridden_path_names.clone(),
        }
    }
}
