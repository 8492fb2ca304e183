//! Rules taken apart into units, each with its source.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::shape::{ItemKey, Place, Shape, Shapes};
use crate::model::{Segment, Unit};

/// A place of the gathered rules.
#[derive(Clone, Debug)]
pub(super) enum Slot<'v> {
    /// One unit.
    Leaf(Leaf<'v>),
    /// An opened object.
    Object(BTreeMap<&'v str, Slot<'v>>),
    /// A keyed list, items in order.
    Items(Vec<(ItemKey, Slot<'v>)>),
}

/// One unit: a value and the sources that say it (indexes of the fold's sources).
#[derive(Clone, Debug)]
pub(super) struct Leaf<'v> {
    pub value: Cow<'v, Value>,
    pub sources: Vec<usize>,
}

/// The rules of a block, taken apart by the finest granularity of the kind.
pub(super) fn take_apart<'v>(
    rules: &'v Map<String, Value>,
    source: usize,
    shapes: &Shapes<'_>,
) -> Slot<'v> {
    let mut place = Vec::new();
    if shapes.at(&place) == Shape::Unit || rules.is_empty() {
        return Slot::unit(Cow::Owned(Value::Object(rules.clone())), source);
    }
    Slot::Object(fields(rules, source, shapes, &mut place))
}

fn fields<'v>(
    rules: &'v Map<String, Value>,
    source: usize,
    shapes: &Shapes<'_>,
    place: &mut Vec<Place<'v>>,
) -> BTreeMap<&'v str, Slot<'v>> {
    let mut found = BTreeMap::new();
    for (name, value) in rules {
        place.push(Place::Field(name));
        found.insert(name.as_str(), slot(value, source, shapes, place));
        place.pop();
    }
    found
}

fn slot<'v>(
    value: &'v Value,
    source: usize,
    shapes: &Shapes<'_>,
    place: &mut Vec<Place<'v>>,
) -> Slot<'v> {
    match (shapes.at(place), value) {
        (Shape::Open | Shape::Keyed(_) | Shape::Set, Value::Object(map)) if !map.is_empty() => {
            Slot::Object(fields(map, source, shapes, place))
        }
        (Shape::Keyed(keys), Value::Array(list)) => match item_keys(list, &keys) {
            Some(item_keys) => {
                let mut items = Vec::with_capacity(list.len());
                for (key, item) in item_keys.into_iter().zip(list) {
                    place.push(Place::Item(key.clone()));
                    items.push((key, slot(item, source, shapes, place)));
                    place.pop();
                }
                Slot::Items(items)
            }
            None => Slot::unit(Cow::Borrowed(value), source),
        },
        _ => Slot::unit(Cow::Borrowed(value), source),
    }
}

/// The keys of a list's items; `None` if an item lacks one or two are alike: then the list is one
/// unit.
fn item_keys(list: &[Value], keys: &[String]) -> Option<Vec<ItemKey>> {
    let mut found: Vec<ItemKey> = Vec::with_capacity(list.len());
    for item in list {
        let key: ItemKey = keys
            .iter()
            .map(|name| {
                let value = item.get(name)?;
                let scalar = !value.is_null() && !value.is_object() && !value.is_array();
                scalar.then(|| (name.clone(), crate::model::item_value(value)))
            })
            .collect::<Option<_>>()?;
        if found.contains(&key) {
            return None;
        }
        found.push(key);
    }
    (!found.is_empty()).then_some(found)
}

impl<'v> Slot<'v> {
    pub fn unit(value: Cow<'v, Value>, source: usize) -> Self {
        Slot::Leaf(Leaf {
            value,
            sources: vec![source],
        })
    }

    /// Whether it is an empty list.
    pub fn is_empty_list(&self) -> bool {
        matches!(self, Slot::Leaf(leaf) if leaf.value.as_array().is_some_and(Vec::is_empty))
    }

    /// Whether it is an object, opened or an empty one.
    pub fn is_object(&self) -> bool {
        match self {
            Slot::Object(_) => true,
            Slot::Leaf(leaf) => leaf.value.as_object().is_some_and(Map::is_empty),
            Slot::Items(_) => false,
        }
    }

    /// The fields of an object; an empty one is opened by asking.
    pub fn fields_mut(&mut self) -> Option<&mut BTreeMap<&'v str, Slot<'v>>> {
        if matches!(self, Slot::Leaf(_)) && self.is_object() {
            *self = Slot::Object(BTreeMap::new());
        }
        match self {
            Slot::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// Who says it, each source once.
    pub fn sources(&self) -> Vec<usize> {
        let mut sources = Vec::new();
        self.leaves(&mut Vec::new(), &mut |_, leaf| {
            sources.extend(&leaf.sources)
        });
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    /// The value as it stands, tombstones included.
    pub fn raw(&self) -> Value {
        match self {
            Slot::Leaf(leaf) => leaf.value.as_ref().clone(),
            Slot::Object(fields) => fields
                .iter()
                .map(|(name, slot)| ((*name).to_owned(), slot.raw()))
                .collect::<Map<_, _>>()
                .into(),
            Slot::Items(items) => items.iter().map(|(_, slot)| slot.raw()).collect(),
        }
    }

    /// The finished value: tombstones are dropped, their parents stay (SEMANTICS §5.2).
    pub fn finished(&self) -> Value {
        match self {
            Slot::Leaf(leaf) => without_nulls(&leaf.value),
            Slot::Object(fields) => fields
                .iter()
                .filter(|(_, slot)| !slot.is_null())
                .map(|(name, slot)| ((*name).to_owned(), slot.finished()))
                .collect::<Map<_, _>>()
                .into(),
            Slot::Items(items) => items.iter().map(|(_, slot)| slot.finished()).collect(),
        }
    }

    /// Whether it is a tombstone.
    pub fn is_null(&self) -> bool {
        matches!(self, Slot::Leaf(leaf) if leaf.value.is_null())
    }

    /// Calls `f` for each leaf with its unit.
    pub fn leaves(&self, above: &mut Vec<Segment>, f: &mut dyn FnMut(Unit, &Leaf<'v>)) {
        match self {
            Slot::Leaf(leaf) => f(Unit(above.clone()), leaf),
            Slot::Object(fields) => {
                for (name, slot) in fields {
                    above.push(Segment::Field((*name).into()));
                    slot.leaves(above, f);
                    above.pop();
                }
            }
            Slot::Items(items) => {
                for (key, slot) in items {
                    above.push(item_segment(key));
                    slot.leaves(above, f);
                    above.pop();
                }
            }
        }
    }

    /// Hands each leaf with its unit to `f`.
    pub fn into_leaves(self, above: &mut Vec<Segment>, f: &mut dyn FnMut(Unit, Leaf<'v>)) {
        match self {
            Slot::Leaf(leaf) => f(Unit(above.clone()), leaf),
            Slot::Object(fields) => {
                for (name, slot) in fields {
                    above.push(Segment::Field(name.into()));
                    slot.into_leaves(above, f);
                    above.pop();
                }
            }
            Slot::Items(items) => {
                for (key, slot) in items {
                    above.push(item_segment(&key));
                    slot.into_leaves(above, f);
                    above.pop();
                }
            }
        }
    }

    /// Cuts out what a name covers; objects that it empties go too (SEMANTICS §5.5). Returns
    /// whether nothing is left.
    pub fn cut(&mut self, name: &[Segment]) -> bool {
        let Some((first, rest)) = name.split_first() else {
            return true;
        };
        match (self, first) {
            (Slot::Object(fields), Segment::Field(field)) => {
                if fields.get_mut(&**field).is_some_and(|slot| slot.cut(rest)) {
                    fields.remove(&**field);
                    return fields.is_empty();
                }
                false
            }
            (Slot::Items(items), Segment::Item(wanted)) => {
                let before = items.len();
                items.retain_mut(|(key, slot)| {
                    !(item_segment(key) == Segment::Item(wanted.clone()) && slot.cut(rest))
                });
                items.is_empty() && before > 0
            }
            // A name below a unit is cut out of the unit (SEMANTICS §11.8).
            (Slot::Leaf(leaf), _) if leaf.value.is_object() => cut_value(leaf.value.to_mut(), name),
            _ => false,
        }
    }
}

fn cut_value(value: &mut Value, name: &[Segment]) -> bool {
    let Some((Segment::Field(field), rest)) = name.split_first() else {
        return name.is_empty();
    };
    let Some(fields) = value.as_object_mut() else {
        return false;
    };
    if fields.get_mut(&**field).is_some_and(|v| cut_value(v, rest)) {
        fields.remove(&**field);
        return fields.is_empty();
    }
    false
}

pub(super) fn item_segment(key: &ItemKey) -> Segment {
    let pairs = key
        .iter()
        .map(|(name, value)| (name.as_str().into(), value.clone()));
    Segment::Item(pairs.collect())
}

/// A value without the nulls of its objects; inside a list a null is plain data (SEMANTICS §5.2).
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, v)| !v.is_null())
            .map(|(name, v)| (name.clone(), without_nulls(v)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
