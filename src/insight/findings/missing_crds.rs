//! Policy kinds from files whose CRDs are not among the files: defaults of their schemas are not
//! applied. An API server applies defaults itself, so objects of a cluster always have them.

use std::collections::BTreeSet;

use super::{FindingPage, ScopedFinding};
use crate::insight::Code;
use crate::insight::lookup::is_requested;
use entail_core::effective::{PolicyKind, World};
use entail_core::model::GroupKind;

/// Returns a message about the policy kinds that have policies from files, and no CRD; `None` if there
/// are none. With `requested`, only these kinds count.
pub fn missing_crds(world: &World, requested: &[GroupKind]) -> Option<String> {
    let store = world.store();
    let crds = GroupKind::crd();
    let defined: BTreeSet<GroupKind> = store
        .of_kind(&crds)
        .filter_map(|(_, entry)| entry.object.defined_kind())
        .collect();
    let kinds = world.profiled_kinds().map(PolicyKind::profile);
    // Only a cluster reports the states of kinds.
    let missing = kinds.filter(|profile| {
        let kind = profile.resource();
        let is_used = store.count(kind) > 0 && store.state(kind).is_none();
        is_requested(requested, &profile.policy) && is_used && !defined.contains(kind)
    });
    let names = missing.map(|profile| profile.resource().to_string());
    let names: Vec<String> = names.collect::<BTreeSet<_>>().into_iter().collect();
    let (no_crd, schemas) = match names.len() {
        0 => return None,
        1 => ("no CRD", "its schema"),
        _ => ("no CRDs", "their schemas"),
    };
    Some(format!(
        "the manifests contain {no_crd} of {}: defaults of {schemas} are not applied; add the \
         CustomResourceDefinition to the manifests",
        names.join(", ")
    ))
}

/// Adds the finding about policy kinds without a CRD.
pub(super) fn find(world: &World, requested: &[GroupKind], findings: &mut FindingPage<'_>) {
    if let Some(message) = missing_crds(world, requested) {
        findings.push(ScopedFinding::new(Code::CrdMissing, message));
    }
}
