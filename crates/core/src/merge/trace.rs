//! What lost, and why (specification 9.1).

use serde_json::Value;

use super::BlockSource;
use super::tree::MergeTree;
use crate::model::{BlockName, LossReason, Segment, Unit};

/// A unit that was offered and is not the result's.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The unit as it was offered.
    pub unit: Unit,
    /// Who offered it: index of the fold's sources.
    pub source: usize,
    /// What was offered.
    pub value: Value,
    /// Why it lost.
    pub reason: LossReason,
}

/// Collects losses, if anybody asks for them.
pub(super) struct LossTracer<'s> {
    sources: &'s [BlockSource],
    losses: Option<Vec<Loss>>,
}

impl<'s> LossTracer<'s> {
    pub fn new(sources: &'s [BlockSource], wanted: bool) -> Self {
        Self {
            sources,
            losses: wanted.then(Vec::new),
        }
    }

    pub fn into_losses(self) -> Vec<Loss> {
        self.losses.unwrap_or_default()
    }

    /// All units of `loser`, at `above`, lost to whoever holds `winner`.
    pub fn lost_to(&mut self, above: &[Segment], loser: &MergeTree<'_>, winner: &MergeTree<'_>) {
        if self.losses.is_none() {
            return;
        }
        let mut holder = None;
        let mut null = false;
        winner.leaves(&mut Vec::new(), &mut |_, leaf| {
            null |= holder.is_none() && leaf.value.is_null();
            holder = holder.or(leaf.sources.first().copied());
        });
        let sources = self.sources;
        self.each(above, loser, |source| match holder {
            _ if null => LossReason::DeletedByNull,
            Some(holder) => reason(sources, source, holder),
            None => LossReason::MoreSpecificDefault,
        });
    }

    /// All units of `loser` lost for one reason.
    pub fn lost(&mut self, loser: &MergeTree<'_>, reason: LossReason) {
        self.each(&[], loser, |_| reason);
    }

    /// What of `before` a name covers, or what it cuts out of a larger unit, was unset.
    pub fn unset(&mut self, before: &MergeTree<'_>, name: &Unit) {
        let Some(losses) = &mut self.losses else {
            return;
        };
        before.leaves(&mut Vec::new(), &mut |unit, leaf| {
            let (lost, value) = if name.covers(&unit) {
                (unit, Some(leaf.value.as_ref()))
            } else if unit.covers(name) {
                let below = name.0.get(unit.0.len()..).unwrap_or_default();
                (name.clone(), super::units::value_at(&leaf.value, below))
            } else {
                return;
            };
            for &source in leaf.sources.iter() {
                let Some(value) = value else { continue };
                losses.push(Loss {
                    unit: lost.clone(),
                    source,
                    value: value.clone(),
                    reason: LossReason::Unset,
                });
            }
        });
    }

    fn each(
        &mut self,
        above: &[Segment],
        loser: &MergeTree<'_>,
        reason: impl Fn(usize) -> LossReason,
    ) {
        let Some(losses) = &mut self.losses else {
            return;
        };
        loser.leaves(&mut above.to_vec(), &mut |unit, leaf| {
            for &source in &leaf.sources {
                losses.push(Loss {
                    unit: unit.clone(),
                    source,
                    value: leaf.value.as_ref().clone(),
                    reason: reason(source),
                });
            }
        });
    }
}

/// Why one source lost to another.
fn reason(sources: &[BlockSource], loser: usize, winner: usize) -> LossReason {
    let (Some(loser), Some(winner)) = (sources.get(loser), sources.get(winner)) else {
        return LossReason::MoreSpecificDefault;
    };
    if winner.policy.is_none() {
        return LossReason::OwnField;
    }
    if winner.group == loser.group && loser.policy.is_some() {
        return match winner.rank.cmp(&loser.rank) {
            std::cmp::Ordering::Less => LossReason::Older,
            std::cmp::Ordering::Greater => LossReason::Newer,
            std::cmp::Ordering::Equal => LossReason::SamePolicyOverride,
        };
    }
    match (winner.group < loser.group, winner.block) {
        (true, _) => LossReason::LessSpecificOverride,
        (false, BlockName::Overrides) => LossReason::MoreSpecificOverride,
        (false, _) => LossReason::MoreSpecificDefault,
    }
}
