//! A tree of rules, split into units with their sources.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::shape::{ItemKey, SegmentRef, Shape, ShapeRules, item_segment};
use super::unit_value::UnitValue;
use crate::model::{Encoded, Segment, Unit};

/// A node of the tree.
#[derive(Clone, Debug)]
pub(super) enum MergeTree<'v> {
    /// One unit.
    Leaf(Leaf<'v>),
    /// An object, split into its fields.
    Object(Fields<'v>),
    /// A keyed list, split into its items.
    Items(Items<'v>),
}

/// One unit: a value and the indexes of the sources that set it.
#[derive(Clone, Debug)]
pub(super) struct Leaf<'v> {
    pub value: UnitValue<'v>,
    pub sources: Vec<usize>,
    /// Whether the value is a list that the schema of its own block describes as a set (specification 5.2,
    /// 11.43).
    pub set: bool,
    /// The sources of the empty objects or lists that were merged with this empty one.
    pub merged: Vec<usize>,
}

/// The fields of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields<'v> {
    pub fields: BTreeMap<&'v str, MergeTree<'v>>,
    /// The sources of the empty objects that were merged with this object.
    pub merged: Vec<usize>,
}

/// The items of a keyed list, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Items<'v> {
    pub items: Vec<(ItemKey, MergeTree<'v>)>,
    /// The sources of the empty lists that were merged with this list.
    pub merged: Vec<usize>,
}

/// Splits the rules of a block into units.
pub(super) fn decompose<'v>(
    rules: Encoded<'v>,
    source: usize,
    shapes: &ShapeRules<'_>,
) -> MergeTree<'v> {
    let mut position = Vec::new();
    if shapes.at(&position) == Shape::Atomic || rules.is_empty() {
        return MergeTree::unit(rules, source);
    }
    MergeTree::of_fields(fields(rules, source, shapes, &mut position))
}

fn fields<'v>(
    rules: Encoded<'v>,
    source: usize,
    shapes: &ShapeRules<'_>,
    position: &mut Vec<SegmentRef<'v>>,
) -> BTreeMap<&'v str, MergeTree<'v>> {
    let mut result = BTreeMap::new();
    for (name, value) in rules.fields() {
        position.push(SegmentRef::Field(name));
        result.insert(name, tree(value, source, shapes, position));
        position.pop();
    }
    result
}

fn tree<'v>(
    value: Encoded<'v>,
    source: usize,
    shapes: &ShapeRules<'_>,
    position: &mut Vec<SegmentRef<'v>>,
) -> MergeTree<'v> {
    match shapes.at(position) {
        Shape::Granular | Shape::Keyed(_) | Shape::Set
            if value.is_object() && !value.is_empty() =>
        {
            MergeTree::of_fields(fields(value, source, shapes, position))
        }
        Shape::Keyed(keys) if value.is_list() => match item_keys(value, &keys) {
            Some(item_keys) => {
                let mut items = Vec::with_capacity(item_keys.len());
                for (key, item) in item_keys.into_iter().zip(value.items()) {
                    position.push(SegmentRef::Item(key.clone()));
                    items.push((key, tree(item, source, shapes, position)));
                    position.pop();
                }
                MergeTree::Items(Items {
                    items,
                    merged: Vec::new(),
                })
            }
            None => MergeTree::unit(value, source),
        },
        _ if value.is_list() => MergeTree::Leaf(Leaf {
            set: shapes.is_set(position),
            ..Leaf::new(value, source)
        }),
        _ => MergeTree::unit(value, source),
    }
}

/// Returns the keys of the items of a list. `None` if a key is missing or repeated; the list is one
/// unit then.
fn item_keys(list: Encoded<'_>, keys: &[String]) -> Option<Vec<ItemKey>> {
    let mut result: Vec<ItemKey> = Vec::new();
    for item in list.items() {
        let key: ItemKey = keys
            .iter()
            .map(|name| {
                let value = item.get(name)?;
                let scalar = !value.is_null() && !value.is_object() && !value.is_list();
                scalar.then(|| (name.clone(), crate::model::item_value(&value.value())))
            })
            .collect::<Option<_>>()?;
        if result.contains(&key) {
            return None;
        }
        result.push(key);
    }
    (!result.is_empty()).then_some(result)
}

impl<'v> MergeTree<'v> {
    fn unit(value: Encoded<'v>, source: usize) -> Self {
        MergeTree::Leaf(Leaf::new(value, source))
    }

    fn of_fields(fields: BTreeMap<&'v str, MergeTree<'v>>) -> Self {
        MergeTree::Object(Fields {
            fields,
            merged: Vec::new(),
        })
    }

    /// Reports whether the node is an empty list.
    pub fn is_empty_list(&self) -> bool {
        matches!(self, MergeTree::Leaf(leaf) if leaf.value.is_empty_list())
    }

    /// Reports whether the node is a list that the schema of its own block describes as a set.
    pub fn is_set(&self) -> bool {
        matches!(self, MergeTree::Leaf(leaf) if leaf.set)
    }

    /// Reports whether the node is an object that is split or empty.
    pub fn is_object(&self) -> bool {
        match self {
            MergeTree::Object(_) => true,
            MergeTree::Leaf(leaf) => leaf.value.is_empty_object(),
            MergeTree::Items(_) => false,
        }
    }

    /// Returns the fields of an object. Converts an empty object to a split one, whose sources are
    /// kept as merged.
    pub fn fields_mut(&mut self) -> Option<&mut BTreeMap<&'v str, MergeTree<'v>>> {
        if self.is_object()
            && let MergeTree::Leaf(leaf) = self
        {
            let merged = std::mem::take(&mut leaf.sources);
            let mut object = MergeTree::of_fields(BTreeMap::new());
            object.add_merged(merged);
            object.add_merged(std::mem::take(&mut leaf.merged));
            *self = object;
        }
        match self {
            MergeTree::Object(object) => Some(&mut object.fields),
            _ => None,
        }
    }

    /// Records that an empty object or list was merged with this one (specification 11.39).
    pub fn merge_empty(&mut self, empty: MergeTree<'v>) {
        if let MergeTree::Leaf(empty) = empty {
            self.add_merged(empty.all_sources());
        }
    }

    /// Records the sources of empty objects or lists that were merged with this one.
    pub fn add_merged(&mut self, sources: Vec<usize>) {
        match self {
            MergeTree::Leaf(leaf) => leaf.merged.extend(sources),
            MergeTree::Object(object) => object.merged.extend(sources),
            MergeTree::Items(list) => list.merged.extend(sources),
        }
    }

    /// Returns the sources of all units of the node, each once.
    pub fn sources(&self) -> Vec<usize> {
        let mut sources = Vec::new();
        self.leaves(&mut Vec::new(), &mut |_, leaf| {
            sources.extend(&leaf.sources)
        });
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    /// Returns the value, including tombstones.
    pub fn raw(&self) -> Value {
        match self {
            MergeTree::Leaf(leaf) => leaf.value.decoded().into_owned(),
            MergeTree::Object(object) => object
                .fields
                .iter()
                .map(|(name, tree)| ((*name).to_owned(), tree.raw()))
                .collect::<Map<_, _>>()
                .into(),
            MergeTree::Items(list) => list.items.iter().map(|(_, tree)| tree.raw()).collect(),
        }
    }

    /// Returns the value without tombstones. Their parents are kept (specification 5.2).
    pub fn pruned(&self) -> Value {
        match self {
            MergeTree::Leaf(leaf) => leaf.value.without_nulls(),
            MergeTree::Object(object) => object
                .fields
                .iter()
                .filter(|(_, tree)| !tree.is_null())
                .map(|(name, tree)| ((*name).to_owned(), tree.pruned()))
                .collect::<Map<_, _>>()
                .into(),
            MergeTree::Items(list) => list.items.iter().map(|(_, tree)| tree.pruned()).collect(),
        }
    }

    /// Reports whether the node is a tombstone.
    pub fn is_null(&self) -> bool {
        matches!(self, MergeTree::Leaf(leaf) if leaf.value.is_null())
    }

    /// Calls `f` for each leaf with its unit.
    pub fn leaves(&self, above: &mut Vec<Segment>, f: &mut dyn FnMut(Unit, &Leaf<'v>)) {
        match self {
            MergeTree::Leaf(leaf) => f(Unit(above.clone()), leaf),
            MergeTree::Object(object) => {
                for (name, tree) in &object.fields {
                    above.push(Segment::Field((*name).into()));
                    tree.leaves(above, f);
                    above.pop();
                }
            }
            MergeTree::Items(list) => {
                for (key, tree) in &list.items {
                    above.push(item_segment(key));
                    tree.leaves(above, f);
                    above.pop();
                }
            }
        }
    }

    /// Calls `f` for each empty object or list that was merged with another, with its place, its source and its
    /// value.
    pub fn filled(&self, above: &mut Vec<Segment>, f: &mut dyn FnMut(&[Segment], usize, Value)) {
        let (merged, empty) = match self {
            MergeTree::Leaf(leaf) if leaf.merged.is_empty() => return,
            MergeTree::Leaf(leaf) => (&leaf.merged, leaf.value.decoded().into_owned()),
            MergeTree::Object(object) => (&object.merged, Value::Object(Map::new())),
            MergeTree::Items(list) => (&list.merged, Value::Array(Vec::new())),
        };
        for &source in merged {
            f(above, source, empty.clone());
        }
        match self {
            MergeTree::Leaf(_) => {}
            MergeTree::Object(object) => {
                for (name, tree) in &object.fields {
                    above.push(Segment::Field((*name).into()));
                    tree.filled(above, f);
                    above.pop();
                }
            }
            MergeTree::Items(list) => {
                for (key, tree) in &list.items {
                    above.push(item_segment(key));
                    tree.filled(above, f);
                    above.pop();
                }
            }
        }
    }

    /// Consumes the tree and calls `f` for each leaf with its unit, and `filled` for each object or
    /// list that empty ones were merged with, with the sources of the empty ones.
    pub fn into_leaves(
        self,
        above: &mut Vec<Segment>,
        f: &mut dyn FnMut(Unit, Leaf<'v>),
        filled: &mut dyn FnMut(Unit, Vec<usize>),
    ) {
        let mut report = |above: &[Segment], merged: Vec<usize>| {
            if !merged.is_empty() {
                filled(Unit(above.to_vec()), merged);
            }
        };
        match self {
            MergeTree::Leaf(mut leaf) => {
                report(above, std::mem::take(&mut leaf.merged));
                f(Unit(above.clone()), leaf);
            }
            MergeTree::Object(object) => {
                report(above, object.merged);
                for (name, tree) in object.fields {
                    above.push(Segment::Field(name.into()));
                    tree.into_leaves(above, f, filled);
                    above.pop();
                }
            }
            MergeTree::Items(list) => {
                report(above, list.merged);
                for (key, tree) in list.items {
                    above.push(item_segment(&key));
                    tree.into_leaves(above, f, filled);
                    above.pop();
                }
            }
        }
    }

    /// Calls `f` with each leaf at or below a place, or with the leaf above it that has a value there, and with
    /// whether that value is true.
    pub fn leaves_at(&self, place: &[Segment], f: &mut dyn FnMut(&Leaf<'v>, bool)) {
        match (self, place.split_first()) {
            (MergeTree::Leaf(leaf), _) => {
                if let Some(is_true) = leaf.value.is_true_at(place) {
                    f(leaf, is_true);
                }
            }
            (_, None) => self.leaves(&mut Vec::new(), &mut |_, leaf| {
                f(leaf, leaf.value.is_true_at(&[]).unwrap_or_default());
            }),
            (MergeTree::Object(object), Some((Segment::Field(name), below))) => {
                if let Some(tree) = object.fields.get(&**name) {
                    tree.leaves_at(below, f);
                }
            }
            (_, Some(_)) => {}
        }
    }

    /// Removes everything that a name covers, and objects that become empty (specification 5.5).
    /// Returns whether nothing is left.
    pub fn cut(&mut self, name: &[Segment]) -> bool {
        let Some((first, rest)) = name.split_first() else {
            return true;
        };
        match (self, first) {
            (MergeTree::Object(Fields { fields, .. }), Segment::Field(field)) => {
                if fields.get_mut(&**field).is_some_and(|tree| tree.cut(rest)) {
                    fields.remove(&**field);
                    return fields.is_empty();
                }
                false
            }
            (MergeTree::Items(Items { items, .. }), Segment::Item(key_to_remove)) => {
                let before = items.len();
                items.retain_mut(|(key, tree)| {
                    !(item_segment(key) == Segment::Item(key_to_remove.clone()) && tree.cut(rest))
                });
                items.is_empty() && before > 0
            }
            // A name below a unit is removed from the value of the unit (specification 11.8).
            (MergeTree::Leaf(leaf), _) if leaf.value.is_object() => {
                leaf.value.edit(|value| cut_value(value, name))
            }
            _ => false,
        }
    }
}

impl<'v> Leaf<'v> {
    fn new(value: Encoded<'v>, source: usize) -> Self {
        Self {
            value: UnitValue::Encoded(value),
            sources: vec![source],
            set: false,
            merged: Vec::new(),
        }
    }

    /// Returns the sources of the value and of the empty ones that were merged with it.
    fn all_sources(mut self) -> Vec<usize> {
        self.sources.append(&mut self.merged);
        self.sources
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

/// Returns a value without the nulls of its objects. Nulls in lists are plain data (specification
/// 5.2).
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
