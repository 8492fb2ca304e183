//! The steps of paths' names, as edges of the plan are named.

use std::fmt::Write;

use crate::model::{PathName, Root, RuleStep};

/// A step of a path's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step<'a> {
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

impl<'a> Step<'a> {
    /// A mark of its kind, and its words.
    fn words(self) -> (u8, [&'a str; 3]) {
        match self {
            Step::GatewayClass(a) => (b'c', [a, "", ""]),
            Step::Namespace(a) => (b'n', [a, "", ""]),
            Step::Gateway(a, b) => (b'g', [a, b, ""]),
            Step::Service(a, b, c) => (b's', [a, b, c]),
            Step::ListenerSet(a, b) => (b't', [a, b, ""]),
            Step::Listener(a) => (b'l', [a, "", ""]),
            Step::Route(a, b, c) => (b'r', [a, b, c]),
            Step::RuleName(a) => (b'm', [a, "", ""]),
            Step::RuleIndex(_) => (b'i', [""; 3]),
            Step::Backend(a, b, c) => (b'b', [a, b, c]),
            Step::Port(_) => (b'p', [""; 3]),
        }
    }

    fn number(self) -> u32 {
        match self {
            Step::RuleIndex(index) => index,
            Step::Port(port) => port.into(),
            _ => 0,
        }
    }

    /// Writes it as edges are named: no word holds a slash.
    pub fn write(self, out: &mut Vec<u8>) {
        let (mark, words) = self.words();
        out.push(mark);
        if matches!(self, Step::RuleIndex(_) | Step::Port(_)) {
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
        if matches!(self, Step::RuleIndex(_) | Step::Port(_)) {
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
pub(super) fn steps<'a>(path: &PathName<'a>) -> [Option<Step<'a>>; 8] {
    let one = |step: Step<'a>| [Some(step), None, None, None, None, None, None, None];
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
