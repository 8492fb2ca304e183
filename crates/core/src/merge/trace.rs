//! Records the offers that lost, and why (specification 9.1).

use std::collections::BTreeSet;

use serde_json::Value;

use super::BlockSource;
use super::shape::SegmentRef;
use super::tree::MergeTree;
use crate::model::{BlockName, LossReason, Segment, Unit};

/// An offered unit that is not in the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The offered unit.
    pub unit: Unit,
    /// The block that offered the unit, as an index in [`super::FoldResult::sources`].
    pub source: usize,
    /// The offered value.
    pub value: Value,
    /// Why the offer lost.
    pub reason: LossReason,
}

/// Collects losses, if enabled.
pub(super) struct LossTracer<'s> {
    sources: &'s [BlockSource],
    losses: Option<Vec<Loss>>,
    /// Indexes in `losses` of empty objects and lists that others filled: each counts unless it is known before.
    filled: Vec<usize>,
}

impl<'s> LossTracer<'s> {
    pub fn new(sources: &'s [BlockSource], enabled: bool) -> Self {
        Self {
            sources,
            losses: enabled.then(Vec::new),
            filled: Vec::new(),
        }
    }

    pub fn into_losses(self) -> Vec<Loss> {
        let losses = self.losses.unwrap_or_default();
        if self.filled.is_empty() {
            return losses;
        }
        let mut repeated = vec![false; losses.len()];
        let mut filled = self.filled.into_iter().peekable();
        let mut known: BTreeSet<(usize, &Unit)> = BTreeSet::new();
        for ((index, loss), repeated) in losses.iter().enumerate().zip(&mut repeated) {
            let is_filled = filled.next_if_eq(&index).is_some();
            *repeated = !known.insert((loss.source, &loss.unit)) && is_filled;
        }
        let kept = losses.into_iter().zip(repeated);
        let kept = kept.filter_map(|(loss, repeated)| (!repeated).then_some(loss));
        kept.collect()
    }

    /// Records that all units of `loser`, at position `above`, lost to `winner`.
    pub fn lost_to(
        &mut self,
        above: &[SegmentRef<'_>],
        loser: &MergeTree<'_>,
        winner: &MergeTree<'_>,
    ) {
        if self.losses.is_none() {
            return;
        }
        let mut winning_source = None;
        let mut null = false;
        winner.leaves(&mut Vec::new(), &mut |_, leaf| {
            null |= winning_source.is_none() && leaf.value.is_null();
            winning_source = winning_source.or(leaf.sources.first().copied());
        });
        let sources = self.sources;
        self.each(above, loser, |source| match winning_source {
            _ if null => LossReason::DeletedByNull,
            Some(winning_source) => reason(sources, source, winning_source),
            None => LossReason::MoreSpecificDefault,
        });
    }

    /// Records that all units of `loser` lost for one reason.
    pub fn lost(&mut self, loser: &MergeTree<'_>, reason: LossReason) {
        self.each(&[], loser, |_| reason);
    }

    /// Records that the units of `before` at and below a place lost to a block.
    pub fn removed(&mut self, before: &MergeTree<'_>, place: &Unit, winner: usize) {
        let sources = self.sources;
        self.cut_out_for(before, place, |source| reason(sources, source, winner));
    }

    /// Records the units of `before` that a name covers, and the parts of larger units that it
    /// removes.
    pub fn cut_out(&mut self, before: &MergeTree<'_>, name: &Unit, reason: LossReason) {
        self.cut_out_for(before, name, |_| reason);
    }

    fn cut_out_for(
        &mut self,
        before: &MergeTree<'_>,
        name: &Unit,
        reason: impl Fn(usize) -> LossReason,
    ) {
        let Some(losses) = &mut self.losses else {
            return;
        };
        before.leaves(&mut Vec::new(), &mut |unit, leaf| {
            let whole;
            let (lost, value) = if name.covers(&unit) {
                whole = leaf.value.decoded();
                (unit, Some(&*whole))
            } else if unit.covers(name) {
                let below = name.0.get(unit.0.len()..).unwrap_or_default();
                whole = leaf.value.decoded();
                (name.clone(), super::units::value_at(&whole, below))
            } else {
                return;
            };
            for &source in leaf.sources.iter() {
                let Some(value) = value else { continue };
                losses.push(Loss {
                    unit: lost.clone(),
                    source,
                    value: value.clone(),
                    reason: reason(source),
                });
            }
        });
        let filled = &mut self.filled;
        before.filled(&mut Vec::new(), &mut |unit, source, empty| {
            if unit.starts_with(&name.0) {
                filled.push(losses.len());
                losses.push(lost_empty(unit, source, empty, reason(source)));
            }
        });
    }

    fn each(
        &mut self,
        above: &[SegmentRef<'_>],
        loser: &MergeTree<'_>,
        reason: impl Fn(usize) -> LossReason,
    ) {
        let Some(losses) = &mut self.losses else {
            return;
        };
        let mut above: Vec<Segment> = above.iter().map(SegmentRef::segment).collect();
        loser.leaves(&mut above, &mut |unit, leaf| {
            for &source in &leaf.sources {
                losses.push(Loss {
                    unit: unit.clone(),
                    source,
                    value: leaf.value.decoded().into_owned(),
                    reason: reason(source),
                });
            }
        });
        let filled = &mut self.filled;
        loser.filled(&mut above, &mut |unit, source, empty| {
            filled.push(losses.len());
            losses.push(lost_empty(unit, source, empty, reason(source)));
        });
    }
}

/// The loss of an empty object or list that others filled.
fn lost_empty(unit: &[Segment], source: usize, value: Value, reason: LossReason) -> Loss {
    Loss {
        unit: Unit(unit.to_vec()),
        source,
        value,
        reason,
    }
}

/// Returns why one block lost to another.
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
