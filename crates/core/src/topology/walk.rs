//! Walks every path of a topology without the trie, each prefix once, in a fixed order. Tests compare the
//! trie with it.

use std::fmt::Write;

use super::{
    BackendNode, GatewayNode, ListenerNode, NodeId, PathStep, ResolvedPath, RootKind, Topology,
};
use crate::model::{Level, Str};

/// A function that is called for each path with its name and steps.
pub type Visitor<'v> = dyn FnMut(&str, &ResolvedPath) + 'v;

/// A walk in progress, with the name and the steps of the current path.
struct Walker<'t, 'v> {
    topology: &'t Topology,
    name: String,
    resolved: ResolvedPath,
    visit: &'v mut Visitor<'v>,
}

impl Topology {
    /// Visits every path that has a name (specification 1.6). Rules that have a name are written by name.
    pub fn visit<'v>(&self, visit: &'v mut Visitor<'v>) {
        let mut walker = Walker {
            topology: self,
            name: String::new(),
            resolved: ResolvedPath::default(),
            visit,
        };
        for (name, class) in &*self.classes {
            walker.resolved = self.class_path(name);
            walker.descend(
                "gatewayclasses/",
                name,
                class.node,
                Level::GatewayClass,
                |_| {},
            );
        }
        for (name, gateway) in &*self.gateways {
            walker.resolved = self.gateway_path(&name.0, gateway);
            walker.name.clear();
            // Writing to a String does not fail.
            let _ = write!(walker.name, "gateways/{}/{}", name.0, name.1);
            walker.gateway(gateway);
        }
        for (name, root) in &*self.roots {
            let star: Str = "*".into();
            for client in std::iter::once(star).chain(root.clients()) {
                walker.name.clear();
                let _ = write!(walker.name, "mesh/{client}/services/{}/{}", name.0, name.1);
                walker.resolved = ResolvedPath {
                    root: RootKind::Mesh,
                    client,
                    ..ResolvedPath::default()
                };
                walker.mesh(root);
            }
        }
        for (name, &node) in &*self.namespaces {
            walker.resolved = ResolvedPath {
                root: RootKind::Namespace,
                ..ResolvedPath::default()
            };
            walker.descend("namespaces/", name, node, Level::Namespace, |_| {});
        }
    }
}

impl Walker<'_, '_> {
    /// Adds one step, visits the path, calls `below`, and removes the step.
    fn descend(
        &mut self,
        prefix: &str,
        name: &str,
        node: NodeId,
        level: Level,
        below: impl FnOnce(&mut Self),
    ) {
        if self.resolved.steps.is_empty() && matches!(level, Level::GatewayClass | Level::Namespace)
        {
            self.name.clear();
        }
        let length = self.name.len();
        self.name.push_str(prefix);
        self.name.push_str(name);
        self.step(node, level, below);
        self.name.truncate(length);
    }

    fn step(&mut self, node: NodeId, level: Level, below: impl FnOnce(&mut Self)) {
        self.resolved.steps.push(PathStep { node, level });
        self.resolved.delegates_only =
            self.resolved.delegates && self.topology.delegations.delegates_only(node);
        (self.visit)(&self.name, &self.resolved);
        below(self);
        self.resolved.steps.pop();
    }

    fn gateway(&mut self, gateway: &GatewayNode) {
        self.step(gateway.node, Level::Gateway, |walker| {
            for listener in &gateway.listeners {
                walker.listener(listener);
            }
            for set in gateway.sets.iter().filter(|set| set.admitted) {
                let name = format!("{}/{}", set.name.0, set.name.1);
                walker.descend("/listenersets/", &name, set.node, Level::ListenerSet, |w| {
                    for listener in &set.listeners {
                        w.listener(listener);
                    }
                });
            }
        });
    }

    fn listener(&mut self, listener: &ListenerNode) {
        self.descend(
            "/listeners/",
            &listener.name,
            listener.node,
            Level::Listener,
            |walker| {
                let routes: Vec<usize> = walker
                    .topology
                    .routes_of(listener)
                    .iter()
                    .copied()
                    .collect();
                walker.routes(&routes);
            },
        );
    }

    fn mesh(&mut self, root: &super::mesh::MeshRoot) {
        let client = self.resolved.client.clone();
        self.step(root.node, Level::Gateway, |walker| {
            walker.routes(&root.routes(&client, None));
            for (&port, &node) in &root.ports {
                walker.descend("/ports/", &port.to_string(), node, Level::Listener, |w| {
                    w.routes(&root.routes(&client, Some(port)));
                });
            }
        });
    }

    fn routes(&mut self, routes: &[usize]) {
        let topology = self.topology;
        for route in routes.iter().filter_map(|&r| topology.routes.get(r)) {
            let key = &route.key;
            let name = format!("{}/{}/{}", key.kind.short(), key.namespace, key.name);
            let above = self.resolved.rule.take();
            self.descend("/routes/", &name, route.node, Level::Route, |walker| {
                for (index, rule) in route.rules.iter().enumerate() {
                    let name = match &rule.name {
                        Some(name) => name.to_string(),
                        None => format!("#{index}"),
                    };
                    walker.resolved.rule = u32::try_from(index).ok();
                    walker.descend("/rules/", &name, rule.node, Level::RouteRule, |w| {
                        let delegates = w.resolved.delegates;
                        for backend in &*rule.backends {
                            if !delegates || topology.has_backend(rule, backend) {
                                w.backend(backend);
                            }
                        }
                        if delegates {
                            w.routes(&rule.children);
                        }
                    });
                }
            });
            self.resolved.rule = above;
        }
    }

    fn backend(&mut self, backend: &BackendNode) {
        if backend.reason(self.resolved.root).is_some() {
            return;
        }
        let topology = self.topology;
        let key = &topology.key(backend.node).object;
        let name = format!("{}/{}/{}", key.kind.short(), key.namespace, key.name);
        let reference = backend.reference.map(|node| PathStep {
            node,
            level: Level::Backend,
        });
        // The backendRef has no name of its own: it is passed on the way to the backend.
        self.resolved.steps.extend(reference);
        self.descend(
            "/backends/",
            &name,
            backend.node,
            Level::Backend,
            |walker| {
                for (port, node) in &backend.ports {
                    walker.descend(
                        "/ports/",
                        &port.to_string(),
                        *node,
                        Level::BackendPort,
                        |_| {},
                    );
                }
            },
        );
        if reference.is_some() {
            self.resolved.steps.pop();
        }
    }
}
