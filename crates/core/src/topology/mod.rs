//! The topology of a store (specification 1): which routes attach to which listeners, which backends the
//! rules of routes name, and why a name is not a path.
//!
//! [`Topology`] numbers the nodes. [`PathTrie`] contains all paths with shared subtrees. A [`ResolvedPath`]
//! is one path from a root down to some level, as a list of steps.

pub(crate) mod build;
mod build_trie;
mod child_routes;
pub(crate) mod delegation;
mod edge_label;
mod gateways;
pub(crate) mod hostname;
mod label_text;
mod list_paths;
mod locate;
pub(crate) mod mesh;
mod node_keys;
mod parent_ref;
mod patch;
mod ports;
mod route_list;
mod route_table;
mod shared;
mod streams;
mod trie;
#[cfg(any(test, feature = "judge"))]
mod walk;

pub use child_routes::NotFollowed;
pub use hostname::overlap as hostnames_overlap;
pub use list_paths::{ListedPath, NamedStep, PathStart, PathVisitor, WalkControl};
pub(crate) use patch::{ListenerPatch, PathChanges, PathPatch};
pub use trie::{PathTrie, TrieNode, TrieNodeId, TrieRoot};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use rpds::RedBlackTreeSetSync;
use smallvec::SmallVec;
use thin_vec::ThinVec;

use self::node_keys::NodeKeys;
use self::route_list::{ListenerPlace, RouteList};
use self::route_table::RouteTable;
use self::shared::Shared;
use crate::model::{
    ChunkedVec, Level, MetadataMap, NodeKey, ObjectKey, OrInternal, PathErrorReason, Section, Str,
    TableEntry, groups,
};
use crate::store::{BackendRef, NamespacedName, ParentRef, Rule, Store};

/// The number of a node, dense from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl TableEntry for NodeId {
    const EMPTY: Self = NodeId(u32::EMPTY);
    const REMOVED: Self = NodeId(u32::REMOVED);
}

/// The nodes of a store and how paths connect them. Clones share what does not change.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    pub(crate) nodes: NodeKeys,
    pub(crate) namespaces: Shared<BTreeMap<Str, NodeId>>,
    /// The labels of namespaces, for selectors.
    pub(crate) labels: Shared<BTreeMap<Str, MetadataMap>>,
    pub(crate) classes: Shared<BTreeMap<Str, ClassNode>>,
    pub(crate) gateways: Shared<BTreeMap<NamespacedName, GatewayNode>>,
    /// The Gateways that exist, by the ListenerSets that name them.
    gateways_of_sets: Shared<HashMap<NamespacedName, NamespacedName>>,
    pub(crate) routes: RouteTable,
    /// The numbers of the routes with parentRefs that do not attach them.
    refused_routes: RedBlackTreeSetSync<usize>,
    /// The routes of each listener, by the number of its list.
    route_lists: ChunkedVec<RouteList>,
    /// The places in the trie of the listeners with these lists.
    listener_places: Shared<Vec<Option<ListenerPlace>>>,
    pub(crate) roots: Shared<BTreeMap<NamespacedName, mesh::MeshRoot>>,
    pub(crate) shared_ports: Shared<ports::SharedPorts>,
    /// The hostnames of the listeners of Gateways, by Gateway, where these are isolated by them.
    pub(crate) port_hostnames: Shared<HashMap<NamespacedName, ports::PortHostnames>>,
    /// Listeners with stream Routes that they do not serve, because they serve another (specification 1.4).
    displaced: Shared<HashSet<(NodeId, usize)>>,
    /// The stream Routes that these listeners serve, in the order of listeners.
    stream_holders: Shared<BTreeSet<(NodeId, usize)>>,
    pub(crate) delegations: Shared<delegation::Delegations>,
    /// The namespaces of backends that exist by the backendRefs of routes in other namespaces, and how many uses they
    /// have: only there a path can go through a namespace that does not exist.
    outer_backends: Shared<BTreeMap<Str, usize>>,
    /// What keeps the paths of single routes from being changed.
    fixed: Shared<patch::FixedPaths>,
}

/// One step of a resolved path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathStep {
    /// The node.
    pub node: NodeId,
    /// The level of the node on this path. A Service can have several levels on different paths.
    pub level: Level,
}

/// A path from a root down to some level, as steps.
#[derive(Clone, Debug, Default)]
pub struct ResolvedPath {
    /// The steps from least to most specific. Namespaces are not included, since it depends on the policy
    /// kind which of them are on the path (specification 1.2).
    pub steps: Vec<PathStep>,
    /// The kind of root.
    pub root: RootKind,
    /// The namespace of the clients whose requests take the path (specification 1.3, 4.6).
    pub client: Str,
    /// The controller of the root.
    pub controller: RootController,
    /// The index of the rule on the path; of the last one, if it delegates to child Routes.
    pub rule: Option<u32>,
    /// Whether the controller of the root follows delegation (specification 1.8).
    pub delegates: bool,
    /// Whether requests pass the last step, a rule, only on the way to child Routes (specification 1.8).
    pub delegates_only: bool,
}

/// The kind of the root that a path begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RootKind {
    /// A GatewayClass alone.
    #[default]
    GatewayClass,
    /// A Namespace alone.
    Namespace,
    /// A Gateway.
    Gateway,
    /// A Service.
    Mesh,
}

/// What the controller of a Gateway does with routes that others do not.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoutingTraits {
    /// Takes from routes the hostnames that another listener of the port has (specification 12.5).
    pub isolates_hostnames: bool,
    /// Serves one TCPRoute and one UDPRoute of a listener (specification 1.4).
    pub serves_one_stream_route: bool,
    /// Follows delegation between Routes (specification 1.8).
    pub delegates: bool,
}

/// The controller of a root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RootController {
    /// Namespaces and mesh roots have no GatewayClass.
    #[default]
    None,
    /// The `controllerName` of the GatewayClass.
    Named(Str),
    /// The GatewayClass with this name does not exist.
    ClassMissing(Str),
}

/// A GatewayClass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClassNode {
    pub(crate) node: NodeId,
    pub(crate) controller: Str,
}

/// A Gateway with its listeners and the ListenerSets that name it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GatewayNode {
    pub(crate) node: NodeId,
    pub(crate) class: Str,
    /// Whether its controller serves one TCPRoute and one UDPRoute of a listener (specification 1.4).
    pub(crate) serves_one_stream_route: bool,
    /// Whether the controller follows delegation (specification 1.8).
    pub(crate) delegates: bool,
    pub(crate) listeners: Vec<ListenerNode>,
    pub(crate) sets: Vec<ListenerSetNode>,
}

/// A ListenerSet, with whether its Gateway admits it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListenerSetNode {
    pub(crate) node: NodeId,
    pub(crate) name: NamespacedName,
    pub(crate) admitted: bool,
    /// The place of the ListenerSet in order of age, among all of the Gateway.
    pub(crate) rank: usize,
    pub(crate) listeners: Vec<ListenerNode>,
}

/// A listener to which routes can be attached.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListenerNode {
    pub(crate) node: NodeId,
    pub(crate) name: Str,
    /// The number of the list of its routes.
    list: usize,
}

/// A route with its rules.
#[derive(Clone, Debug)]
pub(crate) struct RouteNode {
    pub(crate) key: ObjectKey,
    pub(crate) node: NodeId,
    pub(crate) rules: Box<[RuleNode]>,
    /// The numbers of the lists of the listeners that the route is attached to.
    listeners: ThinVec<usize>,
    /// The parentRefs that do not attach the route: index of the parentRef and reason.
    pub(crate) refused: ThinVec<(usize, PathErrorReason)>,
}

/// A rule of a route with its backends.
#[derive(Clone, Debug)]
pub(crate) struct RuleNode {
    pub(crate) node: NodeId,
    pub(crate) name: Option<Str>,
    /// Rules with the same that follow each other share them.
    pub(crate) backends: Arc<[BackendNode]>,
    /// The indexes of the child Routes that paths lead to, sorted (specification 1.8).
    pub(crate) children: ThinVec<usize>,
}

/// A backend of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BackendNode {
    pub(crate) node: NodeId,
    /// The node of the backendRefs that name the backend, if one of them has ExtensionRef filters.
    pub(crate) reference: Option<NodeId>,
    /// The ports with their nodes, sorted.
    pub(crate) ports: SmallVec<[(u16, NodeId); 2]>,
    /// The reason why no path below a Gateway leads here, if there is one. Mesh paths need no
    /// ReferenceGrant.
    pub(crate) refused: Option<PathErrorReason>,
    /// The reason why no path leads here, if there is one.
    pub(crate) missing: Option<PathErrorReason>,
}

impl NodeId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl GatewayNode {
    /// The listeners of the Gateway and of all its ListenerSets.
    fn all_listeners(&self) -> impl Iterator<Item = &ListenerNode> {
        let sets = self.sets.iter().flat_map(|set| &set.listeners);
        self.listeners.iter().chain(sets)
    }

    /// The ListenerSets that the Gateway admits.
    pub(crate) fn admitted(&self) -> impl Iterator<Item = &ListenerSetNode> {
        self.sets.iter().filter(|set| set.admitted)
    }

    /// The controller of the Gateway.
    pub(crate) fn controller(&self, class: Option<&ClassNode>) -> RootController {
        match class {
            Some(class) => RootController::Named(class.controller.clone()),
            None => RootController::ClassMissing(self.class.clone()),
        }
    }
}

impl Topology {
    /// The key of a node.
    pub fn key(&self, node: NodeId) -> &NodeKey {
        // Only `intern` creates a NodeId, so the key exists.
        static MISSING: std::sync::LazyLock<NodeKey> =
            std::sync::LazyLock::new(|| NodeKey::namespace(""));
        let key = self.nodes.get(node.index()).or_internal("a node");
        key.unwrap_or(&MISSING)
    }

    /// The key of the node with this index.
    pub fn key_at(&self, index: usize) -> Option<&NodeKey> {
        self.nodes.get(index)
    }

    /// Finds the node with a key.
    pub fn node(&self, key: &NodeKey) -> Option<NodeId> {
        self.nodes.number(key)
    }

    /// The sections of an object that references can name, by the node of the whole object.
    pub fn sections(&self, whole: NodeId) -> Vec<NodeId> {
        let object = &self.key(whole).object;
        let is_part = |key: &NodeKey| {
            key.section.as_ref().is_some_and(Section::is_referable)
                && key.object.name == object.name
                && key.object.namespace == object.namespace
                && key.object.kind == object.kind
        };
        let nodes = (0..).map(NodeId).zip(self.nodes.iter());
        let parts = nodes.filter(|(_, key)| is_part(key));
        let parts = parts.map(|(node, _)| node);
        parts.filter(|node| self.nodes.is_used(*node)).collect()
    }

    /// The number of nodes, and of those that no object has any more.
    pub(crate) fn node_counts(&self) -> (usize, usize) {
        let released = self.nodes.released();
        (self.nodes.len().saturating_sub(released), released)
    }

    /// The number of nodes, with those that no object has any more.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node of a namespace that exists (specification 1.2).
    pub fn namespace(&self, name: &str) -> Option<NodeId> {
        self.namespaces.get(name).copied()
    }

    /// The labels of the namespaces that exist.
    pub fn namespace_labels(&self) -> &BTreeMap<Str, MetadataMap> {
        &self.labels
    }

    /// The name of a node as in specification 11.16. A section is written as in references: the name of a
    /// listener or rule, the index of a rule without a name, or the number of a port. The root node, which is no object, is
    /// `Root`.
    pub fn describe(&self, node: NodeId) -> String {
        let key = self.key(node);
        // Every object has a name.
        if key.object.name.is_empty() {
            return Level::Root.as_str().to_owned();
        }
        let rule_name = |index: u32| {
            let route = self.routes.with_key(&key.object)?;
            route.rules.get(index as usize)?.name.as_ref()
        };
        match key.section {
            Some(Section::Rule(index)) => {
                rule_name(index).map(|name| format!("{}#{name}", key.object))
            }
            Some(Section::BackendRef(rule, index)) => {
                rule_name(rule).map(|name| format!("{}#{name}/backendRefs/{index}", key.object))
            }
            _ => None,
        }
        .unwrap_or_else(|| key.to_string())
    }

    /// The kind and the controller of each Gateway, and of each mesh root.
    pub(crate) fn root_controllers(&self) -> impl Iterator<Item = (RootKind, RootController)> {
        let gateways = self.gateways.values().map(|gateway| {
            let class = self.classes.get(&gateway.class);
            (RootKind::Gateway, gateway.controller(class))
        });
        let meshes = self
            .roots
            .values()
            .map(|_| (RootKind::Mesh, RootController::None));
        gateways.chain(meshes)
    }

    /// The parentRefs that do not attach a route: index of the parentRef and reason.
    pub fn rejected_parents(&self, route: &ObjectKey) -> &[(usize, PathErrorReason)] {
        self.routes
            .with_key(route)
            .map_or(&[], |route| &route.refused)
    }

    /// The backends of a rule of a route that no path below a Gateway leads to, each with the reason, and the ports that
    /// its backendRefs name in vain (specification 1.4). Of a route whose parents are Services alone, mesh paths count.
    pub fn refused_backends(
        &self,
        store: &Store,
        route: &ObjectKey,
        (number, rule): (usize, &Rule),
    ) -> Vec<(&ObjectKey, Option<u16>, PathErrorReason)> {
        let node = self.routes.with_key(route);
        let node = node.and_then(|node| node.rules.get(number));
        let backends = node.into_iter().flat_map(|rule| &*rule.backends);
        let mut found = Vec::new();
        let is_service = |parent: &ParentRef| parent.kind.is(groups::CORE, "Service");
        let parents = store.route(route).map(|route| &*route.parents);
        let parents = parents.filter(|parents| !parents.is_empty());
        let root = match parents.is_some_and(|parents| parents.iter().all(is_service)) {
            true => RootKind::Mesh,
            false => RootKind::Gateway,
        };
        for backend in backends {
            let key = &self.key(backend.node).object;
            if let Some(reason) = backend.reason(root) {
                found.push((key, None, reason));
                continue;
            }
            let is_here = |reference: &&BackendRef| {
                reference.name == key.name
                    && reference.namespace == key.namespace
                    && reference.kind == key.kind
            };
            let ports = rule.backends.iter().filter(is_here);
            let ports = ports.filter_map(|reference| reference.port);
            let missing = ports.filter(|port| backend.ports.iter().all(|(has, _)| has != port));
            found.extend(missing.map(|port| (key, Some(port), PathErrorReason::PortNotFound)));
        }
        found
    }

    /// Every listener with the routes that are attached to it.
    pub fn attached_routes(&self) -> impl Iterator<Item = (NodeId, Vec<&ObjectKey>)> {
        let own = self.gateways.values().flat_map(|g| &g.listeners);
        let sets = self.gateways.values().flat_map(|g| &g.sets);
        own.chain(sets.flat_map(|set| &set.listeners))
            .map(|listener| {
                let routes = self.routes_of(listener).iter();
                let keys = routes.filter_map(|&route| self.routes.get(route).map(|r| &r.key));
                (listener.node, keys.collect())
            })
    }

    /// The names of the paths of all listeners that a Gateway has or admits. Without a name, those of all
    /// Gateways, or `None` if there are more than `most` Gateways.
    pub fn listener_paths(
        &self,
        gateway: Option<(&str, &str)>,
        most: usize,
    ) -> Option<Vec<String>> {
        if gateway.is_none() && self.gateways.len() > most {
            return None;
        }
        let one = gateway.map(|(namespace, name)| (namespace.into(), name.into()));
        let gateways: Vec<_> = match &one {
            Some(name) => self.gateways.get_key_value(name).into_iter().collect(),
            None => self.gateways.iter().collect(),
        };
        let mut found = Vec::new();
        for ((namespace, name), gateway) in gateways {
            let path = format!("gateways/{namespace}/{name}");
            let own = gateway.listeners.iter();
            found.extend(own.map(|l| format!("{path}/listeners/{}", l.name)));
            for set in gateway.admitted() {
                let path = format!("{path}/listenersets/{}/{}", set.name.0, set.name.1);
                let listeners = set.listeners.iter();
                found.extend(listeners.map(|l| format!("{path}/listeners/{}", l.name)));
            }
        }
        Some(found)
    }

    /// Adds a node that does not come from an object of the store.
    pub fn add_node(&mut self, key: NodeKey) -> NodeId {
        self.intern(key)
    }

    /// Frees the space that is kept for more nodes.
    pub(crate) fn shrink(&mut self) {
        self.nodes.shrink();
        self.routes.shrink();
    }

    /// Adds a node that stays as long as the topology is not built anew.
    fn intern(&mut self, key: NodeKey) -> NodeId {
        let node = self.nodes.add(key);
        self.nodes.retain(node);
        node
    }
}
