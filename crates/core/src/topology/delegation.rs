//! Delegation between Routes (specification 1.8): which Routes the backendRefs of rules name.
//!
//! The topology knows the nodes of the child Routes of each rule, so that answers of kinds that do not follow
//! delegation can tell what they do not know. [`super::child_routes`] decides where paths lead on to child Routes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::child_routes::NotFollowed;
use super::{BackendNode, NodeId, PathStep, RouteNode, RuleNode, Topology};
use crate::model::{GroupKind, Level, MetadataMap, NodeKey, ObjectKey, Str, groups};
use crate::store::{BackendRef, Rule, Store, route_kind};

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
#[derive(Clone, Debug, Default)]
pub(crate) struct Delegations {
    by_rule: HashMap<NodeId, DelegationId>,
    list: Vec<Delegation>,
    /// The nodes of all child Routes, and of the Namespaces that these are in.
    nodes: HashSet<NodeId>,
    /// The child Routes of rules that are not followed.
    routes: HashSet<NodeId>,
    /// The rules that are followed.
    followed: HashSet<NodeId>,
    /// Those among them that have no other backends.
    delegating_only: HashSet<NodeId>,
    /// The rules that are not followed.
    not_followed: HashMap<NodeId, NotFollowed>,
    /// Routes with the child Routes of their rules that are followed.
    pairs: HashSet<(NodeId, NodeId)>,
}

/// The Routes that one backendRef names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Children {
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
pub(super) struct RouteIndex<'s> {
    by_namespace: BTreeMap<(&'s GroupKind, &'s Str), Vec<usize>>,
    by_label: BTreeMap<(&'s str, &'s str), Vec<usize>>,
}

impl Children {
    /// The Routes that a backendRef names; `None` if it names none.
    pub(super) fn of(reference: &BackendRef) -> Option<Self> {
        let group = &reference.kind.group;
        if is_label(&reference.kind) {
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

    /// Whether only HTTPRoutes are named. A label selects the HTTPRoutes among the Routes that have it.
    pub(super) fn are_http_routes(&self) -> bool {
        match self {
            Children::Named(key) => key.kind.is(groups::GATEWAY, "HTTPRoute"),
            Children::All(kind, _) => kind.is(groups::GATEWAY, "HTTPRoute"),
            Children::Labelled { .. } => true,
        }
    }

    /// Whether a Route with these labels is named.
    pub(super) fn includes(&self, route: &ObjectKey, labels: Option<&MetadataMap>) -> bool {
        match self {
            Children::Named(key) => key == route,
            Children::All(kind, namespace) => *kind == route.kind && *namespace == route.namespace,
            Children::Labelled {
                label,
                value,
                namespace,
            } => {
                namespace
                    .as_ref()
                    .is_none_or(|only| *only == route.namespace)
                    && labels.and_then(|labels| labels.get(label)) == Some(&**value)
            }
        }
    }

    /// The Routes that the backendRefs of a rule name.
    pub(super) fn of_rule(rule: &Rule) -> BTreeSet<Self> {
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

/// Whether backendRefs of a kind name Routes.
pub(crate) fn is_route_reference(kind: &GroupKind) -> bool {
    route_kind(kind).is_some() || is_label(kind)
}

/// Whether backendRefs of a kind name Routes by a label.
fn is_label(kind: &GroupKind) -> bool {
    kind.group.starts_with("delegation.") && &*kind.kind == "label"
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
            let labels = store
                .get(key)
                .into_iter()
                .flat_map(|e| e.object.labels.iter());
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

    /// Whether a rule that is not followed delegates to a Route.
    pub(crate) fn has_unfollowed_route(&self, route: NodeId) -> bool {
        self.routes.contains(&route)
    }

    /// Whether paths lead on from a rule to its child Routes.
    pub(crate) fn is_followed(&self, rule: NodeId) -> bool {
        self.followed.contains(&rule)
    }

    /// Why a rule that delegates is not followed; `None` if it is.
    pub(crate) fn why_not_followed(&self, rule: NodeId) -> Option<NotFollowed> {
        self.not_followed.get(&rule).copied()
    }

    /// Whether paths lead from some rule of a Route to a child Route.
    pub(crate) fn leads(&self, parent: NodeId, child: NodeId) -> bool {
        self.pairs.contains(&(parent, child))
    }

    /// Whether requests pass a rule only on the way to its child Routes.
    pub(crate) fn delegates_only(&self, rule: NodeId) -> bool {
        self.delegating_only.contains(&rule)
    }
}

impl Topology {
    /// Describes the Routes that a rule delegates to; `None` if it delegates to none, or no controller follows that
    /// (specification 1.8).
    pub fn children_of_rule(&self, route: &ObjectKey, rule: usize) -> Option<&str> {
        let id = self
            .delegations
            .of_rule(self.rule_node(route, rule)?.node)?;
        Some(&self.delegations.get(id)?.children)
    }

    /// Why a rule that delegates is not followed; `None` if it is.
    pub fn not_followed(&self, route: &ObjectKey, rule: usize) -> Option<NotFollowed> {
        let rule = self.rule_node(route, rule)?;
        self.delegations.why_not_followed(rule.node)
    }

    /// Whether requests pass a rule only on the way to child Routes, below Gateways whose controllers follow that
    /// (specification 1.8).
    pub fn delegates_only(&self, rule: NodeId) -> bool {
        self.delegations.delegates_only(rule)
    }

    /// Whether a rule of a route delegates to a Route, directly or through others.
    pub(crate) fn delegates_to(&self, route: &ObjectKey, child: NodeId) -> bool {
        let route = self.routes.with_key(route);
        let rules = route.into_iter().flat_map(|route| &route.rules);
        let delegations = rules.filter_map(|rule| self.delegations.of_rule(rule.node));
        let mut delegations = delegations.filter_map(|id| self.delegations.get(id));
        delegations.any(|found| found.steps.iter().any(|step| step.node == child))
    }

    /// A rule of a route.
    pub(crate) fn rule_node(&self, route: &ObjectKey, rule: usize) -> Option<&RuleNode> {
        self.routes.with_key(route)?.rules.get(rule)
    }

    /// Whether an object is a child Route of a rule that is not followed, or a backend of one (specification 1.8).
    pub fn is_delegated(&self, object: &ObjectKey) -> bool {
        let node = self.node(&NodeKey::whole(object.clone()));
        let delegations = &self.delegations;
        node.is_some_and(|node| match route_kind(&object.kind) {
            Some(_) => delegations.has_unfollowed_route(node),
            None => delegations.has_node(node) && !delegations.not_followed.is_empty(),
        })
    }

    /// Whether a backend stands for Routes that a rule delegates to.
    pub(super) fn names_routes(&self, backend: &BackendNode) -> bool {
        is_route_reference(&self.key(backend.node).object.kind)
    }

    /// Whether a rule leads to a backend below a Gateway whose controller follows delegation: in place of backends that
    /// stand for Routes there are the paths of the child Routes, if the rule is followed.
    pub(super) fn has_backend(&self, rule: &RuleNode, backend: &BackendNode) -> bool {
        !self.delegations.is_followed(rule.node) || !self.names_routes(backend)
    }

    /// Finds the child Routes of all rules.
    pub(super) fn add_delegations(&mut self, store: &Store) {
        let children: Vec<Vec<BTreeSet<Children>>> = self
            .routes
            .iter()
            .map(|route| {
                let rules = store.route(&route.key).map(|route| &route.rules);
                rules.into_iter().flatten().map(Children::of_rule).collect()
            })
            .collect();
        if children.iter().flatten().all(BTreeSet::is_empty) {
            return;
        }
        let routes = self.routes.iter();
        let mut routes: Vec<RouteNode> = routes.map(|route| RouteNode::clone(route)).collect();
        let index = RouteIndex::of(&routes, store);
        let followed = self.follow(store, &routes, &children, &index);
        let mut found = self.delegations_of(&routes, &children, &index);
        drop(index);
        for route in &routes {
            let rules = route
                .rules
                .iter()
                .filter_map(|rule| followed.get(&rule.node));
            let children = rules.filter_map(|rule| rule.as_ref().ok()).flatten();
            let children = children.filter_map(|&child| routes.get(child));
            found
                .pairs
                .extend(children.map(|child| (route.node, child.node)));
        }
        for rule in routes.iter_mut().flat_map(|route| &mut route.rules) {
            match followed.get(&rule.node) {
                Some(Ok(children)) => {
                    rule.children = children.as_slice().into();
                    found.followed.insert(rule.node);
                    let mut backends = rule.backends.iter();
                    if backends.all(|backend| self.names_routes(backend)) {
                        found.delegating_only.insert(rule.node);
                    }
                }
                Some(Err(reason)) => {
                    found.not_followed.insert(rule.node, *reason);
                    let of_rule = found.by_rule.get(&rule.node);
                    let of_rule = of_rule.and_then(|id| found.list.get(id.0 as usize));
                    let steps = of_rule.into_iter().flat_map(|found| found.steps.iter());
                    let routes = steps.filter(|step| step.level == Level::Route);
                    found.routes.extend(routes.map(|step| step.node));
                }
                None => {}
            }
        }
        for (number, route) in routes.into_iter().enumerate() {
            self.routes.set(number, Arc::new(route));
        }
        *self.delegations = found;
    }

    /// The delegations of all rules, with the nodes of their child Routes.
    fn delegations_of(
        &self,
        routes: &[RouteNode],
        children: &[Vec<BTreeSet<Children>>],
        index: &RouteIndex<'_>,
    ) -> Delegations {
        let mut found = Delegations::default();
        let mut ids: HashMap<&BTreeSet<Children>, DelegationId> = HashMap::new();
        let mut all_routes: Option<Arc<[PathStep]>> = None;
        let rules = routes.iter().zip(children);
        let rules = rules.flat_map(|(route, named)| route.rules.iter().zip(named));
        for (rule, named) in rules.filter(|(_, named)| !named.is_empty()) {
            let id = *ids.entry(named).or_insert_with(|| {
                let steps = self.steps_of_children(routes, named, children, index);
                let steps = steps.unwrap_or_else(|| {
                    let all = || self.sorted_steps(routes.iter());
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
        for step in found.list.iter().flat_map(|found| found.steps.iter()) {
            found.nodes.insert(step.node);
            let object = &self.key(step.node).object;
            found.nodes.extend(self.namespace(&object.namespace));
        }
        found
    }

    /// The routes that a backendRef names.
    pub(super) fn routes_named(
        &self,
        routes: &[RouteNode],
        children: &Children,
        index: &RouteIndex<'_>,
    ) -> Vec<usize> {
        let found: &[usize] = match children {
            Children::Named(key) => {
                return self.routes.number(key).into_iter().collect();
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
        let found = found.iter().copied();
        found
            .filter(|&route| routes.get(route).is_some_and(|r| is_in(&r.key.namespace)))
            .collect()
    }

    /// The nodes of the child Routes of a rule and of their children. A cycle ends at a Route that was
    /// visited. `None` if there are too many.
    fn steps_of_children(
        &self,
        routes: &[RouteNode],
        named: &BTreeSet<Children>,
        children: &[Vec<BTreeSet<Children>>],
        index: &RouteIndex<'_>,
    ) -> Option<Arc<[PathStep]>> {
        let mut visited: BTreeSet<usize> = BTreeSet::new();
        let mut pending: Vec<&BTreeSet<Children>> = vec![named];
        let mut size = 0;
        while let Some(named) = pending.pop() {
            let named = named.iter();
            for route in named.flat_map(|one| self.routes_named(routes, one, index)) {
                if !visited.insert(route) {
                    continue;
                }
                size += routes.get(route).map_or(0, RouteNode::size);
                if size > MAX_CHILD_NODES {
                    return None;
                }
                pending.extend(children.get(route).into_iter().flatten());
            }
        }
        let visited = visited.into_iter();
        let visited = visited.filter_map(|route| routes.get(route));
        Some(self.sorted_steps(visited).into())
    }

    /// The nodes of routes, of their rules and of their backends, sorted by key.
    fn sorted_steps<'r>(&self, routes: impl Iterator<Item = &'r RouteNode>) -> Vec<PathStep> {
        let mut steps: Vec<PathStep> = Vec::new();
        for route in routes {
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
        let backends = self.rules.iter().flat_map(|rule| &*rule.backends);
        let backends: usize = backends.map(|backend| 1 + backend.ports.len()).sum();
        1 + self.rules.len() + backends
    }

    fn add_steps(&self, steps: &mut Vec<PathStep>) {
        let mut add = |node, level| steps.push(PathStep { node, level });
        add(self.node, Level::Route);
        for rule in &self.rules {
            add(rule.node, Level::RouteRule);
            for backend in &*rule.backends {
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

    use super::super::RoutingTraits;
    use super::*;
    use crate::model::{Change, Object};

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
        let gateway = ObjectKey::new(GroupKind::new(groups::GATEWAY, "Gateway"), "b", "gw");
        upserts.push(Arc::new(Object::new(gateway, json!({"spec": {}}))));
        let mut store = Store::default();
        store.apply(Change {
            upserts,
            ..Change::default()
        });
        let topology = Topology::build(&store, &|_| RoutingTraits {
            delegates: true,
            ..RoutingTraits::default()
        });
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
