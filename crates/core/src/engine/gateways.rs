//! What follows from Gateways, ListenerSets and GatewayClasses that come, go or change.

use std::collections::BTreeSet;

use super::Engine;
use super::change_impact::{ChangeImpact, Versions};
use crate::effective::WaypointVersions;
use crate::model::{GroupKind, ObjectKey, groups};
use crate::store::{NamespacedName, Projection, Store};

impl Engine {
    /// Adds what a changed Gateway, ListenerSet or GatewayClass affects besides paths.
    pub(super) fn add_gateway(
        &self,
        key: &ObjectKey,
        (before, now): Versions<'_>,
        impact: &mut ChangeImpact,
    ) {
        impact.gateways.insert(key.clone());
        // Policies can name listeners of ListenerSets by the Gateway (specification 3.6, 7.5).
        for version in before.into_iter().chain(now) {
            if let Projection::ListenerSet(set) = &version.projection
                && let Some((namespace, name)) = set.gateway.clone()
            {
                let gateway = ObjectKey::new(GroupKind::gateway(), namespace, name);
                impact.add_policies(self.policies_targeting(&gateway));
            }
        }
    }

    /// Decides whether the world must be rebuilt for changed Gateways, ListenerSets and GatewayClasses: `None` if it must.
    /// The topology is still the one before.
    pub(super) fn follow_gateways(&self, before: &Store, impact: &ChangeImpact) -> Option<()> {
        if impact.gateways.is_empty() {
            return Some(());
        }
        let world = self.world();
        let Some(waypoints) = WaypointVersions::of(world, before, &impact.namespaces) else {
            return Some(());
        };
        let classes = impact.gateways.iter();
        let classes = classes.filter(|key| key.kind.is(groups::GATEWAY, "GatewayClass"));
        let classes: BTreeSet<_> = classes.map(|key| &key.name).collect();
        let mut gateways: BTreeSet<NamespacedName> = BTreeSet::new();
        for store in [before, world.store()] {
            for ((namespace, name), entry) in store.of_kind(&GroupKind::gateway()) {
                let key = ObjectKey::new(GroupKind::gateway(), namespace.clone(), name.clone());
                let is_of_class = match &entry.projection {
                    Projection::Gateway(gateway) => classes.contains(&gateway.class),
                    _ => false,
                };
                if is_of_class || impact.gateways.contains(&key) {
                    gateways.insert((key.namespace, key.name));
                }
            }
        }
        (!waypoints.name_any(&gateways)).then_some(())
    }
}
