//! Finds the objects that act on paths: what a part of the world needs so that answers there stay the same.

use std::collections::BTreeSet;

use hashbrown::HashSet;

use super::acceptance::takes_no_part;
use super::{AttachmentChain, PolicyKind, World};
use crate::model::{GroupKind, Level, NodeKey, ObjectKey, Section, Str, groups};
use crate::profile::Policy;
use crate::store::Projection;
use crate::topology::delegation::is_route_reference;
use crate::topology::{NodeId, NotFollowed, PathStep};

/// The objects that act on paths.
#[derive(Clone, Debug, Default)]
pub struct ActingObjects {
    /// The objects.
    pub objects: BTreeSet<ObjectKey>,
    /// Those that policies that act on the paths name in their rules, whether they exist or not.
    pub named: BTreeSet<ObjectKey>,
    /// The namespaces above the paths that exist, also where no object in them is among the others.
    pub namespaces: BTreeSet<Str>,
    /// The Routes that keep a listener from others, with the listener. That they do is all that acts on the paths.
    pub holders: BTreeSet<(NodeKey, ObjectKey)>,
}

/// What the answers on paths depend on, or name, besides the nodes of the paths and the policies that take part there.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerSources {
    /// The objects that policies name in their rules.
    pub named: BTreeSet<ObjectKey>,
    /// The policies that take no part and that answers name nevertheless, by the index of the kind and by slot.
    pub rejected: HashSet<(usize, usize)>,
}

/// Collects the objects that act on paths through some nodes.
struct Collector<'w> {
    world: &'w World,
    nodes: BTreeSet<NodeId>,
    /// The mesh roots of the paths.
    mesh_roots: BTreeSet<NodeId>,
    /// The nodes that only stand above waypoints. Policies there act through the kinds that have these waypoints.
    waypoints: BTreeSet<NodeId>,
    objects: BTreeSet<ObjectKey>,
    /// The policies that take no part and that answers on the paths name.
    rejected: HashSet<(usize, usize)>,
}

impl World {
    /// Returns the objects that act on paths through some nodes: the objects of the nodes with their GatewayClasses,
    /// waypoints and Namespaces, the policies that are attached to them, accepted or not (at waypoints those of kinds of
    /// which these are the waypoints; at waypoints and above all paths those that take part or that answers name), and
    /// the objects that are named by policies that act there. Also returns the Routes that decide where these paths lead:
    /// those that keep a listener from a Route of which `sees` is true, and those for which a rule that delegates is not
    /// followed. Other Routes that a rule delegates to are not among them, unless the paths go through them: answers
    /// name their policies (specification 1.8), but neither values nor paths depend on them.
    pub(crate) fn acting_objects(
        &self,
        nodes: &HashSet<PathStep>,
        AnswerSources { named, rejected }: AnswerSources,
        sees: &dyn Fn(&ObjectKey) -> bool,
    ) -> ActingObjects {
        let mut collector = Collector {
            world: self,
            nodes: BTreeSet::new(),
            mesh_roots: self.mesh_roots_of(nodes),
            waypoints: BTreeSet::new(),
            objects: named.clone(),
            rejected,
        };
        // Without a path there is nothing that policies for all objects could act on.
        let root = self.topology.node(&NodeKey::root());
        collector.extend(root.filter(|_| !nodes.is_empty()));
        let stands_for_route = |step: &&PathStep| {
            let kind = &self.topology.key(step.node).object.kind;
            step.level >= Level::Backend && is_route_reference(kind)
        };
        let (backends, others): (Vec<&PathStep>, Vec<&PathStep>) =
            nodes.iter().partition(stands_for_route);
        collector.extend(others.into_iter().map(|step| step.node));
        for step in backends {
            collector.add_reference(step.node);
        }
        collector.add_waypoint_classes();
        let holders = collector.rivals(sees);
        collector.add_policies();
        ActingObjects {
            namespaces: collector.namespaces(),
            objects: collector.objects,
            named,
            holders,
        }
    }

    /// The Services among some steps at which mesh paths begin.
    fn mesh_roots_of(&self, steps: &HashSet<PathStep>) -> BTreeSet<NodeId> {
        let is_root = |step: &&PathStep| {
            let object = &self.topology.key(step.node).object;
            step.level == Level::Gateway && object.kind.is(groups::CORE, "Service")
        };
        steps.iter().filter(is_root).map(|step| step.node).collect()
    }
}

impl Collector<'_> {
    /// The nodes of waypoints from which policies of a kind act on the paths.
    fn waypoint_nodes(&self, kind: &PolicyKind) -> BTreeSet<NodeId> {
        let roots = self.mesh_roots.iter();
        let nodes = roots.map(|root| kind.waypoint_nodes(&self.world.topology, *root));
        nodes.flatten().collect()
    }

    /// Adds a backend that stands for a Route. The path has it because a backendRef names it, whether the Route exists
    /// or not.
    fn add_reference(&mut self, backend: NodeId) {
        let topology = &self.world.topology;
        let namespace = topology.namespace(&topology.key(backend).object.namespace);
        self.extend(namespace);
        self.nodes.insert(backend);
    }

    /// Adds nodes, and all others that stand above them or decide about them.
    fn extend(&mut self, nodes: impl IntoIterator<Item = NodeId>) {
        let mut pending: Vec<NodeId> = nodes.into_iter().collect();
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
                        self.add_unfollowed(node);
                    }
                }
            }
        }
    }

    /// The Gateway of a ListenerSet. Adds it to the objects if it has no node, and the Gateways that may be waypoints of
    /// a Service.
    fn above(&mut self, object: &ObjectKey) -> Vec<NodeId> {
        let projection = self.world.store.get(object).map(|entry| &entry.projection);
        let is_service = object.kind.is(groups::CORE, "Service");
        let above: Vec<ObjectKey> = match projection {
            Some(Projection::ListenerSet(set)) => {
                let names = set.gateway.iter();
                names
                    .map(|(ns, name)| {
                        ObjectKey::new(GroupKind::gateway(), ns.clone(), name.clone())
                    })
                    .collect()
            }
            _ if is_service => {
                let service = (object.namespace.clone(), object.name.clone());
                let names = self.world.waypoints_named(&service).into_iter();
                names
                    .map(|(ns, name)| ObjectKey::new(GroupKind::gateway(), ns, name))
                    .collect()
            }
            _ => Vec::new(),
        };
        let topology = &self.world.topology;
        let nodes = above
            .iter()
            .filter_map(|key| topology.node(&NodeKey::whole(key.clone())));
        let nodes: Vec<NodeId> = nodes.collect();
        self.objects.extend(above);
        if is_service {
            self.add_waypoints(nodes);
            return Vec::new();
        }
        nodes
    }

    /// Adds Gateways or GatewayClasses of waypoints, with their Namespaces.
    fn add_waypoints(&mut self, nodes: impl IntoIterator<Item = NodeId>) {
        let topology = &self.world.topology;
        for node in nodes {
            let object = &topology.key(node).object;
            let namespace = topology.namespace(&object.namespace);
            for node in [Some(node), namespace].into_iter().flatten() {
                self.objects.insert(topology.key(node).object.clone());
                self.waypoints.insert(node);
            }
        }
    }

    /// The names of the Namespaces among the nodes.
    fn namespaces(&self) -> BTreeSet<Str> {
        let nodes = self.nodes.iter().chain(&self.waypoints);
        let objects = nodes.map(|node| &self.world.topology.key(*node).object);
        let namespaces = objects.filter(|object| object.kind.is_namespace());
        namespaces.map(|object| object.name.clone()).collect()
    }

    /// Adds the GatewayClasses of waypoints that answers on the paths depend on: those with policies that act there, and
    /// those that decide whether policies do. Answers do not tell of others, in contrast to the classes of Gateways that
    /// paths go through.
    fn add_waypoint_classes(&mut self) {
        let world = self.world;
        let topology = &world.topology;
        let root = topology.node(&NodeKey::root());
        let kinds = world.kinds.iter().enumerate();
        let kinds: Vec<(usize, &PolicyKind, BTreeSet<NodeId>, bool)> = kinds
            .filter(|(_, kind)| kind.profile.waypoints.is_some())
            .map(|(number, kind)| {
                let above = self.waypoint_nodes(kind);
                let is_root = |node: &&NodeId| Some(**node) == root;
                let mut on_paths = self.nodes.iter().filter(|node| !is_root(node));
                let mut elsewhere = self.nodes.iter().filter(is_root).chain(&above);
                let acts = on_paths.any(|node| kind.nodes.contains_key(node))
                    || elsewhere.any(|node| self.has_policies(number, kind, *node));
                (number, &**kind, above, acts)
            })
            .collect();
        let mut found: Vec<NodeId> = Vec::new();
        for node in self.nodes.iter().filter(|_| !kinds.is_empty()) {
            let NodeKey { object, section } = topology.key(*node);
            if section.is_some() || !object.kind.is(groups::CORE, "Service") {
                continue;
            }
            let service = (object.namespace.clone(), object.name.clone());
            // A Service without a path in the mesh must not get one.
            let is_root = topology.roots.contains_key(&service);
            for name in world.waypoint_classes(&service) {
                let class = topology.classes.get(&name).map(|class| class.node);
                let decides = |kind: &PolicyKind, acts: bool| {
                    (acts || !is_root) && world.decides_waypoint(kind, &service, &name)
                };
                let mut kinds = kinds.iter();
                found
                    .extend(class.filter(|_| kinds.any(|(_, kind, _, acts)| decides(kind, *acts))));
            }
        }
        for (number, kind, above, _) in &kinds {
            let above = above.iter().filter(|node| {
                let object = &topology.key(**node).object;
                object.kind.is(groups::GATEWAY, "GatewayClass")
                    && self.has_policies(*number, kind, **node)
            });
            found.extend(above);
        }
        self.add_waypoints(found);
    }

    /// Whether a node has policies of a kind, with its index, that take part or that answers on the paths name.
    fn has_policies(&self, number: usize, kind: &PolicyKind, node: NodeId) -> bool {
        kind.nodes.get(&node).is_some_and(|on_node| {
            let mut rejected = on_node.rejected.iter();
            !on_node.groups.is_empty() || rejected.any(|r| self.counts(number, kind, r.policy))
        })
    }

    /// Whether a policy takes part where it is attached, or answers on the paths name it.
    fn counts(&self, number: usize, kind: &PolicyKind, slot: usize) -> bool {
        let policy = kind.policy_at(slot);
        policy.is_some_and(|policy| !takes_no_part(policy))
            || self.rejected.contains(&(number, slot))
    }

    /// Adds the child Routes for which a rule is not followed: paths below the rule would be others without them.
    fn add_unfollowed(&mut self, rule: NodeId) {
        let topology = &self.world.topology;
        let delegations = &topology.delegations;
        let Some(why) = delegations.why_not_followed(rule) else {
            return;
        };
        let own = topology.node(&NodeKey::whole(topology.key(rule).object.clone()));
        let found = delegations.of_rule(rule).and_then(|id| delegations.get(id));
        let steps = found.into_iter().flat_map(|found| found.steps.iter());
        let routes = steps.filter(|step| step.level == Level::Route);
        let routes = routes.map(|step| &topology.key(step.node).object);
        let routes = routes.filter(|route| match why {
            NotFollowed::Circle => own.is_some_and(|own| topology.delegates_to(route, own)),
            NotFollowed::TooMany => true,
            NotFollowed::OtherKind => false,
        });
        self.objects.extend(routes.cloned());
    }

    /// Finds the Routes that took a listener from a Route of which `sees` is true. Where the listener itself is not
    /// among the objects, nothing can attach to it, so it and its Routes stay hidden.
    fn rivals(&self, sees: &dyn Fn(&ObjectKey) -> bool) -> BTreeSet<(NodeKey, ObjectKey)> {
        let topology = &self.world.topology;
        let displaced = topology.displaced_routes();
        let lost: BTreeSet<NodeId> = displaced
            .filter(|(_, route)| sees(route))
            .map(|(listener, _)| listener)
            .filter(|listener| self.objects.contains(&topology.key(*listener).object))
            .collect();
        let holders = topology.stream_holders();
        holders
            .filter(|(listener, _)| lost.contains(listener))
            .map(|(listener, route)| (topology.key(listener).clone(), route.clone()))
            .collect()
    }

    /// Adds the policies on the nodes. What is attached to the nodes that paths go through is part of the topology. What
    /// is attached to waypoints, or above all paths, is only part of answers.
    fn add_policies(&mut self) {
        let root = self.world.topology.node(&NodeKey::root());
        for (number, kind) in self.world.kinds.iter().enumerate() {
            let at_waypoints = self.waypoint_nodes(kind);
            for (slot, policy) in kind.policies() {
                let references = kind.attached(slot).into_iter().flat_map(|a| &a.references);
                let mut attached = references.flat_map(|r| &r.nodes).map(|(key, _)| key);
                let points = kind.table.attachment_points(slot);
                let mut points = points.into_iter().flatten();
                let topology = &self.world.topology;
                let counts = self.counts(number, kind, slot);
                let acts = |key: &NodeKey| {
                    let node = topology.node(key);
                    node.is_some_and(|node| {
                        let on_path = self.nodes.contains(&node);
                        on_path && (counts || Some(node) != root)
                            || counts && at_waypoints.contains(&node)
                    })
                };
                if attached.any(acts) || points.any(|point| acts(&point.0)) {
                    self.objects.insert(policy.key.clone());
                }
            }
        }
    }
}

impl PolicyKind {
    /// Whether policies of the kind can act from nodes that paths do not go through: the root node and waypoints.
    pub(crate) fn acts_from_elsewhere(&self) -> bool {
        self.profile.root_namespace.is_some() || self.profile.waypoints.is_some()
    }

    /// Whether a policy of the kind takes no part wherever it is attached.
    pub(crate) fn has_rejected_policies(&self) -> bool {
        self.policies().any(|(_, policy)| takes_no_part(policy))
    }

    /// The slots of the rejected policies that answers on the paths with a chain can name.
    pub(crate) fn named_rejections(&self, chain: &AttachmentChain) -> Vec<usize> {
        let is_named = |slot: &usize| {
            let policy = self.policy_at(*slot);
            policy.is_some_and(|policy| self.may_name_rejected(policy, chain))
        };
        let rejected = self
            .acting(chain)
            .flat_map(|(_, on_node, _)| on_node.rejections(chain));
        rejected.map(|r| r.policy).filter(is_named).collect()
    }

    /// Whether answers on the paths with a chain can name a policy that is rejected there. Above the effective level, they
    /// do only if it is not known what applies, or what it says (specification 9.4, 2.5).
    pub(super) fn may_name_rejected(&self, policy: &Policy, chain: &AttachmentChain) -> bool {
        !chain.inherited_only
            || chain.is_unknown()
            || self.is_unprofiled()
            || policy.object.unreadable.is_some()
    }
}
