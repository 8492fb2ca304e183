//! Builds the trie of a topology.

use hashbrown::HashMap;

use super::edge_label::EdgeLabel;
use super::mesh::MeshRoot;
use super::trie::{PathTrie, TrieNodeId, TrieRoot};
use super::{BackendNode, ListenerNode, NodeId, RootController, RootKind, RuleNode, Topology};
use crate::model::{GroupKind, Level, Str};

/// The roots whose paths below a route are the same: each has a subtree of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Below {
    /// Gateways.
    Gateways,
    /// Gateways whose controllers follow delegation (specification 1.8).
    Delegating,
    /// Mesh roots, whose paths need no ReferenceGrants.
    Services,
}

/// Builds a trie. The subtree of a route is added once for each of [`Below`].
struct TrieBuilder<'t> {
    topology: &'t Topology,
    /// The names of kinds as they are written in paths.
    kinds: &'t HashMap<&'t GroupKind, Str>,
    trie: PathTrie,
    /// The subtrees that were added, by the index of the route.
    added: HashMap<(Below, usize), TrieNodeId, rustc_hash::FxBuildHasher>,
    /// The subtrees of the backends of the route that is added: its rules often have the same.
    backends: HashMap<BackendKey<'t>, TrieNodeId, rustc_hash::FxBuildHasher>,
}

/// What the subtree of a backend depends on: its node, that of its backendRefs, and its ports.
type BackendKey<'t> = (NodeId, Option<NodeId>, &'t [(u16, NodeId)]);

impl Topology {
    /// Builds the trie of all paths.
    pub fn trie(&self) -> PathTrie {
        let kinds = short_names(self.nodes.iter().map(|key| &key.object.kind));
        let mut builder = TrieBuilder {
            topology: self,
            kinds: &kinds,
            trie: PathTrie::default(),
            added: HashMap::default(),
            backends: HashMap::default(),
        };
        builder.classes();
        builder.gateways();
        for (name, root) in &*self.roots {
            let star: Str = "*".into();
            for client in std::iter::once(star).chain(root.clients()) {
                builder.mesh(name, root, client);
            }
        }
        for (name, &node) in &*self.namespaces {
            let id = builder.trie.add((node, Level::Namespace), &[]);
            let root = TrieRoot::of_namespace();
            builder.trie.add_root(EdgeLabel::Namespace(name), id, root);
        }
        builder.trie.finish();
        builder.trie
    }
}

/// The names of kinds as they are written in paths.
pub(super) fn short_names<'k>(
    kinds: impl Iterator<Item = &'k GroupKind>,
) -> HashMap<&'k GroupKind, Str> {
    let mut names: HashMap<&GroupKind, Str> = HashMap::new();
    for kind in kinds {
        names.entry(kind).or_insert_with(|| kind.short_name());
    }
    names
}

impl Topology {
    /// Adds the subtrees of routes below Gateways to a trie, in which they are not yet; returns the trie nodes of the
    /// routes.
    pub(super) fn add_subtrees(
        &self,
        trie: PathTrie,
        routes: &[usize],
    ) -> (PathTrie, Vec<TrieNodeId>) {
        let nodes = routes.iter().filter_map(|&route| self.routes.get(route));
        let backends = nodes
            .flat_map(|route| &route.rules)
            .flat_map(|rule| &*rule.backends);
        let kinds = backends.map(|backend| &self.key(backend.node).object.kind);
        let kinds = short_names(kinds);
        let mut builder = TrieBuilder {
            topology: self,
            kinds: &kinds,
            trie,
            added: HashMap::default(),
            backends: HashMap::default(),
        };
        let routes = routes.iter();
        let added = routes
            .map(|&route| builder.route(route, Below::Gateways))
            .collect();
        (builder.trie, added)
    }
}

impl<'t> TrieBuilder<'t> {
    fn short(&self, kind: &GroupKind) -> &'t str {
        self.kinds.get(kind).map_or("", |name| &**name)
    }

    fn classes(&mut self) {
        for (name, class) in &*self.topology.classes {
            let id = self.trie.add((class.node, Level::GatewayClass), &[]);
            let root = TrieRoot::of_class(class);
            self.trie.add_root(EdgeLabel::GatewayClass(name), id, root);
        }
    }

    fn gateways(&mut self) {
        for (name, gateway) in &*self.topology.gateways {
            // Where no route delegates, routes have the same subtrees below all Gateways.
            let root = match gateway.delegates && !self.topology.delegations.is_empty() {
                true => Below::Delegating,
                false => Below::Gateways,
            };
            let mut below = self.listeners(&gateway.listeners, root);
            for set in gateway.admitted() {
                let listeners = self.listeners(&set.listeners, root);
                let id = self.trie.add((set.node, Level::ListenerSet), &listeners);
                below.push((EdgeLabel::ListenerSet(&set.name.0, &set.name.1), id));
            }
            let id = self.trie.add((gateway.node, Level::Gateway), &below);
            let class = self.topology.classes.get(&gateway.class);
            let root = TrieRoot::of_gateway(gateway, class, name);
            let label = EdgeLabel::Gateway(&name.0, &name.1);
            self.trie.add_root(label, id, root);
        }
    }

    fn listeners(
        &mut self,
        listeners: &'t [ListenerNode],
        root: Below,
    ) -> Vec<(EdgeLabel<'t>, TrieNodeId)> {
        let mut found = Vec::with_capacity(listeners.len());
        for listener in listeners {
            let routes = self.topology.routes_of(listener).iter().copied();
            let routes = self.routes(routes, root);
            let id = self.trie.add((listener.node, Level::Listener), &routes);
            found.push((EdgeLabel::Listener(&listener.name), id));
        }
        found
    }

    fn mesh(&mut self, name: &(Str, Str), root: &MeshRoot, client: Str) {
        let routes = root.routes(&client, None).into_iter();
        let mut below = self.routes(routes, Below::Services);
        for (&port, &node) in &root.ports {
            let routes = root.routes(&client, Some(port)).into_iter();
            let routes = self.routes(routes, Below::Services);
            let id = self.trie.add((node, Level::Listener), &routes);
            below.push((EdgeLabel::Port(port), id));
        }
        let id = self.trie.add((root.node, Level::Gateway), &below);
        let label = EdgeLabel::Service(&name.0, &name.1, &client);
        let root = TrieRoot {
            kind: RootKind::Mesh,
            class: None,
            controller: RootController::None,
            client: client.clone(),
        };
        self.trie.add_root(label, id, root);
    }

    fn routes(
        &mut self,
        routes: impl Iterator<Item = usize>,
        root: Below,
    ) -> Vec<(EdgeLabel<'t>, TrieNodeId)> {
        let topology = self.topology;
        let mut found = Vec::with_capacity(routes.size_hint().0);
        for index in routes {
            let Some(route) = topology.routes.get(index) else {
                continue;
            };
            let object = &route.key;
            let short = self.short(&object.kind);
            let label = EdgeLabel::Route(short, &object.namespace, &object.name);
            found.push((label, self.route(index, root)));
        }
        found
    }

    fn route(&mut self, index: usize, root: Below) -> TrieNodeId {
        if let Some(id) = self.added.get(&(root, index)) {
            return *id;
        }
        let topology = self.topology;
        let route = topology.routes.get(index);
        // A rule can lead to further routes.
        let of_other = std::mem::take(&mut self.backends);
        let mut below = Vec::new();
        for (number, rule) in (0_u32..).zip(route.iter().flat_map(|route| &route.rules)) {
            let id = self.rule(rule, root);
            below.push((EdgeLabel::RuleIndex(number), id));
            below.extend(
                rule.name
                    .as_deref()
                    .map(|name| (EdgeLabel::RuleName(name), id)),
            );
        }
        let node = route.map(|route| route.node);
        let node = node.unwrap_or(NodeId(u32::MAX));
        let id = self.trie.add((node, Level::Route), &below);
        self.added.insert((root, index), id);
        self.backends = of_other;
        id
    }

    fn rule(&mut self, rule: &'t RuleNode, root: Below) -> TrieNodeId {
        let topology = self.topology;
        let kind = match root {
            Below::Gateways | Below::Delegating => RootKind::Gateway,
            Below::Services => RootKind::Mesh,
        };
        let delegates =
            root == Below::Delegating && topology.delegations.of_rule(rule.node).is_some();
        let mut below: Vec<_> = rule
            .backends
            .iter()
            .filter(|backend| backend.reason(kind).is_none())
            .filter(|backend| !delegates || topology.has_backend(rule, backend))
            .map(|backend| self.backend(backend))
            .collect();
        if delegates {
            below.extend(self.routes(rule.children.iter().copied(), root));
        }
        let id = self.trie.add((rule.node, Level::RouteRule), &below);
        if delegates {
            self.trie.add_delegating(id);
        }
        id
    }

    fn backend(&mut self, backend: &'t BackendNode) -> (EdgeLabel<'t>, TrieNodeId) {
        let of: BackendKey<'_> = (backend.node, backend.reference, &backend.ports);
        let known = self.backends.get(&of).copied();
        let id = known.unwrap_or_else(|| {
            let id = self.new_backend(backend);
            self.backends.insert(of, id);
            id
        });
        let key = &self.topology.key(backend.node).object;
        let label = EdgeLabel::Backend(self.short(&key.kind), &key.namespace, &key.name);
        (label, id)
    }

    fn new_backend(&mut self, backend: &'t BackendNode) -> TrieNodeId {
        let mut below = Vec::with_capacity(backend.ports.len());
        for &(port, node) in &backend.ports {
            let id = self.trie.add((node, Level::BackendPort), &[]);
            below.push((EdgeLabel::Port(port), id));
        }
        let id = self.trie.add((backend.node, Level::Backend), &below);
        if let Some(reference) = backend.reference {
            self.trie.add_reference(id, reference);
        }
        id
    }
}
