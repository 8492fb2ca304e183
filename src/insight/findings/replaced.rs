//! Findings about policies that take the place of those by which others are enforced (specification 2.10).

use std::collections::{BTreeMap, BTreeSet};

use super::{FindingPage, finding, is_requested};
use crate::insight::Code;
use entail_core::effective::World;
use entail_core::model::{GroupKind, ObjectKey};

/// Adds a finding for each such policy, if the caller sees a policy of a kind that it switches off.
pub(super) fn replacing_policies(
    world: &World,
    requested: &[GroupKind],
    findings: &mut FindingPage<'_>,
) {
    let mut found: BTreeMap<ObjectKey, BTreeSet<String>> = BTreeMap::new();
    let budget = findings.visibility().budget();
    for kind in world.profiled_kinds() {
        let mut policies = kind.policies().take_while(|_| budget.step());
        if !policies.any(|(_, policy)| findings.sees(&policy.key)) {
            continue;
        }
        let replacing = world.replacing_policies(kind);
        for policy in replacing.take_while(|_| budget.step()) {
            let kinds = found.entry(policy).or_default();
            kinds.insert(kind.profile().policy.to_string());
        }
    }
    for (policy, kinds) in found {
        if is_requested(requested, &policy.kind) {
            let kinds = Vec::from_iter(kinds).join(", ");
            let message = format!(
                "takes the place of the policy on the Gateway that enforces others; not enforced where both act: {kinds}"
            );
            findings.push(finding(world, Code::EnforcementReplaced, &policy, message));
        }
    }
}
