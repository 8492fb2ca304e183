//! What a place of the rules is under a granularity: opened, or one unit (specification 5.2).

use serde_json::Value;

use super::schema;
use crate::model::{BlockName, Granularity};
use crate::profile::{Profile, ReduceFunction};

/// One segment of the place at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SegmentRef<'v> {
    /// A field of an object.
    Field(&'v str),
    /// An item of a keyed list.
    Item(ItemKey),
}

/// The key of an item: field names and the JSON text of their values.
pub(super) type ItemKey = Vec<(String, String)>;

/// What stands at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Objects are opened there; anything else is one unit.
    Granular,
    /// One unit.
    Atomic,
    /// Lists are merged by these keys; objects are opened.
    Keyed(Vec<String>),
    /// Lists are united.
    Set,
}

/// The CRD's schemas of a kind's rules, by the block that they stand in (specification 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Schemas<'s> {
    /// Of bare rules.
    pub bare: Option<&'s Value>,
    /// Of the defaults block.
    pub defaults: Option<&'s Value>,
    /// Of the overrides block.
    pub overrides: Option<&'s Value>,
}

/// The shapes of a kind under one granularity.
#[derive(Clone, Copy)]
pub(super) struct ShapeRules<'p> {
    pub profile: &'p Profile,
    pub granularity: Granularity,
    pub schemas: Schemas<'p>,
    /// The schema of the block at hand.
    pub schema: Option<&'p Value>,
    /// Rules are taken apart as far as any strategy of the kind opens them: keyed lists for a
    /// Structural block to merge, the maps of Rule where a schema makes one unit of them.
    pub finest: bool,
    /// Objects are opened down to the leaves, atomic paths or not.
    pub whole: bool,
}

impl<'p> ShapeRules<'p> {
    /// The shapes under the finest granularity that the kind offers: its leaves are the units of
    /// provenance.
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
            whole: false,
        }
    }

    /// The same, for a block.
    pub fn of(self, block: BlockName) -> Self {
        Self {
            schema: self.schemas.of(block),
            ..self
        }
    }

    /// The reducer of a place, under the Custom granularity.
    pub fn reducer(&self, position: &[SegmentRef<'_>]) -> Option<&'p ReduceFunction> {
        let custom = self.granularity == Granularity::Custom;
        self.profile
            .reducers
            .iter()
            .filter(|_| custom)
            .find(|r| matches(&r.path, position))
            .map(|r| &r.reduce)
    }

    /// The same kind under another granularity.
    pub fn with(self, granularity: Granularity) -> Self {
        Self {
            granularity,
            finest: false,
            ..self
        }
    }

    /// The shape of a place; the empty one is the whole block.
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
            Shape::Granular => {
                let structural = Some(Granularity::Structural);
                let keyed = |shape: &Shape| matches!(shape, Shape::Keyed(_));
                let listed = others.any(|s| s.granularity() == structural);
                let listed = listed.then(|| self.structural(position)).filter(keyed);
                listed.unwrap_or(Shape::Granular)
            }
            shape => shape,
        }
    }

    /// The shape of a place under one granularity, atomic paths aside.
    fn under(&self, granularity: Granularity, position: &[SegmentRef<'_>]) -> Shape {
        match granularity {
            Granularity::Atomic => Shape::Atomic,
            Granularity::Field if position.is_empty() => Shape::Granular,
            Granularity::Field => Shape::Atomic,
            // The rule maps and the objects above them are opened; their entries are not.
            Granularity::Rule => {
                let above = |map: &Vec<String>| {
                    position.len() <= map.len() && position.iter().zip(map).all(|(p, m)| p.is(m))
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

    fn structural(&self, position: &[SegmentRef<'_>]) -> Shape {
        let listed = self.profile.list_keys.iter().find(|(path, _)| {
            let fields = position
                .iter()
                .filter(|p| matches!(p, SegmentRef::Field(_)));
            fields.clone().count() == path.len() && fields.zip(path).all(|(p, m)| p.is(m))
        });
        match listed {
            Some((_, key)) if matches!(position.last(), Some(SegmentRef::Field(_))) => {
                Shape::Keyed(vec![key.clone()])
            }
            _ => {
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

/// Whether a place is at a path; `*` is any field.
fn matches(path: &[String], position: &[SegmentRef<'_>]) -> bool {
    path.len() == position.len() && position.iter().zip(path).all(|(p, m)| p.is(m))
}

impl<'s> Schemas<'s> {
    fn of(self, block: BlockName) -> Option<&'s Value> {
        let own = match block {
            BlockName::Bare | BlockName::OwnFields => self.bare,
            BlockName::Defaults => self.defaults,
            BlockName::Overrides => self.overrides,
        };
        // Blocks of a kind hold the same rules: where one is not described, another is.
        own.or(self.defaults).or(self.overrides)
    }
}

impl SegmentRef<'_> {
    /// Whether it is this field; `*` is any.
    fn is(&self, name: &str) -> bool {
        match self {
            SegmentRef::Field(field) => *field == name || name == "*",
            SegmentRef::Item(_) => false,
        }
    }
}
