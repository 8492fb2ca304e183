//! What a question is about: all, a path, or an object.

use super::Failure;
use entail_core::effective::World;
use entail_core::model::{GroupKind, ObjectKey, PathName, Section, groups};
use entail_core::topology::{PathStep, ResolvedPath};

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuerySubject {
    /// Everything.
    All,
    /// A path, by its name.
    Path(String),
    /// An object, or a section of it.
    Object(ObjectKey, Option<String>),
}

impl QuerySubject {
    /// Reads a name: one that begins with `gateways/`, `gatewayclasses/`, `namespaces/` or `mesh/`
    /// is a path; `kind/ns/name` or `kind/name` is an object, with `#section` a section of it.
    /// Kinds are compared without case.
    ///
    /// # Errors
    /// What is wrong with the name.
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
            _ => return Err(wrong(text)),
        };
        if kind.is_empty() || name.is_empty() {
            return Err(wrong(text));
        }
        let kind = kind_named(kind, world);
        Ok(QuerySubject::Object(
            ObjectKey::new(kind, namespace, name),
            section,
        ))
    }

    /// Whether a path goes through what the question is about.
    pub fn includes(&self, world: &World, name: &str, resolved: &ResolvedPath) -> bool {
        match self {
            QuerySubject::All => true,
            QuerySubject::Path(path) => {
                let below = name.strip_prefix(path.as_str());
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            QuerySubject::Object(key, section) => resolved
                .steps
                .iter()
                .any(|step| is_step_of(world, step, key, section.as_deref())),
        }
    }
}

/// Whether a step is the object, or the section of it.
pub(super) fn is_step_of(
    world: &World,
    step: &PathStep,
    key: &ObjectKey,
    section: Option<&str>,
) -> bool {
    let node = world.topology().key(step.node);
    if node.object != *key {
        return false;
    }
    match (section, &node.section) {
        (None, found) => found.is_none(),
        (Some(_), None) => false,
        (Some(wanted), Some(Section::Listener(name))) => **name == *wanted,
        (Some(wanted), Some(Section::Port(port))) => port.to_string() == wanted,
        (Some(wanted), Some(Section::Rule(index))) => {
            wanted == format!("#{index}")
                || world
                    .topology()
                    .describe(step.node)
                    .ends_with(&format!("#{wanted}"))
        }
    }
}

fn wrong(text: &str) -> Failure {
    Failure::invalid(
        "NotAName",
        format!(
            "`{text}` is neither a path (`gateways/...`, `mesh/...`) nor an object (`kind/namespace/name`)"
        ),
    )
}

/// The kind of a name that people write: without case, and without the group where that is clear.
fn kind_named(text: &str, world: &World) -> GroupKind {
    let known = world.store().kinds().find(|kind| {
        kind.kind.eq_ignore_ascii_case(text) || kind.to_string().eq_ignore_ascii_case(text)
    });
    match known {
        Some(kind) => kind.clone(),
        None if text.eq_ignore_ascii_case("namespace") => GroupKind::new(groups::CORE, "Namespace"),
        None => GroupKind::parse(text),
    }
}
