//! The conditions of limits that the steps of a path meet (specification 2.10).

use super::World;
use crate::model::{Level, Section};
use crate::profile::{MetConditions, Profile};
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
