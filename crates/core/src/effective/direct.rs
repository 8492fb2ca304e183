//! Direct kinds: one policy wins whole (specification 7).

use serde_json::Value;

use super::PolicyKind;
use super::stack::Acceptance;
use crate::merge::pruned;
use crate::model::{BlockName, EffectivePolicy, Origin, Strategy, Unit};

impl PolicyKind {
    /// The winner of the most specific group: a policy with sectionName takes its section whole;
    /// the one without covers the other sections (specification 7.3).
    pub(super) fn direct(&self, groups: &[Vec<Acceptance<'_>>]) -> EffectivePolicy {
        let Some(winner) = winner(groups) else {
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

/// The policy that wins whole; acceptance has left one in each group (specification 7.1).
pub(super) fn winner<'s, 'k>(groups: &'s [Vec<Acceptance<'k>>]) -> Option<&'s Acceptance<'k>> {
    groups.last()?.first()
}

/// The rules of a policy as they stand.
pub(super) fn rules(accepted: &Acceptance<'_>) -> Value {
    let blocks = accepted.policy.blocks.iter();
    let fields = blocks.flat_map(|block| block.rules.clone());
    Value::Object(fields.collect())
}

/// One policy gives everything.
pub(super) fn origin(accepted: &Acceptance<'_>) -> Origin {
    Origin {
        unit: Unit::default(),
        policies: vec![accepted.reference()],
        object: None,
        block: BlockName::Bare,
        strategy: Strategy::None,
    }
}
