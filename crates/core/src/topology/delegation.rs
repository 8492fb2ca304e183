//! Delegation between Routes (specification 1.8): which Routes the backendRefs of rules name.
//!
//! Delegation is not followed: no path leads from a rule to a child Route. The topology knows the nodes of
//! the child Routes of each rule, so that answers can tell what they do not know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::{NodeId, PathStep, RouteNode, Topology};
use crate::model::{GroupKind, Level, NodeKey, ObjectKey, Str};
use crate::store::{BackendRef, Projection, Rule, Store, route_kind};

/// The number of nodes of child Routes that are collected for one rule. With more, all Routes count as
/// children (specification 1.8).
pub(crate) const MAX_CHILD_NODES: usize = 1_000;
/// The name of a backendRef that names all Routes of a namespace.
const ALL_NAMES: &str = "*";
/// The namespace of a backendRef that selects Routes of all namespaces by a label.
const ALL_NAMESPACES: &str = "all";

/// The number of a [`Delegation`] in its topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DelegationId(u32);

/// The child Routes of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Delegation {
    /// The child Routes as the backendRefs name them.
    pub(crate) children: String,
    /// The nodes of the child Routes, of their rules and backends, and of the children of these.
    pub(crate) steps: Arc<[PathStep]>,
}

/// All delegations of a topology. Rules with the same backendRefs to Routes share one.
#[derive(Debug, Default)]
pub(crate) struct Delegations {
    by_rule: HashMap<NodeId, DelegationId>,
    list: Vec<Delegation>,
    /// The nodes of all child Routes, and of the Namespaces that these are in.
    nodes: HashSet<NodeId>,
    /// The child Routes.
    routes: HashSet<NodeId>,
}

/// The Routes that one backendRef names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Children {
    Named(ObjectKey),
    /// All Routes of a kind in a namespace.
    All(GroupKind, Str),
    /// The Routes with a label, in one namespace or in all.
    Labelled {
        label: String,
        value: Str,
        namespace: Option<Str>,
    },
}

/// The Routes of a topology, for look-ups by [`Children`].
struct RouteIndex<'s> {
    by_namespace: BTreeMap<(&'s GroupKind, &'s Str), Vec<usize>>,
    by_label: BTreeMap<(&'s str, &'s str), Vec<usize>>,
}

impl Children {
    /// The Routes that a backendRef names; `None` if it names none.
    fn of(reference: &BackendRef) -> Option<Self> {
        let group = &reference.kind.group;
        if group.starts_with("delegation.") && &*reference.kind.kind == "label" {
            return Some(Children::Labelled {
                label: format!("{group}/label"),
                value: reference.name.clone(),
                namespace: Some(reference.namespace.clone()).filter(|ns| **ns != *ALL_NAMESPACES),
            });
        }
        route_kind(&reference.kind)?;
        let (kind, namespace) = (reference.kind.clone(), reference.namespace.clone());
        Some(match &*reference.name {
            ALL_NAMES => Children::All(kind, namespace),
            _ => Children::Named(ObjectKey::new(kind, namespace, reference.name.clone())),
        })
    }

    /// The Routes that the backendRefs of a rule name.
    fn of_rule(rule: &Rule) -> BTreeSet<Self> {
        rule.backends.iter().filter_map(Children::of).collect()
    }

    fn describe(&self) -> String {
        match self {
            Children::Named(key) => key.to_string(),
            Children::All(kind, namespace) => {
                format!("every {} of namespace `{namespace}`", kind.short_name())
            }
            Children::Labelled {
                label,
                value,
                namespace: Some(namespace),
            } => format!("Routes with label `{label}={value}` in namespace `{namespace}`"),
            Children::Labelled { label, value, .. } => {
                format!("Routes with label `{label}={value}` in any namespace")
            }
        }
    }
}

/// Describes the child Routes of a rule by the first of its backendRefs.
fn describe(children: &BTreeSet<Children>) -> String {
    let first = children.first().map(Children::describe).unwrap_or_default();
    match children.len() {
        0 | 1 => first,
        several => format!("{first} and {} more", several - 1),
    }
}

impl<'s> RouteIndex<'s> {
    fn of(routes: &'s [RouteNode], store: &'s Store) -> Self {
        let mut index = RouteIndex {
            by_namespace: BTreeMap::new(),
            by_label: BTreeMap::new(),
        };
        for (number, route) in routes.iter().enumerate() {
            let key = &route.key;
            let same = index.by_namespace.entry((&key.kind, &key.namespace));
            same.or_default().push(number);
            let labels = store.get(key).into_iter().flat_map(|e| &e.object.labels);
            for (label, value) in labels.filter(|(label, _)| label.starts_with("delegation.")) {
                let same = index.by_label.entry((label, value));
                same.or_default().push(number);
            }
        }
        index
    }
}

impl Delegations {
    /// The delegation of a rule; `None` if no backendRef of the rule names a Route.
    pub(crate) fn of_rule(&self, rule: NodeId) -> Option<DelegationId> {
        self.by_rule.get(&rule).copied()
    }

    /// A delegation by its number.
    pub(crate) fn get(&self, id: DelegationId) -> Option<&Delegation> {
        self.list.get(id.0 as usize)
    }

    /// Whether no rule delegates.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a node is one of a child Route, or the Namespace of one.
    pub(crate) fn has_node(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    /// Whether a rule delegates to a Route.
    pub(crate) fn has_route(&self, route: NodeId) -> bool {
        self.routes.contains(&route)
    }
}

impl Topology {
    /// Describes the Routes that a rule delegates to; `None` if it delegates to none (specification 1.8).
    pub fn children_of_rule(&self, route: &ObjectKey, rule: usize) -> Option<&str> {
        let route = self.routes.get(*self.route_index.get(route)?)?;
        let id = self.delegations.of_rule(route.rules.get(rule)?.node)?;
        Some(&self.delegations.get(id)?.children)
    }

    /// Whether an object is a child Route of some rule, or a backend of one (specification 1.8).
    pub fn is_delegated(&self, object: &ObjectKey) -> bool {
        let node = self.node(&NodeKey::whole(object.clone()));
        node.is_some_and(|node| self.delegations.has_node(node))
    }

    /// Finds the child Routes of all rules.
    pub(super) fn add_delegations(&mut self, store: &Store) {
        let children: Vec<Vec<BTreeSet<Children>>> = self
            .routes
            .iter()
            .map(|route| match store.get(&route.key).map(|e| &e.projection) {
                Some(Projection::Route(route)) => {
                    route.rules.iter().map(Children::of_rule).collect()
                }
                _ => Vec::new(),
            })
            .collect();
        if children.iter().flatten().all(BTreeSet::is_empty) {
            return;
        }
        let index = RouteIndex::of(&self.routes, store);
        let mut found = Delegations::default();
        let mut ids: HashMap<&BTreeSet<Children>, DelegationId> = HashMap::new();
        let mut all_routes: Option<Arc<[PathStep]>> = None;
        for (route, rules) in self.routes.iter().zip(&children) {
            for (rule, named) in route.rules.iter().zip(rules) {
                if named.is_empty() {
                    continue;
                }
                let id = *ids.entry(named).or_insert_with(|| {
                    let steps = self.steps_of_children(named, &children, &index);
                    let steps = steps.unwrap_or_else(|| {
                        let all = || self.sorted_steps(0..self.routes.len());
                        Arc::clone(all_routes.get_or_insert_with(|| all().into()))
                    });
                    found.list.push(Delegation {
                        children: describe(named),
                        steps,
                    });
                    DelegationId(u32::try_from(found.list.len() - 1).unwrap_or(u32::MAX))
                });
                found.by_rule.insert(rule.node, id);
            }
        }
        for step in found.list.iter().flat_map(|found| found.steps.iter()) {
            found.nodes.insert(step.node);
            let object = &self.key(step.node).object;
            found.nodes.extend(self.namespace(&object.namespace));
            if step.level == Level::Route {
                found.routes.insert(step.node);
            }
        }
        self.delegations = found;
    }

    /// The routes that a backendRef names.
    fn routes_named<'i>(&self, children: &'i Children, index: &'i RouteIndex<'i>) -> Vec<usize> {
        let found: &'i [usize] = match children {
            Children::Named(key) => {
                return self.route_index.get(key).copied().into_iter().collect();
            }
            Children::All(kind, namespace) => {
                let found = index.by_namespace.get(&(kind, namespace));
                found.map_or(&[], Vec::as_slice)
            }
            Children::Labelled { label, value, .. } => {
                let found = index.by_label.get(&(label.as_str(), &**value));
                found.map_or(&[], Vec::as_slice)
            }
        };
        let is_in = |namespace: &Str| match children {
            Children::Labelled {
                namespace: Some(only),
                ..
            } => namespace == only,
            _ => true,
        };
        let routes = found.iter().copied();
        routes
            .filter(|&route| {
                self.routes
                    .get(route)
                    .is_some_and(|r| is_in(&r.key.namespace))
            })
            .collect()
    }

    /// The nodes of the child Routes of a rule and of their children. A cycle ends at a Route that was
    /// visited. `None` if there are too many.
    fn steps_of_children(
        &self,
        named: &BTreeSet<Children>,
        children: &[Vec<BTreeSet<Children>>],
        index: &RouteIndex<'_>,
    ) -> Option<Arc<[PathStep]>> {
        let mut visited: BTreeSet<usize> = BTreeSet::new();
        let mut pending: Vec<&BTreeSet<Children>> = vec![named];
        let mut size = 0;
        while let Some(named) = pending.pop() {
            for route in named.iter().flat_map(|one| self.routes_named(one, index)) {
                if !visited.insert(route) {
                    continue;
                }
                size += self.routes.get(route).map_or(0, RouteNode::size);
                if size > MAX_CHILD_NODES {
                    return None;
                }
                pending.extend(children.get(route).into_iter().flatten());
            }
        }
        Some(self.sorted_steps(visited.into_iter()).into())
    }

    /// The nodes of routes, of their rules and of their backends, sorted by key.
    fn sorted_steps(&self, routes: impl Iterator<Item = usize>) -> Vec<PathStep> {
        let mut steps: Vec<PathStep> = Vec::new();
        for route in routes.filter_map(|route| self.routes.get(route)) {
            route.add_steps(&mut steps);
        }
        steps.sort_by(|a, b| (self.key(a.node), a.level).cmp(&(self.key(b.node), b.level)));
        steps.dedup();
        steps
    }
}

impl RouteNode {
    /// The number of nodes of the route, its rules and its backends.
    fn size(&self) -> usize {
        let backends = self.rules.iter().flat_map(|rule| &rule.backends);
        let backends: usize = backends.map(|backend| 1 + backend.ports.len()).sum();
        1 + self.rules.len() + backends
    }

    fn add_steps(&self, steps: &mut Vec<PathStep>) {
        let mut add = |node, level| steps.push(PathStep { node, level });
        add(self.node, Level::Route);
        for rule in &self.rules {
            add(rule.node, Level::RouteRule);
            for backend in &rule.backends {
                if let Some(reference) = backend.reference {
                    add(reference, Level::Backend);
                }
                add(backend.node, Level::Backend);
                for &(_, port) in &backend.ports {
                    add(port, Level::BackendPort);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Change, Object, groups};

    fn route(namespace: &str, name: &str, backends: &Value) -> Arc<Object> {
        let kind = GroupKind::new(groups::GATEWAY, "HTTPRoute");
        let spec = json!({"rules": [{"backendRefs": backends}]});
        let key = ObjectKey::new(kind, namespace, name);
        Arc::new(Object::new(key, json!({ "spec": spec })))
    }

    fn steps_of(children: usize) -> usize {
        let all =
            json!([{"group": groups::GATEWAY, "kind": "HTTPRoute", "name": "*", "namespace": "a"}]);
        let names = (0..children).map(|number| format!("r{number:04}"));
        let mut upserts: Vec<_> = names.map(|name| route("a", &name, &json!([]))).collect();
        upserts.extend([route("b", "parent", &all), route("c", "apart", &json!([]))]);
        let mut store = Store::default();
        store.apply(Change {
            upserts,
            ..Change::default()
        });
        let topology = Topology::build(&store, &|_| false);
        assert_eq!(topology.delegations.list.len(), 1);
        topology.delegations.list[0].steps.len()
    }

    #[test]
    fn with_too_many_children_all_routes_count() {
        // Each Route has one rule.
        assert_eq!(steps_of(MAX_CHILD_NODES / 2), MAX_CHILD_NODES);
        // One more child, the parent with its backend, and a Route that no rule names.
        let all = MAX_CHILD_NODES + 2 + 3 + 2;
        assert_eq!(steps_of(MAX_CHILD_NODES / 2 + 1), all);
    }
}
