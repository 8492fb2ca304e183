//! Finds the trail of a path's name, or says the first step that fails (SEMANTICS §1.4).

use super::build::service;
use super::{
    BackendNode, GatewayNode, ListenerNode, RouteNode, RuleNode, Step, Topology, Trail, TrailRoot,
};
use crate::model::{
    BackendStep, GroupKind, Level, NodeKey, ObjectKey, PathName, PathReason, Root, RouteStep,
    RuleStep, Walk, groups,
};
use crate::store::{Name, Store};

impl Topology {
    /// The trail of a path.
    ///
    /// # Errors
    /// The first step that fails.
    pub fn locate(&self, store: &Store, path: &PathName<'_>) -> Result<Trail, PathReason> {
        match path {
            PathName::GatewayClass(name) => {
                let class = self.classes.get(*name);
                let class = class.ok_or(PathReason::GatewayClassNotFound)?;
                let mut trail = self.class_trail(name);
                trail.push(class.node, Level::GatewayClass);
                Ok(trail)
            }
            PathName::Namespace(name) => {
                let node = self.namespaces.get(*name).copied();
                let mut trail = Trail {
                    root: TrailRoot::Namespace,
                    ..Trail::default()
                };
                trail.push(node.ok_or(PathReason::NamespaceNotFound)?, Level::Namespace);
                Ok(trail)
            }
            PathName::Walk(walk) => match walk.root {
                Root::Gateway { namespace, name } => {
                    self.below_gateway(store, walk, &(namespace.into(), name.into()))
                }
                Root::Mesh { .. } => self.below_service(store, walk),
            },
        }
    }

    fn below_gateway(
        &self,
        store: &Store,
        walk: &Walk<'_>,
        name: &Name,
    ) -> Result<Trail, PathReason> {
        let gateway = self.gateways.get(name).ok_or(PathReason::GatewayNotFound)?;
        let mut trail = self.gateway_trail(&name.0, gateway);
        trail.push(gateway.node, Level::Gateway);
        let (kind, parent, listeners) = self.listeners_of(walk, name, gateway, &mut trail)?;
        let Some(wanted) = walk.listener else {
            return Ok(trail);
        };
        let listener = listeners.iter().find(|l| *l.name == *wanted);
        let listener = listener.ok_or(PathReason::ListenerNotFound)?;
        trail.push(listener.node, Level::Listener);
        let Some(route) = walk.route else {
            return Ok(trail);
        };
        let index = self.route(&route)?;
        if !listener.routes.contains(&index) {
            let key = route_key(&route);
            return Err(self.why_not_joined(store, &key, kind, &parent, wanted));
        }
        self.below_route(store, walk, index, trail)
    }

    /// The listeners that a walk goes through, and the object that they belong to.
    fn listeners_of<'t>(
        &'t self,
        walk: &Walk<'_>,
        gateway_name: &Name,
        gateway: &'t GatewayNode,
        trail: &mut Trail,
    ) -> Result<(&'static str, Name, &'t [ListenerNode]), PathReason> {
        let Some(step) = walk.listener_set else {
            return Ok(("Gateway", gateway_name.clone(), &gateway.listeners));
        };
        let set = gateway
            .sets
            .iter()
            .find(|s| *s.name.0 == *step.namespace && *s.name.1 == *step.name)
            .ok_or(PathReason::ListenerSetNotFound)?;
        if !set.admitted {
            return Err(PathReason::ListenerSetNotAllowed);
        }
        trail.push(set.node, Level::ListenerSet);
        Ok(("ListenerSet", set.name.clone(), &set.listeners))
    }

    fn below_service(&self, store: &Store, walk: &Walk<'_>) -> Result<Trail, PathReason> {
        let Root::Mesh {
            client,
            namespace,
            name,
            port,
        } = walk.root
        else {
            return Err(PathReason::NotAPath);
        };
        // A Service that is no mesh root is NoMatchingParent (SEMANTICS §11.4).
        let root = self.roots.get(&(namespace.into(), name.into()));
        let root = root.ok_or(PathReason::NoMatchingParent)?;
        let apart = root.consumers.contains_key(client) || root.apart.contains(client);
        // Looking up any other namespace answers as `*` (SEMANTICS §1.3).
        let client = if apart { client } else { "*" };
        let mut trail = Trail {
            root: TrailRoot::Mesh,
            client: client.into(),
            ..Trail::default()
        };
        trail.push(root.node, Level::Gateway);
        if let Some(port) = port {
            let node = root.ports.get(&port).ok_or(PathReason::NoMatchingParent)?;
            trail.push(*node, Level::Listener);
        }
        let Some(route) = walk.route else {
            return Ok(trail);
        };
        let index = self.route(&route)?;
        if !root.routes(client, port).contains(&index) {
            return Err(PathReason::NoMatchingParent);
        }
        self.below_route(store, walk, index, trail)
    }

    fn route(&self, step: &RouteStep<'_>) -> Result<usize, PathReason> {
        let index = self.route_index.get(&route_key(step)).copied();
        index.ok_or(PathReason::RouteNotFound)
    }

    fn below_route(
        &self,
        store: &Store,
        walk: &Walk<'_>,
        index: usize,
        mut trail: Trail,
    ) -> Result<Trail, PathReason> {
        let route = self.routes.get(index).ok_or(PathReason::RouteNotFound)?;
        trail.push(route.node, Level::Route);
        let Some(step) = walk.rule else {
            return Ok(trail);
        };
        let (index, rule) = route.rule(step).ok_or(PathReason::RuleNotFound)?;
        trail.rule = u32::try_from(index).ok();
        trail.push(rule.node, Level::RouteRule);
        let Some(step) = walk.backend else {
            return Ok(trail);
        };
        let backend = self.backend_of(store, rule, &step, trail.root)?;
        trail.push(backend.node, Level::Backend);
        let Some(port) = walk.port else {
            return Ok(trail);
        };
        let found = backend.ports.iter().find(|(number, _)| *number == port);
        let (_, node) = found.ok_or(PathReason::PortNotFound)?;
        trail.push(*node, Level::BackendPort);
        Ok(trail)
    }

    fn backend_of<'r>(
        &self,
        store: &Store,
        rule: &'r RuleNode,
        step: &BackendStep<'_>,
        root: TrailRoot,
    ) -> Result<&'r BackendNode, PathReason> {
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
            // It may exist elsewhere; this rule does not name it.
            None if !is_service => Err(PathReason::NotAPath),
            None if service(store, step.namespace, step.name).is_some() => {
                Err(PathReason::NotAPath)
            }
            None => Err(PathReason::BackendNotFound),
        }
    }
}

impl RouteNode {
    /// The rule of a step, by name or index.
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

impl Trail {
    fn push(&mut self, node: super::NodeId, level: Level) {
        self.steps.push(Step { node, level });
    }

    /// The Gateway or mesh root that the trail goes through.
    pub fn ancestor(&self) -> Option<super::NodeId> {
        let root = self.steps.iter().find(|step| step.level == Level::Gateway);
        root.map(|step| step.node)
    }

    /// The level that the trail ends at.
    pub fn end(&self) -> Level {
        self.steps.last().map_or(Level::Root, |step| step.level)
    }
}

fn route_key(step: &RouteStep<'_>) -> ObjectKey {
    ObjectKey::new(GroupKind::parse_short(step.kind), step.namespace, step.name)
}
