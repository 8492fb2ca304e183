//! Shapes: whether a position of the rules is split into smaller units under a granularity
//! (specification 5.2).

use serde_json::Value;

use super::schema;
use crate::model::{BlockName, Direction, Granularity, Segment, Strategy};
use crate::profile::{Profile, ReduceFunction};

/// One segment of a position in the rules, borrowed from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SegmentRef<'v> {
    /// A field of an object.
    Field(&'v str),
    /// An item of a keyed list.
    Item(ItemKey),
}

/// The key of an item: names of the key fields and the JSON text of their values.
pub(super) type ItemKey = Vec<(String, String)>;

/// The shape of a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Objects are split into their fields; any other value is one unit.
    Granular,
    /// The value is one unit.
    Atomic,
    /// Lists are merged item by item, by these key fields; objects are split into their fields.
    Keyed(Vec<String>),
    /// Lists are sets, which are united if both sides are; objects are split into their fields.
    Set,
}

/// The CRD schemas of the rules of a kind, by block (specification 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Schemas<'s> {
    /// Schema of the bare rules.
    pub bare: Option<&'s Value>,
    /// Schema of the defaults block.
    pub defaults: Option<&'s Value>,
    /// Schema of the overrides block.
    pub overrides: Option<&'s Value>,
}

/// The rules that determine the shape of each position for a kind and a granularity.
#[derive(Clone, Copy)]
pub(super) struct ShapeRules<'p> {
    pub profile: &'p Profile,
    pub granularity: Granularity,
    pub schemas: Schemas<'p>,
    /// The schema of the current block.
    pub schema: Option<&'p Value>,
    /// Whether to split rules as far as any strategy of the kind does: keyed lists for Structural
    /// blocks, and the rule maps of Rule even if a schema makes them atomic.
    pub finest: bool,
    /// With `finest`: whether to split keyed lists also where the finest granularity has them whole, as
    /// Patch does. The loss report does not (specification 11.13).
    pub lists: bool,
    /// Whether to split objects down to their leaves, even at atomic paths.
    pub whole: bool,
}

impl<'p> ShapeRules<'p> {
    /// Returns the rules for the finest granularity that the kind offers, whose leaves are the units
    /// of provenance.
    pub fn finest(profile: &'p Profile, schemas: Schemas<'p>) -> Self {
        let finest = profile
            .strategies
            .iter()
            .filter_map(|s| s.granularity())
            .max();
        Self {
            profile,
            granularity: finest.unwrap_or(Granularity::Atomic),
            schemas,
            schema: schemas.of(BlockName::Bare),
            finest: true,
            lists: true,
            whole: false,
        }
    }

    /// Returns the rules for a block.
    pub fn of(self, block: BlockName) -> Self {
        Self {
            schema: self.schemas.of(block),
            ..self
        }
    }

    /// Returns the reducer of a position, under the granularity and a direction.
    pub fn reducer(
        &self,
        position: &[SegmentRef<'_>],
        direction: Direction,
    ) -> Option<&'p ReduceFunction> {
        let strategy = Strategy::Merge(self.granularity, direction);
        let mut reducers = self.profile.reducers.iter();
        reducers
            .find(|r| r.strategies.contains(&strategy) && matches(&r.path, position))
            .map(|r| &r.reduce)
    }

    /// Returns the rules for another granularity.
    pub fn with(self, granularity: Granularity) -> Self {
        Self {
            granularity,
            finest: false,
            ..self
        }
    }

    /// Returns the shape of a position. The empty position is the whole block.
    pub fn at(&self, position: &[SegmentRef<'_>]) -> Shape {
        if !self.whole && self.is_atomic_path(position) {
            return Shape::Atomic;
        }
        let shape = self.under(self.granularity, position);
        if !self.finest {
            return shape;
        }
        let mut others = self.profile.strategies.iter();
        match shape {
            Shape::Atomic => {
                let opens = |g| self.under(g, position) != Shape::Atomic;
                let opened = others.filter_map(|s| s.granularity()).any(opens);
                if opened {
                    Shape::Granular
                } else {
                    Shape::Atomic
                }
            }
            Shape::Granular if self.lists => {
                let structural = Some(Granularity::Structural);
                let keyed = |shape: &Shape| matches!(shape, Shape::Keyed(_));
                let listed = others.any(|s| s.granularity() == structural);
                let listed = listed.then(|| self.structural(position)).filter(keyed);
                listed.unwrap_or(Shape::Granular)
            }
            shape => shape,
        }
    }

    /// Returns the shape of a position under one granularity, ignoring atomic paths.
    fn under(&self, granularity: Granularity, position: &[SegmentRef<'_>]) -> Shape {
        match granularity {
            Granularity::Atomic => Shape::Atomic,
            Granularity::Field if position.is_empty() => Shape::Granular,
            Granularity::Field => Shape::Atomic,
            // The rule maps and the objects above them are split; their entries are not.
            Granularity::Rule => {
                let above = |map: &Vec<String>| {
                    position.len() <= map.len()
                        && position.iter().zip(map).all(|(p, m)| p.is_field(m))
                };
                if position.is_empty() || self.profile.rule_maps.iter().any(above) {
                    Shape::Granular
                } else {
                    Shape::Atomic
                }
            }
            Granularity::Patch | Granularity::Custom => Shape::Granular,
            Granularity::Structural => self.structural(position),
        }
    }

    /// Returns whether the schema of the current block describes a position as a set, whatever the granularity.
    pub fn is_set(&self, position: &[SegmentRef<'_>]) -> bool {
        self.structural(position) == Shape::Set
    }

    fn structural(&self, position: &[SegmentRef<'_>]) -> Shape {
        let mut listed = self.profile.list_keys.iter();
        match listed.find(|(path, _)| matches(path, position)) {
            Some((_, key)) => Shape::Keyed(vec![key.clone()]),
            None => {
                let node = self.schema.and_then(|root| schema::descend(root, position));
                node.map_or(Shape::Granular, schema::shape)
            }
        }
    }

    fn is_atomic_path(&self, position: &[SegmentRef<'_>]) -> bool {
        self.profile
            .atomic_paths
            .iter()
            .any(|path| matches(path, position))
    }
}

/// Reports whether a position is at a path. The path names fields only and passes through the items
/// of keyed lists without a step; `*` matches any field (specification 11.33).
fn matches(path: &[String], position: &[SegmentRef<'_>]) -> bool {
    if let Some(SegmentRef::Item(_)) = position.last() {
        return false;
    }
    let is_field = |segment: &&SegmentRef<'_>| matches!(segment, SegmentRef::Field(_));
    let mut names = path.iter();
    let mut fields = position.iter().filter(is_field);
    fields.all(|field| names.next().is_some_and(|name| field.is_field(name)))
        && names.next().is_none()
}

/// The segment of an item of a keyed list.
pub(super) fn item_segment(key: &ItemKey) -> Segment {
    let pairs = key
        .iter()
        .map(|(name, value)| (name.as_str().into(), value.clone()));
    Segment::Item(pairs.collect())
}

impl<'s> Schemas<'s> {
    /// Returns the schema of a block; `None` if the CRD does not describe it (specification 11.43).
    fn of(self, block: BlockName) -> Option<&'s Value> {
        match block {
            BlockName::Bare | BlockName::OwnFields => self.bare,
            BlockName::Defaults => self.defaults,
            BlockName::Overrides => self.overrides,
        }
    }
}

impl SegmentRef<'_> {
    /// The segment, which is copied.
    pub fn segment(&self) -> Segment {
        match self {
            SegmentRef::Field(field) => Segment::Field((*field).into()),
            SegmentRef::Item(key) => item_segment(key),
        }
    }

    /// Reports whether the segment is a field with this name. `*` matches any field.
    fn is_field(&self, name: &str) -> bool {
        match self {
            SegmentRef::Field(field) => *field == name || name == "*",
            SegmentRef::Item(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn paths_pass_through_items_without_a_step() {
        let item = SegmentRef::Item(vec![("name".to_owned(), "a".to_owned())]);
        let items = [SegmentRef::Field("items"), item.clone()];
        let sub = [items[0].clone(), item, SegmentRef::Field("sub")];
        assert!(matches(&path("items.sub"), &sub));
        assert!(matches(&path("items.*"), &sub));
        assert!(matches(&path("*.sub"), &sub));
        assert!(matches(&path("items"), &items[..1]));
        assert!(!matches(&path("items"), &items));
        assert!(!matches(&path("items.*"), &items));
        assert!(!matches(&path("items.*.sub"), &sub));
        assert!(!matches(&path("items.sub.x"), &sub));
    }
}
