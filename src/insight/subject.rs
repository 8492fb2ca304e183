//! The subject of a query: everything, a path, or an object.

use super::Failure;
use super::failure::shortened;
use entail_core::effective::World;
use entail_core::engine::PathEngine;
use entail_core::model::{GroupKind, NodeKey, ObjectKey, PathName, Section, groups};
use entail_core::topology::{NodeId, TrieNodeId};

/// The subject of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuerySubject {
    /// Everything.
    All,
    /// A path, by its name.
    Path(String),
    /// An object, or a section of it.
    Object(ObjectKey, Option<String>),
}

/// The topology nodes of a subject; `None` for all nodes.
pub(super) struct SubjectNodes {
    nodes: Option<Vec<NodeId>>,
    /// Whether a node is a GatewayClass. GatewayClasses have no trie node above their Gateways.
    has_class: bool,
}

impl QuerySubject {
    /// Parses a name. One that begins with `gateways/`, `gatewayclasses/`, `namespaces/` or `mesh/`
    /// is a path. `kind/ns/name` or `kind/name` is an object, `kind/ns/name#section` a section of it.
    /// Kinds are case-insensitive.
    ///
    /// # Errors
    /// The name is malformed.
    pub fn read(text: &str, world: &World) -> Result<Self, Failure> {
        if text.is_empty() {
            return Ok(QuerySubject::All);
        }
        let roots = ["gateways/", "gatewayclasses/", "namespaces/", "mesh/"];
        if roots.iter().any(|root| text.starts_with(root)) {
            PathName::parse(text).map_err(|error| Failure::syntax(text, &error))?;
            return Ok(QuerySubject::Path(text.to_owned()));
        }
        let (object, section) = match text.split_once('#') {
            Some((object, section)) => (object, Some(section.to_owned())),
            None => (text, None),
        };
        let parts: Vec<&str> = object.split('/').collect();
        let (kind, namespace, name) = match parts.as_slice() {
            [kind, name] => (*kind, "", *name),
            [kind, namespace, name] => (*kind, *namespace, *name),
            _ => return Err(malformed(text)),
        };
        if kind.is_empty() || name.is_empty() {
            return Err(malformed(text));
        }
        let kind = kind_named(kind, world);
        Ok(QuerySubject::Object(
            ObjectKey::new(kind, namespace, name),
            section,
        ))
    }

    /// Whether the subject exists: a valid path, an object, or a section that its object has.
    pub fn exists(&self, engine: &PathEngine) -> bool {
        let world = engine.world();
        let has_node = || {
            self.nodes(engine)
                .nodes
                .is_some_and(|nodes| !nodes.is_empty())
        };
        match self {
            QuerySubject::All => true,
            QuerySubject::Path(name) => {
                PathName::parse(name).is_ok_and(|path| world.locate(&path).is_ok())
            }
            QuerySubject::Object(key, None) => world.store().get(key).is_some() || has_node(),
            QuerySubject::Object(_, Some(_)) => has_node(),
        }
    }

    /// Finds the topology nodes of the subject.
    pub(super) fn nodes(&self, engine: &PathEngine) -> SubjectNodes {
        let topology = engine.world().topology();
        let nodes: Vec<NodeId> = match self {
            QuerySubject::All | QuerySubject::Path(_) => {
                return SubjectNodes {
                    nodes: None,
                    has_class: false,
                };
            }
            QuerySubject::Object(key, section) => {
                let whole = topology.node(&NodeKey::whole(key.clone()));
                match section {
                    None => whole.into_iter().collect(),
                    Some(section) => {
                        let mut parts = whole.map_or_else(Vec::new, |w| topology.sections(w));
                        parts.retain(|node| is_section(engine.world(), *node, section));
                        parts
                    }
                }
            }
        };
        let is_class = |node: &NodeId| &*topology.key(*node).object.kind.kind == "GatewayClass";
        SubjectNodes {
            has_class: nodes.iter().any(is_class),
            nodes: Some(nodes),
        }
    }
}

impl SubjectNodes {
    /// Whether every path through a trie node goes through the subject at or above that node.
    pub(super) fn includes(&self, engine: &PathEngine, id: TrieNodeId) -> bool {
        let Some(nodes) = &self.nodes else {
            return true;
        };
        let root = || engine.trie().root(id).filter(|_| self.has_class);
        let class = || root().and_then(|root| root.class);
        self.ends(engine, id) || class().is_some_and(|class| nodes.contains(&class))
    }

    /// Whether a trie node is a node of the subject.
    pub(super) fn ends(&self, engine: &PathEngine, id: TrieNodeId) -> bool {
        let node = engine.trie().node(id);
        let nodes = self.nodes.as_deref().unwrap_or_default();
        node.is_ok_and(|node| nodes.contains(&node.node))
    }
}

/// Whether a node is the section with a name.
fn is_section(world: &World, node: NodeId, name: &str) -> bool {
    match &world.topology().key(node).section {
        None | Some(Section::BackendRef(..)) => false,
        Some(Section::Listener(listener)) => **listener == *name,
        Some(Section::Port(port)) => port.to_string() == name,
        Some(Section::Rule(index)) => {
            name == format!("#{index}")
                || world
                    .topology()
                    .describe(node)
                    .ends_with(&format!("#{name}"))
        }
    }
}

fn malformed(text: &str) -> Failure {
    Failure::invalid(
        "NotAName",
        format!(
            "`{}` is neither a path (`gateways/...`, `mesh/...`) nor an object (`kind/namespace/name`)",
            shortened(text)
        ),
    )
}

/// Finds a kind by a case-insensitive name. The group may be omitted.
fn kind_named(text: &str, world: &World) -> GroupKind {
    let Some((resource, rest)) = text.split_once(':') else {
        return resource_kind_named(text, world);
    };
    // `Kind:section`, or `Kind:section.group` (specification 2.14). A group has no section.
    let (section, group) = rest.split_once('.').unwrap_or((rest, ""));
    let resource = match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    };
    resource_kind_named(&resource, world).with_section(&section.to_ascii_lowercase())
}

/// Finds a kind that is no section of another.
fn resource_kind_named(text: &str, world: &World) -> GroupKind {
    let existing = world.store().kinds().find(|kind| {
        kind.kind.eq_ignore_ascii_case(text) || kind.to_string().eq_ignore_ascii_case(text)
    });
    match existing {
        Some(kind) => kind.clone(),
        None if text.eq_ignore_ascii_case("namespace") => GroupKind::new(groups::CORE, "Namespace"),
        None => GroupKind::parse(text),
    }
}
