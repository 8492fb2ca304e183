//! Changes the paths of single routes, Gateways and namespaces in a world, without finding those of others again.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::Engine;
use super::automaton::{Automaton, StateId};
use super::change_impact::ChangeImpact;
use super::explore::AutomatonBuilder;
use super::state_index::ReachedStates;
use crate::model::{
    Id, InternalError, LayeredMap, NodeKey, ObjectKey, OrInternal, Section, groups,
};
use crate::store::{Projection, Store, route_kind};
use crate::topology::{NodeId, PathChanges, PathPatch, RootController, TrieNodeId};

/// As many routes can change at once, and a part of all.
const MAX_ROUTES: usize = 64;
/// As many trie nodes, states and routes can be left behind as there are in use, and these.
const MAX_LEFT: usize = 4_096;

impl Engine {
    /// Changes the paths of the routes and Gateways that changes affect, and puts the later topology in its place; `None`
    /// if the world must be rebuilt. The trie and the automaton follow later.
    pub(super) fn patch(
        &mut self,
        before: &Store,
        impact: &ChangeImpact,
    ) -> Option<Option<PathPatch>> {
        let mut routes = impact.routes.clone();
        if !impact.services.is_empty() {
            routes.extend(self.routes_naming(&impact.services)?);
        }
        if routes.is_empty() && impact.namespaces.is_empty() && impact.gateways.is_empty() {
            return Some(None);
        }
        let patch = self.patch_paths(PathChanges {
            before,
            now: self.world().store(),
            routes: &routes,
            namespaces: &impact.namespaces,
            gateways: &impact.gateways,
        })?;
        if !impact.gateways.is_empty() && self.world().has_other_routing_filters(&patch.topology) {
            return None;
        }
        if let Some(of_backends) = &mut self.routes_of_backends {
            for change in &patch.routes {
                let backends = change.before.iter().flat_map(|before| before.backends());
                backends.for_each(|backend| remove(of_backends, backend, change.number));
                let backends = change.now.iter().flat_map(|now| now.backends());
                for backend in backends {
                    of_backends.update(backend, |routes| routes.insert(change.number));
                }
            }
        }
        for &node in &patch.added {
            let kind = &patch.topology.key(node).object.kind;
            if !self.referenced_kinds.contains(kind) {
                self.referenced_kinds.insert(kind.clone());
            }
        }
        self.paths.world.topology = Arc::new(patch.topology.clone());
        Some(Some(patch))
    }

    /// Gives the routes through some nodes new trie nodes, so that the paths through these can have other states; `None` if
    /// all states must be found anew. The topology is the same after that.
    pub(super) fn patch_again(&mut self, nodes: &[NodeId]) -> Option<PathPatch> {
        let mut routes: BTreeSet<ObjectKey> = BTreeSet::new();
        let mut backends: BTreeSet<ObjectKey> = BTreeSet::new();
        for &node in nodes {
            let object = &self.world().topology().key(node).object;
            let name = (object.namespace.clone(), object.name.clone());
            if route_kind(&object.kind).is_some() {
                routes.insert(object.clone());
            } else if object.kind.is(groups::CORE, "Service")
                && self.world().topology().is_backend_only(object)
                && !self.world().has_waypoint(&name)
            {
                backends.insert(object.clone());
            } else {
                return None;
            }
        }
        if !backends.is_empty() {
            routes.extend(self.routes_naming(&backends)?);
        }
        let store = self.world().store();
        // A Route that does not exist is the backend of others.
        let mut entries = routes.iter().map(|key| (key, store.get(key)));
        if !entries.all(|(key, entry)| entry.is_some() && self.patches_route(key, (entry, entry))) {
            return None;
        }
        let mut patch = self.patch_paths(PathChanges {
            before: store,
            now: store,
            routes: &routes,
            namespaces: &BTreeSet::new(),
            gateways: &BTreeSet::new(),
        })?;
        if patch.changes_trie() {
            self.paths.trie = Arc::new(std::mem::take(&mut patch.trie));
        }
        Some(patch)
    }

    /// A later version of the topology and the trie, in which what changes is as in the store; `None` if that needs a build
    /// from scratch.
    fn patch_paths(&self, changes: PathChanges<'_>) -> Option<PathPatch> {
        let topology = self.world().topology();
        let (all, _) = topology.routes.counts();
        if changes.routes.len() > MAX_ROUTES + all / 64 || self.is_sparse() {
            return None;
        }
        let traits_of = |controller: &RootController| self.world().routing_traits(controller);
        topology.patched(&self.paths.trie, &changes, &traits_of)
    }

    /// Whether more is left behind by changes than is in use.
    fn is_sparse(&self) -> bool {
        let trie = &self.paths.trie;
        let left = trie.unreachable();
        let (states, unreached) = self.states.counts();
        let (routes, gone) = self.world().topology().routes.counts();
        let (nodes, released) = self.world().topology().node_counts();
        left > trie.len().saturating_sub(left) / 2 + MAX_LEFT
            || unreached > states + MAX_LEFT
            || gone > routes + MAX_LEFT
            || released > nodes + MAX_LEFT
    }

    /// The routes that name some Services; `None` if it is not known.
    fn routes_naming(&mut self, services: &BTreeSet<ObjectKey>) -> Option<BTreeSet<ObjectKey>> {
        let topology = &self.paths.world.topology;
        let of_backends = self.routes_of_backends.get_or_insert_with(|| {
            let mut found: HashMap<NodeId, BTreeSet<usize>> = HashMap::new();
            for (number, route) in topology.routes.existing() {
                for backend in route.backends() {
                    found.entry(backend).or_default().insert(number);
                }
            }
            found.into()
        });
        let nodes = services.iter();
        let nodes = nodes.filter_map(|key| topology.node(&NodeKey::whole(key.clone())));
        let numbers = nodes.filter_map(|node| of_backends.get(&node)).flatten();
        let keys =
            numbers.map(|&number| topology.routes.get(number).map(|route| route.key.clone()));
        keys.collect()
    }

    /// The nodes whose trie nodes are all new.
    pub(super) fn renewed_nodes(
        &self,
        impact: &ChangeImpact,
        patch: Option<&PathPatch>,
    ) -> HashSet<NodeId> {
        let Some(patch) = patch else {
            return HashSet::new();
        };
        let services = self.nodes_of(&impact.services, None);
        // A ListenerSet can also be the backend of routes that stay.
        let is_listener = |node: &&NodeId| patch.topology.key(**node).section.is_some();
        let listeners = patch.of_gateways.iter().filter(is_listener);
        let nodes = patch.of_routes.iter().chain(listeners);
        let nodes = nodes.chain(&patch.added).copied();
        nodes.chain(services).collect()
    }

    /// The nodes of some objects and of their sections.
    pub(super) fn nodes_of(
        &self,
        objects: &BTreeSet<ObjectKey>,
        patch: Option<&PathPatch>,
    ) -> Vec<NodeId> {
        let (topology, store) = (self.world().topology(), self.world().store());
        let mut found = Vec::new();
        for key in objects {
            found.extend(topology.node(&NodeKey::whole(key.clone())));
            let projection = store.get(key).map(|entry| &entry.projection);
            if let Some(Projection::Service(ports)) = projection {
                let ports = ports.numbers();
                let ports = ports.map(|port| NodeKey::section(key.clone(), Section::Port(port)));
                found.extend(ports.filter_map(|port| topology.node(&port)));
            }
        }
        let of_routes = patch.into_iter().flat_map(|patch| &patch.of_routes);
        found.extend(of_routes);
        found
    }

    /// The nodes that came, went or are of changed Gateways, and with which policies of a kind have to do. Also drops the
    /// policies of nodes that do not exist any more.
    pub(super) fn affected_nodes(
        &mut self,
        number: usize,
        patch: Option<&PathPatch>,
    ) -> BTreeSet<NodeKey> {
        let mut affected = BTreeSet::new();
        let kinds = &mut self.paths.world.kinds;
        let (Some(patch), Some(kind), Some(index)) =
            (patch, kinds.get_mut(number), self.indexes.get(number))
        else {
            return affected;
        };
        let nodes = patch.added.iter().chain(&patch.removed);
        for &node in nodes.chain(&patch.of_gateways) {
            let key = patch.topology.key(node);
            // Those of other listeners of their port keep policies out of listeners that have none.
            if !index.by_node.get(key).is_empty() || kind.nodes.contains_key(&node) {
                affected.insert(key.clone());
            }
        }
        for node in &patch.removed {
            if kind.nodes.contains_key(node) {
                Arc::make_mut(kind).nodes.put(*node, Default::default());
            }
        }
        affected
    }

    /// Adds the states of the new trie nodes.
    ///
    /// # Errors
    /// The trie or the world refers to something that is missing.
    pub(super) fn follow_paths(
        &mut self,
        patch: &PathPatch,
    ) -> Result<ReachedStates, InternalError> {
        if !patch.changes_trie() {
            return Ok(ReachedStates::default());
        }
        let automaton = Automaton::clone(&self.paths.automaton);
        let index = std::mem::take(&mut self.states);
        let trie = Arc::clone(&self.paths.trie);
        let mut builder = AutomatonBuilder::on(&self.paths.world, automaton, index);
        builder.index().record();
        for number in builder.transitions().symbols.len()..trie.len() {
            let id = TrieNodeId::at(u32::try_from(number).unwrap_or(u32::MAX));
            let symbol = match patch.copies.get(&id) {
                Some(copied) => builder.transitions().symbol(*copied)?,
                None => builder.symbol_of(&trie, id)?,
            };
            builder.transitions().symbols.push(symbol);
        }
        // What comes is counted before what goes: states that stay are not left in between.
        for path in &patch.paths_now {
            let state = builder.state_after(&trie, path)?;
            builder.index().pin(state);
        }
        let mut detached: Vec<(StateId, TrieNodeId)> = Vec::new();
        for listener in &patch.listeners {
            detached.extend(builder.follow_listener(&trie, listener)?);
        }
        for (state, route) in detached {
            let class = builder.index().class_of(route);
            let class = class.or_internal("the class of a route")?;
            builder.detach(&trie, (state, class), route)?;
        }
        for path in &patch.paths_before {
            let state = builder.state_after(&trie, path)?;
            builder.index().reach(vec![state], false);
        }
        for route in &patch.left {
            builder.index().forget_class(*route);
        }
        let (automaton, mut index) = builder.finish();
        // What a symbol stands for may be read again later, with other policies.
        index.forget_symbols();
        let reached = index.recorded();
        (self.paths.automaton, self.states) = (Arc::new(automaton), index);
        Ok(reached)
    }
}

/// Removes a route from those that name a backend.
fn remove(of_backends: &mut LayeredMap<NodeId, BTreeSet<usize>>, backend: NodeId, route: usize) {
    if let Some(routes) = of_backends.get_mut(&backend) {
        routes.remove(&route);
        if routes.is_empty() {
            of_backends.remove(&backend);
        }
    }
}
