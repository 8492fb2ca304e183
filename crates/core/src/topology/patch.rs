//! Changes the paths of single routes: a later topology and trie that share everything else with those before.
//!
//! The nodes of a changed route get new trie nodes, and each trie node above them a copy, so that children keep lower
//! numbers than their parents. A namespace is the root of a path of its own. What a route has to do with others, or with
//! the other roots of paths, is left to a build from scratch ([`FixedPaths`]).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashSet;

use super::delegation::is_route_reference;
use super::edge_label::EdgeLabel;
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

/// A later version of a topology and its trie.
pub(crate) struct PathPatch {
    pub(crate) topology: Topology,
    pub(crate) trie: PathTrie,
    /// The nodes that did not exist before.
    pub(crate) added: Vec<NodeId>,
    /// The nodes that do not exist any more.
    pub(crate) removed: Vec<NodeId>,
    /// The nodes of the changed routes.
    pub(crate) of_routes: BTreeSet<NodeId>,
    /// The copied trie nodes, and what they are copied from.
    pub(crate) copies: BTreeMap<TrieNodeId, TrieNodeId>,
    pub(crate) attachments: Vec<AttachmentChange>,
    pub(crate) routes: Vec<RouteChange>,
    /// The trie nodes that were roots before and are not now.
    pub(crate) roots_before: Vec<TrieNodeId>,
    /// The trie nodes of new roots.
    pub(crate) roots_now: Vec<TrieNodeId>,
}

/// A route that a listener has no more, or that it has now.
#[derive(Debug)]
pub(crate) struct AttachmentChange {
    /// The trie nodes from the root to the listener.
    pub(crate) listener: Vec<TrieNodeId>,
    /// The trie node of the route before.
    pub(crate) before: Option<TrieNodeId>,
    /// The trie node of the route now.
    pub(crate) now: Option<TrieNodeId>,
}

/// How the routes of a listener change.
#[derive(Default)]
struct ListenerChange<'k> {
    edges: Vec<EdgeChange<'k>>,
    /// The trie nodes of each changed route, before and now.
    routes: Vec<(Option<TrieNodeId>, Option<TrieNodeId>)>,
}

/// A route that changes, before and now.
pub(crate) struct RouteChange {
    pub(crate) number: usize,
    pub(crate) before: Option<Arc<RouteNode>>,
    pub(crate) now: Option<Arc<RouteNode>>,
    trie_before: Option<TrieNodeId>,
    trie_now: Option<TrieNodeId>,
}

impl FixedPaths {
    fn of(topology: &Topology, store: &Store) -> Self {
        let mut fixed = Self {
            streams: topology
                .gateways
                .values()
                .any(|g| g.serves_one_stream_route),
            ..Self::default()
        };
        fixed.routes = topology.gateways.values().any(|gateway| gateway.delegates);
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

    /// A later version, in which some routes and namespaces are as in a store that differs in them, or in the Services
    /// that the routes name. `None` if that needs a build from scratch.
    pub(crate) fn patched(
        &self,
        trie: &PathTrie,
        store: &Store,
        routes: &BTreeSet<ObjectKey>,
        namespaces: &BTreeSet<Str>,
    ) -> Option<PathPatch> {
        let mut topology = self.clone();
        // Routes are attached by the labels of their namespaces.
        topology.change_namespaces(store, namespaces);
        let mut changes = Vec::with_capacity(routes.len());
        for key in routes {
            changes.extend(topology.change_route(trie, store, key)?);
        }
        let mut added: BTreeSet<NodeId> = BTreeSet::new();
        let mut removed: BTreeSet<NodeId> = BTreeSet::new();
        // New uses come first: what stays in use keeps its node.
        for change in &changes {
            let now = change.now.as_ref();
            added.extend(
                now.into_iter()
                    .flat_map(|now| topology.retain_route(now, true)),
            );
        }
        for change in &changes {
            let before = change.before.as_ref();
            let last = before.map(|before| topology.retain_route(before, false));
            removed.extend(last.into_iter().flatten());
        }
        let attached = |change: &&mut RouteChange| {
            let now = change.now.as_ref();
            now.is_some_and(|now| !now.listeners.is_empty())
        };
        let numbers = changes
            .iter_mut()
            .filter(attached)
            .map(|change| change.number);
        let numbers: Vec<usize> = numbers.collect();
        let (mut trie, subtrees) = topology.add_subtrees(trie.clone(), &numbers);
        for (change, subtree) in changes.iter_mut().filter(attached).zip(subtrees) {
            change.trie_now = Some(subtree);
        }
        for before in changes.iter().filter_map(|change| change.trie_before) {
            let nodes = trie.count_below(before);
            trie.leave(nodes);
        }
        let listeners = topology.change_lists(&changes)?;
        let mut patch = PathPatch {
            topology,
            trie,
            added: added.into_iter().collect(),
            removed: removed.into_iter().collect(),
            of_routes: BTreeSet::new(),
            copies: BTreeMap::new(),
            attachments: Vec::new(),
            routes: Vec::new(),
            roots_before: Vec::new(),
            roots_now: Vec::new(),
        };
        patch.replace_listeners(listeners)?;
        for name in namespaces {
            patch.change_namespace_root(self, name)?;
        }
        let now = changes.iter().filter_map(|change| change.now.as_ref());
        patch.of_routes.extend(now.flat_map(|now| now.own_nodes()));
        patch.routes = changes;
        Some(patch)
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

    /// Reads a route again, with the listeners that it is attached to, and puts it in its place.
    fn change_route(
        &mut self,
        trie: &PathTrie,
        store: &Store,
        key: &ObjectKey,
    ) -> Option<Option<RouteChange>> {
        let known = self.routes.number(key);
        let before = known.and_then(|number| self.routes.get(number)).cloned();
        let number = known.unwrap_or(self.routes.len());
        let now = store.route(key).map(|route| {
            let mut node = self.route_node(store, key, route);
            let mut streams = StreamListeners::default();
            let attached = self.attach_route(store, (number, key, route), &mut streams);
            (node.listeners, node.refused) = attached;
            Arc::new(node)
        });
        if before.is_none() && now.is_none() {
            return Some(None);
        }
        match (&now, known) {
            (Some(now), Some(_)) => self.routes.set(number, Arc::clone(now)),
            (Some(now), None) => self.routes.add(Arc::clone(now)),
            (None, _) => self.routes.remove(key),
        }
        let first = before.as_ref().and_then(|before| before.listeners.first());
        let trie_before = match first {
            Some(&list) => Some(self.trie_node_below(trie, list, key)?),
            None => None,
        };
        Some(Some(RouteChange {
            number,
            before,
            now,
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
        !self.attachments.is_empty() || !self.roots_before.is_empty() || !self.roots_now.is_empty()
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
                let topology = &self.topology;
                let id = self.trie.add((node, Level::Namespace), &[]);
                let order = |other: &TrieNode, root: &TrieRoot| match root.kind {
                    RootKind::Namespace => topology.key(other.node).object.name.cmp(name),
                    _ => Ordering::Less,
                };
                let root = (id, TrieRoot::of_namespace());
                self.trie.insert_root(order, label, root)?;
                self.added.push(node);
                self.roots_now.push(id);
            }
            (Some(node), None) => {
                let id = self.trie.child(None, &label).ok()??;
                self.trie.remove_root(id)?;
                self.removed.push(node);
                self.roots_before.push(id);
            }
            _ => {}
        }
        Some(())
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
        self.trie.replace_root(gateway, root)?;
        for (set, listener, routes) in paths {
            let set = set.and_then(|at| new_sets.get(&at)).copied();
            let path: Vec<TrieNodeId> = [root].into_iter().chain(set).chain([listener]).collect();
            for (before, now) in routes {
                self.attachments.push(AttachmentChange {
                    listener: path.clone(),
                    before,
                    now,
                });
            }
        }
        Some(())
    }

    fn replace(&mut self, id: TrieNodeId, changes: &[EdgeChange<'_>]) -> Option<TrieNodeId> {
        let copy = self.trie.replace_node(id, changes)?;
        self.copies.insert(copy, id);
        Some(copy)
    }
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
