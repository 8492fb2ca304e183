//! Labels of the edges of a trie: the steps in the name of a path, and their encoding as bytes.

use std::fmt::Write;

use crate::model::{BackendStep, PathName, Root, RouteStep, RuleStep, TrafficPath};

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

    fn of_backend(backend: BackendStep<'a>) -> Self {
        EdgeLabel::Backend(backend.kind, backend.namespace, backend.name)
    }

    fn of_rule(rule: RuleStep<'a>) -> Self {
        match rule {
            RuleStep::Index(index) => EdgeLabel::RuleIndex(index),
            RuleStep::Name(name) => EdgeLabel::RuleName(name),
        }
    }

    /// A tag for the kind of step, and the strings in it.
    fn parts(&self) -> (u8, [&'a str; 3]) {
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

    /// The number that the step consists of, if it does.
    fn number(&self) -> Option<u32> {
        match self {
            EdgeLabel::RuleIndex(index) => Some(*index),
            EdgeLabel::Port(port) => Some((*port).into()),
            _ => None,
        }
    }

    /// The number of bytes of the encoded label.
    pub fn length(&self) -> usize {
        let (_, parts) = self.parts();
        let texts = parts.map(|part| part.len() + 1).iter().sum();
        1 + self.number().map_or(texts, |_| size_of::<u32>())
    }

    /// Appends the encoded label. Each string ends with a slash, which no string contains.
    pub fn write(self, out: &mut Vec<u8>) {
        let (tag, parts) = self.parts();
        out.push(tag);
        if let Some(number) = self.number() {
            out.extend_from_slice(&number.to_le_bytes());
            return;
        }
        for part in parts {
            out.extend_from_slice(part.as_bytes());
            out.push(b'/');
        }
    }

    /// Whether `name` is the encoding of this label. Does not allocate.
    pub fn matches(&self, name: &[u8]) -> bool {
        let Some((tag, rest)) = name.split_first() else {
            return false;
        };
        // In fewer instructions than a loop over all parts: look-ups come here for each step.
        let (own_tag, matches) = match *self {
            EdgeLabel::GatewayClass(a) => (b'c', is_text(rest, [a])),
            EdgeLabel::Namespace(a) => (b'n', is_text(rest, [a])),
            EdgeLabel::Gateway(a, b) => (b'g', is_text(rest, [a, b])),
            EdgeLabel::Service(a, b, c) => (b's', is_text(rest, [a, b, c])),
            EdgeLabel::ListenerSet(a, b) => (b't', is_text(rest, [a, b])),
            EdgeLabel::Listener(a) => (b'l', is_text(rest, [a])),
            EdgeLabel::Route(a, b, c) => (b'r', is_text(rest, [a, b, c])),
            EdgeLabel::RuleName(a) => (b'm', is_text(rest, [a])),
            EdgeLabel::RuleIndex(index) => (b'i', rest == index.to_le_bytes()),
            EdgeLabel::Backend(a, b, c) => (b'b', is_text(rest, [a, b, c])),
            EdgeLabel::Port(port) => (b'p', rest == u32::from(port).to_le_bytes()),
        };
        *tag == own_tag && matches
    }
}

/// Whether these are the strings of a label, each with a slash at its end, and empty ones up to three.
fn is_text<const N: usize>(encoded: &[u8], parts: [&str; N]) -> bool {
    let mut rest = encoded;
    for part in parts {
        let Some((start, after)) = rest.split_at_checked(part.len()) else {
            return false;
        };
        let Some((b'/', after)) = after.split_first() else {
            return false;
        };
        if start != part.as_bytes() {
            return false;
        }
        rest = after;
    }
    // The strings that are left are empty.
    rest.len() == 3 - N
}

/// Calls `f` with each step in the name of a path, from the root down, until it returns false. Returns whether it
/// returned true for all of them.
pub(super) fn each_label<'a, E>(
    path: &PathName<'a>,
    f: &mut dyn FnMut(&EdgeLabel<'a>) -> Result<bool, E>,
) -> Result<bool, E> {
    let path = match path {
        PathName::GatewayClass(name) => return f(&EdgeLabel::GatewayClass(name)),
        PathName::Namespace(name) => return f(&EdgeLabel::Namespace(name)),
        PathName::Traffic(path) => path,
    };
    if !each_label_above_routes(path, f)? {
        return Ok(false);
    }
    if !path.delegating.is_empty() {
        for (route, rule) in path.delegating.iter() {
            if !f(&EdgeLabel::of_route(route))? || !f(&EdgeLabel::of_rule(rule))? {
                return Ok(false);
            }
        }
    }
    let mut step = |label: Option<EdgeLabel<'a>>| label.as_ref().map_or(Ok(true), &mut *f);
    Ok(step(path.route.map(EdgeLabel::of_route))?
        && step(path.rule.map(EdgeLabel::of_rule))?
        && step(path.backend.map(EdgeLabel::of_backend))?
        && step(path.port.map(EdgeLabel::Port))?)
}

/// The steps down to the listener.
fn each_label_above_routes<'a, E>(
    path: &TrafficPath<'a>,
    f: &mut dyn FnMut(&EdgeLabel<'a>) -> Result<bool, E>,
) -> Result<bool, E> {
    let (root, port) = match path.root {
        Root::Gateway { namespace, name } => (EdgeLabel::Gateway(namespace, name), None),
        Root::Mesh {
            client,
            namespace,
            name,
            port,
        } => (EdgeLabel::Service(namespace, name, client), port),
    };
    let mut step = |label: Option<EdgeLabel<'a>>| label.as_ref().map_or(Ok(true), &mut *f);
    let set = path.listener_set;
    Ok(step(Some(root))?
        && step(port.map(EdgeLabel::Port))?
        && step(set.map(|set| EdgeLabel::ListenerSet(set.namespace, set.name)))?
        && step(path.listener.map(EdgeLabel::Listener))?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_matches_its_own_encoding_and_no_other() {
        let labels = [
            EdgeLabel::GatewayClass("a"),
            EdgeLabel::Namespace("a"),
            EdgeLabel::Gateway("a", "b"),
            EdgeLabel::Gateway("ab", ""),
            EdgeLabel::Gateway("a", "c"),
            EdgeLabel::Service("a", "b", "*"),
            EdgeLabel::Service("a", "b", ""),
            EdgeLabel::Service("a", "", "b"),
            EdgeLabel::ListenerSet("a", "b"),
            EdgeLabel::Listener("a"),
            EdgeLabel::Listener("ab"),
            EdgeLabel::Route("HTTPRoute", "a", "b"),
            EdgeLabel::RuleName("a"),
            EdgeLabel::RuleIndex(1),
            EdgeLabel::RuleIndex(u32::from_le_bytes(*b"a///")),
            EdgeLabel::Backend("HTTPRoute", "a", "b"),
            EdgeLabel::Port(1),
        ];
        for (at, label) in labels.iter().enumerate() {
            let mut encoded = Vec::new();
            label.write(&mut encoded);
            assert_eq!(encoded.len(), label.length(), "{label:?}");
            for (other_at, other) in labels.iter().enumerate() {
                assert_eq!(
                    other.matches(&encoded),
                    at == other_at,
                    "{label:?} {other:?}"
                );
            }
            assert!(!label.matches(&[]) && !label.matches(&encoded[..encoded.len() - 1]));
        }
    }
}
