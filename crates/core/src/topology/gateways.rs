//! Changes GatewayClasses, Gateways and their ListenerSets: a later topology in which they are as in a store, and the
//! paths that lead through them.
//!
//! There are few of them, so that all are read again; what is attached to them is looked at only below those that differ.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashSet;

use super::build::gateway_api;
use super::edge_label::EdgeLabel;
use super::patch::{ListenerChange, ListenerPatch, PathChanges, PathPatch};
use super::shared::Shared;
use super::trie::{PathTrie, TrieNodeId, TrieRoot};
use super::{GatewayNode, ListenerNode, NodeId, RootController, RoutingTraits, Topology};
use crate::model::{GroupKind, Level, NodeKey, ObjectKey, Section, Str, groups};
use crate::store::{Listener, NamespacedName, ParentRef, Projection, Store};

/// What is known of a controller.
pub(crate) type TraitsOf<'t> = dyn Fn(&RootController) -> RoutingTraits + 't;

/// The Gateways and classes that differ between two versions of a topology.
#[derive(Debug, Default)]
pub(super) struct GatewayChanges {
    /// The Gateways with other listeners or ListenerSets, or of another controller.
    pub(super) gateways: BTreeSet<NamespacedName>,
    /// The GatewayClasses that came, went or have another controller.
    classes: BTreeSet<Str>,
    /// The Gateways and, if it is true, ListenerSets to which other routes may be attached.
    parents: HashSet<(bool, NamespacedName)>,
    /// The numbers of the lists of their listeners before.
    lists: Vec<usize>,
    /// The nodes of the listeners and ListenerSets that the Gateways have.
    pub(super) nodes: BTreeSet<NodeId>,
}

/// The keys of the nodes of all GatewayClasses, Gateways and ListenerSets, each as often as it is used.
fn keys_of_gateways(store: &Store) -> impl Iterator<Item = NodeKey> {
    let kinds = ["GatewayClass", "Gateway", "ListenerSet"];
    kinds.into_iter().flat_map(|kind| {
        let of_kind = GroupKind::new(groups::GATEWAY, kind);
        let objects = store.of_kind(&of_kind);
        let keys = objects.flat_map(|((namespace, name), entry)| {
            let object = gateway_api(kind, &(namespace.clone(), name.clone()));
            let listeners: &[Listener] = match &entry.projection {
                Projection::Gateway(gateway) => &gateway.listeners,
                Projection::ListenerSet(set) => &set.listeners,
                _ => &[],
            };
            let sections = listeners.iter().map(|l| Section::Listener(l.name.clone()));
            let sections = sections.map(|section| NodeKey::section(object.clone(), section));
            let mut keys: Vec<NodeKey> = sections.collect();
            keys.push(NodeKey::whole(object));
            keys
        });
        keys.collect::<Vec<NodeKey>>()
    })
}

impl GatewayChanges {
    /// Whether a route that names a parent may be attached to other listeners.
    fn concern(&self, parent: &ParentRef) -> bool {
        let is_set = parent.kind.is(groups::GATEWAY, "ListenerSet");
        let is_gateway = parent.kind.is(groups::GATEWAY, "Gateway");
        let name = || (parent.namespace.clone(), parent.name.clone());
        (is_set || is_gateway) && self.parents.contains(&(is_set, name()))
    }

    /// The routes that may be attached to other listeners: those that are attached below these Gateways, and those that name
    /// them in vain.
    pub(super) fn routes(&self, before: &Topology, store: &Store) -> BTreeSet<ObjectKey> {
        if self.parents.is_empty() {
            return BTreeSet::new();
        }
        let lists = self.lists.iter();
        let lists = lists.filter_map(|&list| before.route_lists.get(list));
        let attached = lists.flat_map(|list| list.iter()).copied();
        let key = |number: usize| Some(&before.routes.get(number)?.key);
        let refused = before.refused_routes.iter().copied().filter(|&number| {
            let route = key(number).and_then(|key| store.route(key));
            let mut parents = route.into_iter().flat_map(|route| &*route.parents);
            parents.any(|parent| self.concern(parent))
        });
        let numbers = attached.chain(refused);
        numbers.filter_map(key).cloned().collect()
    }
}

impl Topology {
    /// Reads all Gateways, their ListenerSets and classes again.
    pub(super) fn change_gateways(
        &mut self,
        before: &Topology,
        changes: &PathChanges<'_>,
        traits_of: &TraitsOf<'_>,
    ) -> GatewayChanges {
        self.classes = Shared::default();
        self.gateways = Shared::default();
        self.gateways_of_sets = Shared::default();
        self.port_hostnames = Shared::default();
        self.read_gateways(changes.now, traits_of, Some(before));
        self.place_listeners();
        self.follow_streams();
        let changed = changes.gateways;
        let mut found = GatewayChanges::default();
        let names = before.classes.keys().chain(self.classes.keys());
        let differs = |name: &&Str| before.classes.get(*name) != self.classes.get(*name);
        found.classes = names.filter(differs).cloned().collect();
        let names = before.gateways.keys().chain(self.gateways.keys());
        let differs = |name: &&NamespacedName| self.has_other_gateway(before, name, changed);
        found.gateways = names.filter(differs).cloned().collect();
        for name in found.gateways.clone() {
            let versions = [before, self].map(|topology| topology.gateways.get(&name));
            let all = versions
                .iter()
                .flatten()
                .flat_map(|gateway| gateway.all_listeners());
            found.nodes.extend(all.map(|listener| listener.node));
            let known = versions[0].into_iter().flat_map(GatewayNode::all_listeners);
            found.lists.extend(known.map(|listener| listener.list));
            for set in versions
                .into_iter()
                .flatten()
                .flat_map(|gateway| &gateway.sets)
            {
                found.nodes.insert(set.node);
                found.parents.insert((true, set.name.clone()));
            }
            found.parents.insert((false, name));
        }
        // Also of a ListenerSet without a Gateway it matters whether it exists.
        let sets = changed.iter();
        let sets = sets.filter(|key| key.kind.is(groups::GATEWAY, "ListenerSet"));
        let sets = sets.map(|key| (true, (key.namespace.clone(), key.name.clone())));
        found.parents.extend(sets);
        found
    }

    /// Whether a Gateway has other listeners or ListenerSets than before, or another controller.
    fn has_other_gateway(
        &self,
        before: &Topology,
        name: &NamespacedName,
        changed: &BTreeSet<ObjectKey>,
    ) -> bool {
        let gateways = [before, self].map(|topology| {
            let gateway = topology.gateways.get(name)?;
            Some((gateway, topology.classes.get(&gateway.class)))
        });
        if gateways[0] != gateways[1] || changed.contains(&gateway_api("Gateway", name)) {
            return true;
        }
        let mut sets = gateways
            .into_iter()
            .flatten()
            .flat_map(|(gateway, _)| &gateway.sets);
        sets.any(|set| changed.contains(&gateway_api("ListenerSet", &set.name)))
    }

    /// Counts the nodes of all Gateways, ListenerSets and classes before as used no more. Returns those that nothing uses
    /// now.
    pub(super) fn release_gateways(
        &mut self,
        before: &Topology,
        changes: &PathChanges<'_>,
    ) -> Vec<NodeId> {
        if changes.gateways.is_empty() {
            return Vec::new();
        }
        let nodes = keys_of_gateways(changes.before).filter_map(|key| before.node(&key));
        nodes.filter(|node| self.nodes.release(*node)).collect()
    }

    /// The nodes of Gateways, ListenerSets and classes that did not exist before.
    pub(super) fn added_gateways(
        &self,
        before: &Topology,
        changes: &PathChanges<'_>,
    ) -> BTreeSet<NodeId> {
        if changes.gateways.is_empty() {
            return BTreeSet::new();
        }
        let nodes = keys_of_gateways(changes.now).filter_map(|key| self.node(&key));
        nodes.filter(|node| !before.nodes.is_used(*node)).collect()
    }
}

/// The trie nodes of a Gateway.
#[derive(Default)]
struct GatewayPaths {
    /// The Gateway and its ListenerSets, each with what is above it.
    upper: Vec<Vec<TrieNodeId>>,
    /// The listeners, each with what is above it, by the numbers of their lists.
    listeners: BTreeMap<usize, Vec<TrieNodeId>>,
}

impl GatewayPaths {
    /// The trie nodes of the Gateway with a name in a topology, to which a trie belongs.
    fn of(topology: &Topology, trie: &PathTrie, name: &NamespacedName) -> Option<Self> {
        let mut found = Self::default();
        let root = trie
            .child(None, &EdgeLabel::Gateway(&name.0, &name.1))
            .ok()?;
        let (Some(root), Some(gateway)) = (root, topology.gateways.get(name)) else {
            return Some(found);
        };
        found.add_listeners(trie, &[root], &gateway.listeners)?;
        for (set, at) in gateway.admitted().zip(gateway.listeners.len()..) {
            let path = [root, trie.child_at(root, at)?];
            found.add_listeners(trie, &path, &set.listeners)?;
        }
        Some(found)
    }

    fn add_listeners(
        &mut self,
        trie: &PathTrie,
        above: &[TrieNodeId],
        listeners: &[ListenerNode],
    ) -> Option<()> {
        let parent = *above.last()?;
        for (at, listener) in listeners.iter().enumerate() {
            let own = trie.child_at(parent, at)?;
            let path = above.iter().copied().chain([own]).collect();
            self.listeners.insert(listener.list, path);
        }
        self.upper.push(above.to_vec());
        Some(())
    }

    fn all(&self) -> impl Iterator<Item = Vec<TrieNodeId>> {
        self.upper.iter().chain(self.listeners.values()).cloned()
    }
}

impl PathPatch {
    /// Gives the Gateways and classes that differ new trie nodes. `lists` are the changes of the lists of routes; those of
    /// the listeners of these Gateways are taken out.
    pub(super) fn renew_gateways(
        &mut self,
        before: &Topology,
        changes: &GatewayChanges,
        lists: &mut BTreeMap<usize, ListenerChange<'_>>,
    ) -> Option<()> {
        for name in &changes.classes {
            let label = EdgeLabel::GatewayClass(name);
            let before = self.remove_root(&label)?;
            self.paths_before.extend(before.map(|id| vec![id]));
            let class = self.topology.classes.get(name).cloned();
            if let Some(class) = class {
                let id = self.trie.add((class.node, Level::GatewayClass), &[]);
                self.add_root(label, id, TrieRoot::of_class(&class))?;
                self.paths_now.push(vec![id]);
            }
        }
        for name in &changes.gateways {
            self.renew_gateway(before, name, lists)?;
        }
        Some(())
    }

    /// Gives a Gateway new trie nodes, down to its listeners.
    fn renew_gateway(
        &mut self,
        before: &Topology,
        name: &NamespacedName,
        lists: &mut BTreeMap<usize, ListenerChange<'_>>,
    ) -> Option<()> {
        let label = EdgeLabel::Gateway(&name.0, &name.1);
        let paths = GatewayPaths::of(before, &self.trie, name)?;
        let mut known = paths.listeners.clone();
        let gateway = self.topology.gateways.get(name).cloned();
        let id = match &gateway {
            Some(gateway) => Some(self.renewed_gateway(gateway, &mut known, lists)?),
            None => None,
        };
        // The root itself is counted where it is removed.
        self.trie
            .leave(known.len() + paths.upper.len().saturating_sub(1));
        self.remove_root(&label)?;
        if let (Some(gateway), Some(id)) = (gateway, id) {
            let class = self.topology.classes.get(&gateway.class);
            let root = TrieRoot::of_gateway(&gateway, class, name);
            self.add_root(label, id, root)?;
        }
        let now = GatewayPaths::of(&self.topology, &self.trie, name)?;
        let all: BTreeSet<usize> = [&paths, &now]
            .into_iter()
            .flat_map(|paths| paths.listeners.keys().copied())
            .collect();
        for list in all {
            self.listeners.push(ListenerPatch {
                before: paths.listeners.get(&list).cloned(),
                now: now.listeners.get(&list).cloned(),
                routes: lists.remove(&list).unwrap_or_default().routes,
            });
        }
        self.paths_before.extend(paths.all());
        self.paths_now.extend(now.all());
        Some(())
    }

    /// A new trie node of a Gateway. `known` are the trie nodes of its listeners before; those that stay are taken out.
    fn renewed_gateway(
        &mut self,
        gateway: &GatewayNode,
        known: &mut BTreeMap<usize, Vec<TrieNodeId>>,
        lists: &BTreeMap<usize, ListenerChange<'_>>,
    ) -> Option<TrieNodeId> {
        let mut below = self.renewed_listeners(&gateway.listeners, known, lists)?;
        for set in gateway.admitted() {
            let listeners = self.renewed_listeners(&set.listeners, known, lists)?;
            let id = self.trie.add((set.node, Level::ListenerSet), &listeners);
            below.push((EdgeLabel::ListenerSet(&set.name.0, &set.name.1), id));
        }
        Some(self.trie.add((gateway.node, Level::Gateway), &below))
    }

    /// New trie nodes of listeners, with the routes that are attached to them now.
    fn renewed_listeners<'l>(
        &mut self,
        listeners: &'l [ListenerNode],
        known: &mut BTreeMap<usize, Vec<TrieNodeId>>,
        lists: &BTreeMap<usize, ListenerChange<'_>>,
    ) -> Option<Vec<(EdgeLabel<'l>, TrieNodeId)>> {
        let mut found = Vec::with_capacity(listeners.len());
        for listener in listeners {
            let before = known.remove(&listener.list);
            let before = match before.and_then(|path| path.last().copied()) {
                Some(before) => before,
                None => self.trie.add((listener.node, Level::Listener), &[]),
            };
            let edges = lists.get(&listener.list);
            let edges = edges.map_or(&[][..], |change| &change.edges);
            let id = self.trie.replace_node(before, edges)?;
            found.push((EdgeLabel::Listener(&listener.name), id));
        }
        Some(found)
    }
}
