//! Joins two sides of a merge: the lower, more specific one and the higher one (specification 5.2,
//! 6.1).

use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::reduce::{Reduction, reduce, united};
use super::shape::{ItemKey, SegmentRef, Shape, ShapeRules};
use super::trace::LossTracer;
use super::tree::{Items, Leaf, MergeTree};
use super::unit_value::UnitValue;
use crate::model::{Direction, Granularity};
use crate::profile::{ListOrder, ReduceFunction};

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
        Direction::Overrides if lower.is_empty_whole() => {
            let mut tree = higher.tree;
            tree.merge_empty(lower.tree);
            Side { tree, closed: true }
        }
        _ => {
            let mut merger = Merger {
                direction,
                counted,
                shapes,
                tracer,
                position: Vec::new(),
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

/// The places of the items of two lists, of which one is a patch of the other: the items of the patch in their
/// order, and each of the others as soon as no item of the patch that both lists have stands before it in the
/// original (specification 5.13).
fn patched_order(patch: &Items<'_>, original: &Items<'_>) -> HashMap<ItemKey, usize> {
    let keys = original.items.iter().map(|(key, _)| key);
    let originally: HashMap<&ItemKey, usize> =
        keys.enumerate().map(|(at, key)| (key, at)).collect();
    let patched: HashSet<&ItemKey> = patch.items.iter().map(|(key, _)| key).collect();
    let others = original.items.iter().map(|(key, _)| key);
    let mut others = others.filter(|key| !patched.contains(key)).peekable();
    let mut order = HashMap::with_capacity(patch.items.len() + original.items.len());
    for (key, _) in &patch.items {
        let before = originally.get(key);
        while let Some(other) = others.next_if(|other| originally.get(other) < before) {
            order.insert(other.clone(), order.len());
        }
        order.insert(key.clone(), order.len());
    }
    for other in others {
        order.insert(other.clone(), order.len());
    }
    order
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
}

impl<'v> Merger<'_, '_, 'v> {
    fn merge(&mut self, mut lower: MergeTree<'v>, higher: MergeTree<'v>) -> MergeTree<'v> {
        let reducer = self.shapes.reducer(&self.position, self.direction);
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
            return self.lists(lower, higher);
        }
        self.winner_of(lower, higher)
    }

    /// Merges two objects field by field.
    fn fields(&mut self, lower: &mut MergeTree<'v>, higher: MergeTree<'v>) {
        let MergeTree::Object(higher) = higher else {
            // An empty object adds nothing. Its loss is recorded, because the fields that win over it
            // can still be deleted.
            self.tracer.lost_to(&self.position, &higher, lower);
            lower.merge_empty(higher);
            return;
        };
        let Some(fields) = lower.fields_mut() else {
            return;
        };
        for (name, offered) in higher.fields {
            let joined = match fields.remove(name) {
                None => offered,
                Some(existing) => {
                    self.position.push(SegmentRef::Field(name));
                    let joined = self.merge(existing, offered);
                    self.position.pop();
                    joined
                }
            };
            fields.insert(name, joined);
        }
        lower.add_merged(higher.merged);
    }

    /// Merges two lists at the place of a keyed list. An empty list has no items to add or to keep.
    fn lists(&mut self, lower: MergeTree<'v>, higher: MergeTree<'v>) -> MergeTree<'v> {
        let empty = (lower.is_empty_list(), higher.is_empty_list());
        match (lower, higher) {
            (MergeTree::Items(mut lower), MergeTree::Items(higher)) => {
                self.items(&mut lower, higher);
                MergeTree::Items(lower)
            }
            (mut list @ MergeTree::Items(_), other) if empty.1 => {
                list.merge_empty(other);
                list
            }
            (other, mut list @ MergeTree::Items(_)) if empty.0 => {
                list.merge_empty(other);
                list
            }
            (mut lower, higher) if empty == (true, true) => {
                lower.merge_empty(higher);
                lower
            }
            (lower, higher) => self.winner_of(lower, higher),
        }
    }

    /// Merges two keyed lists: the lower items first, then the added ones, in order, or in the order of the
    /// profile.
    fn items(&mut self, lower: &mut Items<'v>, higher: Items<'v>) {
        let order = match self.shapes.profile.list_order {
            ListOrder::Added => None,
            ListOrder::StrategicMergePatch => Some(match self.direction {
                Direction::Defaults => patched_order(lower, &higher),
                Direction::Overrides => patched_order(&higher, lower),
            }),
        };
        for (key, offered) in higher.items {
            let existing = lower.items.iter_mut().find(|(k, _)| *k == key);
            let Some((_, existing)) = existing else {
                lower.items.push((key, offered));
                continue;
            };
            self.position.push(SegmentRef::Item(key));
            let lower_item = std::mem::replace(existing, MergeTree::Items(Items::default()));
            *existing = self.merge(lower_item, offered);
            self.position.pop();
        }
        lower.merged.extend(higher.merged);
        if let Some(order) = order {
            let place = |key: &ItemKey| order.get(key).copied().unwrap_or(usize::MAX);
            lower.items.sort_by_key(|(key, _)| place(key));
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
                self.tracer.lost_to(&self.position, &higher, &lower);
                lower
            }
            (_, Reduction::Established) => {
                self.tracer.lost_to(&self.position, &lower, &higher);
                higher
            }
            (_, Reduction::Both(value)) => {
                let mut sources = lower.sources();
                sources.extend(higher.sources());
                MergeTree::Leaf(Leaf {
                    value: UnitValue::Decoded(value),
                    sources,
                    set: lower.is_set() && higher.is_set(),
                    merged: Vec::new(),
                })
            }
        }
    }

    /// Unites two sets: the lower items first, then the added ones, each value once. Both sides are
    /// sources, also where the higher one adds nothing (specification 11.24). A list of a block whose schema
    /// does not describe it as a set is a unit (specification 11.43).
    fn unite(&mut self, lower: MergeTree<'v>, higher: MergeTree<'v>) -> MergeTree<'v> {
        match (lower, higher) {
            (MergeTree::Leaf(mut existing), MergeTree::Leaf(offered))
                if existing.set && offered.set =>
            {
                let united = match (&*existing.value.decoded(), &*offered.value.decoded()) {
                    (Value::Array(own), Value::Array(others)) => Some(united(own, others)),
                    _ => None,
                };
                let Some(united) = united else {
                    return self.winner_of(MergeTree::Leaf(existing), MergeTree::Leaf(offered));
                };
                existing.value = UnitValue::Decoded(united.into());
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
        self.tracer.lost_to(&self.position, &loser, &winner);
        winner
    }
}
