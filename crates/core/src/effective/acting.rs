//! Finds the objects that act on paths: what a part of the world needs so that answers there stay the same.

use std::collections::BTreeSet;

use super::World;
use crate::model::{GroupKind, Level, NodeKey, ObjectKey, Section, groups};
use crate::store::Projection;
use crate::topology::{NodeId, PathStep};

/// The objects that act on paths.
#[derive(Clone, Debug, Default)]
pub struct ActingObjects {
    /// The objects.
    pub objects: BTreeSet<ObjectKey>,
    /// Those that policies name in their rules, whether they exist or not.
    pub named: BTreeSet<ObjectKey>,
}

/// Collects the objects that act on paths through some nodes.
struct Collector<'w> {
    world: &'w World,
    nodes: BTreeSet<NodeId>,
    objects: BTreeSet<ObjectKey>,
    named: BTreeSet<ObjectKey>,
}

impl World {
    /// Returns the objects that act on paths through some nodes: the objects of the nodes with their GatewayClasses,
    /// waypoints and Namespaces, the policies that are attached to them, accepted or not, and the objects that these
    /// policies name. Also returns the Routes that keep a listener from a Route of which `sees` is true. Answers on
    /// these paths are the same in a world that has no others, apart from grants, CRDs, profiles and aliases of
    /// controllers.
    pub fn acting_objects(
        &self,
        nodes: impl IntoIterator<Item = NodeId>,
        sees: &dyn Fn(&ObjectKey) -> bool,
    ) -> ActingObjects {
        let mut collector = Collector {
            world: self,
            nodes: BTreeSet::new(),
            objects: BTreeSet::new(),
            named: BTreeSet::new(),
        };
        let root = self.topology.node(&NodeKey::root());
        for node in root.into_iter().chain(nodes) {
            collector.add(node);
        }
        collector.add_rivals(sees);
        collector.add_policies();
        ActingObjects {
            objects: collector.objects,
            named: collector.named,
        }
    }
}

impl Collector<'_> {
    /// Adds a node, and all others that stand above it or decide about it.
    fn add(&mut self, node: NodeId) {
        let mut pending = vec![node];
        while let Some(node) = pending.pop() {
            if !self.nodes.insert(node) {
                continue;
            }
            let topology = &self.world.topology;
            let key = topology.key(node);
            self.objects.insert(key.object.clone());
            pending.extend(topology.namespace(&key.object.namespace));
            match &key.section {
                None => pending.extend(self.above(&key.object)),
                Some(section) => {
                    let whole = NodeKey::whole(key.object.clone());
                    pending.extend(topology.node(&whole));
                    if let Section::Rule(_) = section {
                        pending.extend(self.delegated(node));
                    }
                }
            }
        }
    }

    /// The GatewayClass of a Gateway, the Gateway of a ListenerSet, and the Gateways that may be waypoints of a
    /// Service. Adds those that have no node to the objects.
    fn above(&mut self, object: &ObjectKey) -> Vec<NodeId> {
        let gateway = |kind| GroupKind::new(groups::GATEWAY, kind);
        let projection = self.world.store.get(object).map(|entry| &entry.projection);
        let above: Vec<ObjectKey> = match projection {
            Some(Projection::Gateway(found)) => {
                vec![ObjectKey::new(
                    gateway("GatewayClass"),
                    "",
                    found.class.clone(),
                )]
            }
            Some(Projection::ListenerSet(set)) => {
                let names = set.gateway.iter();
                names
                    .map(|(ns, name)| ObjectKey::new(gateway("Gateway"), ns.clone(), name.clone()))
                    .collect()
            }
            _ if object.kind.is(groups::CORE, "Service") => {
                let service = (object.namespace.clone(), object.name.clone());
                let names = self.world.waypoints_named(&service).into_iter();
                names
                    .map(|(ns, name)| ObjectKey::new(gateway("Gateway"), ns, name))
                    .collect()
            }
            _ => Vec::new(),
        };
        let topology = &self.world.topology;
        let nodes = above
            .iter()
            .filter_map(|key| topology.node(&NodeKey::whole(key.clone())));
        let nodes = nodes.collect();
        self.objects.extend(above);
        nodes
    }

    /// The nodes below a rule that delegates to them without being followed: answers name the policies there
    /// (specification 1.8).
    fn delegated(&self, rule: NodeId) -> Vec<NodeId> {
        let topology = &self.world.topology;
        let delegations = &topology.delegations;
        let Some(delegation) = delegations.of_rule(rule).and_then(|id| delegations.get(id)) else {
            return Vec::new();
        };
        let step = PathStep {
            node: rule,
            level: Level::RouteRule,
        };
        let mut kinds = self.world.kinds.iter();
        let is_unknown = !delegations.is_followed(rule)
            || kinds.any(|kind| self.world.delegation_at(kind, step).is_some());
        let steps = delegation.steps.iter().filter(|_| is_unknown);
        steps.map(|step| step.node).collect()
    }

    /// Adds the Routes that took a listener from a Route of which `sees` is true.
    fn add_rivals(&mut self, sees: &dyn Fn(&ObjectKey) -> bool) {
        let topology = &self.world.topology;
        let displaced = topology.displaced_routes();
        let lost: BTreeSet<NodeId> = displaced
            .filter(|(_, route)| sees(route))
            .map(|(listener, _)| listener)
            .collect();
        if lost.is_empty() {
            return;
        }
        for (listener, routes) in topology.attached_routes() {
            let streams = routes
                .into_iter()
                .filter(|route| matches!(&*route.kind.kind, "TLSRoute" | "TCPRoute" | "UDPRoute"));
            if lost.contains(&listener) {
                self.objects.extend(streams.cloned());
                self.objects.insert(topology.key(listener).object.clone());
            }
        }
    }

    /// Adds the policies on the nodes, and the objects that they name.
    fn add_policies(&mut self) {
        for kind in &self.world.kinds {
            for (slot, policy) in kind.policies() {
                let references = kind.attached(slot).into_iter().flat_map(|a| &a.references);
                let mut attached = references.flat_map(|r| &r.nodes).map(|(key, _)| key);
                let points = kind.table.attachment_points.get(slot);
                let mut points = points.into_iter().flat_map(|points| points.iter());
                let topology = &self.world.topology;
                let acts = |key: &NodeKey| {
                    let node = topology.node(key);
                    node.is_some_and(|node| self.nodes.contains(&node))
                };
                if attached.any(acts) || points.any(|point| acts(&point.0)) {
                    self.objects.insert(policy.key.clone());
                    self.objects.extend(policy.named_objects.iter().cloned());
                    self.named.extend(policy.named_objects.iter().cloned());
                }
            }
        }
    }
}
