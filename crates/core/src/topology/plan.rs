//! From the name of a path to its places: a probe a step, keys borrowed from the name.
//!
//! Paths are implicit. What stands below a route is the same below each listener that it joins, so
//! a route's rules and backends are here once, and paths share them: the plan grows with objects
//! and with the joins between them, not with the paths that these multiply to.
//!
//! What is below a place lies together, names included, so that a step costs few lines of cache.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::step::{self, Step, steps};
use super::{NodeId, TrailRoot};
use crate::model::{Level, PathName, Str};

/// The places of all paths.
#[derive(Debug, Default)]
pub struct Plan {
    places: Vec<Place>,
    edges: Vec<Edge>,
    /// The names of edges, one after the other.
    text: Vec<u8>,
    /// Edges of places with many of them, and of the top: parent and number.
    many: HashTable<(PlaceId, u32)>,
    roots: Vec<(PlaceId, RootPlace)>,
    /// The edges of the roots.
    tops: Vec<u32>,
    hasher: DefaultHashBuilder,
}

/// A place's number, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceId(u32);

/// Where a prefix of some path ends.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its node.
    pub node: NodeId,
    /// Its level on these paths: a Service stands on several.
    pub level: Level,
    first: u32,
    count: u32,
}

/// What a path begins with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RootPlace {
    /// The kind of root.
    pub kind: TrailRoot,
    /// The class that stands above a Gateway, if it exists.
    pub class: Option<NodeId>,
    /// `controllerName` of the Gateway's class.
    pub controller: Option<Str>,
    /// The namespace of the clients (SEMANTICS §1.3, §4.6).
    pub client: Str,
}

/// A named step from one place to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    hash: u32,
    place: PlaceId,
    text: u32,
    length: u32,
}

/// The parent of all roots.
const TOP: PlaceId = PlaceId(u32::MAX);
/// A place with more edges than this has them in the table.
const FEW: usize = 12;

impl Edge {
    /// Where it leads.
    pub(super) fn place(&self) -> PlaceId {
        self.place
    }
}

impl PlaceId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Plan {
    /// The places that a path's name leads through, the last one its own; `None` if it is no path.
    /// `visit` is called for each. Allocates nothing.
    pub fn walk(&self, path: &PathName<'_>, mut visit: impl FnMut(PlaceId)) -> Option<()> {
        let mut at = TOP;
        for step in steps(path).into_iter().flatten() {
            let found = self.child(at, step).or_else(|| match step {
                // Any client that nothing sets apart answers as `*` (SEMANTICS §1.3).
                Step::Service(namespace, name, _) => {
                    self.child(at, Step::Service(namespace, name, "*"))
                }
                _ => None,
            });
            at = found?;
            visit(at);
        }
        (at != TOP).then_some(())
    }

    /// The roots of all paths.
    pub fn roots(&self) -> impl Iterator<Item = &(PlaceId, RootPlace)> {
        self.roots.iter()
    }

    /// The edges to the roots.
    pub(super) fn top(&self) -> impl Iterator<Item = &Edge> {
        let edges = self.tops.iter();
        edges.filter_map(|&edge| self.edges.get(edge as usize))
    }

    /// The edges to the places below a place. A rule that has a name has two, one after the other:
    /// its index and its name.
    pub(super) fn edges_below(&self, place: &Place) -> &[Edge] {
        let first = place.first as usize;
        let edges = self.edges.get(first..first + place.count as usize);
        edges.unwrap_or_default()
    }

    /// The index of the rule that an edge leads to by index.
    pub(super) fn rule_index(&self, edge: &Edge) -> Option<u32> {
        let (mark, rest) = self.text_of(edge)?.split_first()?;
        (*mark == b'i').then_some(u32::from_le_bytes(*rest.first_chunk()?))
    }

    /// Adds the step of an edge to the name of a path.
    pub(super) fn write_step(&self, edge: &Edge, name: &mut String) {
        if let Some(text) = self.text_of(edge) {
            step::spell(text, name);
        }
    }

    fn text_of(&self, edge: &Edge) -> Option<&[u8]> {
        let from = edge.text as usize;
        self.text.get(from..from + edge.length as usize)
    }

    /// The places below a place, each once.
    pub fn below(&self, place: &Place) -> impl Iterator<Item = PlaceId> {
        let mut last = None;
        // A rule is found by index and by name.
        let places = self.edges_below(place).iter().map(|edge| edge.place);
        places.filter(move |place| last.replace(*place) != Some(*place))
    }

    /// A place.
    pub fn place(&self, id: PlaceId) -> Option<&Place> {
        self.places.get(id.index())
    }

    /// All places, those below before those above.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.iter()
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many paths the places make.
    pub fn paths(&self) -> u64 {
        let mut counts: Vec<u64> = Vec::with_capacity(self.places.len());
        for place in &self.places {
            let below = self.below(place);
            let counted = below.filter_map(|id| counts.get(id.index()));
            counts.push(counted.fold(1, |sum, more| sum.saturating_add(*more)));
        }
        let roots = self.roots.iter();
        let counted = roots.filter_map(|(id, _)| counts.get(id.index()));
        counted.fold(0, |sum, more| sum.saturating_add(*more))
    }

    fn child(&self, parent: PlaceId, step: Step<'_>) -> Option<PlaceId> {
        let hash = self.hash(step);
        let same = |edge: &&Edge| edge.hash == hash && self.is_named(edge, step);
        if let Some(place) = self.places.get(parent.index())
            && place.count as usize <= FEW
        {
            let mut edges = self.edges_below(place).iter();
            return edges.find(same).map(|edge| edge.place);
        }
        let ours = |&(above, at): &(PlaceId, u32)| {
            above == parent && self.edges.get(at as usize).is_some_and(|edge| same(&edge))
        };
        let (_, found) = self.many.find(mix(hash, parent), ours)?;
        self.edges.get(*found as usize).map(|edge| edge.place)
    }

    fn is_named(&self, edge: &Edge, step: Step<'_>) -> bool {
        self.text_of(edge).is_some_and(|name| step.is(name))
    }

    fn hash(&self, step: Step<'_>) -> u32 {
        (self.hasher.hash_one(step) >> 32) as u32
    }

    /// Adds an edge; returns its number.
    fn edge(&mut self, step: Step<'_>, place: PlaceId) -> u32 {
        let text = self.text.len();
        step.write(&mut self.text);
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.edges.push(Edge {
            hash: self.hash(step),
            place,
            // 4 billion edges, and as many bytes of names, do not fit into memory.
            text: number(text),
            length: number(self.text.len() - text),
        });
        number(self.edges.len() - 1)
    }

    /// Puts an edge into the table.
    fn enter(&mut self, parent: PlaceId, edge: u32) {
        let edges = &self.edges;
        let hash = |&(above, at): &(PlaceId, u32)| {
            let edge = edges.get(at as usize);
            mix(edge.map_or(0, |edge| edge.hash), above)
        };
        let entry = (parent, edge);
        self.many.insert_unique(hash(&entry), entry, hash);
    }

    /// Adds a place above those that are below it, which have been added before.
    pub(super) fn add(
        &mut self,
        (node, level): (NodeId, Level),
        below: &[(Step<'_>, PlaceId)],
    ) -> PlaceId {
        let id = PlaceId(u32::try_from(self.places.len()).unwrap_or(u32::MAX));
        let first = u32::try_from(self.edges.len()).unwrap_or(u32::MAX);
        for &(step, child) in below {
            let edge = self.edge(step, child);
            if below.len() > FEW {
                self.enter(id, edge);
            }
        }
        self.places.push(Place {
            node,
            level,
            first,
            count: u32::try_from(below.len()).unwrap_or(u32::MAX),
        });
        id
    }

    /// Makes a place a root.
    pub(super) fn add_root(&mut self, step: Step<'_>, id: PlaceId, root: RootPlace) {
        let edge = self.edge(step, id);
        self.enter(TOP, edge);
        self.tops.push(edge);
        self.roots.push((id, root));
    }

    /// Returns unused memory.
    pub(super) fn shrink(&mut self) {
        self.places.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.text.shrink_to_fit();
    }
}

/// The hash of a step below a parent.
fn mix(hash: u32, parent: PlaceId) -> u64 {
    let both = u64::from(hash) << 32 | u64::from(parent.0);
    let mixed = both.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}
