//! The engine: updates a world when its store changes, with work in proportion to the change.
//!
//! A changed policy is replaced in its slot. Only its references, the conflicts that it takes part in and
//! the chain states that contain its nodes are computed again. A changed route, or a Service that routes name, gets new
//! paths, and only states that these reach are added. A namespace that comes or goes adds or removes its own path, and
//! its labels, like a ReferenceGrant, change the routes and policies that go by them. A Gateway, a ListenerSet or a class
//! that changes is read again with all others, and the routes of those that differ are attached again. What decides how
//! all of it is read (profiles, CRDs) rebuilds the world from scratch; answers with the same
//! [`AnswerKey`](crate::effective::AnswerKey) can be reused. Tests compare each update with [`World::from_store`].

mod acting;
mod affected;
mod attachment_index;
mod automaton;
mod chain_state;
mod change_impact;
mod changed_paths;
mod explore;
mod gateways;
mod grants;
mod kind_survey;
mod namespaces;
mod patch;
mod paths;
mod selection;
mod state_index;
mod statuses;
mod survey;

pub use automaton::{Automaton, ChainStateId, StateId, Transitions};
pub use changed_paths::ChangedPaths;
pub use paths::{ChainId, ChainKey, ChainTable, PathEnd, PathEngine};
pub use selection::PathSelection;
pub use survey::{PathCount, PathGroup, SAMPLE_SIZE, Survey, SurveyEntry, SurveyStart};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use hashbrown::HashSet;

use self::attachment_index::AttachmentIndex;
use self::change_impact::ChangeImpact;
use self::state_index::StateIndex;
use crate::attach::{AttachmentGroup, attach_policy, with_references};
use crate::effective::acceptance::{self, AttachmentPoint, resolve_conflicts};
use crate::effective::{NodePolicies, PolicyKind, World};
use crate::model::{
    GroupKind, InternalError, LayeredMap, NodeKey, Object, ObjectKey, OrInternal, Outcome,
};
use crate::profile::{Policy, Profile, read_policy};
use crate::store::{ChangeSet, Store};
use crate::topology::{NodeId, PathPatch, PathTrie, Topology};

/// A world with its paths that is updated as its store changes. Clones share what does not change.
#[derive(Clone, Debug)]
pub struct Engine {
    paths: PathEngine,
    indexes: Vec<AttachmentIndex>,
    states: StateIndex,
    /// The numbers of the routes that name each backend; made when it is first needed.
    routes_of_backends: Option<LayeredMap<NodeId, BTreeSet<usize>>>,
    /// The kinds of objects that are nodes of paths or targets of references.
    pub(super) referenced_kinds: HashSet<GroupKind>,
    /// The number of updates that rebuilt the world from scratch.
    rebuilds: u64,
}

/// The effect of an update on answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineUpdate {
    /// No answer changes.
    Nothing,
    /// The answers of these chain states may change; pairs of kind and chain state.
    ChainStates(Vec<(usize, ChainStateId)>),
    /// Paths may come, go or have another state. The answers of some chain states may change, too.
    Paths {
        /// Pairs of kind and chain state.
        chain_states: Vec<(usize, ChainStateId)>,
        /// The states that paths reach and did not before. Some are new.
        added: Vec<StateId>,
        /// The states that paths reach no more.
        removed: Vec<StateId>,
    },
    /// All states are new. Answers with the same key are unchanged.
    All,
}

/// An update without reading the world from scratch.
#[derive(Debug)]
pub struct InPlaceUpdate {
    /// The effect on answers.
    pub update: EngineUpdate,
    /// The nodes that stay, with policies or fields that differ from before.
    touched: HashSet<NodeId>,
}

/// The effect of replacing policies of a kind.
#[derive(Debug, Default)]
struct Replacement {
    /// Nodes whose policies changed.
    touched: Vec<NodeId>,
    /// Nodes that have policies for all clients and had none before, so that paths through them need new states.
    unreached: Vec<NodeId>,
    /// Other paths need new states, too.
    needs_new_states: bool,
}

impl Engine {
    /// Finds all paths of a world and the states that they reach.
    pub fn new(world: World) -> Self {
        let indexes = world
            .kinds()
            .iter()
            .map(|k| AttachmentIndex::of(k, world.store()));
        let indexes = indexes.collect();
        let referenced_kinds = referenced_kinds(&world);
        let (paths, states) = PathEngine::with_index(world);
        Self {
            indexes,
            referenced_kinds,
            paths,
            states,
            routes_of_backends: None,
            rebuilds: 0,
        }
    }

    /// The current world.
    pub fn world(&self) -> &World {
        &self.paths.world
    }

    /// The current world with its paths. Later updates do not change a clone.
    pub fn paths(&self) -> &PathEngine {
        &self.paths
    }

    /// The trie of all paths.
    pub fn trie(&self) -> &Arc<PathTrie> {
        &self.paths.trie
    }

    /// The automaton over the trie.
    pub fn automaton(&self) -> &Arc<Automaton> {
        &self.paths.automaton
    }

    /// The number of updates that rebuilt the world from scratch.
    pub fn rebuilds(&self) -> u64 {
        self.rebuilds
    }

    /// The number of policies of each kind by outcome (specification 3.3).
    pub fn outcomes(&self) -> BTreeMap<(GroupKind, Outcome), usize> {
        let mut found = BTreeMap::new();
        for kind in self.paths.world.profiled_kinds() {
            for (slot, _) in kind.policies() {
                let (outcome, _) = kind.outcome(slot);
                let key = (kind.profile.policy.clone(), outcome);
                *found.entry(key).or_default() += 1;
            }
        }
        found
    }

    /// The states with a chain state of a kind that paths reach.
    ///
    /// # Errors
    /// There is no such chain state.
    pub fn states_in(
        &self,
        kind: usize,
        chain_state: ChainStateId,
    ) -> Result<impl Iterator<Item = StateId>, InternalError> {
        self.states.states_in(kind, chain_state)
    }

    /// A copy for the question what a change would do: what fails in it is not an error of this world.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut fork = self.clone();
        for kind in &mut fork.paths.world.kinds {
            let fault = kind.fault.get().copied();
            Arc::make_mut(kind).fault = Arc::new(fault.map(OnceLock::from).unwrap_or_default());
        }
        fork
    }

    /// Updates the world to a store in which the objects in `changed` differ from before.
    pub fn follow(&mut self, store: Store, changed: &ChangeSet) -> EngineUpdate {
        match self.follow_in_place(store, changed) {
            Some(updated) => updated.update,
            None => self.rebuild(),
        }
    }

    /// As [`Engine::follow`], where that is possible without reading the world from scratch; `None` if it is not. The
    /// engine is between two worlds then.
    pub fn follow_in_place(&mut self, store: Store, changed: &ChangeSet) -> Option<InPlaceUpdate> {
        let before = std::mem::replace(&mut self.paths.world.store, store);
        // If an object of a declared Route kind changed, the world is rebuilt.
        self.paths.world.store.share_declared_routes(&before);
        let mut impact = ChangeImpact::default();
        for (key, difference) in changed {
            impact.extend(self.change_impact(key, *difference, &before)?);
        }
        self.follow_namespaces(&before, &mut impact)?;
        self.follow_gateways(&before, &impact)?;
        self.update(&before, impact)
    }

    /// Updates the world to what changes have an effect on; `None` if it must be rebuilt.
    fn update(&mut self, before: &Store, mut impact: ChangeImpact) -> Option<InPlaceUpdate> {
        let mut patch = self.patch(before, &impact)?;
        // A backend that is no Service exists because routes name it.
        let nodes = patch.iter();
        for &node in nodes.flat_map(|patch| patch.added.iter().chain(&patch.removed)) {
            let object = &self.paths.world.topology.key(node).object;
            impact.add_policies(self.policies_targeting(object));
        }
        let (mut dirty, replaced) = self.replace_all(&impact, patch.as_ref())?;
        let mut needs_new_states = replaced.needs_new_states
            || self.has_new_active_kind()
            || patch
                .as_ref()
                .is_some_and(|p| self.changes_paths_through(p));
        let objects = self.nodes_of(&impact.objects, patch.as_ref());
        for number in 0..self.paths.world.kinds.len() {
            dirty.extend(self.dirty(number, &objects));
        }
        let touched = replaced.touched.into_iter().chain(objects).collect();
        if let Some(patch) = &mut patch
            && patch.changes_trie()
        {
            self.paths.trie = Arc::new(std::mem::take(&mut patch.trie));
        }
        if !replaced.unreached.is_empty() && !needs_new_states {
            // One patch at a time: the lists of one are those of the topology before it.
            let again = match patch {
                None => self.patch_again(&replaced.unreached),
                Some(_) => None,
            };
            needs_new_states = again.is_none();
            patch = patch.or(again);
        }
        if needs_new_states {
            let (world, trie) = (&self.paths.world, &self.paths.trie);
            let (automaton, states) = PathEngine::build_automaton(world, trie);
            (self.paths.automaton, self.states) = (Arc::new(automaton), states);
            let update = EngineUpdate::All;
            return Some(InPlaceUpdate { update, touched });
        }
        dirty.sort_unstable();
        dirty.dedup();
        let update = match patch {
            Some(patch) => {
                let states = self.follow_paths(&patch).ok()?;
                EngineUpdate::Paths {
                    chain_states: dirty,
                    added: states.added,
                    removed: states.removed,
                }
            }
            None if dirty.is_empty() => EngineUpdate::Nothing,
            None => EngineUpdate::ChainStates(dirty),
        };
        Some(InPlaceUpdate { update, touched })
    }

    /// Replaces the policies of all kinds that changes have an effect on. Returns the chain states that contain a changed
    /// node; `None` if the world must be rebuilt.
    fn replace_all(
        &mut self,
        impact: &ChangeImpact,
        patch: Option<&PathPatch>,
    ) -> Option<(Vec<(usize, ChainStateId)>, Replacement)> {
        let mut dirty = Vec::new();
        let mut all = Replacement::default();
        let renewed = self.renewed_nodes(impact, patch);
        for node in patch.into_iter().flat_map(|patch| &patch.removed) {
            for replaced in &mut self.paths.world.replaced {
                replaced.forget(*node);
            }
        }
        for number in 0..self.paths.world.kinds.len() {
            let keys = impact.policies.get(&number);
            let affected = self.affected_nodes(number, patch);
            if keys.is_none() && affected.is_empty() {
                continue;
            }
            let keys = keys.cloned().unwrap_or_default();
            let replacement = self.replace_policies(number, &keys, affected, &renewed)?;
            all.needs_new_states |= replacement.needs_new_states;
            all.unreached.extend(replacement.unreached);
            let flipped = self.follow_replaced(number, &replacement.touched);
            let stay = flipped.into_iter().filter(|node| !renewed.contains(node));
            all.unreached.extend(stay);
            dirty.extend(self.dirty(number, &replacement.touched));
            all.touched.extend(replacement.touched);
        }
        Some((dirty, all))
    }

    /// Follows changed policies of a kind on which limits of other kinds depend (specification 2.10). Returns the nodes at
    /// which other limits hold than before.
    fn follow_replaced(&mut self, number: usize, touched: &[NodeId]) -> Vec<NodeId> {
        let World {
            replaced, kinds, ..
        } = &mut self.paths.world;
        let Some(kind) = kinds.get(number) else {
            return Vec::new();
        };
        let mut flipped = Vec::new();
        for condition in replaced {
            let nodes = condition.follow(kind, touched);
            let with_states = kinds.iter().zip(&self.paths.automaton.chain_states);
            let mut dependent = with_states.filter(|(_, chain_states)| chain_states.is_some());
            if dependent.any(|(kind, _)| {
                let mut conditions = kind.profile.limits.replaced_by();
                conditions.any(|by| by == condition.by())
            }) {
                flipped.extend(nodes);
            }
        }
        flipped.retain(|&node| self.world().is_below_gateways(node));
        flipped
    }

    /// The chain states of a kind whose chains contain some nodes.
    fn dirty(&self, number: usize, nodes: &[NodeId]) -> Vec<(usize, ChainStateId)> {
        let resting = nodes.iter();
        let resting = resting.flat_map(|&node| self.states.chain_states_on(number, node));
        resting.map(|&chain_state| (number, chain_state)).collect()
    }

    /// Whether a kind has its first attached policies: states of the automaton have no chain state of it.
    fn has_new_active_kind(&self) -> bool {
        let kinds = self.paths.world.kinds.iter();
        let mut kinds = kinds.zip(&self.paths.automaton.chain_states);
        kinds.any(|(kind, chain_states)| !kind.nodes.is_empty() && chain_states.is_none())
    }

    /// Rebuilds the world from scratch. Equal profiles keep their address, so that answer keys stay equal.
    fn rebuild(&mut self) -> EngineUpdate {
        let world = self.paths.world.rebuilt();
        let rebuilds = self.rebuilds + 1;
        *self = Self {
            rebuilds,
            ..Self::new(world)
        };
        EngineUpdate::All
    }

    /// Replaces policies of a kind, and resolves the conflicts on some more nodes; `None` if they change the paths
    /// themselves. All trie nodes of the `renewed` nodes are new.
    fn replace_policies(
        &mut self,
        number: usize,
        keys: &BTreeSet<ObjectKey>,
        mut affected: BTreeSet<NodeKey>,
        renewed: &HashSet<NodeId>,
    ) -> Option<Replacement> {
        let kind = Arc::make_mut(
            self.paths
                .world
                .kinds
                .get_mut(number)
                .or_internal("a kind")
                .ok()?,
        );
        let index = self
            .indexes
            .get_mut(number)
            .or_internal("the index of a kind");
        let index = index.ok()?;
        let mut slots: HashSet<usize> = HashSet::new();
        for key in keys {
            let entry = self.paths.world.store.get(key);
            let entry = entry.filter(|entry| kind.profile.reads(&entry.object));
            let is_same = entry.is_some_and(|entry| kind.says_the_same(key, &entry.object));
            if let Some(slot) = kind.table.slot(key) {
                affected.extend(index.detach(kind, slot, entry.is_none())?);
                slots.extend((!is_same).then_some(slot));
            }
            let Some(entry) = entry else { continue };
            let policy = read_policy(&kind.profile, &entry.object);
            let policy = with_references(&kind.profile, policy, &self.paths.world.store);
            self.referenced_kinds
                .extend(reference_kinds(&kind.profile, &policy));
            let context = (&self.paths.world.store, &*self.paths.world.topology);
            let attached = attach_policy(&kind.profile, &policy, context, &index.filters);
            // Such a policy can add paths for its clients below a mesh root.
            if attached
                .nodes()
                .any(|(_, g)| matches!(g, AttachmentGroup::Clients(_)))
            {
                return None;
            }
            let slot = index.slot(kind, key);
            slots.extend((!is_same).then_some(slot));
            affected.extend(index.attach(kind, slot, policy, attached)?);
        }
        let was_empty = kind.nodes.is_empty();
        let topology = &*self.paths.world.topology;
        acceptance::extend_to_ports(&kind.profile, topology, &mut affected);
        let members = index.affected_policies(kind, &mut affected);
        let found = kind.resolve_conflicts_on(members, &affected, topology);
        let mut replacement = Replacement::default();
        for (key, policies) in found {
            if let Some(node) = self.paths.world.topology.node(&key) {
                let is_of_child = topology.delegations.has_node(node);
                let is_renewed = renewed.contains(&node);
                replacement.replace((kind, node), policies, &slots, (is_of_child, is_renewed));
            }
        }
        // Without policies, own fields of objects say nothing, so that states lack them (specification 6.4).
        replacement.needs_new_states |=
            was_empty && !kind.nodes.is_empty() && kind.reads_own_fields();
        Some(replacement)
    }
}

impl Replacement {
    /// Replaces the policies of a node, which may be one of a child Route, and of which all trie nodes may be new.
    fn replace(
        &mut self,
        (kind, node): (&mut PolicyKind, NodeId),
        policies: NodePolicies,
        slots: &HashSet<usize>,
        (is_of_child, is_renewed): (bool, bool),
    ) {
        let has_policies = policies.has_policies();
        let before = kind.nodes.get(&node);
        // Chains name only some nodes of child Routes (specification 1.8).
        let had_valid = before.is_some_and(NodePolicies::has_valid);
        self.needs_new_states |= !is_renewed && is_of_child && policies.has_valid() != had_valid;
        // Existing chain states may contain a node that has no policies any more. New ones are needed
        // if policies concern all clients on a node where no policy did before.
        let is_new = policies.is_for_all() && !before.is_some_and(NodePolicies::is_for_all);
        self.unreached
            .extend((is_new && !is_renewed).then_some(node));
        let affects = |on_node: &NodePolicies| {
            let accepted = on_node.groups.iter().flat_map(|(_, policies)| policies);
            let accepted = accepted.copied();
            let mut all = accepted.chain(on_node.rejected.iter().map(|r| r.policy));
            all.any(|policy| slots.contains(&policy))
        };
        let same = before.is_some_and(|before| *before == policies && !affects(before));
        if !same && (has_policies || before.is_some()) {
            self.touched.push(node);
        }
        kind.nodes.put(node, policies);
    }
}

impl PolicyKind {
    /// Whether a policy that is read from an object again says what it said before. Where other objects decide that, by
    /// their existence (specification 5.7) or by an annotation (specification 5.3), it is not known.
    fn says_the_same(&self, key: &ObjectKey, object: &Arc<Object>) -> bool {
        let known = self.table.slot(key);
        let known = known.and_then(|slot| self.policy_at(slot));
        self.profile.references.is_empty()
            && self.profile.strategy_choice.annotation.is_none()
            && known.is_some_and(|policy| Arc::ptr_eq(object, &policy.object))
    }

    /// Resolves the conflicts between some policies; returns the policies of the affected nodes.
    fn resolve_conflicts_on(
        &mut self,
        members: Vec<usize>,
        affected: &BTreeSet<NodeKey>,
        topology: &Topology,
    ) -> Vec<(NodeKey, NodePolicies)> {
        let resolution = resolve_conflicts(
            &self.profile,
            self.schemas.borrow(),
            &self.table,
            members.clone(),
            topology,
        );
        let is_affected = |(node, _): &AttachmentPoint| affected.contains(node);
        let mut lost = resolution.losses_by_policy();
        for slot in members {
            let mut lost = lost.remove(&slot).unwrap_or_default();
            lost.retain(|(point, _)| is_affected(point));
            self.table.record_losses(slot, is_affected, lost);
        }
        let mut found = resolution.by_node(&self.profile);
        let nodes = affected.iter();
        nodes
            .map(|node| (node.clone(), found.remove(node).unwrap_or_default()))
            .collect()
    }
}

/// The kinds that a policy references, as far as its profile allows them.
fn reference_kinds<'p>(
    profile: &'p Profile,
    policy: &'p Policy,
) -> impl Iterator<Item = GroupKind> + 'p {
    let references = policy.references.iter().filter(|r| r.invalid.is_none());
    let kinds = references.map(|reference| &reference.kind);
    let allowed = |kind: &&GroupKind| {
        profile.target(kind).is_some() || profile.virtual_targets.contains(kind)
    };
    kinds.filter(allowed).cloned()
}

/// The kinds of objects that are nodes of paths or targets of references.
fn referenced_kinds(world: &World) -> HashSet<GroupKind> {
    let mut referenced_kinds: HashSet<GroupKind> = HashSet::new();
    for kind in world.kinds() {
        for (_, policy) in kind.policies() {
            referenced_kinds.extend(reference_kinds(&kind.profile, policy));
        }
    }
    for index in 0..world.topology().len() {
        let key = world.topology().key_at(index);
        referenced_kinds.extend(key.map(|key| key.object.kind.clone()));
    }
    referenced_kinds
}
