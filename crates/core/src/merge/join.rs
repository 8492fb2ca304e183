//! Joins what is gathered below with what stands above (specification 5.2, 6.1).

use std::borrow::Cow;

use serde_json::Value;

use super::reduce::{Reduction, reduce, without};
use super::shape::{SegmentRef, Shape, ShapeRules};
use super::trace::LossTracer;
use super::tree::{Leaf, MergeTree, item_segment};
use crate::model::{Direction, Granularity, Segment};
use crate::profile::ReduceFunction;

/// What is gathered, or offered, as a whole.
#[derive(Clone, Debug)]
pub(super) struct Side<'v> {
    pub tree: MergeTree<'v>,
    /// An empty block of a Blocking kind took the place of all that would be inherited: it is one
    /// unit, the whole, and overrides may fill it (specification 5.6, 11.9).
    pub closed: bool,
}

/// Which side of a pair is a block that has counted before: the policy stands at several nodes of
/// the path, but a reducer takes its block once (specification 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedSide {
    Neither,
    Lower,
    Higher,
}

/// Joins a lower and a higher side by a strategy. Under defaults the lower side wins and the
/// higher one adds the units that it lacks; under overrides the higher side sets its units.
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
        // What fills the empty whole leaves it closed.
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

/// What a reducer makes of both sides; `None` where the direction decides (specification 5.2).
fn reduced(
    reducer: &ReduceFunction,
    lower: &MergeTree<'_>,
    higher: &MergeTree<'_>,
) -> Option<Reduction> {
    reduce(reducer, &higher.raw(), &lower.raw())
}

impl Side<'_> {
    /// Whether nothing has filled the empty whole.
    fn is_empty_whole(&self) -> bool {
        self.closed && matches!(self.tree, MergeTree::Leaf(_))
    }
}

/// A walk through both sides at once.
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
            return self.united(lower, higher);
        }
        if matches!(shape, Shape::Keyed(_)) {
            return match (lower, higher) {
                (MergeTree::Items(mut lower), MergeTree::Items(higher)) => {
                    self.items(&mut lower, higher);
                    MergeTree::Items(lower)
                }
                // All items of an empty list have all keys: it adds nothing and holds nothing.
                (MergeTree::Items(items), empty) | (empty, MergeTree::Items(items))
                    if empty.is_empty_list() =>
                {
                    MergeTree::Items(items)
                }
                (lower, higher) if lower.is_empty_list() && higher.is_empty_list() => lower,
                (lower, higher) => self.one(lower, higher),
            };
        }
        self.one(lower, higher)
    }

    /// Both are objects: field by field.
    fn fields(&mut self, lower: &mut MergeTree<'v>, higher: MergeTree<'v>) {
        let MergeTree::Object(higher) = higher else {
            // An empty object offers nothing to an object; it is told, for what holds may go, too.
            self.tracer.lost_to(&self.above, &higher, lower);
            return;
        };
        let Some(fields) = lower.fields_mut() else {
            return;
        };
        for (name, offered) in higher {
            let joined = match fields.remove(name) {
                None => offered,
                Some(held) => {
                    self.position.push(SegmentRef::Field(name));
                    self.above.push(Segment::Field(name.into()));
                    let joined = self.merge(held, offered);
                    self.position.pop();
                    self.above.pop();
                    joined
                }
            };
            fields.insert(name, joined);
        }
    }

    /// Both are keyed lists: what is gathered first, then what is added, in its order.
    fn items(
        &mut self,
        lower: &mut Vec<(super::shape::ItemKey, MergeTree<'v>)>,
        higher: Vec<(super::shape::ItemKey, MergeTree<'v>)>,
    ) {
        for (key, offered) in higher {
            let held = lower.iter_mut().find(|(k, _)| *k == key);
            let Some((_, held)) = held else {
                lower.push((key, offered));
                continue;
            };
            self.above.push(item_segment(&key));
            self.position.push(SegmentRef::Item(key));
            let taken = std::mem::replace(held, MergeTree::Items(Vec::new()));
            *held = self.merge(taken, offered);
            self.position.pop();
            self.above.pop();
        }
    }

    /// Both have a value at a reducer's place: the result is made of both, whatever the direction.
    /// What has counted before adds nothing: the other side was made with it.
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

    /// Sets are united: what is gathered first, then what is added.
    fn united(&mut self, lower: MergeTree<'v>, higher: MergeTree<'v>) -> MergeTree<'v> {
        match (lower, higher) {
            (MergeTree::Leaf(mut held), MergeTree::Leaf(offered)) => {
                let (Value::Array(own), Value::Array(others)) = (&*held.value, &*offered.value)
                else {
                    return self.one(MergeTree::Leaf(held), MergeTree::Leaf(offered));
                };
                let added = without(others, own);
                if !added.is_empty() {
                    let united = own.iter().cloned().chain(added).collect();
                    held.value = Cow::Owned(united);
                    held.sources.extend(offered.sources);
                }
                MergeTree::Leaf(held)
            }
            (lower, higher) => self.one(lower, higher),
        }
    }

    /// One unit on either side: one of them wins.
    fn one(&mut self, lower: MergeTree<'v>, higher: MergeTree<'v>) -> MergeTree<'v> {
        let (winner, loser) = match self.direction {
            Direction::Defaults => (lower, higher),
            Direction::Overrides => (higher, lower),
        };
        self.tracer.lost_to(&self.above, &loser, &winner);
        winner
    }
}
