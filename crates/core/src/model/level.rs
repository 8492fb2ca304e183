//! Levels of the hierarchy, and the nodes that policies attach to (specification 1.1).

use std::fmt;

use super::object_key::{GroupKind, ObjectKey, Str, groups};

/// A level of the hierarchy. Less specific levels compare smaller.
///
/// `Root` holds the policies of a profile's root namespace (specification 3.1). A Namespace is a
/// node of a path, but cannot be an effective target (specification 1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Above all other levels.
    #[default]
    Root,
    /// GatewayClass.
    GatewayClass,
    /// Namespace, directly above the least specific node of the path that is in it.
    Namespace,
    /// Gateway, or the Service that is a mesh root.
    Gateway,
    /// ListenerSet.
    ListenerSet,
    /// Listener, or the port of a mesh root.
    Listener,
    /// A route of any kind.
    Route,
    /// One rule of a route.
    RouteRule,
    /// A backend of any kind.
    Backend,
    /// One port of a backend.
    BackendPort,
}

/// A part of an object. Policies can reference all parts but backendRefs by `sectionName`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// A listener of a Gateway or ListenerSet, by name.
    Listener(Str),
    /// A rule of a route, by index. Names and indexes are separate name spaces (specification 1.5).
    Rule(u32),
    /// The backendRefs of a rule that name one object, by the index of the rule and of the first of these
    /// backendRefs. Filters of backendRefs attach here (specification 2.7).
    BackendRef(u32, u32),
    /// A port of a backend, by number.
    Port(u16),
}

/// What a policy attaches to: an object or a section of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeKey {
    /// The object.
    pub object: ObjectKey,
    /// The section; `None` for the whole object.
    pub section: Option<Section>,
}

impl Level {
    /// Every level, from the least specific to the most specific.
    pub const ALL: [Level; 10] = [
        Level::Root,
        Level::GatewayClass,
        Level::Namespace,
        Level::Gateway,
        Level::ListenerSet,
        Level::Listener,
        Level::Route,
        Level::RouteRule,
        Level::Backend,
        Level::BackendPort,
    ];

    /// Returns the level with a name.
    pub fn parse(name: &str) -> Option<Self> {
        let mut levels = Self::ALL.into_iter();
        levels.find(|level| level.as_str() == name)
    }

    /// Returns the name that profiles and answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Root => "Root",
            Level::GatewayClass => "GatewayClass",
            Level::Namespace => "Namespace",
            Level::Gateway => "Gateway",
            Level::ListenerSet => "ListenerSet",
            Level::Listener => "Listener",
            Level::Route => "Route",
            Level::RouteRule => "RouteRule",
            Level::Backend => "Backend",
            Level::BackendPort => "BackendPort",
        }
    }
}

impl Section {
    /// Whether a `sectionName` can reference the part.
    pub fn is_referable(&self) -> bool {
        !matches!(self, Section::BackendRef(..))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl NodeKey {
    /// Returns the node of a whole object.
    pub fn whole(object: ObjectKey) -> Self {
        Self {
            object,
            section: None,
        }
    }

    /// Returns the node of a section of an object.
    pub fn section(object: ObjectKey, section: Section) -> Self {
        Self {
            object,
            section: Some(section),
        }
    }

    /// Returns the root node, which the policies of a profile's root namespace attach to
    /// (specification 3.1).
    pub fn root() -> Self {
        Self::whole(ObjectKey::new(
            GroupKind::new(groups::ENTAIL, "Root"),
            "",
            "",
        ))
    }

    /// Returns the node of a Namespace.
    pub fn namespace(name: impl Into<Str>) -> Self {
        Self::whole(ObjectKey::new(
            GroupKind::new(groups::CORE, "Namespace"),
            "",
            name,
        ))
    }
}

impl fmt::Display for NodeKey {
    /// Writes `Kind/ns/name`, `Gateway/ns/gw#http` or `HTTPRoute/ns/r##0` (specification 11.16). Rules
    /// are written by index: a caller that knows the name of a rule writes it instead.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.object)?;
        match &self.section {
            None => Ok(()),
            Some(Section::Listener(name)) => write!(f, "#{name}"),
            Some(Section::Rule(index)) => write!(f, "##{index}"),
            Some(Section::BackendRef(rule, index)) => write!(f, "##{rule}/backendRefs/{index}"),
            Some(Section::Port(port)) => write!(f, "#{port}"),
        }
    }
}
