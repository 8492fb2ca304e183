//! Listed kinds: the policies in order, never a spec (SEMANTICS §8).

use super::World;
use super::direct::rules;
use super::stack::Standing;
use crate::model::{Effective, Listed};

/// Why no spec is given.
pub(super) const REASON: &str =
    "policies of this kind are listed in order, not merged: their meaning is not a merge";

impl World {
    /// The policies on the path: by the profile's keys, then level from least to most specific,
    /// age, name. One that is attached to several nodes is listed at the least specific of them.
    pub(super) fn listed(&self, groups: &[Vec<Standing<'_>>]) -> Effective {
        let mut standing: Vec<&Standing<'_>> = Vec::new();
        for found in groups.iter().flatten() {
            if !standing.iter().any(|s| s.index == found.index) {
                standing.push(found);
            }
        }
        // Groups come by level already, and inside a group by age and name: the sort is stable.
        standing.sort_by(|a, b| a.policy.order.cmp(&b.policy.order));
        Effective {
            listed: standing
                .into_iter()
                .map(|s| Listed {
                    policy: s.reference(),
                    node: self.topology().describe(s.node),
                    level: s.level,
                    spec: rules(s),
                })
                .collect(),
            not_computed: Some(REASON.to_owned()),
            ..Effective::default()
        }
    }
}
