//! What a place of the rules is under a granularity: opened, or one unit (SEMANTICS §5.2).

use crate::model::Granularity;
use crate::profile::Profile;

/// One segment of the place at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place<'v> {
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
    Open,
    /// One unit.
    Unit,
    /// Lists are merged by these keys; objects are opened.
    Keyed(Vec<String>),
}

/// The shapes of a kind under one granularity.
#[derive(Clone, Copy)]
pub(super) struct Shapes<'p> {
    pub profile: &'p Profile,
    pub granularity: Granularity,
}

impl<'p> Shapes<'p> {
    /// The shapes under the finest granularity that the kind offers: its leaves are the units of
    /// provenance.
    pub fn finest(profile: &'p Profile) -> Self {
        let finest = profile.strategies.iter().filter_map(|s| s.granularity()).max();
        Self {
            profile,
            granularity: finest.unwrap_or(Granularity::Atomic),
        }
    }

    /// The same kind under another granularity.
    pub fn with(self, granularity: Granularity) -> Self {
        Self {
            granularity,
            ..self
        }
    }

    /// The shape of a place; the empty one is the whole block.
    pub fn at(&self, place: &[Place<'_>]) -> Shape {
        if self.is_atomic_path(place) {
            return Shape::Unit;
        }
        match self.granularity {
            Granularity::Atomic => Shape::Unit,
            Granularity::Field if place.is_empty() => Shape::Open,
            Granularity::Field => Shape::Unit,
            // The rule maps and the objects above them are opened; their entries are not.
            Granularity::Rule => {
                let above = |map: &Vec<String>| {
                    place.len() <= map.len() && place.iter().zip(map).all(|(p, m)| p.is(m))
                };
                if place.is_empty() || self.profile.rule_maps.iter().any(above) {
                    Shape::Open
                } else {
                    Shape::Unit
                }
            }
            Granularity::Patch | Granularity::Custom => Shape::Open,
            Granularity::Structural => self.structural(place),
        }
    }

    fn structural(&self, place: &[Place<'_>]) -> Shape {
        let listed = self.profile.list_keys.iter().find(|(path, _)| {
            let fields = place.iter().filter(|p| matches!(p, Place::Field(_)));
            fields.clone().count() == path.len() && fields.zip(path).all(|(p, m)| p.is(m))
        });
        match listed {
            Some((_, key)) if matches!(place.last(), Some(Place::Field(_))) => {
                Shape::Keyed(vec![key.clone()])
            }
            _ => Shape::Open,
        }
    }

    fn is_atomic_path(&self, place: &[Place<'_>]) -> bool {
        self.profile
            .atomic_paths
            .iter()
            .any(|path| path.len() == place.len() && place.iter().zip(path).all(|(p, m)| p.is(m)))
    }
}

impl Place<'_> {
    /// Whether it is this field; `*` is any.
    fn is(&self, name: &str) -> bool {
        match self {
            Place::Field(field) => *field == name || name == "*",
            Place::Item(_) => false,
        }
    }
}
