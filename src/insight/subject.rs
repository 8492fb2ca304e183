//! The subject of a query: everything, a path, or an object.

use super::failure::shortened;
use super::kind_names::kinds_named;
use super::{Failure, Visibility};
use entail_core::effective::World;
use entail_core::engine::PathEngine;
use entail_core::model::{GroupKind, NodeKey, ObjectKey, PathName, Section};
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
    /// Kinds have the names that kubectl takes: also plural and short ones, in any case, with or without a group.
    ///
    /// # Errors
    /// The name is malformed.
    pub fn read(text: &str, world: &World, visibility: &dyn Visibility) -> Result<Self, Failure> {
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
        let kinds = named(kind, world, visibility).into_iter();
        let keys = kinds.map(|kind| ObjectKey::new(kind, namespace, name));
        let mut keys: Vec<ObjectKey> = keys.collect();
        // Of several kinds with the name, the first one that has such an object.
        let exists =
            |key: &ObjectKey| world.store().get(key).is_some() && visibility.includes_object(key);
        let found = match keys.len() {
            1 => 0,
            _ => keys.iter().position(exists).unwrap_or_default(),
        };
        Ok(QuerySubject::Object(keys.swap_remove(found), section))
    }

    /// `Kind/namespace/name[#section]` of an object; `None` for any other subject.
    pub fn object_name(&self) -> Option<String> {
        match self {
            QuerySubject::All | QuerySubject::Path(_) => None,
            QuerySubject::Object(key, None) => Some(key.to_string()),
            QuerySubject::Object(key, Some(section)) => Some(format!("{key}#{section}")),
        }
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
pub(super) fn is_section(world: &World, node: NodeId, name: &str) -> bool {
    match &world.topology().key(node).section {
        None | Some(Section::BackendRef(..)) => false,
        Some(Section::Listener(listener)) => **listener == *name,
        Some(Section::Port(port)) => port.to_string() == name,
        Some(Section::Rule(index)) => {
            // `Kind/namespace/name#section`, the section being a name or `#` and an index.
            let described = world.topology().describe(node);
            let own = described.split_once('#').map(|(_, section)| section);
            own.is_some_and(|own| own == name || own == format!("#{name}"))
                || name == format!("#{index}")
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

/// The kinds that a name means (see [`kinds_named`]), or the parsed name if there are none.
fn named(text: &str, world: &World, visibility: &dyn Visibility) -> Vec<GroupKind> {
    // `Kind:section`, or `Kind:section.group` (specification 2.14). A group has no section.
    let (resource, section) = match text.split_once(':') {
        None => (text.to_owned(), None),
        Some((resource, rest)) => match rest.split_once('.') {
            Some((section, group)) => (format!("{resource}.{group}"), Some(section)),
            None => (resource.to_owned(), Some(rest)),
        },
    };
    let mut kinds = kinds_named(&resource, world, visibility);
    if kinds.is_empty() {
        kinds.push(GroupKind::parse(&resource));
    }
    let with_section = |kind: GroupKind| match section {
        Some(section) => kind.with_section(&section.to_ascii_lowercase()),
        None => kind,
    };
    kinds.into_iter().map(with_section).collect()
}
