//! The conditions of limits that the steps of a path meet (specification 2.10).

use std::sync::Arc;

use hashbrown::HashMap;

use super::{Activity, NodePolicies, PolicyKind, World};
use crate::model::{GroupKind, LayeredMap, Level, ObjectKey, Section, SourceState, groups};
use crate::profile::{MetConditions, Profile, ReplacedBy};
use crate::store::{Projection, route_kind};
use crate::topology::{NodeId, RootController, RootKind};

/// The nodes with policies that take the place of less specific ones, for conditions of limits.
#[derive(Clone, Debug)]
pub(crate) struct ReplacedNodes {
    by: ReplacedBy,
    nodes: LayeredMap<NodeId, ()>,
}

impl ReplacedNodes {
    /// The nodes for each condition in the profiles of some kinds.
    pub(crate) fn of_kinds(kinds: &[Arc<PolicyKind>]) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for by in kinds
            .iter()
            .flat_map(|kind| kind.profile.limits.replaced_by())
        {
            if found.iter().any(|known| known.by == *by) {
                continue;
            }
            let other = kinds.iter().find(|kind| kind.profile.policy == by.kind);
            let nodes = other.into_iter().flat_map(|kind| {
                let nodes = kind.nodes.iter();
                let replaced = nodes.filter(|(_, on_node)| kind.replaces(by, on_node));
                replaced.map(|(node, _)| (node, ()))
            });
            let nodes: HashMap<NodeId, ()> = nodes.collect();
            found.push(Self {
                by: by.clone(),
                nodes: nodes.into(),
            });
        }
        found
    }

    /// Forgets a node that does not exist any more.
    pub(crate) fn forget(&mut self, node: NodeId) {
        if self.nodes.contains_key(&node) {
            self.nodes.remove(&node);
        }
    }

    /// Follows changed policies of a kind on some nodes. Returns those of the nodes where the condition is met now and was
    /// not before, or no longer.
    pub(crate) fn follow(&mut self, kind: &PolicyKind, nodes: &[NodeId]) -> Vec<NodeId> {
        if self.by.kind != kind.profile.policy {
            return Vec::new();
        }
        let mut changed = nodes.to_vec();
        changed.retain(|node| {
            let on_node = kind.nodes.get(node);
            let now = on_node.is_some_and(|on_node| kind.replaces(&self.by, on_node));
            let before = self.nodes.contains_key(node);
            match now {
                true => self.nodes.insert(*node, ()),
                false => self.nodes.remove(node),
            }
            now != before
        });
        changed
    }
}

impl PolicyKind {
    /// Whether a policy on a node takes the place of less specific ones. One that cannot be read may, and counts.
    fn replaces(&self, by: &ReplacedBy, on_node: &NodePolicies) -> bool {
        let accepted = on_node.groups.iter().flat_map(|(_, slots)| slots);
        let mut accepted = accepted.filter_map(|&slot| self.required_policy(slot));
        let rejected = on_node.rejected.iter();
        let mut rejected = rejected.filter_map(|rejected| self.required_policy(rejected.policy));
        accepted.any(|policy| by.is_replacing(policy))
            || rejected.any(|policy| policy.object.unreadable.is_some())
    }
}

impl World {
    /// What is known of the policies of a kind, and of those that its limits depend on (specification 2.5, 2.10). `None`
    /// if nothing is said of them: they are complete.
    pub fn input_state(&self, kind: &PolicyKind) -> Option<SourceState> {
        let own = self.store.state(kind.profile.resource());
        let others = kind.profile.limits.replaced_by().map(|other| {
            let mut kinds = self.kinds.iter();
            match kinds.find(|kind| kind.profile.policy == other.kind) {
                Some(kind) if kind.fault().is_none() => self.store.state(kind.profile.resource()),
                _ => Some(SourceState::Unknown),
            }
        });
        others.fold(own, Option::max)
    }

    /// The policies of other kinds that take the place of those by which a kind is enforced, below Gateways. Those of some
    /// nodes may be there more than once.
    pub fn replacing_policies(&self, kind: &PolicyKind) -> impl Iterator<Item = ObjectKey> {
        let conditions = kind.profile.limits.replaced_by();
        conditions.flat_map(|by| {
            let mut kinds = self.kinds.iter();
            let other = kinds.find(|other| other.profile.policy == by.kind);
            let nodes = other
                .into_iter()
                .flat_map(|other| other.nodes.iter().map(move |on| (other, on)));
            let below = nodes.filter(|(_, (node, _))| self.is_below_gateways(*node));
            below.flat_map(move |(other, (_, on_node))| {
                let slots = on_node.groups.iter().flat_map(|(_, slots)| slots);
                let policies = slots.filter_map(|&slot| other.required_policy(slot));
                let replacing = policies.filter(|policy| by.is_replacing(policy));
                replacing.map(|policy| policy.key.clone())
            })
        })
    }

    /// Whether a node is a ListenerSet, a Route or a section, so that limits look at the policies of other kinds there.
    pub(crate) fn is_below_gateways(&self, node: NodeId) -> bool {
        let key = self.topology.key(node);
        let kind = &key.object.kind;
        key.section.is_some()
            || kind.is(groups::GATEWAY, "ListenerSet")
            || route_kind(kind).is_some()
    }

    /// Whether a kind acts below the root of a path, or may.
    pub(super) fn may_act(&self, kind: &GroupKind, root: RootKind, by: &RootController) -> bool {
        let mut kinds = self.kinds.iter();
        let kind = kinds.find(|known| known.profile.policy == *kind);
        kind.is_some_and(|kind| {
            self.controllers.activity(&kind.profile, root, by) != Activity::Inactive
        })
    }

    /// The conditions of a profile's limits that a step of a path meets.
    pub(crate) fn met_conditions(
        &self,
        profile: &Profile,
        node: NodeId,
        level: Level,
    ) -> MetConditions {
        let limits = &profile.limits;
        if limits.is_empty() {
            return MetConditions::default();
        }
        let mut met = self.met_by_object(profile, node, level);
        if (Level::ListenerSet..=Level::RouteRule).contains(&level) {
            met.add(limits.met_by_policies(|other| self.is_replaced_at(other, node)));
        }
        met
    }

    fn is_replaced_at(&self, other: &ReplacedBy, node: NodeId) -> bool {
        let mut known = self.replaced.iter();
        let known = known.find(|known| known.by == *other);
        known.is_some_and(|known| known.nodes.contains_key(&node))
    }

    fn met_by_object(&self, profile: &Profile, node: NodeId, level: Level) -> MetConditions {
        let limits = &profile.limits;
        let key = self.topology.key(node);
        match (level, &key.section) {
            (Level::ListenerSet, _) => limits.met_by_listener_set(),
            (Level::Route, _) => {
                let kind = &key.object.kind;
                let like = self.store.route_kind(kind).map(|like| like.kind);
                limits.met_by_route(like.unwrap_or(&kind.kind))
            }
            (Level::Listener, Some(Section::Listener(name))) => {
                let entry = self.store.get(&key.object);
                let listeners = match entry.map(|entry| &entry.projection) {
                    Some(Projection::Gateway(gateway)) => gateway.listeners.as_slice(),
                    Some(Projection::ListenerSet(set)) => set.listeners.as_slice(),
                    _ => &[],
                };
                let listener = listeners.iter().find(|listener| listener.name == *name);
                listener.map_or_else(MetConditions::default, |listener| {
                    limits.met_by_listener(listener.traits())
                })
            }
            _ => MetConditions::default(),
        }
    }
}
