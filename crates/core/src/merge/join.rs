//! Joins two sides of a merge: the lower, more specific one and the higher one (specification 5.2,
//! 6.1).

use std::borrow::Cow;

use serde_json::Value;

use super::reduce::{Reduction, reduce, united};
use super::shape::{SegmentRef, Shape, ShapeRules};
use super::trace::LossTracer;
use super::tree::{Leaf, MergeTree, item_segment};
use crate::model::{Direction, Granularity, Segment};
use crate::profile::ReduceFunction;

/// One side of a join: the merged rules so far, or an offered block.
#[derive(Clone, Debug)]
pub(super) struct Side<'v> {
    pub tree: MergeTree<'v>,
    /// Whether an empty block of a Blocking kind replaced everything inherited. It is one unit, the
    /// whole, and overrides can fill it (specification 5.6, 11.9).
    pub closed: bool,
}

/// The side of a join whose block already took part, because its policy is attached to several nodes
/// of the path. A reducer uses each block once (specification 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedSide {
    Neither,
    Lower,
    Higher,
}

/// Joins a lower and a higher side. Under defaults, the lower side wins and the higher one adds the
/// units that are missing; under overrides, the higher side sets its units.
pub(super) fn join<'v>(
    lower: Side<'v>,
    higher: Side<'v>,
    direction: Direction,
    counted: CountedSide,
    shapes: &ShapeRules<'_>,
    tracer: &mut LossTracer<'_>,
) -> Side<'v> {
    let atomic = shapes.granularity == Granularity::Atomic;
    let whole = atomic || higher.is_empty_whole();
    match direction {
        Direction::Defaults if whole || lower.closed => {
            tracer.lost_to(&[], &higher.tree, &lower.tree);
            lower
        }
        Direction::Overrides if whole => {
            tracer.lost_to(&[], &lower.tree, &higher.tree);
            higher
        }
        // An empty side that overrides fill stays closed.
        Direction::Overrides if lower.is_empty_whole() => Side {
            tree: higher.tree,
            closed: true,
        },
        _ => {
            let mut merger = Merger {
                direction,
                counted,
                shapes,
                tracer,
                position: Vec::new(),
                above: Vec::new(),
            };
            Side {
                tree: merger.merge(lower.tree, higher.tree),
                closed: lower.closed,
            }
        }
    }
}

/// Applies a reducer to both sides. `None` if the reducer does not apply and the direction decides
/// (specification 5.2).
fn reduced(
    reducer: &ReduceFunction,
    lower: &MergeTree<'_>,
    higher: &MergeTree<'_>,
) -> Option<Reduction> {
    reduce(reducer, &higher.raw(), &lower.raw())
}

impl Side<'_> {
    /// Reports whether the side is closed and still empty.
    fn is_empty_whole(&self) -> bool {
        self.closed && matches!(self.tree, MergeTree::Leaf(_))
    }
}

/// Merges two trees recursively.
struct Merger<'w, 's, 'v> {
    direction: Direction,
    counted: CountedSide,
    shapes: &'w ShapeRules<'w>,
    tracer: &'w mut LossTracer<'s>,
    position: Vec<SegmentRef<'v>>,
    above: Vec<Segment>,
}

impl<'v> Merger<'_, '_, 'v> {
    fn merge(&mut self, mut lower: MergeTree<'v>, higher: MergeTree<'v>) -> MergeTree<'v> {
        let reducer = self.shapes.reducer(&self.position);
        if let Some(reduced) = reducer.and_then(|reducer| reduced(reducer, &lower, &higher)) {
            return self.reduce(reduced, lower, higher);
        }
        let shape = self.shapes.at(&self.position);
        if shape != Shape::Atomic && lower.is_object() && higher.is_object() {
            self.fields(&mut lower, higher);
            return lower;
        }
        if shape == Shape::Set {
            return self.unite(lower, higher);
        }
        if matches!(shape, Shape::Keyed(_)) {
            return match (lower, higher) {
                (MergeTree::Items(mut lower), MergeTree::Items(higher)) => {
                    self.items(&mut lower, higher);
                    MergeTree::Items(lower)
                }
                // An empty list merges with a keyed one: it has no items to add or to keep.
                (MergeTree::Items(items), empty) | (empty, MergeTree::Items(items))
                    if empty.is_empty_list() =>
                {
                    MergeTree::Items(items)
                }
                (lower, higher) if lower.is_empty_list() && higher.is_empty_list() => lower,
                (lower, higher) => self.winner_of(lower, higher),
            };
        }
        self.winner_of(lower, higher)
    }

    /// Merges two objects field by field.
    fn fields(&mut self, lower: &mut MergeTree<'v>, higher: MergeTree<'v>) {
        let MergeTree::Object(higher) = higher else {
            // An empty object adds nothing. Its loss is recorded, because the fields that win over it
            // can still be deleted.
            self.tracer.lost_to(&self.above, &higher, lower);
            return;
        };
        let Some(fields) = lower.fields_mut() else {
            return;
        };
        for (name, offered) in higher {
            let joined = match fields.remove(name) {
                None => offered,
                Some(existing) => {
                    self.position.push(SegmentRef::Field(name));
                    self.above.push(Segment::Field(name.into()));
                    let joined = self.merge(existing, offered);
                    self.position.pop();
                    self.above.pop();
                    joined
                }
            };
            fields.insert(name, joined);
        }
    }

    /// Merges two keyed lists: the lower items first, then the added ones, in order.
    fn items(
        &mut self,
        lower: &mut Vec<(super::shape::ItemKey, MergeTree<'v>)>,
        higher: Vec<(super::shape::ItemKey, MergeTree<'v>)>,
    ) {
        for (key, offered) in higher {
            let existing = lower.iter_mut().find(|(k, _)| *k == key);
            let Some((_, existing)) = existing else {
                lower.push((key, offered));
                continue;
            };
            self.above.push(item_segment(&key));
            self.position.push(SegmentRef::Item(key));
            let lower_item = std::mem::replace(existing, MergeTree::Items(Vec::new()));
            *existing = self.merge(lower_item, offered);
            self.position.pop();
            self.above.pop();
        }
    }

    /// Replaces two values with the result of a reducer, regardless of the direction. A block that
    /// already took part is part of the other side and adds nothing.
    fn reduce(
        &mut self,
        reduced: Reduction,
        lower: MergeTree<'v>,
        higher: MergeTree<'v>,
    ) -> MergeTree<'v> {
        match (self.counted, reduced) {
            (CountedSide::Higher, _) => lower,
            (CountedSide::Lower, _) => higher,
            (_, Reduction::Challenger) => {
                self.tracer.lost_to(&self.above, &higher, &lower);
                lower
            }
            (_, Reduction::Established) => {
                self.tracer.lost_to(&self.above, &lower, &higher);
                higher
            }
            (_, Reduction::Both(value)) => {
                let mut sources = lower.sources();
                sources.extend(higher.sources());
                MergeTree::Leaf(Leaf {
                    value: Cow::Owned(value),
                    sources,
                })
            }
        }
    }

    /// Unites two sets: the lower items first, then the added ones, each value once. Both sides are
    /// sources, also where the higher one adds nothing (specification 11.24).
    fn unite(&mut self, lower: MergeTree<'v>, higher: MergeTree<'v>) -> MergeTree<'v> {
        match (lower, higher) {
            (MergeTree::Leaf(mut existing), MergeTree::Leaf(offered)) => {
                let (Value::Array(own), Value::Array(others)) = (&*existing.value, &*offered.value)
                else {
                    return self.winner_of(MergeTree::Leaf(existing), MergeTree::Leaf(offered));
                };
                existing.value = Cow::Owned(Value::Array(united(own, others)));
                existing.sources.extend(offered.sources);
                MergeTree::Leaf(existing)
            }
            (lower, higher) => self.winner_of(lower, higher),
        }
    }

    /// Chooses between two units by the direction.
    fn winner_of(&mut self, lower: MergeTree<'v>, higher: MergeTree<'v>) -> MergeTree<'v> {
        let (winner, loser) = match self.direction {
            Direction::Defaults => (lower, higher),
            Direction::Overrides => (higher, lower),
        };
        self.tracer.lost_to(&self.above, &loser, &winner);
        winner
    }
}
