//! Effective policies of Direct kinds: one policy applies as a whole (specification 7).

use serde_json::{Map, Value};

use super::PolicyKind;
use super::stack::Acceptance;
use crate::merge::pruned;
use crate::model::{BlockName, EffectivePolicy, ObjectKey, Origin, Segment, Strategy, Unit};
use crate::profile::UncheckedReference;

impl PolicyKind {
    /// The rules of the policy of the most specific group. A policy with `sectionName` replaces the policy
    /// of the whole object on its section (specification 7.3).
    pub(super) fn direct(&self, groups: &[Vec<Acceptance<'_>>]) -> EffectivePolicy {
        // A policy of which nothing is left on the path holds its place (specification 2.10).
        let in_force = |winner: &&Acceptance<'_>| winner.takes_part && !fails(winner);
        let Some(winner) = winner(groups).filter(in_force) else {
            return EffectivePolicy::default();
        };
        EffectivePolicy {
            spec: Some(pruned(&rules(winner))),
            origins: vec![origin(winner)],
            strategy: Some(Strategy::None),
            unknown: self.unchecked(&unchecked(winner)),
            ..EffectivePolicy::default()
        }
    }
}

/// The policy that applies. Conflict resolution leaves one policy in each group (specification 7.1).
pub(super) fn winner<'s, 'k>(groups: &'s [Vec<Acceptance<'k>>]) -> Option<&'s Acceptance<'k>> {
    groups.last()?.first()
}

/// Whether a policy that applies fails closed because an object is missing (specification 5.7).
pub(super) fn fails(accepted: &Acceptance<'_>) -> bool {
    accepted.blocks.iter().any(|block| {
        let mut missing = block.missing.iter();
        missing.any(|missing| !missing.fails_open(&block.rules))
    })
}

/// The references of a policy that applies that were not checked, and without which requests would pass
/// (specification 5.7).
fn unchecked<'s>(accepted: &'s Acceptance<'_>) -> Vec<(usize, &'s ObjectKey)> {
    let references = accepted.blocks.iter().flat_map(|block| {
        let may_pass = |found: &&UncheckedReference| found.fails_open(&block.rules);
        block.unchecked.iter().filter(may_pass)
    });
    let objects = references.map(|found| (accepted.index, &found.object));
    objects.collect()
}

/// The rules of all blocks of a policy, unmerged, without what fails open (specification 5.7).
pub(super) fn rules(accepted: &Acceptance<'_>) -> Value {
    let mut rules = Map::new();
    for block in accepted.blocks.iter() {
        let mut fields = block.rules.to_map();
        for missing in &block.missing {
            if missing.fails_open(&block.rules)
                && let Some(holder) = missing.holder()
            {
                remove(&mut fields, holder);
            }
        }
        rules.extend(fields);
    }
    Value::Object(rules)
}

/// Removes the value at a place.
fn remove(fields: &mut Map<String, Value>, place: &[Segment]) {
    match place {
        [Segment::Field(name)] => {
            fields.remove(&**name);
        }
        [Segment::Field(name), below @ ..] => {
            if let Some(Value::Object(fields)) = fields.get_mut(&**name) {
                remove(fields, below);
            }
        }
        _ => {}
    }
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
