//! The conditions of limits that the steps of a path meet (specification 2.10).

use std::sync::Arc;

use hashbrown::HashMap;

use super::{Activity, NodePolicies, PathRoot, PolicyKind, World};
use crate::model::{GroupKind, LayeredMap, Level, ObjectKey, Section, SourceState, groups};
use crate::profile::{MetConditions, Policy, Profile, ReplacedBy};
use crate::store::Projection;
use crate::topology::{NodeId, RootKind};

/// The nodes with policies that take the place of less specific ones, for conditions of limits.
#[derive(Clone, Debug)]
pub(crate) struct ReplacedNodes {
    by: ReplacedBy,
    nodes: LayeredMap<NodeId, ()>,
}

impl ReplacedNodes {
    /// The condition.
    pub(crate) fn by(&self) -> &ReplacedBy {
        &self.by
    }

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
            let other = other.filter(|kind| !kind.is_unprofiled());
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
        self.nodes.remove(&node);
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
            let is_changed = now != self.nodes.contains_key(node);
            match (is_changed, now) {
                (true, true) => self.nodes.insert(*node, ()),
                (true, false) => self.nodes.remove(node),
                (false, _) => {}
            }
            is_changed
        });
        changed
    }
}

impl PolicyKind {
    /// The policies on a node that take the place of less specific ones. One that cannot be read may, and counts.
    fn replacing<'k>(
        &'k self,
        by: &'k ReplacedBy,
        on_node: &'k NodePolicies,
    ) -> impl Iterator<Item = &'k Policy> {
        let accepted = on_node.groups.iter().flat_map(|(_, slots)| slots);
        let accepted = accepted.filter_map(|&slot| self.required_policy(slot));
        let rejected = on_node.rejected.iter();
        let rejected = rejected.filter_map(|rejected| self.required_policy(rejected.policy));
        let unreadable = rejected.filter(|policy| policy.object.unreadable.is_some());
        accepted
            .filter(|policy| by.is_replacing(policy))
            .chain(unreadable)
    }

    fn replaces(&self, by: &ReplacedBy, on_node: &NodePolicies) -> bool {
        self.replacing(by, on_node).next().is_some()
    }
}

impl World {
    /// The least that is known of the policies of other kinds that the limits of a kind depend on, with that kind
    /// (specification 2.5, 2.10). `None` if nothing is said of them: they are complete.
    pub fn dependency_state<'k>(
        &self,
        kind: &'k PolicyKind,
    ) -> Option<(SourceState, &'k GroupKind)> {
        let others = kind.profile.limits.replaced_by().map(|other| &other.kind);
        let states = others.filter_map(|other| Some((self.state_of_other(other)?, other)));
        states.max_by_key(|(state, _)| *state)
    }

    fn state_of_other(&self, other: &GroupKind) -> Option<SourceState> {
        let resource = other.resource();
        let read = self.store.state(&resource);
        let Some(kind) = self.kind(other) else {
            // Nothing interprets its objects.
            let is_refused = self.refused.contains(other);
            let is_there = is_refused || self.store.count(&resource) > 0;
            return is_there.then_some(SourceState::Unknown).or(read);
        };
        let state = match kind.fault() {
            Some(_) => Some(SourceState::Unknown),
            None => read,
        };
        let state = state.filter(|state| *state != SourceState::Complete)?;
        // On no path its policies take the place of others.
        let acts = self.controllers.may_act(&kind.profile, &self.topology);
        acts.then_some(state)
    }

    /// The policies of other kinds, below Gateways, that take the place of those by which a kind is enforced, where both
    /// kinds act or may act below some Gateway. A policy of several nodes is there several times.
    pub fn replacing_policies<'w>(
        &'w self,
        kind: &'w PolicyKind,
    ) -> impl Iterator<Item = ObjectKey> + use<'w> {
        let conditions = kind.profile.limits.replaced_by();
        let known = conditions.filter_map(|by| Some((by, self.kind(&by.kind)?)));
        let acting = known.filter(move |(_, other)| {
            let mut roots = self.topology.root_controllers();
            roots.any(|(root, by)| {
                let may_act = |profile| self.controllers.may_act_at(profile, root, &by);
                root == RootKind::Gateway && may_act(&kind.profile) && may_act(&other.profile)
            })
        });
        acting.flat_map(move |(by, other)| {
            let below = other.nodes.iter();
            let below = below.filter(move |(node, _)| self.is_below_gateways(*node));
            below.flat_map(move |(_, on_node)| {
                let policies = other.replacing(by, on_node);
                policies.map(|policy| policy.key.clone())
            })
        })
    }

    /// Whether a node is a ListenerSet, a Route, or a section of these or of a Gateway, so that limits look at the policies
    /// of other kinds there.
    pub(crate) fn is_below_gateways(&self, node: NodeId) -> bool {
        let key = self.topology.key(node);
        let kind = &key.object.kind;
        kind.is(groups::GATEWAY, "ListenerSet")
            || self.store.route_kind(kind).is_some()
            || (key.section.is_some() && kind.is(groups::GATEWAY, "Gateway"))
    }

    /// Whether a kind acts below the Gateway at the root of a path, or may.
    pub(super) fn may_act_below(&self, kind: &GroupKind, root: PathRoot<'_>) -> bool {
        let kind = self.kind(kind).filter(|_| root.kind != RootKind::Mesh);
        kind.is_some_and(|kind| self.activity(kind, root) != Activity::Inactive)
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
