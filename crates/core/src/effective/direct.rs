//! Direct kinds: one policy wins whole (SEMANTICS §7).

use serde_json::Value;

use super::Kind;
use super::stack::Standing;
use crate::merge::finished;
use crate::model::{BlockName, Effective, Origin, Strategy, Unit};

impl Kind {
    /// The winner of the most specific group: a policy with sectionName takes its section whole;
    /// the one without covers the other sections (SEMANTICS §7.3).
    pub(super) fn direct(&self, groups: &[Vec<Standing<'_>>]) -> Effective {
        let Some(winner) = winner(groups) else {
            return Effective::default();
        };
        Effective {
            spec: Some(finished(&rules(winner))),
            origins: vec![origin(winner)],
            strategy: Some(Strategy::None),
            ..Effective::default()
        }
    }
}

/// The policy that wins whole; acceptance has left one in each group (SEMANTICS §7.1).
pub(super) fn winner<'s, 'k>(groups: &'s [Vec<Standing<'k>>]) -> Option<&'s Standing<'k>> {
    groups.last()?.first()
}

/// The rules of a policy as they stand.
pub(super) fn rules(standing: &Standing<'_>) -> Value {
    let blocks = standing.policy.blocks.iter();
    let fields = blocks.flat_map(|block| block.rules.clone());
    Value::Object(fields.collect())
}

/// One policy gives everything.
pub(super) fn origin(standing: &Standing<'_>) -> Origin {
    Origin {
        unit: Unit::default(),
        policies: vec![standing.reference()],
        object: None,
        block: BlockName::Bare,
        strategy: Strategy::None,
    }
}
