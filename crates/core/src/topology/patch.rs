//! Changes the paths of single routes: a later topology and trie that share everything else with those before.
//!
//! The nodes of a changed route get new trie nodes, and each trie node above them a copy, so that children keep lower
//! numbers than their parents. A namespace is the root of a path of its own. Below a Gateway that changes, only the routes
//! that it admits no more, or now, change. What a route has to do with others is left to a build from scratch
//! ([`FixedPaths`]).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashSet;

use super::delegation::is_route_reference;
use super::edge_label::EdgeLabel;
use super::gateways::{GatewayChanges, TraitsOf};
use super::route_list::ListenerPlace;
use super::streams::{StreamFamily, StreamListeners};
use super::trie::{EdgeChange, PathTrie, TrieNode, TrieNodeId, TrieRoot};
use super::{NodeId, RootKind, RouteNode, Topology};
use crate::model::{Level, NodeKey, ObjectKey, Str, groups};
use crate::store::{NamespacedName, Route, Store, route_kind};

/// What keeps the paths of single routes from being changed.
#[derive(Clone, Debug, Default)]
pub(super) struct FixedPaths {
    /// Routes may have paths below each other, or be generated from each other.
    routes: bool,
    /// Routes take listeners from each other.
    streams: bool,
    /// The Services that routes name as their parents.
    parents: HashSet<NamespacedName>,
}

/// What differs between two versions of a store.
pub(crate) struct PathChanges<'c> {
    pub(crate) before: &'c Store,
    pub(crate) now: &'c Store,
    pub(crate) routes: &'c BTreeSet<ObjectKey>,
    pub(crate) namespaces: &'c BTreeSet<Str>,
    /// GatewayClasses, Gateways and ListenerSets.
    pub(crate) gateways: &'c BTreeSet<ObjectKey>,
}

/// A later version of a topology and its trie.
pub(crate) struct PathPatch {
    pub(crate) topology: Topology,
    pub(crate) trie: PathTrie,
    /// The nodes that did not exist before.
    pub(crate) added: Vec<NodeId>,
    /// The nodes that do not exist any more.
    pub(crate) removed: Vec<NodeId>,
    /// The nodes of the routes whose trie nodes are new.
    pub(crate) of_routes: BTreeSet<NodeId>,
    /// The nodes of listeners and ListenerSets whose trie nodes are new.
    pub(crate) of_gateways: BTreeSet<NodeId>,
    /// The copied trie nodes, and what they are copied from.
    pub(crate) copies: BTreeMap<TrieNodeId, TrieNodeId>,
    pub(crate) listeners: Vec<ListenerPatch>,
    pub(crate) routes: Vec<RouteChange>,
    /// The trie nodes of routes that no path leads to any more.
    pub(crate) left: Vec<TrieNodeId>,
    /// Roots, ListenerSets and listeners, each with what is above it, that have other trie nodes now or none.
    pub(crate) paths_before: Vec<Vec<TrieNodeId>>,
    /// Those that have new trie nodes.
    pub(crate) paths_now: Vec<Vec<TrieNodeId>>,
}

/// A listener that changes, or has other routes.
#[derive(Debug)]
pub(crate) struct ListenerPatch {
    /// The trie nodes from the root to the listener before; `None` if it is new.
    pub(crate) before: Option<Vec<TrieNodeId>>,
    /// The same now; `None` if it is gone.
    pub(crate) now: Option<Vec<TrieNodeId>>,
    /// The trie nodes of each route that differs, before and now.
    pub(crate) routes: Vec<(Option<TrieNodeId>, Option<TrieNodeId>)>,
}

/// How the routes of a listener change.
#[derive(Default)]
pub(super) struct ListenerChange<'k> {
    pub(super) edges: Vec<EdgeChange<'k>>,
    /// As [`ListenerPatch::routes`].
    pub(super) routes: Vec<(Option<TrieNodeId>, Option<TrieNodeId>)>,
}

/// A route that changes, before and now.
pub(crate) struct RouteChange {
    pub(crate) number: usize,
    pub(crate) before: Option<Arc<RouteNode>>,
    pub(crate) now: Option<Arc<RouteNode>>,
    /// Whether the route itself changed, not only the listeners that it is attached to.
    is_own: bool,
    trie_before: Option<TrieNodeId>,
    trie_now: Option<TrieNodeId>,
}

impl RouteChange {
    /// Whether the paths below the route stay as they are.
    fn keeps_subtree(&self) -> bool {
        !self.is_own && self.trie_before.is_some()
    }

    /// The trie node of the route before, if no path leads to it now.
    fn left(&self) -> Option<TrieNodeId> {
        self.trie_before
            .filter(|before| self.trie_now != Some(*before))
    }
}

impl FixedPaths {
    fn of(topology: &Topology, store: &Store) -> Self {
        let mut fixed = Self {
            streams: topology.serves_one_stream(),
            ..Self::default()
        };
        for (key, route) in store.routes() {
            fixed.routes |= route_kind(&key.kind).is_none() || has_to_do_with_routes(route);
            for parent in services(route) {
                fixed.parents.insert(parent);
            }
        }
        fixed
    }
}

/// Whether a route names others, as parents or as backends.
fn has_to_do_with_routes(route: &Route) -> bool {
    let mut parents = route.parents.iter();
    let mut backends = route.rules.iter().flat_map(|rule| &*rule.backends);
    parents.any(|parent| route_kind(&parent.kind).is_some())
        || backends.any(|backend| is_route_reference(&backend.kind))
}

/// The Services that a route names as its parents.
fn services(route: &Route) -> impl Iterator<Item = NamespacedName> {
    let parents = route.parents.iter();
    let services = parents.filter(|parent| parent.kind.is(groups::CORE, "Service"));
    services.map(|parent| (parent.namespace.clone(), parent.name.clone()))
}

impl RouteNode {
    /// The nodes of a route, of its rules and of their backends, each as often as it is used.
    fn all_nodes(&self) -> impl Iterator<Item = NodeId> {
        let backends = self.rules.iter().flat_map(|rule| &*rule.backends);
        let backends = backends.flat_map(|backend| {
            let ports = backend.ports.iter().map(|(_, node)| *node);
            ports.chain([backend.node]).chain(backend.reference)
        });
        self.own_nodes().chain(backends)
    }

    /// The nodes of a route and of its rules.
    fn own_nodes(&self) -> impl Iterator<Item = NodeId> {
        let rules = self.rules.iter().map(|rule| rule.node);
        rules.chain([self.node])
    }

    /// The nodes of the backends of a route.
    pub(crate) fn backends(&self) -> impl Iterator<Item = NodeId> {
        let backends = self.rules.iter().flat_map(|rule| &*rule.backends);
        backends.map(|backend| backend.node)
    }
}

impl Topology {
    /// Records what keeps the paths of single routes from being changed.
    pub(super) fn fix_paths(&mut self, store: &Store) {
        *self.fixed = FixedPaths::of(self, store);
    }

    /// Whether the paths of a route can be changed without those of others, for a version of the route.
    pub(crate) fn can_patch_route(&self, store: &Store, key: &ObjectKey, route: &Route) -> bool {
        let kind = store.route_kind(&key.kind);
        let is_stream = kind.is_some_and(|kind| StreamFamily::of(kind).is_some());
        let is_fixed = self.fixed.routes
            || self.fixed.streams && is_stream
            || has_to_do_with_routes(route)
            || services(route).next().is_some();
        !is_fixed && store.hidden_holders().is_empty()
    }

    /// Whether Gateways, ListenerSets and classes can be changed without the paths of all routes.
    fn can_patch_gateways(&self, store: &Store) -> bool {
        !self.fixed.routes && store.hidden_holders().is_empty()
    }

    fn serves_one_stream(&self) -> bool {
        let mut gateways = self.gateways.values();
        gateways.any(|gateway| gateway.serves_one_stream_route)
    }

    /// Records whether routes take listeners from each other.
    pub(super) fn follow_streams(&mut self) {
        let streams = self.serves_one_stream();
        if self.fixed.streams != streams {
            self.fixed.streams = streams;
        }
    }

    /// Whether no paths begin at a Service, and no route names it as its parent.
    pub(crate) fn is_backend_only(&self, service: &ObjectKey) -> bool {
        let name = (service.namespace.clone(), service.name.clone());
        !self.roots.contains_key(&name) && !self.fixed.parents.contains(&name)
    }

    /// Whether paths can go through a namespace that does not exist.
    pub(crate) fn has_outer_backends(&self, namespace: &str) -> bool {
        self.outer_backends.contains_key(namespace)
    }

    fn count_outer_backends(&mut self, route: &RouteNode, is_used: bool) {
        let backends = route.backends().map(|backend| &self.key(backend).object);
        let outer = backends.filter(|backend| {
            backend.namespace != route.key.namespace && !backend.kind.is(groups::CORE, "Service")
        });
        let namespaces: Vec<Str> = outer.map(|backend| backend.namespace.clone()).collect();
        for namespace in namespaces {
            let uses = self.outer_backends.get(&namespace).copied();
            match (uses.unwrap_or_default(), is_used) {
                (uses, true) => self.outer_backends.insert(namespace, uses + 1),
                (0 | 1, false) => self.outer_backends.remove(&namespace),
                (uses, false) => self.outer_backends.insert(namespace, uses - 1),
            };
        }
    }

    /// Counts the nodes of a route as used, or as used no more. Returns the nodes whose first or last use this is.
    pub(super) fn retain_route(&mut self, route: &RouteNode, is_used: bool) -> Vec<NodeId> {
        self.count_outer_backends(route, is_used);
        let mut found = Vec::new();
        for node in route.all_nodes() {
            let differs = match is_used {
                true => self.nodes.retain(node),
                false => self.nodes.release(node),
            };
            found.extend(differs.then_some(node));
        }
        found
    }

    /// A later version, in which what differs between two versions of a store is as in the later one, and the Services that
    /// the changed routes name. `None` if that needs a build from scratch.
    pub(crate) fn patched(
        &self,
        trie: &PathTrie,
        changes: &PathChanges<'_>,
        traits_of: &TraitsOf<'_>,
    ) -> Option<PathPatch> {
        let mut topology = self.clone();
        // Routes are attached by the labels of their namespaces.
        topology.change_namespaces(changes.now, changes.namespaces);
        let gateways = topology.patch_gateways(self, changes, traits_of)?;
        let mut routes = topology.change_routes(self, trie, changes, &gateways)?;
        let mut added = topology.added_gateways(self, changes);
        let mut removed: BTreeSet<NodeId> = BTreeSet::new();
        // New uses come first: what stays in use keeps its node.
        for change in &routes {
            let now = change.now.as_ref();
            added.extend(
                now.into_iter()
                    .flat_map(|now| topology.retain_route(now, true)),
            );
        }
        for change in &routes {
            let before = change.before.as_ref();
            let last = before.map(|before| topology.retain_route(before, false));
            removed.extend(last.into_iter().flatten());
        }
        removed.extend(topology.release_gateways(self, changes));
        let trie = topology.add_changed_subtrees(trie.clone(), &mut routes);
        let mut lists = topology.change_lists(&routes)?;
        let of_routes = routes.iter().filter(|change| !change.keeps_subtree());
        let of_routes = of_routes.filter_map(|change| change.now.as_ref());
        let mut patch = PathPatch {
            of_routes: of_routes.flat_map(|now| now.own_nodes()).collect(),
            left: routes.iter().filter_map(RouteChange::left).collect(),
            topology,
            trie,
            added: added.into_iter().collect(),
            removed: removed.into_iter().collect(),
            of_gateways: gateways.nodes.clone(),
            copies: BTreeMap::new(),
            listeners: Vec::new(),
            routes: Vec::new(),
            paths_before: Vec::new(),
            paths_now: Vec::new(),
        };
        for &before in &patch.left {
            let nodes = patch.trie.count_below(before);
            patch.trie.leave(nodes);
        }
        patch.renew_gateways(self, &gateways, &mut lists)?;
        patch.replace_listeners(lists)?;
        for name in changes.namespaces {
            patch.change_namespace_root(self, name)?;
        }
        patch.routes = routes;
        Some(patch)
    }

    /// Reads Gateways, ListenerSets and classes again, if some of them changed; `None` if the world must be rebuilt.
    fn patch_gateways(
        &mut self,
        before: &Topology,
        changes: &PathChanges<'_>,
        traits_of: &TraitsOf<'_>,
    ) -> Option<GatewayChanges> {
        if changes.gateways.is_empty() {
            return Some(GatewayChanges::default());
        }
        let can_patch = before.can_patch_gateways(changes.now);
        can_patch.then(|| self.change_gateways(before, changes, traits_of))
    }

    /// Reads the changed routes again, and attaches those to listeners that may have others.
    fn change_routes(
        &mut self,
        before: &Topology,
        trie: &PathTrie,
        changes: &PathChanges<'_>,
        gateways: &GatewayChanges,
    ) -> Option<Vec<RouteChange>> {
        let mut attached = gateways.routes(before, changes.now);
        attached.retain(|key| !changes.routes.contains(key));
        let own = changes.routes.iter().map(|key| (key, true));
        let all = own.chain(attached.iter().map(|key| (key, false)));
        let mut found = Vec::with_capacity(changes.routes.len());
        for (key, is_own) in all {
            let store = changes.now;
            let can_patch = |topology: &Topology| {
                let mut known = store.route(key).into_iter();
                known.all(|route| topology.can_patch_route(store, key, route))
            };
            if !can_patch(before) || !can_patch(self) {
                return None;
            }
            let change = self.change_route((before, trie), store, (key, is_own))?;
            found.extend(change);
        }
        Some(found)
    }

    /// Adds the subtrees of the changed routes that have other ones than before, or none.
    fn add_changed_subtrees(&self, trie: PathTrie, routes: &mut [RouteChange]) -> PathTrie {
        let attached = |change: &RouteChange| {
            let now = change.now.as_ref();
            now.is_some_and(|now| !now.listeners.is_empty())
        };
        let mut new = Vec::new();
        for change in routes.iter_mut().filter(|change| attached(change)) {
            match change.keeps_subtree() {
                true => change.trie_now = change.trie_before,
                false => new.push(change),
            }
        }
        let numbers: Vec<usize> = new.iter().map(|change| change.number).collect();
        let (trie, subtrees) = self.add_subtrees(trie, &numbers);
        for (change, subtree) in new.into_iter().zip(subtrees) {
            change.trie_now = Some(subtree);
        }
        trie
    }

    /// Reads some namespaces again. The paths that begin at them stay as they are.
    pub(crate) fn change_namespaces(&mut self, store: &Store, names: &BTreeSet<Str>) {
        for name in names {
            let labels = store.namespace_labels(name);
            if self.labels.get(name) == labels.as_ref() {
                continue;
            }
            match (self.namespace(name), labels) {
                (Some(_), Some(labels)) => {
                    self.labels.insert(name.clone(), labels);
                }
                (None, Some(labels)) => {
                    let node = self.intern(NodeKey::namespace(name.clone()));
                    self.namespaces.insert(name.clone(), node);
                    self.labels.insert(name.clone(), labels);
                }
                (Some(node), None) => {
                    self.nodes.release(node);
                    self.namespaces.remove(name);
                    self.labels.remove(name);
                }
                (None, None) => {}
            }
        }
    }

    /// Attaches a route again, and puts it in its place. It is read again, too, if it is `is_own` that changed.
    fn change_route(
        &mut self,
        (earlier, trie): (&Topology, &PathTrie),
        store: &Store,
        (key, is_own): (&ObjectKey, bool),
    ) -> Option<Option<RouteChange>> {
        let known = self.routes.number(key);
        let before = known.and_then(|number| self.routes.get(number)).cloned();
        let number = known.unwrap_or(self.routes.len());
        let now = match store.route(key) {
            None if before.is_none() => return Some(None),
            None => None,
            Some(route) => {
                let mut streams = StreamListeners::default();
                let attached = self.attach_route(store, (number, key, route), &mut streams);
                let known = before.as_ref().filter(|_| !is_own);
                if known.is_some_and(|k| (&k.listeners, &k.refused) == (&attached.0, &attached.1)) {
                    return Some(None);
                }
                let mut node = match known {
                    Some(known) => RouteNode::clone(known),
                    None => self.route_node(store, key, route),
                };
                (node.listeners, node.refused) = attached;
                Some(Arc::new(node))
            }
        };
        match (&now, known) {
            (Some(now), Some(_)) => self.routes.set(number, Arc::clone(now)),
            (Some(now), None) => self.routes.add(Arc::clone(now)),
            (None, _) => self.routes.remove(key),
        }
        match now.as_ref().is_some_and(|now| !now.refused.is_empty()) {
            true => self.refused_routes.insert_mut(number),
            false => _ = self.refused_routes.remove_mut(&number),
        }
        let first = before.as_ref().and_then(|before| before.listeners.first());
        let trie_before = match first {
            Some(&list) => Some(earlier.trie_node_below(trie, list, key)?),
            None => None,
        };
        Some(Some(RouteChange {
            number,
            before,
            now,
            is_own,
            trie_before,
            trie_now: None,
        }))
    }

    /// The trie node of a route below the listener with a list.
    fn trie_node_below(&self, trie: &PathTrie, list: usize, key: &ObjectKey) -> Option<TrieNodeId> {
        let place = self.listener_places.get(list)?.as_ref()?;
        let listener = *trie_path(trie, place)?.last()?;
        trie.child(Some(listener), &route_label(key)).ok()?
    }

    /// Changes the lists of listeners; returns how their edges change, by list.
    fn change_lists<'k>(
        &mut self,
        changes: &'k [RouteChange],
    ) -> Option<BTreeMap<usize, ListenerChange<'k>>> {
        let mut found: BTreeMap<usize, ListenerChange<'k>> = BTreeMap::new();
        for change in changes {
            let lists = |node: &Option<Arc<RouteNode>>| -> BTreeSet<usize> {
                let listeners = node.iter().flat_map(|node| node.listeners.iter());
                listeners.copied().collect()
            };
            let (before, now) = (lists(&change.before), lists(&change.now));
            for &list in before.union(&now) {
                if change.keeps_subtree() && before.contains(&list) && now.contains(&list) {
                    continue;
                }
                let listener = found.entry(list).or_default();
                let trie = (
                    change.trie_before.filter(|_| before.contains(&list)),
                    change.trie_now.filter(|_| now.contains(&list)),
                );
                let edge = match trie {
                    (Some(_), Some(now)) => {
                        let at = self.search_list(list, change.number)?.ok()?;
                        EdgeChange::Replace(at, now)
                    }
                    (None, Some(now)) => {
                        let at = self.add_to_list(list, change.number)?;
                        let key = &change.now.as_ref()?.key;
                        EdgeChange::Insert(at, route_label(key), now)
                    }
                    (Some(_), None) => {
                        EdgeChange::Remove(self.remove_from_list(list, change.number)?)
                    }
                    (None, None) => return None,
                };
                listener.edges.push(edge);
                listener.routes.push(trie);
            }
        }
        Some(found)
    }
}

impl PathPatch {
    /// Whether paths lead to other trie nodes than before.
    pub(crate) fn changes_trie(&self) -> bool {
        !self.listeners.is_empty() || !self.paths_before.is_empty() || !self.paths_now.is_empty()
    }

    /// Adds or removes the path of a namespace that has come or gone. `None` if Routes delegate: their rules have the
    /// namespaces of the backends of all child Routes, also of those that do not exist (specification 1.8).
    fn change_namespace_root(&mut self, before: &Topology, name: &Str) -> Option<()> {
        let label = EdgeLabel::Namespace(name);
        let (before, now) = (before.namespace(name), self.topology.namespace(name));
        if before.is_some() != now.is_some() && !self.topology.delegations.is_empty() {
            return None;
        }
        match (before, now) {
            (None, Some(node)) => {
                let id = self.trie.add((node, Level::Namespace), &[]);
                self.add_root(label, id, TrieRoot::of_namespace())?;
                self.added.push(node);
                self.paths_now.push(vec![id]);
            }
            (Some(node), None) => {
                let id = self.remove_root(&label)??;
                self.removed.push(node);
                self.paths_before.push(vec![id]);
            }
            _ => {}
        }
        Some(())
    }

    /// Makes a trie node a root at its place among the others.
    pub(super) fn add_root(
        &mut self,
        label: EdgeLabel<'_>,
        id: TrieNodeId,
        root: TrieRoot,
    ) -> Option<()> {
        let order = place_of_root(&self.topology, self.trie.node(id).ok()?.node, root.kind);
        self.trie.insert_root(order, label, (id, root))
    }

    /// Removes the root with a label, if there is one, and returns its trie node.
    pub(super) fn remove_root(&mut self, label: &EdgeLabel<'_>) -> Option<Option<TrieNodeId>> {
        let root = self.trie.child(None, label).ok()?;
        if let Some(id) = root {
            let kind = self.trie.root(id)?.kind;
            let order = place_of_root(&self.topology, self.trie.node(id).ok()?.node, kind);
            self.trie.remove_root(order, id)?;
        }
        Some(root)
    }

    /// Replaces the trie nodes of listeners, and of all above them.
    fn replace_listeners(&mut self, listeners: BTreeMap<usize, ListenerChange<'_>>) -> Option<()> {
        let mut of_gateways: BTreeMap<NamespacedName, Vec<(ListenerPlace, ListenerChange<'_>)>> =
            BTreeMap::new();
        for (list, change) in listeners {
            let place = self.topology.listener_places.get(list)?.clone()?;
            let of_gateway = of_gateways.entry(place.gateway.clone()).or_default();
            of_gateway.push((place, change));
        }
        for of_gateway in of_gateways.into_values() {
            self.replace_gateway(of_gateway)?;
        }
        Some(())
    }

    /// Replaces the trie nodes of some listeners of a Gateway, of their ListenerSets and of the Gateway.
    fn replace_gateway(&mut self, changes: Vec<(ListenerPlace, ListenerChange<'_>)>) -> Option<()> {
        let mut sets: BTreeMap<Option<usize>, Vec<EdgeChange<'_>>> = BTreeMap::new();
        let mut paths = Vec::with_capacity(changes.len());
        let mut gateway = None;
        for (place, change) in changes {
            let before = trie_path(&self.trie, &place)?;
            gateway = gateway.or(before.first().copied());
            let listener = self.replace(*before.last()?, &change.edges)?;
            let edges = sets.entry(place.set).or_default();
            edges.push(EdgeChange::Replace(place.index, listener));
            paths.push((place.set, listener, change.routes));
        }
        let gateway = gateway?;
        let mut edges = sets.remove(&None).unwrap_or_default();
        let mut new_sets: BTreeMap<usize, TrieNodeId> = BTreeMap::new();
        for (set, listeners) in sets {
            let at = set?;
            let set = self.replace(self.trie.child_at(gateway, at)?, &listeners)?;
            edges.push(EdgeChange::Replace(at, set));
            new_sets.insert(at, set);
        }
        let root = self.replace(gateway, &edges)?;
        let node = self.trie.node(gateway).ok()?.node;
        let order = place_of_root(&self.topology, node, RootKind::Gateway);
        self.trie.replace_root(order, gateway, root)?;
        for (set, listener, routes) in paths {
            let set = set.and_then(|at| new_sets.get(&at)).copied();
            let path: Vec<TrieNodeId> = [root].into_iter().chain(set).chain([listener]).collect();
            // Copies have the states of what they are copied from.
            self.listeners.push(ListenerPatch {
                before: Some(path.clone()),
                now: Some(path),
                routes,
            });
        }
        Some(())
    }

    fn replace(&mut self, id: TrieNodeId, changes: &[EdgeChange<'_>]) -> Option<TrieNodeId> {
        let copy = self.trie.replace_node(id, changes)?;
        self.copies.insert(copy, id);
        Some(copy)
    }
}

/// Compares roots with the one of a node, in the order in which a trie is built; those of a Service for several clients are
/// alike.
fn place_of_root(
    topology: &Topology,
    node: NodeId,
    kind: RootKind,
) -> impl Fn(&TrieNode, &TrieRoot) -> Ordering {
    let place = |node: NodeId, kind: RootKind| {
        let object = &topology.key(node).object;
        let rank = match kind {
            RootKind::GatewayClass => 0,
            RootKind::Gateway => 1,
            RootKind::Mesh => 2,
            RootKind::Namespace => 3,
        };
        (rank, &object.namespace, &object.name)
    };
    let own = place(node, kind);
    move |other, root| place(other.node, root.kind).cmp(&own)
}

/// The trie nodes from the root to a listener.
fn trie_path(trie: &PathTrie, place: &ListenerPlace) -> Option<Vec<TrieNodeId>> {
    let (namespace, name) = &place.gateway;
    let gateway = trie
        .child(None, &EdgeLabel::Gateway(namespace, name))
        .ok()??;
    let mut path = vec![gateway];
    let mut above = gateway;
    for index in place.set.into_iter().chain([place.index]) {
        above = trie.child_at(above, index)?;
        path.push(above);
    }
    Some(path)
}

/// The label of a route, of a kind of the Gateway API.
fn route_label(key: &ObjectKey) -> EdgeLabel<'_> {
    EdgeLabel::Route(&key.kind.kind, &key.namespace, &key.name)
}
