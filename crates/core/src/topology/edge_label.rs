//! Labels of the edges of a trie: the steps in the name of a path, and their encoding as bytes.

use std::fmt::Write;

use crate::model::{DelegatingRules, PathName, Root, RouteStep, RuleStep, TrafficPath};

/// One step in the name of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EdgeLabel<'a> {
    GatewayClass(&'a str),
    Namespace(&'a str),
    Gateway(&'a str, &'a str),
    /// A mesh root: namespace and name of the Service, and the client namespace.
    Service(&'a str, &'a str, &'a str),
    ListenerSet(&'a str, &'a str),
    Listener(&'a str),
    Route(&'a str, &'a str, &'a str),
    RuleName(&'a str),
    RuleIndex(u32),
    Backend(&'a str, &'a str, &'a str),
    Port(u16),
}

impl<'a> EdgeLabel<'a> {
    fn of_route(route: RouteStep<'a>) -> Self {
        EdgeLabel::Route(route.kind, route.namespace, route.name)
    }

    fn of_rule(rule: RuleStep<'a>) -> Self {
        match rule {
            RuleStep::Index(index) => EdgeLabel::RuleIndex(index),
            RuleStep::Name(name) => EdgeLabel::RuleName(name),
        }
    }

    /// A tag for the kind of step, and the strings in it.
    fn parts(self) -> (u8, [&'a str; 3]) {
        match self {
            EdgeLabel::GatewayClass(a) => (b'c', [a, "", ""]),
            EdgeLabel::Namespace(a) => (b'n', [a, "", ""]),
            EdgeLabel::Gateway(a, b) => (b'g', [a, b, ""]),
            EdgeLabel::Service(a, b, c) => (b's', [a, b, c]),
            EdgeLabel::ListenerSet(a, b) => (b't', [a, b, ""]),
            EdgeLabel::Listener(a) => (b'l', [a, "", ""]),
            EdgeLabel::Route(a, b, c) => (b'r', [a, b, c]),
            EdgeLabel::RuleName(a) => (b'm', [a, "", ""]),
            EdgeLabel::RuleIndex(_) => (b'i', [""; 3]),
            EdgeLabel::Backend(a, b, c) => (b'b', [a, b, c]),
            EdgeLabel::Port(_) => (b'p', [""; 3]),
        }
    }

    fn number(self) -> u32 {
        match self {
            EdgeLabel::RuleIndex(index) => index,
            EdgeLabel::Port(port) => port.into(),
            _ => 0,
        }
    }

    /// Appends the encoded label. Each string ends with a slash, which no string contains.
    pub fn write(self, out: &mut Vec<u8>) {
        let (tag, parts) = self.parts();
        out.push(tag);
        if matches!(self, EdgeLabel::RuleIndex(_) | EdgeLabel::Port(_)) {
            out.extend_from_slice(&self.number().to_le_bytes());
            return;
        }
        for part in parts {
            out.extend_from_slice(part.as_bytes());
            out.push(b'/');
        }
    }

    /// Whether `name` is the encoding of this label. Does not allocate.
    pub fn matches(self, name: &[u8]) -> bool {
        let (tag, parts) = self.parts();
        let Some(mut remaining) = name.strip_prefix(&[tag]) else {
            return false;
        };
        if matches!(self, EdgeLabel::RuleIndex(_) | EdgeLabel::Port(_)) {
            return remaining == self.number().to_le_bytes();
        }
        for part in parts {
            let after = remaining.strip_prefix(part.as_bytes());
            let Some(after) = after.and_then(|after| after.strip_prefix(b"/")) else {
                return false;
            };
            remaining = after;
        }
        remaining.is_empty()
    }
}

/// The steps in the name of a path.
pub(super) fn labels<'a>(path: &PathName<'a>) -> impl Iterator<Item = EdgeLabel<'a>> {
    let (above, delegating, below) = match path {
        PathName::GatewayClass(name) => (
            [Some(EdgeLabel::GatewayClass(name)), None, None, None],
            DelegatingRules::default(),
            [None; 4],
        ),
        PathName::Namespace(name) => (
            [Some(EdgeLabel::Namespace(name)), None, None, None],
            DelegatingRules::default(),
            [None; 4],
        ),
        PathName::Traffic(path) => (labels_of_root(path), path.delegating, labels_of_route(path)),
    };
    let delegating = delegating
        .iter()
        .flat_map(|(route, rule)| [EdgeLabel::of_route(route), EdgeLabel::of_rule(rule)]);
    let above = above.into_iter().flatten();
    above.chain(delegating).chain(below.into_iter().flatten())
}

/// The steps down to the listener.
fn labels_of_root<'a>(path: &TrafficPath<'a>) -> [Option<EdgeLabel<'a>>; 4] {
    let (root, root_port) = match path.root {
        Root::Gateway { namespace, name } => (EdgeLabel::Gateway(namespace, name), None),
        Root::Mesh {
            client,
            namespace,
            name,
            port,
        } => (
            EdgeLabel::Service(namespace, name, client),
            port.map(EdgeLabel::Port),
        ),
    };
    [
        Some(root),
        root_port,
        path.listener_set
            .map(|s| EdgeLabel::ListenerSet(s.namespace, s.name)),
        path.listener.map(EdgeLabel::Listener),
    ]
}

/// The steps from the route on.
fn labels_of_route<'a>(path: &TrafficPath<'a>) -> [Option<EdgeLabel<'a>>; 4] {
    [
        path.route.map(EdgeLabel::of_route),
        path.rule.map(EdgeLabel::of_rule),
        path.backend
            .map(|b| EdgeLabel::Backend(b.kind, b.namespace, b.name)),
        path.port.map(EdgeLabel::Port),
    ]
}

/// Appends the step with an encoded label to the name of a path.
pub(super) fn write_step(edge: &[u8], name: &mut String) {
    let Some((tag, remaining)) = edge.split_first() else {
        return;
    };
    let number = remaining
        .first_chunk()
        .map_or(0, |n| u32::from_le_bytes(*n));
    let text = std::str::from_utf8(remaining).unwrap_or_default();
    let mut parts = text.split('/');
    let mut part = || parts.next().unwrap_or_default();
    // Writing to a String does not fail.
    let _ = match tag {
        b'c' => write!(name, "gatewayclasses/{}", part()),
        b'n' => write!(name, "namespaces/{}", part()),
        b'g' => write!(name, "gateways/{}/{}", part(), part()),
        b's' => {
            let (namespace, service) = (part(), part());
            write!(name, "mesh/{}/services/{namespace}/{service}", part())
        }
        b't' => write!(name, "/listenersets/{}/{}", part(), part()),
        b'l' => write!(name, "/listeners/{}", part()),
        b'r' => write!(name, "/routes/{}/{}/{}", part(), part(), part()),
        b'm' => write!(name, "/rules/{}", part()),
        b'i' => write!(name, "/rules/#{number}"),
        b'b' => write!(name, "/backends/{}/{}/{}", part(), part(), part()),
        _ => write!(name, "/ports/{number}"),
    };
}
