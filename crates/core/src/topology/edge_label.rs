//! The steps of paths' names, as edges of the plan are named.

use std::fmt::Write;

use crate::model::{PathName, Root, RuleStep};

/// A step of a path's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EdgeLabel<'a> {
    GatewayClass(&'a str),
    Namespace(&'a str),
    Gateway(&'a str, &'a str),
    /// A mesh root is its Service and the client: an unknown client answers as `*`.
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
    /// A mark of its kind, and its words.
    fn words(self) -> (u8, [&'a str; 3]) {
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

    /// Writes it as edges are named: no word holds a slash.
    pub fn write(self, out: &mut Vec<u8>) {
        let (mark, words) = self.words();
        out.push(mark);
        if matches!(self, EdgeLabel::RuleIndex(_) | EdgeLabel::Port(_)) {
            out.extend_from_slice(&self.number().to_le_bytes());
            return;
        }
        for word in words {
            out.extend_from_slice(word.as_bytes());
            out.push(b'/');
        }
    }

    /// Whether it is written so.
    pub fn is(self, name: &[u8]) -> bool {
        let (mark, words) = self.words();
        let Some(mut rest) = name.strip_prefix(&[mark]) else {
            return false;
        };
        if matches!(self, EdgeLabel::RuleIndex(_) | EdgeLabel::Port(_)) {
            return rest == self.number().to_le_bytes();
        }
        for word in words {
            let after = rest.strip_prefix(word.as_bytes());
            let Some(after) = after.and_then(|after| after.strip_prefix(b"/")) else {
                return false;
            };
            rest = after;
        }
        rest.is_empty()
    }
}

/// The steps of a path's name, at most eight.
pub(super) fn labels<'a>(path: &PathName<'a>) -> [Option<EdgeLabel<'a>>; 8] {
    let one = |label: EdgeLabel<'a>| [Some(label), None, None, None, None, None, None, None];
    let path = match path {
        PathName::GatewayClass(name) => return one(EdgeLabel::GatewayClass(name)),
        PathName::Namespace(name) => return one(EdgeLabel::Namespace(name)),
        PathName::Traffic(path) => path,
    };
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
        path.route
            .map(|r| EdgeLabel::Route(r.kind, r.namespace, r.name)),
        path.rule.map(|rule| match rule {
            RuleStep::Index(index) => EdgeLabel::RuleIndex(index),
            RuleStep::Name(name) => EdgeLabel::RuleName(name),
        }),
        path.backend
            .map(|b| EdgeLabel::Backend(b.kind, b.namespace, b.name)),
        path.port.map(EdgeLabel::Port),
    ]
}

/// Adds a step, as edges are named, to the name of a path.
pub(super) fn spell(edge: &[u8], name: &mut String) {
    let Some((mark, rest)) = edge.split_first() else {
        return;
    };
    let number = rest.first_chunk().map_or(0, |n| u32::from_le_bytes(*n));
    let text = std::str::from_utf8(rest).unwrap_or_default();
    let mut words = text.split('/');
    let mut word = || words.next().unwrap_or_default();
    // Writing to a String does not fail.
    let _ = match mark {
        b'c' => write!(name, "gatewayclasses/{}", word()),
        b'n' => write!(name, "namespaces/{}", word()),
        b'g' => write!(name, "gateways/{}/{}", word(), word()),
        b's' => {
            let (namespace, service) = (word(), word());
            write!(name, "mesh/{}/services/{namespace}/{service}", word())
        }
        b't' => write!(name, "/listenersets/{}/{}", word(), word()),
        b'l' => write!(name, "/listeners/{}", word()),
        b'r' => write!(name, "/routes/{}/{}/{}", word(), word(), word()),
        b'm' => write!(name, "/rules/{}", word()),
        b'i' => write!(name, "/rules/#{number}"),
        b'b' => write!(name, "/backends/{}/{}/{}", word(), word(), word()),
        _ => write!(name, "/ports/{number}"),
    };
}
