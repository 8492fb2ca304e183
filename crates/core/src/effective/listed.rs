//! Effective policies of Listed kinds: the policies in order, without a merged spec (specification 8).

use super::World;
use super::direct::rules;
use super::stack::Acceptance;
use crate::model::{EffectivePolicy, ListedPolicy};

/// The reason why Listed kinds have no spec.
pub(super) const NOT_COMPUTED: &str =
    "policies of this kind are listed in order, not merged: their meaning is not a merge";

impl World {
    /// The policies on the path, sorted by the order of the profile, then by level from least to most
    /// specific, by age, and by name. A policy that is attached to several nodes is listed once, at the
    /// most specific one (specification 11.30).
    pub(super) fn listed(&self, groups: &[Vec<Acceptance<'_>>]) -> EffectivePolicy {
        let mut accepted: Vec<&Acceptance<'_>> = Vec::new();
        for found in groups.iter().flatten().rev() {
            if !accepted.iter().any(|s| s.index == found.index) {
                accepted.push(found);
            }
        }
        accepted.reverse();
        // Groups are ordered by level already, and policies in a group by age and name; the sort is
        // stable.
        accepted.sort_by(|a, b| a.policy.order.cmp(&b.policy.order));
        EffectivePolicy {
            listed: accepted
                .into_iter()
                .map(|s| ListedPolicy {
                    policy: s.reference(),
                    node: self.topology().describe(s.node),
                    level: s.level,
                    spec: rules(s),
                })
                .collect(),
            not_computed: Some(NOT_COMPUTED.to_owned()),
            ..EffectivePolicy::default()
        }
    }
}
