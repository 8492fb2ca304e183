//! Findings about what no profile describes: kinds, parameters and controllers (specification 2.6, 2.7, 2.9).

use super::{FindingPage, finding};
use crate::insight::Code;
use crate::insight::parameters::objects;
use entail_core::effective::{PolicyKind, World};
use entail_core::model::{GroupKind, groups};

/// Adds a finding for each object with a target reference whose kind has no profile.
pub(super) fn policies(world: &World, findings: &mut FindingPage<'_>) {
    let kinds: Vec<GroupKind> = world.store().kinds().cloned().collect();
    for kind in kinds.iter().filter(|kind| world.kind(kind).is_none()) {
        let profiles: Vec<_> = world.kinds_of(kind).map(PolicyKind::profile).collect();
        for (_, entry) in world.store().of_kind(kind) {
            if !findings.visibility().budget().step() {
                return;
            }
            let spec = entry.object.body.get("spec");
            let field = |name: &str| spec.as_ref().and_then(|s| s.get(name)).is_some();
            let is_read = profiles.iter().any(|profile| profile.reads(&entry.object));
            if !is_read
                && ["targetRef", "targetRefs", "targetSelectors"]
                    .into_iter()
                    .any(field)
            {
                let message = match profiles.is_empty() {
                    true => format!(
                        "looks like a policy, but `{kind}` has no profile: add a PolicyProfile, or label the CRD"
                    ),
                    false => format!(
                        "looks like a policy, but has none of the sections of `{kind}` that profiles describe: \
                         add a PolicyProfile for its section"
                    ),
                };
                let key = &entry.object.key;
                findings.push(finding(world, Code::UnknownKind, key, message));
            }
        }
    }
}

/// Adds a finding for each Gateway and GatewayClass whose parameters are not read (specification 2.9).
pub(super) fn parameters(world: &World, findings: &mut FindingPage<'_>) {
    for (key, reference) in objects(world) {
        let message = format!(
            "configured by {} `{}`, which is not read: it may change what all requests get",
            reference.kind, reference.name
        );
        findings.push(finding(world, Code::ParametersNotRead, &key, message));
    }
}

/// Adds a finding for each GatewayClass whose controller no profile lists (specification 2.6).
pub(super) fn unlisted_controllers(world: &World, findings: &mut FindingPage<'_>) {
    let class = GroupKind::new(groups::GATEWAY, "GatewayClass");
    for (_, entry) in world.store().of_kind(&class) {
        let key = &entry.object.key;
        if let Some(controller) = world.unlisted_controller(&key.name) {
            let message = format!(
                "no profile lists controller `{controller}`: policies that it attaches in its own way, such as by \
                 annotations, selectors or plugins, are in no answer"
            );
            findings.push(finding(world, Code::ControllerNotListed, key, message));
        }
    }
}
