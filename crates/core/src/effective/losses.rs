//! The loss report (specification 9.2): units that a policy other than the most specific one sets and
//! that the effective policy does not contain.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{AttachmentChain, PolicyKind, World};
use crate::merge::{FoldDetail, fold, leaves_of, units_of, value_at};
use crate::model::{Granularity, Unit};
use crate::profile::PolicyClass;

impl World {
    /// The lost units on the paths with this chain, sorted.
    pub fn losses(&self, kind: &PolicyKind, chain: &AttachmentChain) -> Vec<Unit> {
        if kind.profile.class != PolicyClass::Inherited || chain.unknown.is_some() {
            return Vec::new();
        }
        let groups = kind.groups(chain);
        let own = self.own_rules(kind, chain);
        let mut stack = self.stack(kind, &groups);
        stack.groups.extend(own.as_ref().map(|own| own.group()));
        let folded = fold(&kind.profile, kind.schemas(), &stack, FoldDetail::Rules);
        let opaque = || {
            groups
                .iter()
                .flatten()
                .filter(|s| !s.policy.is_transparent())
        };
        // In a group the most established policy comes first; the last policy of all is the most specific.
        let most_specific = opaque().next_back().map(|s| s.index);
        let atomic_only = kind
            .profile
            .strategies
            .iter()
            .all(|s| s.granularity() == Some(Granularity::Atomic));
        let mut lost = BTreeSet::new();
        for accepted in opaque().filter(|s| Some(s.index) != most_specific) {
            for block in accepted.policy.blocks.iter().filter(|b| b.participates) {
                let units = if atomic_only { leaves_of } else { units_of };
                for unit in units(&kind.profile, kind.schemas(), block.name, &block.rules) {
                    let offered = value_at(&Value::Object(block.rules.clone()), &unit.0).cloned();
                    // A null is not reported as lost (specification 11.13).
                    let is_null = offered.is_none_or(|value| value.is_null());
                    let found = folded
                        .spec
                        .as_ref()
                        .and_then(|spec| value_at(spec, &unit.0));
                    if !is_null && found.is_none() {
                        lost.insert(unit);
                    }
                }
            }
        }
        lost.into_iter().collect()
    }
}
