//! Resolves the name of a path, or returns the reason of the first step that fails (specification 1.4).

use super::build::service;
use super::{
    BackendNode, GatewayNode, ListenerNode, PathStep, ResolvedPath, RootController, RootKind,
    RouteNode, RuleNode, Topology,
};
use crate::model::{
    BackendStep, GroupKind, Level, NodeKey, ObjectKey, PathErrorReason, PathName, Root, RouteStep,
    RuleStep, Str, TrafficPath, groups,
};
use crate::store::{NamespacedName, Store};

impl Topology {
    /// Resolves the name of a path to its steps.
    ///
    /// # Errors
    /// Returns the reason of the first step that fails (specification 1.4).
    pub fn locate(
        &self,
        store: &Store,
        path: &PathName<'_>,
    ) -> Result<ResolvedPath, PathErrorReason> {
        match path {
            PathName::GatewayClass(name) => {
                let class = self.classes.get(*name);
                let class = class.ok_or(PathErrorReason::GatewayClassNotFound)?;
                let mut resolved = self.class_path(name);
                resolved.push(class.node, Level::GatewayClass);
                Ok(resolved)
            }
            PathName::Namespace(name) => {
                let node = self.namespaces.get(*name).copied();
                let mut resolved = ResolvedPath {
                    root: RootKind::Namespace,
                    ..ResolvedPath::default()
                };
                resolved.push(
                    node.ok_or(PathErrorReason::NamespaceNotFound)?,
                    Level::Namespace,
                );
                Ok(resolved)
            }
            PathName::Traffic(path) => match path.root {
                Root::Gateway { namespace, name } => {
                    self.below_gateway(store, path, &(namespace.into(), name.into()))
                }
                Root::Mesh { .. } => self.below_service(store, path),
            },
        }
    }

    /// A path that begins at a GatewayClass, before the step of the class itself.
    pub(super) fn class_path(&self, name: &str) -> ResolvedPath {
        ResolvedPath {
            root: RootKind::GatewayClass,
            controller: match self.classes.get(name) {
                Some(class) => RootController::Named(class.controller.clone()),
                None => RootController::ClassMissing(name.into()),
            },
            ..ResolvedPath::default()
        }
    }

    /// A path that begins at a Gateway, before the step of the Gateway itself.
    pub(super) fn gateway_path(&self, namespace: &Str, gateway: &GatewayNode) -> ResolvedPath {
        let class = self.classes.get(&gateway.class);
        let mut steps = Vec::with_capacity(8);
        steps.extend(class.map(|c| PathStep {
            node: c.node,
            level: Level::GatewayClass,
        }));
        ResolvedPath {
            steps,
            root: RootKind::Gateway,
            client: namespace.clone(),
            controller: gateway.controller(class),
            rule: None,
            delegates: gateway.delegates,
            delegates_only: false,
        }
    }

    fn below_gateway(
        &self,
        store: &Store,
        path: &TrafficPath<'_>,
        name: &NamespacedName,
    ) -> Result<ResolvedPath, PathErrorReason> {
        let gateway = self
            .gateways
            .get(name)
            .ok_or(PathErrorReason::GatewayNotFound)?;
        let mut resolved = self.gateway_path(&name.0, gateway);
        resolved.push(gateway.node, Level::Gateway);
        let (kind, parent, listeners) = self.listeners_of(path, name, gateway, &mut resolved)?;
        let Some(listener_name) = path.listener else {
            return Ok(resolved);
        };
        let listener = listeners.iter().find(|l| *l.name == *listener_name);
        let listener = listener.ok_or(PathErrorReason::ListenerNotFound)?;
        resolved.push(listener.node, Level::Listener);
        let Some(route) = path.first_route() else {
            return Ok(resolved);
        };
        let index = self.route(&route)?;
        if !self.is_attached(index, listener) {
            let key = route.key();
            let reason = self.parent_rejection(store, &key, kind, &parent, listener_name);
            return Err(match gateway.delegates {
                true => self.unless_delegated(index, reason),
                false => reason,
            });
        }
        self.below_route(store, path, index, resolved)
    }

    /// The kind and name of the object whose listeners a path goes through, and these listeners. Adds the
    /// step of a ListenerSet to the path.
    fn listeners_of<'t>(
        &'t self,
        path: &TrafficPath<'_>,
        gateway_name: &NamespacedName,
        gateway: &'t GatewayNode,
        resolved: &mut ResolvedPath,
    ) -> Result<(&'static str, NamespacedName, &'t [ListenerNode]), PathErrorReason> {
        let Some(step) = path.listener_set else {
            return Ok(("Gateway", gateway_name.clone(), &gateway.listeners));
        };
        let set = gateway
            .sets
            .iter()
            .find(|s| *s.name.0 == *step.namespace && *s.name.1 == *step.name)
            .ok_or(PathErrorReason::ListenerSetNotFound)?;
        if !set.admitted {
            return Err(PathErrorReason::ListenerSetNotAllowed);
        }
        resolved.push(set.node, Level::ListenerSet);
        Ok(("ListenerSet", set.name.clone(), &set.listeners))
    }

    fn below_service(
        &self,
        store: &Store,
        path: &TrafficPath<'_>,
    ) -> Result<ResolvedPath, PathErrorReason> {
        let Root::Mesh {
            client,
            namespace,
            name,
            port,
        } = path.root
        else {
            return Err(PathErrorReason::NotAPath);
        };
        // A Service that is not a mesh root fails with NoMatchingParent (specification 11.4).
        let root = self.roots.get(&(namespace.into(), name.into()));
        let root = root.ok_or(PathErrorReason::NoMatchingParent)?;
        let has_own_paths =
            root.consumers.contains_key(client) || root.policy_clients.contains(client);
        // Clients of any other namespace take the paths of `*` (specification 1.3).
        let client = if has_own_paths { client } else { "*" };
        let mut resolved = ResolvedPath {
            root: RootKind::Mesh,
            client: client.into(),
            ..ResolvedPath::default()
        };
        resolved.push(root.node, Level::Gateway);
        if let Some(port) = port {
            let node = root
                .ports
                .get(&port)
                .ok_or(PathErrorReason::NoMatchingParent)?;
            resolved.push(*node, Level::Listener);
        }
        let Some(route) = path.first_route() else {
            return Ok(resolved);
        };
        let index = self.route(&route)?;
        if !root.routes(client, port).contains(&index) {
            return Err(PathErrorReason::NoMatchingParent);
        }
        self.below_route(store, path, index, resolved)
    }

    fn route(&self, step: &RouteStep<'_>) -> Result<usize, PathErrorReason> {
        let number = self.routes.number(&step.key());
        number.ok_or(PathErrorReason::RouteNotFound)
    }

    /// The reason why a route that names no such parent has no path there: a rule may delegate to it
    /// (specification 1.8).
    fn unless_delegated(&self, route: usize, reason: PathErrorReason) -> PathErrorReason {
        let node = self.routes.get(route).map(|route| route.node);
        match node.is_some_and(|node| self.delegations.has_unfollowed_route(node)) {
            true if reason == PathErrorReason::NoMatchingParent => {
                PathErrorReason::DelegationNotFollowed
            }
            _ => reason,
        }
    }

    fn below_route(
        &self,
        store: &Store,
        path: &TrafficPath<'_>,
        index: usize,
        mut resolved: ResolvedPath,
    ) -> Result<ResolvedPath, PathErrorReason> {
        let route = self.child_route(store, path, index, &mut resolved)?;
        resolved.push(route.node, Level::Route);
        let Some(step) = path.rule else {
            return Ok(resolved);
        };
        let (index, rule) = route.rule(step).ok_or(PathErrorReason::RuleNotFound)?;
        resolved.rule = u32::try_from(index).ok();
        resolved.push(rule.node, Level::RouteRule);
        let Some(step) = path.backend else {
            resolved.delegates_only =
                resolved.delegates && self.delegations.delegates_only(rule.node);
            return Ok(resolved);
        };
        let backend = self.backend_of(store, rule, &step, resolved.root)?;
        if resolved.delegates && !self.has_backend(rule, backend) {
            return Err(PathErrorReason::NotAPath);
        }
        if let Some(reference) = backend.reference {
            resolved.push(reference, Level::Backend);
        }
        resolved.push(backend.node, Level::Backend);
        let Some(port) = path.port else {
            return Ok(resolved);
        };
        let found = backend.ports.iter().find(|(number, _)| *number == port);
        let (_, node) = found.ok_or(PathErrorReason::PortNotFound)?;
        resolved.push(*node, Level::BackendPort);
        Ok(resolved)
    }

    /// The last route on a path that begins at the route with an index. Adds the steps of the rules that delegate
    /// on the way (specification 1.8).
    fn child_route(
        &self,
        store: &Store,
        path: &TrafficPath<'_>,
        first: usize,
        resolved: &mut ResolvedPath,
    ) -> Result<&RouteNode, PathErrorReason> {
        let at = |index| {
            let route = self.routes.get(index);
            route.ok_or(PathErrorReason::RouteNotFound)
        };
        let mut route = at(first)?;
        let above = path.delegating.iter();
        let next = above.clone().skip(1).map(|(route, _)| route);
        for ((_, rule), child) in above.zip(next.chain(path.route)) {
            let (index, rule) = route.rule(rule).ok_or(PathErrorReason::RuleNotFound)?;
            resolved.push(route.node, Level::Route);
            resolved.push(rule.node, Level::RouteRule);
            let child = self.route(&child)?;
            if !resolved.delegates {
                return Err(PathErrorReason::NotAPath);
            }
            if let Some(reason) = self.delegation_refusal(store, (route, index), child) {
                return Err(reason);
            }
            route = at(child)?;
        }
        Ok(route)
    }

    fn backend_of<'r>(
        &self,
        store: &Store,
        rule: &'r RuleNode,
        step: &BackendStep<'_>,
        root: RootKind,
    ) -> Result<&'r BackendNode, PathErrorReason> {
        let kind = GroupKind::parse_short(step.kind);
        let is_service = kind.is(groups::CORE, "Service");
        let key = NodeKey::whole(ObjectKey::new(kind, step.namespace, step.name));
        let node = self.node(&key);
        let backend = node.and_then(|n| rule.backends.iter().find(|b| b.node == n));
        match backend {
            Some(backend) => match backend.reason(root) {
                Some(reason) => Err(reason),
                None => Ok(backend),
            },
            // The object may exist, but this rule does not name it.
            None if !is_service => Err(PathErrorReason::NotAPath),
            None if service(store, step.namespace, step.name).is_some() => {
                Err(PathErrorReason::NotAPath)
            }
            None => Err(PathErrorReason::BackendNotFound),
        }
    }
}

impl RouteNode {
    /// Finds a rule by name or index.
    fn rule(&self, step: RuleStep<'_>) -> Option<(usize, &RuleNode)> {
        match step {
            RuleStep::Index(index) => {
                let index = index as usize;
                self.rules.get(index).map(|rule| (index, rule))
            }
            RuleStep::Name(name) => {
                let mut rules = self.rules.iter().enumerate();
                rules.find(|(_, rule)| rule.name.as_deref() == Some(name))
            }
        }
    }
}

impl ResolvedPath {
    fn push(&mut self, node: super::NodeId, level: Level) {
        self.steps.push(PathStep { node, level });
    }

    /// The Gateway or mesh root on the path, if there is one.
    pub fn ancestor(&self) -> Option<super::NodeId> {
        let root = self.steps.iter().find(|step| step.level == Level::Gateway);
        root.map(|step| step.node)
    }

    /// The level of the last step. A rule that only delegates counts as a part of its route (specification 1.8).
    pub fn end(&self) -> Level {
        match self.delegates_only {
            true => Level::Route,
            false => self.steps.last().map_or(Level::Root, |step| step.level),
        }
    }
}

impl BackendNode {
    /// The reason why no path below a root of this kind leads to the backend, if there is one. Mesh paths
    /// need no ReferenceGrant (specification 1.4). A missing Service in another namespace without a grant
    /// is RefNotPermitted (specification 11.4).
    pub(super) fn reason(&self, root: RootKind) -> Option<crate::model::PathErrorReason> {
        let refused = self.refused.filter(|_| root != RootKind::Mesh);
        refused.or(self.missing)
    }
}
