//! Draws the plan of a topology.

use super::mesh::MeshRoot;
use super::plan::{PlaceId, Plan, RootPlace, Step};
use super::{BackendNode, ListenerNode, RuleNode, Topology, TrailRoot};
use crate::model::{Level, Str};

/// A plan in the making: what is below a route is drawn once for Gateways and once for mesh roots,
/// which need no grants.
struct Draft<'t> {
    topology: &'t Topology,
    plan: Plan,
    below_gateways: Vec<Option<PlaceId>>,
    below_services: Vec<Option<PlaceId>>,
}

impl Topology {
    /// The plan of all paths.
    pub fn plan(&self) -> Plan {
        let mut draft = Draft {
            topology: self,
            plan: Plan::default(),
            below_gateways: vec![None; self.routes.len()],
            below_services: vec![None; self.routes.len()],
        };
        draft.classes();
        draft.gateways();
        for (name, root) in &self.roots {
            let star: Str = "*".into();
            for client in std::iter::once(star).chain(root.clients()) {
                draft.mesh(name, root, client);
            }
        }
        for (name, &node) in &self.namespaces {
            let id = draft.plan.add((node, Level::Namespace), Vec::new());
            let root = RootPlace {
                kind: TrailRoot::Namespace,
                class: None,
                controller: None,
                client: Str::default(),
            };
            draft.plan.add_root(Step::Namespace(name.clone()), id, root);
        }
        draft.plan.shrink();
        draft.plan
    }
}

impl Draft<'_> {
    fn classes(&mut self) {
        for (name, class) in &self.topology.classes {
            let id = self.plan.add((class.node, Level::GatewayClass), Vec::new());
            let root = RootPlace {
                kind: TrailRoot::GatewayClass,
                class: None,
                controller: Some(class.controller.clone()),
                client: Str::default(),
            };
            self.plan
                .add_root(Step::GatewayClass(name.clone()), id, root);
        }
    }

    fn gateways(&mut self) {
        for (name, gateway) in &self.topology.gateways {
            let mut below = self.listeners(&gateway.listeners);
            for set in gateway.sets.iter().filter(|set| set.admitted) {
                let listeners = self.listeners(&set.listeners);
                let id = self.plan.add((set.node, Level::ListenerSet), listeners);
                below.push((
                    Step::ListenerSet(set.name.0.clone(), set.name.1.clone()),
                    id,
                ));
            }
            let id = self.plan.add((gateway.node, Level::Gateway), below);
            let class = self.topology.classes.get(&gateway.class);
            let root = RootPlace {
                kind: TrailRoot::Gateway,
                class: class.map(|class| class.node),
                // A Gateway whose class is missing has no controller (SEMANTICS §11.2).
                controller: class.map(|class| class.controller.clone()),
                client: name.0.clone(),
            };
            let step = Step::Gateway(name.0.clone(), name.1.clone());
            self.plan.add_root(step, id, root);
        }
    }

    fn listeners(&mut self, listeners: &[ListenerNode]) -> Vec<(Step<Str>, PlaceId)> {
        let mut found = Vec::with_capacity(listeners.len());
        for listener in listeners {
            let routes = self.routes(&listener.routes, TrailRoot::Gateway);
            let id = self.plan.add((listener.node, Level::Listener), routes);
            found.push((Step::Listener(listener.name.clone()), id));
        }
        found
    }

    fn mesh(&mut self, name: &(Str, Str), root: &MeshRoot, client: Str) {
        let mut below = self.routes(&root.routes(&client, None), TrailRoot::Mesh);
        for (&port, &node) in &root.ports {
            let routes = self.routes(&root.routes(&client, Some(port)), TrailRoot::Mesh);
            let id = self.plan.add((node, Level::Listener), routes);
            below.push((Step::Port(port), id));
        }
        let id = self.plan.add((root.node, Level::Gateway), below);
        let step = Step::Service(name.0.clone(), name.1.clone(), client.clone());
        let root = RootPlace {
            kind: TrailRoot::Mesh,
            class: None,
            controller: None,
            client,
        };
        self.plan.add_root(step, id, root);
    }

    fn routes(&mut self, routes: &[usize], root: TrailRoot) -> Vec<(Step<Str>, PlaceId)> {
        let topology = self.topology;
        let mut found = Vec::with_capacity(routes.len());
        for &index in routes {
            let Some(route) = topology.routes.get(index) else {
                continue;
            };
            let (object, short) = (&route.key, route.key.kind.short_name());
            let step = Step::Route(short, object.namespace.clone(), object.name.clone());
            found.push((step, self.route(index, root)));
        }
        found
    }

    fn route(&mut self, index: usize, root: TrailRoot) -> PlaceId {
        let drawn = match root {
            TrailRoot::Mesh => &self.below_services,
            _ => &self.below_gateways,
        };
        if let Some(Some(id)) = drawn.get(index) {
            return *id;
        }
        let topology = self.topology;
        let route = topology.routes.get(index);
        let mut below = Vec::new();
        for (number, rule) in (0_u32..).zip(route.iter().flat_map(|route| &route.rules)) {
            let id = self.rule(rule, root);
            below.push((Step::RuleIndex(number), id));
            below.extend(rule.name.clone().map(|name| (Step::RuleName(name), id)));
        }
        let node = route.map(|route| route.node);
        let node = node.unwrap_or(super::NodeId(u32::MAX));
        let id = self.plan.add((node, Level::Route), below);
        let drawn = match root {
            TrailRoot::Mesh => &mut self.below_services,
            _ => &mut self.below_gateways,
        };
        if let Some(place) = drawn.get_mut(index) {
            *place = Some(id);
        }
        id
    }

    fn rule(&mut self, rule: &RuleNode, root: TrailRoot) -> PlaceId {
        let below = rule
            .backends
            .iter()
            .filter(|backend| backend.reason(root).is_none())
            .map(|backend| self.backend(backend))
            .collect();
        self.plan.add((rule.node, Level::RouteRule), below)
    }

    fn backend(&mut self, backend: &BackendNode) -> (Step<Str>, PlaceId) {
        let mut below = Vec::with_capacity(backend.ports.len());
        for &(port, node) in &backend.ports {
            let id = self.plan.add((node, Level::BackendPort), Vec::new());
            below.push((Step::Port(port), id));
        }
        let id = self.plan.add((backend.node, Level::Backend), below);
        let key = &self.topology.key(backend.node).object;
        let step = Step::Backend(
            key.kind.short_name(),
            key.namespace.clone(),
            key.name.clone(),
        );
        (step, id)
    }
}
