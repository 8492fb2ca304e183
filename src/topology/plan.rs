//! From the name of a path to its places: one probe a step, keys borrowed from the name.
//!
//! Paths are implicit. What stands below a route is the same below each listener that it joins, so
//! a route's rules and backends are here once, and paths share them: the plan grows with objects
//! and with the joins between them, not with the paths that these multiply to.

use hashbrown::{Equivalent, HashMap};

use super::{NodeId, TrailRoot};
use crate::model::{Level, PathName, Root, RuleStep, Str};

/// The places of all paths.
#[derive(Debug, Default)]
pub struct Plan {
    children: HashMap<Key, PlaceId>,
    places: Vec<Place>,
    roots: Vec<PlaceId>,
}

/// A place's number, dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceId(u32);

/// Where a prefix of some path ends.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its node and level.
    pub node: NodeId,
    /// Its level on these paths: a Service stands on several.
    pub level: Level,
    /// What is special about a root.
    pub root: Option<Box<RootPlace>>,
    /// The places below, each once.
    pub below: Vec<PlaceId>,
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

/// The parent of all roots.
const TOP: PlaceId = PlaceId(u32::MAX);

/// Parent and step.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key(PlaceId, Step<Str>);

/// The same, borrowed.
#[derive(PartialEq, Eq, Hash)]
struct KeyRef<'a>(PlaceId, Step<&'a str>);

/// A step of a path's name. Owned and borrowed ones hash alike, since strings do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step<S> {
    GatewayClass(S),
    Namespace(S),
    Gateway(S, S),
    /// A mesh root is its Service and the client: an unknown client answers as `*`.
    Service(S, S, S),
    ListenerSet(S, S),
    Listener(S),
    Route(S, S, S),
    RuleName(S),
    RuleIndex(u32),
    Backend(S, S, S),
    Port(u16),
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
    pub fn roots(&self) -> &[PlaceId] {
        &self.roots
    }

    /// A place.
    pub fn place(&self, id: PlaceId) -> Option<&Place> {
        self.places.get(id.index())
    }

    /// The place of a number.
    pub fn place_at(&self, index: usize) -> Option<&Place> {
        self.places.get(index)
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
        // Places below have lower numbers: they are made first.
        let mut counts: Vec<u64> = Vec::with_capacity(self.places.len());
        for place in &self.places {
            let below = place.below.iter().filter_map(|id| counts.get(id.index()));
            counts.push(below.fold(1, |sum, more| sum.saturating_add(*more)));
        }
        let roots = self.roots.iter().filter_map(|id| counts.get(id.index()));
        roots.fold(0, |sum, more| sum.saturating_add(*more))
    }

    fn child(&self, parent: PlaceId, step: Step<&str>) -> Option<PlaceId> {
        self.children.get(&KeyRef(parent, step)).copied()
    }

    /// Adds a place above those that are below it, which have been added before.
    pub(super) fn add(
        &mut self,
        (node, level): (NodeId, Level),
        below: Vec<(Step<Str>, PlaceId)>,
    ) -> PlaceId {
        // 4 billion places do not fit into memory; the last number is none.
        let id = PlaceId(u32::try_from(self.places.len()).unwrap_or(u32::MAX));
        let mut ids = Vec::with_capacity(below.len());
        for (step, child) in below {
            self.children.insert(Key(id, step), child);
            // A rule is found by name and by index.
            if ids.last() != Some(&child) {
                ids.push(child);
            }
        }
        self.places.push(Place {
            node,
            level,
            root: None,
            below: ids,
        });
        id
    }

    /// Makes a place a root.
    pub(super) fn add_root(&mut self, step: Step<Str>, id: PlaceId, root: RootPlace) {
        self.children.insert(Key(TOP, step), id);
        self.roots.push(id);
        if let Some(place) = self.places.get_mut(id.index()) {
            place.root = Some(Box::new(root));
        }
    }

    /// Returns unused memory.
    pub(super) fn shrink(&mut self) {
        self.children.shrink_to_fit();
        self.places.shrink_to_fit();
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.0 == key.0 && key.1.is(&self.1)
    }
}

impl Step<Str> {
    fn is(&self, other: &Step<&str>) -> bool {
        use Step::{
            Backend, Gateway, GatewayClass, Listener, ListenerSet, Namespace, Port, Route,
            RuleIndex, RuleName, Service,
        };
        match (self, other) {
            (GatewayClass(a), GatewayClass(b))
            | (Namespace(a), Namespace(b))
            | (Listener(a), Listener(b))
            | (RuleName(a), RuleName(b)) => **a == **b,
            (Gateway(a, b), Gateway(c, d)) | (ListenerSet(a, b), ListenerSet(c, d)) => {
                **a == **c && **b == **d
            }
            (Service(a, b, c), Service(d, e, f))
            | (Route(a, b, c), Route(d, e, f))
            | (Backend(a, b, c), Backend(d, e, f)) => **a == **d && **b == **e && **c == **f,
            (RuleIndex(a), RuleIndex(b)) => a == b,
            (Port(a), Port(b)) => a == b,
            _ => false,
        }
    }
}

/// The steps of a path's name, at most eight.
fn steps<'a>(path: &PathName<'a>) -> [Option<Step<&'a str>>; 8] {
    let one = |step: Step<&'a str>| [Some(step), None, None, None, None, None, None, None];
    let walk = match path {
        PathName::GatewayClass(name) => return one(Step::GatewayClass(name)),
        PathName::Namespace(name) => return one(Step::Namespace(name)),
        PathName::Walk(walk) => walk,
    };
    let (root, root_port) = match walk.root {
        Root::Gateway { namespace, name } => (Step::Gateway(namespace, name), None),
        Root::Mesh {
            client,
            namespace,
            name,
            port,
        } => (Step::Service(namespace, name, client), port.map(Step::Port)),
    };
    [
        Some(root),
        root_port,
        walk.listener_set
            .map(|s| Step::ListenerSet(s.namespace, s.name)),
        walk.listener.map(Step::Listener),
        walk.route.map(|r| Step::Route(r.kind, r.namespace, r.name)),
        walk.rule.map(|rule| match rule {
            RuleStep::Index(index) => Step::RuleIndex(index),
            RuleStep::Name(name) => Step::RuleName(name),
        }),
        walk.backend
            .map(|b| Step::Backend(b.kind, b.namespace, b.name)),
        walk.port.map(Step::Port),
    ]
}
