//! Policies on Services without a waypoint: no Gateway of the mesh applies them (specification 2.12).

use entail_core::attach::ReferenceOutcome;
use entail_core::effective::{PolicyKind, World};
use entail_core::model::{NodeKey, groups};

/// Says of each reference of a policy that names a Service without a waypoint that it has no effect, with the
/// field of the reference.
pub(super) fn idle_references(world: &World, kind: &PolicyKind, index: usize) -> Vec<String> {
    if kind.profile().waypoints.is_none() || kind.policy_at(index).is_some_and(|p| p.is_invalid()) {
        return Vec::new();
    }
    let references = kind.attached(index).into_iter().flat_map(|a| &a.references);
    let idle = references.filter_map(|reference| idle_reference(world, kind, reference));
    idle.collect()
}

/// Says why a reference has no effect, if it names a Service without a waypoint. Of several Services, the first is
/// named.
fn idle_reference(
    world: &World,
    kind: &PolicyKind,
    reference: &ReferenceOutcome,
) -> Option<String> {
    let nodes = reference.nodes.iter();
    let mut services = nodes.filter(|(node, _)| node.object.kind.is(groups::CORE, "Service"));
    services.find_map(|(NodeKey { object, .. }, _)| {
        let service = (object.namespace.clone(), object.name.clone());
        let why = world.no_waypoint(kind, &service)?;
        Some(format!(
            "{}: Service `{}/{}` has no waypoint, so the policy does not apply to its requests: {why}",
            reference.field, object.namespace, object.name
        ))
    })
}
