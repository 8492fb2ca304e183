//! Path names. Parsing borrows from the text; formatting gives the same text back.
//!
//! ```text
//! gatewayclasses/{name} | namespaces/{name}
//! gateways/{ns}/{name}[/listenersets/{ns}/{name}][/listeners/{listener}]
//!   [/routes/{Kind}/{ns}/{name}/rules/{rule}]...[/routes/{Kind}/{ns}/{name}
//!   [/rules/{rule}[/backends/{Kind}/{ns}/{name}[/ports/{port}]]]]
//! mesh/{clientNamespace}/services/{ns}/{name}[/ports/{port}][/routes/...]
//! ```

mod parse;
mod prefix;

use std::fmt;

pub use parse::{DelegatingRules, MAX_DELEGATIONS};
pub use prefix::PathPrefix;

use super::level::Level;
use super::object_key::{GroupKind, ObjectKey};

/// The name of a path, borrowed from the parsed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::large_enum_variant,
    reason = "a value lives on the stack of one look-up and is never stored"
)]
pub enum PathName<'a> {
    /// `gatewayclasses/{name}`
    GatewayClass(&'a str),
    /// `namespaces/{name}`
    Namespace(&'a str),
    /// A path from a Gateway or a mesh root.
    Traffic(TrafficPath<'a>),
}

/// A path from its root down to some level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrafficPath<'a> {
    /// The root of the path.
    pub root: Root<'a>,
    /// The ListenerSet, if the path leads through one.
    pub listener_set: Option<ListenerSetStep<'a>>,
    /// The listener's name.
    pub listener: Option<&'a str>,
    /// The rules that delegate on the way to the route, from the root down (specification 1.8).
    pub delegating: DelegatingRules<'a>,
    /// The route; the child Route, if a rule delegates to it.
    pub route: Option<RouteStep<'a>>,
    /// The rule of that route.
    pub rule: Option<RuleStep<'a>>,
    /// The backend.
    pub backend: Option<BackendStep<'a>>,
    /// The backend's port.
    pub port: Option<u16>,
}

/// The root of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root<'a> {
    /// A Gateway.
    Gateway {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// A Service that a route references as its parent (specification 1.3).
    Mesh {
        /// The namespace of the client, or `*` for all namespaces without routes or policies of their own.
        client: &'a str,
        /// The Service's namespace.
        namespace: &'a str,
        /// The Service's name.
        name: &'a str,
        /// The port of the Service, if the parentRef has one.
        port: Option<u16>,
    },
}

/// `listenersets/{ns}/{name}`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerSetStep<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

/// `routes/{Kind}/{ns}/{name}`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteStep<'a> {
    /// `Kind`, or `Kind.group` outside the standard groups.
    pub kind: &'a str,
    /// Namespace.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

impl RouteStep<'_> {
    /// The key of the Route.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(GroupKind::parse_short(self.kind), self.namespace, self.name)
    }
}

/// `rules/{rule}`. Names and indexes are separate name spaces (specification 1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleStep<'a> {
    /// `#0`
    Index(u32),
    /// `checkout`
    Name(&'a str),
}

/// `backends/{Kind}/{ns}/{name}`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BackendStep<'a> {
    /// `Kind`, or `Kind.group` outside the standard groups.
    pub kind: &'a str,
    /// Namespace.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

/// Why a text is not a path name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSyntaxError {
    /// Byte offset in the text.
    pub offset: usize,
    /// What is wrong at that offset, in lower case.
    pub message: &'static str,
}

impl PathName<'_> {
    /// Returns the level that the path ends at. A mesh root has the level of a Gateway, and its port
    /// the level of a Listener (specification 1.3).
    pub fn level(&self) -> Level {
        let path = match self {
            PathName::GatewayClass(_) => return Level::GatewayClass,
            PathName::Namespace(_) => return Level::Namespace,
            PathName::Traffic(path) => path,
        };
        let root_port = matches!(path.root, Root::Mesh { port: Some(_), .. });
        [
            (path.port.is_some(), Level::BackendPort),
            (path.backend.is_some(), Level::Backend),
            (path.rule.is_some(), Level::RouteRule),
            (path.route.is_some(), Level::Route),
            (path.listener.is_some() || root_port, Level::Listener),
            (path.listener_set.is_some(), Level::ListenerSet),
        ]
        .into_iter()
        .find_map(|(present, level)| present.then_some(level))
        .unwrap_or(Level::Gateway)
    }
}

impl<'a> TrafficPath<'a> {
    /// Returns the path that consists of a root only.
    pub fn root(root: Root<'a>) -> Self {
        Self {
            root,
            listener_set: None,
            listener: None,
            delegating: DelegatingRules::default(),
            route: None,
            rule: None,
            backend: None,
            port: None,
        }
    }

    /// Returns the route that is attached to the root: the first of those that delegate, if any do.
    pub fn first_route(&self) -> Option<RouteStep<'a>> {
        let mut delegating = self.delegating.iter();
        delegating.next().map(|(route, _)| route).or(self.route)
    }
}

impl fmt::Display for PathName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathName::GatewayClass(name) => write!(f, "gatewayclasses/{name}"),
            PathName::Namespace(name) => write!(f, "namespaces/{name}"),
            PathName::Traffic(path) => path.fmt(f),
        }
    }
}

impl fmt::Display for TrafficPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.root {
            Root::Gateway { namespace, name } => write!(f, "gateways/{namespace}/{name}")?,
            Root::Mesh {
                client,
                namespace,
                name,
                port,
            } => {
                write!(f, "mesh/{client}/services/{namespace}/{name}")?;
                if let Some(port) = port {
                    write!(f, "/ports/{port}")?;
                }
            }
        }
        if let Some(set) = self.listener_set {
            write!(f, "/listenersets/{}/{}", set.namespace, set.name)?;
        }
        if let Some(listener) = self.listener {
            write!(f, "/listeners/{listener}")?;
        }
        self.delegating.fmt(f)?;
        if let Some(route) = self.route {
            write!(
                f,
                "/routes/{}/{}/{}",
                route.kind, route.namespace, route.name
            )?;
        }
        match self.rule {
            Some(RuleStep::Index(index)) => write!(f, "/rules/#{index}")?,
            Some(RuleStep::Name(name)) => write!(f, "/rules/{name}")?,
            None => {}
        }
        if let Some(backend) = self.backend {
            let BackendStep {
                kind,
                namespace,
                name,
            } = backend;
            write!(f, "/backends/{kind}/{namespace}/{name}")?;
        }
        if let Some(port) = self.port {
            write!(f, "/ports/{port}")?;
        }
        Ok(())
    }
}

impl fmt::Display for PathSyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.offset)
    }
}

impl std::error::Error for PathSyntaxError {}
