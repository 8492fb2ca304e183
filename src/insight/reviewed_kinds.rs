//! The kinds of objects whose changes the admission webhook reviews.

use std::collections::{BTreeMap, BTreeSet};

use super::kind_names::plural_in;
use entail_core::effective::World;
use entail_core::model::{GroupKind, groups};
use entail_core::store::ROUTE_KINDS;

/// The kinds of the Gateway API besides Routes that determine which paths there are and that people change by hand.
const OTHERS: [&str; 3] = ["Gateway", "ListenerSet", "ReferenceGrant"];

/// Returns the resources of the policy kinds with a profile, of Routes, and of what these refer to, by API group. Both are
/// sorted.
pub fn reviewed_resources(world: &World) -> BTreeMap<String, BTreeSet<String>> {
    let routes = ROUTE_KINDS.iter().map(|row| row.kind);
    let of_gateway_api = routes.chain(OTHERS);
    let mut kinds: BTreeSet<GroupKind> = of_gateway_api
        .map(|kind| GroupKind::new(groups::GATEWAY, kind))
        .collect();
    for kind in world.profiled_kinds() {
        let profile = kind.profile();
        kinds.insert(profile.resource().clone());
        kinds.extend(profile.route_kinds.iter().map(|route| route.kind.clone()));
    }
    let mut resources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for kind in kinds {
        let of_group = resources.entry(kind.group.to_string()).or_default();
        of_group.insert(plural_in(world, &kind));
    }
    resources
}
