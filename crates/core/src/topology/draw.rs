//! Draws the plan of a topology.

use hashbrown::HashMap;

use super::mesh::MeshRoot;
use super::plan::{PlaceId, Plan, RootPlace};
use super::step::Step;
use super::{BackendNode, ListenerNode, RuleNode, Topology, TrailRoot};
use crate::model::{GroupKind, Level, Str};

/// A plan in the making: what is below a route is drawn once for Gateways and once for mesh roots,
/// which need no grants.
struct Draft<'t> {
    topology: &'t Topology,
    /// The names of kinds in paths.
    kinds: &'t HashMap<&'t GroupKind, Str>,
    plan: Plan,
    below_gateways: Vec<Option<PlaceId>>,
    below_services: Vec<Option<PlaceId>>,
}

impl Topology {
    /// The plan of all paths.
    pub fn plan(&self) -> Plan {
        let mut kinds: HashMap<&GroupKind, Str> = HashMap::new();
        for key in &self.nodes {
            let kind = &key.object.kind;
            kinds.entry(kind).or_insert_with(|| kind.short_name());
        }
        let mut draft = Draft {
            topology: self,
            kinds: &kinds,
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
            let id = draft.plan.add((node, Level::Namespace), &[]);
            let root = RootPlace {
                kind: TrailRoot::Namespace,
                class: None,
                controller: None,
                client: Str::default(),
            };
            draft.plan.add_root(Step::Namespace(name), id, root);
        }
        draft.plan.shrink();
        draft.plan
    }
}

impl<'t> Draft<'t> {
    fn short(&self, kind: &GroupKind) -> &'t str {
        self.kinds.get(kind).map_or("", |name| &**name)
    }

    fn classes(&mut self) {
        for (name, class) in &self.topology.classes {
            let id = self.plan.add((class.node, Level::GatewayClass), &[]);
            let root = RootPlace {
                kind: TrailRoot::GatewayClass,
                class: None,
                controller: Some(class.controller.clone()),
                client: Str::default(),
            };
            self.plan.add_root(Step::GatewayClass(name), id, root);
        }
    }

    fn gateways(&mut self) {
        for (name, gateway) in &self.topology.gateways {
            let mut below = self.listeners(&gateway.listeners);
            for set in gateway.sets.iter().filter(|set| set.admitted) {
                let listeners = self.listeners(&set.listeners);
                let id = self.plan.add((set.node, Level::ListenerSet), &listeners);
                below.push((Step::ListenerSet(&set.name.0, &set.name.1), id));
            }
            let id = self.plan.add((gateway.node, Level::Gateway), &below);
            let class = self.topology.classes.get(&gateway.class);
            let root = RootPlace {
                kind: TrailRoot::Gateway,
                class: class.map(|class| class.node),
                // A Gateway whose class is missing has no controller (SEMANTICS §11.2).
                controller: class.map(|class| class.controller.clone()),
                client: name.0.clone(),
            };
            let step = Step::Gateway(&name.0, &name.1);
            self.plan.add_root(step, id, root);
        }
    }

    fn listeners(&mut self, listeners: &'t [ListenerNode]) -> Vec<(Step<'t>, PlaceId)> {
        let mut found = Vec::with_capacity(listeners.len());
        for listener in listeners {
            let routes = self.routes(&listener.routes, TrailRoot::Gateway);
            let id = self.plan.add((listener.node, Level::Listener), &routes);
            found.push((Step::Listener(&listener.name), id));
        }
        found
    }

    fn mesh(&mut self, name: &(Str, Str), root: &MeshRoot, client: Str) {
        let mut below = self.routes(&root.routes(&client, None), TrailRoot::Mesh);
        for (&port, &node) in &root.ports {
            let routes = self.routes(&root.routes(&client, Some(port)), TrailRoot::Mesh);
            let id = self.plan.add((node, Level::Listener), &routes);
            below.push((Step::Port(port), id));
        }
        let id = self.plan.add((root.node, Level::Gateway), &below);
        let step = Step::Service(&name.0, &name.1, &client);
        let root = RootPlace {
            kind: TrailRoot::Mesh,
            class: None,
            controller: None,
            client: client.clone(),
        };
        self.plan.add_root(step, id, root);
    }

    fn routes(&mut self, routes: &[usize], root: TrailRoot) -> Vec<(Step<'t>, PlaceId)> {
        let topology = self.topology;
        let mut found = Vec::with_capacity(routes.len());
        for &index in routes {
            let Some(route) = topology.routes.get(index) else {
                continue;
            };
            let object = &route.key;
            let short = self.short(&object.kind);
            let step = Step::Route(short, &object.namespace, &object.name);
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
            below.extend(rule.name.as_deref().map(|name| (Step::RuleName(name), id)));
        }
        let node = route.map(|route| route.node);
        let node = node.unwrap_or(super::NodeId(u32::MAX));
        let id = self.plan.add((node, Level::Route), &below);
        let drawn = match root {
            TrailRoot::Mesh => &mut self.below_services,
            _ => &mut self.below_gateways,
        };
        if let Some(place) = drawn.get_mut(index) {
            *place = Some(id);
        }
        id
    }

    fn rule(&mut self, rule: &'t RuleNode, root: TrailRoot) -> PlaceId {
        let below: Vec<_> = rule
            .backends
            .iter()
            .filter(|backend| backend.reason(root).is_none())
            .map(|backend| self.backend(backend))
            .collect();
        self.plan.add((rule.node, Level::RouteRule), &below)
    }

    fn backend(&mut self, backend: &'t BackendNode) -> (Step<'t>, PlaceId) {
        let mut below = Vec::with_capacity(backend.ports.len());
        for &(port, node) in &backend.ports {
            let id = self.plan.add((node, Level::BackendPort), &[]);
            below.push((Step::Port(port), id));
        }
        let id = self.plan.add((backend.node, Level::Backend), &below);
        let key = &self.topology.key(backend.node).object;
        let step = Step::Backend(self.short(&key.kind), &key.namespace, &key.name);
        (step, id)
    }
}
