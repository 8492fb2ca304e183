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
    let mut found: BTreeMap<ObjectKey, BTreeSet<&str>> = BTreeMap::new();
    for kind in world.profiled_kinds() {
        let enforced = &kind.profile().policy;
        let mut replacing = world.replacing_policies(kind).peekable();
        let mut policies = kind.policies();
        if replacing.peek().is_none() || !policies.any(|(_, policy)| findings.sees(&policy.key)) {
            continue;
        }
        for policy in replacing {
            if !findings.visibility().budget().step() {
                return;
            }
            found.entry(policy).or_default().insert(&*enforced.kind);
        }
    }
    for (policy, kinds) in found {
        if is_requested(requested, &policy.kind) {
            let kinds = Vec::from_iter(kinds).join(", ");
            let message = format!(
                "takes the place of the policy on the Gateway by which {kinds} are enforced: they do not act on the \
                 paths of its targets"
            );
            findings.push(finding(world, Code::EnforcementReplaced, &policy, message));
        }
    }
}
