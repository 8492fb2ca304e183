//! Builds the topology of a store (specification 1).

use super::mesh::{MeshRoot, MeshRoute};
use super::node_keys::NodeKeys;
use super::parent_ref::{AttachingRoute, ListenerContext, admits, check_parent_ref};
use super::route_table::RouteTable;
use super::streams::{StreamListeners, stream_order};
use super::{
    BackendNode, ClassNode, GatewayNode, ListenerNode, ListenerSetNode, RootController, RouteNode,
    RoutingTraits, RuleNode, Topology,
};
use std::sync::Arc;

use smallvec::SmallVec;
use thin_vec::ThinVec;

use crate::model::{GroupKind, NodeKey, ObjectKey, PathErrorReason, Section, Str, groups};
use crate::store::{
    BackendRef, Gateway, Listener, NamespacedName, ParentRef, Projection, Route, Rule,
    ServicePorts, Store, route_kind,
};

/// The listeners that a route is attached to, by the numbers of their lists, and the parentRefs that do not attach it:
/// index of the parentRef and reason.
pub(super) type Attachments = (ThinVec<usize>, ThinVec<(usize, PathErrorReason)>);

/// The key of an object of a Gateway API kind.
pub(super) fn gateway_api(kind: &str, name: &NamespacedName) -> ObjectKey {
    ObjectKey::new(
        GroupKind::new(groups::GATEWAY, kind),
        name.0.clone(),
        name.1.clone(),
    )
}

/// The ports of a Service, if it exists.
pub(crate) fn service<'s>(
    store: &'s Store,
    namespace: &str,
    name: &str,
) -> Option<&'s ServicePorts> {
    let entry = store.named(&GroupKind::service(), (namespace, name))?;
    match &entry.projection {
        Projection::Service(ports) => Some(ports),
        _ => None,
    }
}

/// The number of the routes of a store, and that of the nodes of these and of the Services that they may name.
fn expected_counts(store: &Store) -> (usize, usize) {
    let rules = store.routes().map(|(_, route)| route.rules.len());
    let (routes, rules) = rules.fold((0, 0), |(routes, all), rules| (routes + 1, all + rules));
    let services = GroupKind::service();
    let services = store.of_kind(&services).map(|(_, entry)| {
        let ports = match &entry.projection {
            Projection::Service(ports) => ports.numbers().count(),
            _ => 0,
        };
        1 + ports
    });
    (routes, routes + rules + services.sum::<usize>())
}

impl Topology {
    /// Builds the topology of a store. `traits_of` returns what is known of a controller.
    pub fn build(store: &Store, traits_of: &dyn Fn(&RootController) -> RoutingTraits) -> Self {
        let (routes, nodes) = expected_counts(store);
        let mut topology = Topology {
            nodes: NodeKeys::with_room(nodes),
            routes: RouteTable::with_room(routes),
            ..Topology::default()
        };
        *topology.labels = store.namespaces();
        let names: Vec<Str> = topology.labels.keys().cloned().collect();
        for name in names {
            let node = topology.intern(NodeKey::namespace(name.clone()));
            topology.namespaces.insert(name, node);
        }
        topology.read_gateways(store, traits_of, None);
        topology.add_routes(store);
        if topology.gateways.values().any(|gateway| gateway.delegates) {
            topology.add_delegations(store);
        }
        topology.attach_routes(store);
        topology.place_listeners();
        topology.fix_paths(store);
        topology
    }

    /// Reads GatewayClasses, Gateways and ListenerSets. Listeners that were there before keep the lists of their routes.
    pub(super) fn read_gateways(
        &mut self,
        store: &Store,
        traits_of: &dyn Fn(&RootController) -> RoutingTraits,
        before: Option<&Topology>,
    ) {
        self.add_classes(store);
        self.add_gateways(store);
        self.assign_lists(before);
        self.rank_sets(store);
        self.share_ports(store);
        self.apply_traits(store, traits_of);
    }

    fn add_classes(&mut self, store: &Store) {
        let kind = GroupKind::new(groups::GATEWAY, "GatewayClass");
        for ((_, name), entry) in store.of_kind(&kind) {
            if let Projection::GatewayClass(controller) = &entry.projection {
                let key = ObjectKey::new(kind.clone(), "", name.clone());
                let node = self.intern(NodeKey::whole(key));
                let controller = controller.clone();
                self.classes
                    .insert(name.clone(), ClassNode { node, controller });
            }
        }
    }

    fn add_gateways(&mut self, store: &Store) {
        for ((namespace, name), entry) in store.of_kind(&GroupKind::gateway()) {
            let Projection::Gateway(gateway) = &entry.projection else {
                continue;
            };
            let name = (namespace.clone(), name.clone());
            let key = gateway_api("Gateway", &name);
            let node = self.intern(NodeKey::whole(key.clone()));
            let listeners = self.listeners(&key, &gateway.listeners);
            self.gateways.insert(
                name,
                GatewayNode {
                    node,
                    class: gateway.class.clone(),
                    delegates: false,
                    serves_one_stream_route: false,
                    listeners,
                    sets: Vec::new(),
                },
            );
        }
        let sets = GroupKind::new(groups::GATEWAY, "ListenerSet");
        for ((namespace, name), entry) in store.of_kind(&sets) {
            let Projection::ListenerSet(set) = &entry.projection else {
                continue;
            };
            let name = (namespace.clone(), name.clone());
            let key = gateway_api("ListenerSet", &name);
            // The node exists even if no Gateway admits the ListenerSet: policies may target it.
            let node = self.intern(NodeKey::whole(key.clone()));
            let listeners = self.listeners(&key, &set.listeners);
            let Some(parent) = set.gateway.as_ref() else {
                continue;
            };
            let admitted = self.admits_set(store, parent, &name.0);
            if let Some(gateway) = self.gateways.get_mut(parent) {
                self.gateways_of_sets.insert(name.clone(), parent.clone());
                gateway.sets.push(ListenerSetNode {
                    node,
                    name,
                    admitted,
                    rank: 0,
                    listeners,
                });
            }
        }
    }

    /// The Gateway of an object that a parentRef names: the Gateway itself, or that of the ListenerSet with the name.
    pub(super) fn gateway_of<'t>(
        &'t self,
        name: &'t NamespacedName,
        is_set: bool,
    ) -> Option<&'t NamespacedName> {
        match is_set {
            true => self.gateways_of_sets.get(name),
            false => Some(name),
        }
    }

    fn admits_set(&self, store: &Store, gateway: &NamespacedName, namespace: &str) -> bool {
        let context = ListenerContext {
            namespace: &gateway.0,
            labels: &self.labels,
            isolated: None,
        };
        projected_gateway(store, gateway)
            .is_some_and(|g| admits(&g.allowed_listeners, namespace, &context))
    }

    fn listeners(&mut self, object: &ObjectKey, listeners: &[Listener]) -> Vec<ListenerNode> {
        let mut nodes = Vec::with_capacity(listeners.len());
        for listener in listeners {
            let section = Section::Listener(listener.name.clone());
            nodes.push(ListenerNode {
                node: self.intern(NodeKey::section(object.clone(), section)),
                name: listener.name.clone(),
                list: usize::MAX,
            });
        }
        nodes
    }

    fn add_routes(&mut self, store: &Store) {
        for (key, route) in store.routes() {
            let node = self.route_node(store, &key, route);
            self.retain_route(&node, true);
            self.routes.add(Arc::new(node));
        }
    }

    /// A route that is attached to no listener yet. Its nodes are not counted as used.
    pub(super) fn route_node(
        &mut self,
        store: &Store,
        key: &ObjectKey,
        route: &Route,
    ) -> RouteNode {
        let node = self.nodes.add(NodeKey::whole(key.clone()));
        let mut rules: Vec<RuleNode> = Vec::with_capacity(route.rules.len());
        for (index, rule) in route.rules.iter().enumerate() {
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            let section = NodeKey::section(key.clone(), Section::Rule(number));
            let node = self.nodes.add(section);
            let before = index.checked_sub(1).and_then(|at| route.rules.get(at));
            let backends = match (before, rules.last()) {
                (Some(before), Some(known)) if rule.has_backends_of(before) => {
                    Arc::clone(&known.backends)
                }
                _ => self.backends(store, key, number, rule),
            };
            rules.push(RuleNode {
                node,
                name: rule.name.clone(),
                backends,
                children: ThinVec::new(),
            });
        }
        RouteNode {
            key: key.clone(),
            node,
            rules: rules.into(),
            listeners: ThinVec::new(),
            refused: ThinVec::new(),
        }
    }

    /// The backends of the rule with a number.
    fn backends(
        &mut self,
        store: &Store,
        route: &ObjectKey,
        number: u32,
        rule: &Rule,
    ) -> Arc<[BackendNode]> {
        let mut backends: SmallVec<[BackendNode; 1]> = SmallVec::new();
        for (at, reference) in rule.backends.iter().enumerate() {
            let backend = self.backend(store, route, reference, &mut backends);
            if reference.extensions.is_empty() {
                continue;
            }
            let first = rule.first_reference(at);
            let first = first.and_then(|first| u32::try_from(first).ok());
            let section = first.map(|first| Section::BackendRef(number, first));
            let filtered =
                section.map(|section| self.nodes.add(NodeKey::section(route.clone(), section)));
            if let Some(backend) = backends.get_mut(backend) {
                backend.reference = backend.reference.or(filtered);
            }
        }
        backends.into_iter().collect()
    }

    /// Adds a backendRef to the backends of a rule and returns the index of its backend. Several backendRefs
    /// to one object share a node.
    fn backend(
        &mut self,
        store: &Store,
        route: &ObjectKey,
        reference: &BackendRef,
        backends: &mut SmallVec<[BackendNode; 1]>,
    ) -> usize {
        let kind = reference.kind.clone();
        let key = ObjectKey::new(kind, reference.namespace.clone(), reference.name.clone());
        let is_service = key.kind.is(groups::CORE, "Service");
        let ports = match is_service {
            true => service(store, &key.namespace, &key.name),
            false => None,
        };
        let node = self.nodes.add(NodeKey::whole(key.clone()));
        let has_port = |port: u16| !is_service || ports.is_some_and(|p| p.has(port));
        let port = reference.port.filter(|&p| has_port(p)).map(|port| {
            let section = NodeKey::section(key.clone(), Section::Port(port));
            (port, self.nodes.add(section))
        });
        let existing = backends.iter().position(|backend| backend.node == node);
        if let Some(at) = existing
            && let Some(existing) = backends.get_mut(at)
        {
            existing.ports.extend(port);
            existing.ports.sort_unstable();
            existing.ports.dedup();
            return at;
        }
        let missing = (is_service && ports.is_none()).then_some(PathErrorReason::BackendNotFound);
        let permitted =
            key.namespace == route.namespace || store.permits(&route.kind, &route.namespace, &key);
        backends.push(BackendNode {
            node,
            reference: None,
            ports: port.into_iter().collect(),
            refused: (!permitted).then_some(PathErrorReason::RefNotPermitted),
            missing,
        });
        backends.len() - 1
    }

    /// Attaches every route to the listeners and Services that its parentRefs name.
    fn attach_routes(&mut self, store: &Store) {
        let mut streams = StreamListeners::of(store, self);
        for index in self.attachment_order(store) {
            let Some(key) = self.routes.get(index).map(|r| r.key.clone()) else {
                continue;
            };
            let Some(route) = store.route(&key) else {
                continue;
            };
            let (listeners, refused) = self.attach_route(store, (index, &key, route), &mut streams);
            for &list in &listeners {
                self.add_to_list(list, index);
            }
            if !refused.is_empty() {
                self.refused_routes.insert_mut(index);
            }
            if let Some(node) = self.routes.get_mut(index) {
                (node.listeners, node.refused) = (listeners, refused);
            }
        }
        *self.displaced = streams.displaced;
        let holders = streams.taken.into_iter();
        let holders = holders.filter_map(|((listener, _), route)| Some((listener, route?)));
        *self.stream_holders = holders.collect();
    }

    /// Attaches a route to the Services that its parentRefs name, and finds the listeners that it is attached to.
    pub(super) fn attach_route(
        &mut self,
        store: &Store,
        (index, key, route): (usize, &ObjectKey, &Route),
        streams: &mut StreamListeners,
    ) -> Attachments {
        let (mut listeners, mut refused) = Attachments::default();
        for (at, parent) in route.parents.iter().enumerate() {
            let attached = if parent.kind.is(groups::CORE, "Service") {
                self.attach_to_service(store, index, key, parent)
            } else {
                let found = self.attach_to_listeners(store, index, key, parent, streams);
                found.map(|found| listeners.extend(found))
            };
            if let Err(reason) = attached {
                refused.push((at, reason));
            }
        }
        listeners.sort_unstable();
        listeners.dedup();
        listeners.shrink_to_fit();
        (listeners, refused)
    }

    /// The Routes in the order in which they take listeners: stream Routes from the oldest.
    fn attachment_order(&self, store: &Store) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.routes.len()).collect();
        if self.gateways.values().any(|g| g.serves_one_stream_route) {
            order.sort_by_cached_key(|&index| {
                let key = self.routes.get(index).map(|route| &route.key)?;
                stream_order(store, key, store.get(key)?.object.created)
            });
        }
        order
    }

    /// The listeners of a Gateway or ListenerSet that a route is attached to. A parentRef to a Gateway does not
    /// cover the listeners of its ListenerSets.
    fn attach_to_listeners(
        &self,
        store: &Store,
        index: usize,
        key: &ObjectKey,
        parent: &ParentRef,
        streams: &mut StreamListeners,
    ) -> Result<Vec<usize>, PathErrorReason> {
        let attaching = AttachingRoute::of(store, key).ok_or(PathErrorReason::NotAPath)?;
        let name: NamespacedName = (parent.namespace.clone(), parent.name.clone());
        let is_set = parent.kind.is(groups::GATEWAY, "ListenerSet");
        if route_kind(&parent.kind).is_some() {
            let parent = ObjectKey::new(parent.kind.clone(), name.0, name.1);
            let refusal = self.parent_route_refusal(store, &parent, index);
            return refusal.map_or(Ok(Vec::new()), Err);
        }
        if !is_set && !parent.kind.is(groups::GATEWAY, "Gateway") {
            return Err(PathErrorReason::NoMatchingParent);
        }
        let listeners = projected_listeners(store, &name, is_set)?;
        let nodes = self.listener_nodes(&name, is_set)?;
        let context = ListenerContext {
            namespace: &name.0,
            labels: &self.labels,
            isolated: self.isolated_hostnames(&name, is_set),
        };
        let one_stream = self.serves_one_stream_route(&name, is_set);
        let mut furthest = PathErrorReason::NoMatchingParent;
        let mut attached = Vec::new();
        for (listener, ListenerNode { node, list, .. }) in listeners.iter().zip(nodes) {
            match check_parent_ref(parent, &attaching, listener, &context) {
                Ok(()) if one_stream && !streams.take(store, &attaching, (*node, index)) => {
                    furthest = furthest.max(PathErrorReason::RouteNotServed);
                }
                Ok(()) => attached.push(*list),
                Err(reason) => furthest = furthest.max(reason),
            }
        }
        match attached.is_empty() {
            true => Err(furthest),
            false => Ok(attached),
        }
    }

    /// A parent's listeners, in order.
    ///
    /// # Errors
    /// The parent does not exist, or its Gateway does not admit the ListenerSet.
    fn listener_nodes(
        &self,
        name: &NamespacedName,
        is_set: bool,
    ) -> Result<&[ListenerNode], PathErrorReason> {
        if !is_set {
            let gateway = self
                .gateways
                .get(name)
                .ok_or(PathErrorReason::GatewayNotFound)?;
            return Ok(&gateway.listeners);
        }
        let gateway = self.gateway_of(name, is_set);
        let gateway = gateway.and_then(|gateway| self.gateways.get(gateway));
        let mut sets = gateway.into_iter().flat_map(|gateway| &gateway.sets);
        let set = sets.find(|set| set.name == *name);
        let set = set.ok_or(PathErrorReason::GatewayNotFound)?;
        if !set.admitted {
            return Err(PathErrorReason::ListenerSetNotAllowed);
        }
        Ok(&set.listeners)
    }

    /// Attaches a route to a Service, which becomes a mesh root (specification 1.3).
    fn attach_to_service(
        &mut self,
        store: &Store,
        index: usize,
        key: &ObjectKey,
        parent: &ParentRef,
    ) -> Result<(), PathErrorReason> {
        let ports = service(store, &parent.namespace, &parent.name);
        let ports = ports.ok_or(PathErrorReason::BackendNotFound)?;
        let named = match &parent.section {
            Some(section) => Some(
                ports
                    .named(section)
                    .ok_or(PathErrorReason::NoMatchingParent)?,
            ),
            None => None,
        };
        let port = match (parent.port, named) {
            (Some(port), Some(named)) if port != named => {
                return Err(PathErrorReason::NoMatchingParent);
            }
            (port, named) => port.or(named),
        };
        if port.is_some_and(|p| !ports.has(p)) {
            return Err(PathErrorReason::NoMatchingParent);
        }
        let service = ObjectKey::new(
            parent.kind.clone(),
            parent.namespace.clone(),
            parent.name.clone(),
        );
        let node = self.intern(NodeKey::whole(service.clone()));
        let port_node = port.map(|p| (p, self.intern(NodeKey::section(service, Section::Port(p)))));
        let name = (parent.namespace.clone(), parent.name.clone());
        let root = self.roots.entry(name);
        let root = root.or_insert_with(|| MeshRoot::new(node));
        root.ports.extend(port_node);
        let route = MeshRoute { port, route: index };
        if key.namespace == parent.namespace {
            root.producers.push(route);
        } else {
            let own = root.consumers.entry(key.namespace.clone()).or_default();
            own.push(route);
        }
        Ok(())
    }
}

pub(crate) fn projected_gateway<'s>(
    store: &'s Store,
    name: &NamespacedName,
) -> Option<&'s Gateway> {
    match &store.get(&gateway_api("Gateway", name))?.projection {
        Projection::Gateway(gateway) => Some(gateway),
        _ => None,
    }
}

/// The listeners of a Gateway or ListenerSet that a parentRef names.
pub(crate) fn projected_listeners<'s>(
    store: &'s Store,
    name: &NamespacedName,
    is_set: bool,
) -> Result<&'s [Listener], PathErrorReason> {
    if !is_set {
        return projected_gateway(store, name)
            .map(|g| g.listeners.as_slice())
            .ok_or(PathErrorReason::GatewayNotFound);
    }
    match store
        .get(&gateway_api("ListenerSet", name))
        .map(|e| &e.projection)
    {
        Some(Projection::ListenerSet(set)) => Ok(&set.listeners),
        _ => Err(PathErrorReason::ListenerSetNotFound),
    }
}
