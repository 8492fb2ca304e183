//! The conditions of limits that the steps of a path meet (specification 2.10).

use super::World;
use crate::model::{Level, Section};
use crate::profile::{MetConditions, Profile, ReplacedBy};
use crate::store::Projection;
use crate::topology::NodeId;

impl World {
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
            met.add(limits.met_by_policies(|other| self.has_replacing(other, node)));
        }
        met
    }

    /// Whether a policy of another kind that is accepted on a node takes the place of less specific ones.
    fn has_replacing(&self, other: &ReplacedBy, node: NodeId) -> bool {
        // By their names, as profiles are registered.
        let found = self
            .kinds
            .binary_search_by(|kind| kind.profile.policy.cmp(&other.kind));
        let Some(kind) = found.ok().and_then(|number| self.kinds.get(number)) else {
            return false;
        };
        let groups = kind.nodes.get(&node).into_iter();
        let mut slots = groups.flat_map(|on_node| on_node.groups.iter().flat_map(|(_, s)| s));
        slots.any(|&slot| {
            let policy = kind.required_policy(slot);
            policy.is_some_and(|policy| other.is_replacing(policy))
        })
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
