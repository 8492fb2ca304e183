//! Effective policies of Direct kinds: one policy applies as a whole (specification 7).

use serde_json::Value;

use super::PolicyKind;
use super::stack::Acceptance;
use crate::merge::pruned;
use crate::model::{BlockName, EffectivePolicy, Origin, Strategy, Unit};

impl PolicyKind {
    /// The rules of the policy of the most specific group. A policy with `sectionName` replaces the policy
    /// of the whole object on its section (specification 7.3).
    pub(super) fn direct(&self, groups: &[Vec<Acceptance<'_>>]) -> EffectivePolicy {
        // A policy of which nothing is left on the path holds its place (specification 2.10).
        let Some(winner) = winner(groups).filter(|winner| winner.takes_part) else {
            return EffectivePolicy::default();
        };
        EffectivePolicy {
            spec: Some(pruned(&rules(winner))),
            origins: vec![origin(winner)],
            strategy: Some(Strategy::None),
            ..EffectivePolicy::default()
        }
    }
}

/// The policy that applies. Conflict resolution leaves one policy in each group (specification 7.1).
pub(super) fn winner<'s, 'k>(groups: &'s [Vec<Acceptance<'k>>]) -> Option<&'s Acceptance<'k>> {
    groups.last()?.first()
}

/// The rules of all blocks of a policy, unmerged.
pub(super) fn rules(accepted: &Acceptance<'_>) -> Value {
    let blocks = accepted.blocks.iter();
    let fields = blocks.flat_map(|block| block.rules.clone());
    Value::Object(fields.collect())
}

/// The origin of an effective policy that one policy sets as a whole.
pub(super) fn origin(accepted: &Acceptance<'_>) -> Origin {
    Origin {
        unit: Unit::default(),
        policies: vec![accepted.reference()],
        object: None,
        block: BlockName::Bare,
        strategy: Strategy::None,
    }
}
