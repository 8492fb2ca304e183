//! Joins what is gathered below with what stands above (SEMANTICS §5.2, §6.1).

use std::borrow::Cow;

use serde_json::Value;

use super::reduce::{Reduced, reduce, without};
use super::shape::{Place, Shape, Shapes};
use super::slot::{Leaf, Slot, item_segment};
use super::trace::Tracer;
use crate::model::{Direction, Granularity, Segment};
use crate::profile::Reduce;

/// What is gathered, or offered, as a whole.
#[derive(Clone, Debug)]
pub(super) struct Side<'v> {
    pub slot: Slot<'v>,
    /// An empty block of a Blocking kind took the place of all that would be inherited: it is one
    /// unit, the whole, and overrides may fill it (SEMANTICS §5.6, §11.9).
    pub closed: bool,
}

/// Which side of a pair is a block that has counted before: the policy stands at several nodes of
/// the path, but a reducer takes its block once (SEMANTICS §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
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
    counted: Counted,
    shapes: &Shapes<'_>,
    tracer: &mut Tracer<'_>,
) -> Side<'v> {
    let atomic = shapes.granularity == Granularity::Atomic;
    let whole = atomic || higher.is_empty_whole();
    match direction {
        Direction::Defaults if whole || lower.closed => {
            tracer.lost_to(&[], &higher.slot, &lower.slot);
            lower
        }
        Direction::Overrides if whole => {
            tracer.lost_to(&[], &lower.slot, &higher.slot);
            higher
        }
        // What fills the empty whole leaves it closed.
        Direction::Overrides if lower.is_empty_whole() => Side {
            slot: higher.slot,
            closed: true,
        },
        _ => {
            let mut walk = Walk {
                direction,
                counted,
                shapes,
                tracer,
                place: Vec::new(),
                above: Vec::new(),
            };
            Side {
                slot: walk.slots(lower.slot, higher.slot),
                closed: lower.closed,
            }
        }
    }
}

/// What a reducer makes of both sides; `None` where the direction decides (SEMANTICS §5.2).
fn reduced(reducer: &Reduce, lower: &Slot<'_>, higher: &Slot<'_>) -> Option<Reduced> {
    reduce(reducer, &higher.raw(), &lower.raw())
}

impl Side<'_> {
    /// Whether nothing has filled the empty whole.
    fn is_empty_whole(&self) -> bool {
        self.closed && matches!(self.slot, Slot::Leaf(_))
    }
}

/// A walk through both sides at once.
struct Walk<'w, 's, 'v> {
    direction: Direction,
    counted: Counted,
    shapes: &'w Shapes<'w>,
    tracer: &'w mut Tracer<'s>,
    place: Vec<Place<'v>>,
    above: Vec<Segment>,
}

impl<'v> Walk<'_, '_, 'v> {
    fn slots(&mut self, mut lower: Slot<'v>, higher: Slot<'v>) -> Slot<'v> {
        let reducer = self.shapes.reducer(&self.place);
        if let Some(reduced) = reducer.and_then(|reducer| reduced(reducer, &lower, &higher)) {
            return self.reduce(reduced, lower, higher);
        }
        let shape = self.shapes.at(&self.place);
        if shape != Shape::Unit && lower.is_object() && higher.is_object() {
            self.fields(&mut lower, higher);
            return lower;
        }
        if shape == Shape::Set {
            return self.united(lower, higher);
        }
        if matches!(shape, Shape::Keyed(_)) {
            return match (lower, higher) {
                (Slot::Items(mut lower), Slot::Items(higher)) => {
                    self.items(&mut lower, higher);
                    Slot::Items(lower)
                }
                // All items of an empty list have all keys: it adds nothing and holds nothing.
                (Slot::Items(items), empty) | (empty, Slot::Items(items))
                    if empty.is_empty_list() =>
                {
                    Slot::Items(items)
                }
                (lower, higher) if lower.is_empty_list() && higher.is_empty_list() => lower,
                (lower, higher) => self.one(lower, higher),
            };
        }
        self.one(lower, higher)
    }

    /// Both are objects: field by field.
    fn fields(&mut self, lower: &mut Slot<'v>, higher: Slot<'v>) {
        let Slot::Object(higher) = higher else {
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
                    self.place.push(Place::Field(name));
                    self.above.push(Segment::Field(name.into()));
                    let joined = self.slots(held, offered);
                    self.place.pop();
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
        lower: &mut Vec<(super::shape::ItemKey, Slot<'v>)>,
        higher: Vec<(super::shape::ItemKey, Slot<'v>)>,
    ) {
        for (key, offered) in higher {
            let held = lower.iter_mut().find(|(k, _)| *k == key);
            let Some((_, held)) = held else {
                lower.push((key, offered));
                continue;
            };
            self.above.push(item_segment(&key));
            self.place.push(Place::Item(key));
            let taken = std::mem::replace(held, Slot::Items(Vec::new()));
            *held = self.slots(taken, offered);
            self.place.pop();
            self.above.pop();
        }
    }

    /// Both have a value at a reducer's place: the result is made of both, whatever the direction.
    /// What has counted before adds nothing: the other side was made with it.
    fn reduce(&mut self, reduced: Reduced, lower: Slot<'v>, higher: Slot<'v>) -> Slot<'v> {
        match (self.counted, reduced) {
            (Counted::Higher, _) => lower,
            (Counted::Lower, _) => higher,
            (_, Reduced::Challenger) => {
                self.tracer.lost_to(&self.above, &higher, &lower);
                lower
            }
            (_, Reduced::Established) => {
                self.tracer.lost_to(&self.above, &lower, &higher);
                higher
            }
            (_, Reduced::Both(value)) => {
                let mut sources = lower.sources();
                sources.extend(higher.sources());
                Slot::Leaf(Leaf {
                    value: Cow::Owned(value),
                    sources,
                })
            }
        }
    }

    /// Sets are united: what is gathered first, then what is added.
    fn united(&mut self, lower: Slot<'v>, higher: Slot<'v>) -> Slot<'v> {
        match (lower, higher) {
            (Slot::Leaf(mut held), Slot::Leaf(offered)) => {
                let (Value::Array(own), Value::Array(others)) = (&*held.value, &*offered.value)
                else {
                    return self.one(Slot::Leaf(held), Slot::Leaf(offered));
                };
                let added = without(others, own);
                if !added.is_empty() {
                    let united = own.iter().cloned().chain(added).collect();
                    held.value = Cow::Owned(united);
                    held.sources.extend(offered.sources);
                }
                Slot::Leaf(held)
            }
            (lower, higher) => self.one(lower, higher),
        }
    }

    /// One unit on either side: one of them wins.
    fn one(&mut self, lower: Slot<'v>, higher: Slot<'v>) -> Slot<'v> {
        let (winner, loser) = match self.direction {
            Direction::Defaults => (lower, higher),
            Direction::Overrides => (higher, lower),
        };
        self.tracer.lost_to(&self.above, &loser, &winner);
        winner
    }
}
