//! Routes of every kind: one projection, and one table of what differs.

use serde_json::Value;

use super::projection::{is_name, list, number, text};
use crate::model::{GroupKind, Str, groups};

/// A row of the table of route kinds.
#[derive(Debug, PartialEq)]
pub struct RouteKind {
    /// The kind; its group is the Gateway API's.
    pub kind: &'static str,
    /// Whether routes of the kind have hostnames.
    pub hostnames: bool,
    /// Whether a route without `rules` has one unnamed rule (specification 1.4).
    pub default_rule: bool,
    /// Protocols of listeners that admit the kind, and for TLS whether Passthrough, Terminate.
    pub protocols: &'static [(&'static str, Option<bool>)],
}

/// The kinds of routes.
pub static ROUTE_KINDS: [RouteKind; 5] = [
    RouteKind {
        kind: "HTTPRoute",
        hostnames: true,
        default_rule: true,
        protocols: &[("HTTP", None), ("HTTPS", None)],
    },
    RouteKind {
        kind: "GRPCRoute",
        hostnames: true,
        default_rule: false,
        protocols: &[("HTTP", None), ("HTTPS", None)],
    },
    RouteKind {
        kind: "TLSRoute",
        hostnames: true,
        default_rule: false,
        protocols: &[("TLS", None)],
    },
    RouteKind {
        kind: "TCPRoute",
        hostnames: false,
        default_rule: false,
        protocols: &[("TCP", None), ("TLS", Some(false))],
    },
    RouteKind {
        kind: "UDPRoute",
        hostnames: false,
        default_rule: false,
        protocols: &[("UDP", None)],
    },
];

/// The row of a kind; `None` if it is no route kind.
pub fn route_kind(kind: &GroupKind) -> Option<&'static RouteKind> {
    (&*kind.group == groups::GATEWAY)
        .then(|| ROUTE_KINDS.iter().find(|row| *row.kind == *kind.kind))
        .flatten()
}

/// A route.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Hostnames, lower case; none matches all.
    pub hostnames: Vec<Str>,
    /// Its parents, in order.
    pub parents: Vec<ParentRef>,
    /// Its rules, in order.
    pub rules: Vec<Rule>,
}

/// A parentRef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentRef {
    /// Gateway, ListenerSet or Service.
    pub kind: GroupKind,
    /// Namespace; the route's own if it names none.
    pub namespace: Str,
    /// Name.
    pub name: Str,
    /// A listener's name, or a Service port's.
    pub section: Option<Str>,
    /// A port number.
    pub port: Option<u16>,
}

/// A rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Its name, if it has one that no rule before it has.
    pub name: Option<Str>,
    /// Its backendRefs, in order.
    pub backends: Vec<BackendRef>,
    /// Its ExtensionRef filters, in order.
    pub extensions: Vec<ExtensionRef>,
}

/// A backendRef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendRef {
    /// Kind; Service by default.
    pub kind: GroupKind,
    /// Namespace; the route's own if it names none.
    pub namespace: Str,
    /// Name.
    pub name: Str,
    /// Port, if it names one.
    pub port: Option<u16>,
}

/// An ExtensionRef filter: an object in the route's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionRef {
    /// Kind.
    pub kind: GroupKind,
    /// Name.
    pub name: Str,
}

impl RouteKind {
    /// Whether a listener's protocol admits the kind; one outside the standard ones admits every
    /// kind (specification 1.4).
    pub fn supports_protocol(&self, protocol: &str, passthrough: bool) -> bool {
        let standard = ROUTE_KINDS
            .iter()
            .flat_map(|row| row.protocols)
            .any(|(name, _)| *name == protocol);
        !standard
            || self
                .protocols
                .iter()
                .any(|(name, only)| *name == protocol && only.is_none_or(|p| p == passthrough))
    }
}

impl Route {
    pub(super) fn read(row: &RouteKind, spec: &Value, namespace: &str) -> Self {
        let rules = match spec.get("rules") {
            None | Some(Value::Null) if row.default_rule => vec![Rule::default()],
            _ => rules(list(spec, "rules"), namespace),
        };
        let hostnames = if row.hostnames {
            list(spec, "hostnames")
                .iter()
                .filter_map(Value::as_str)
                .map(|h| h.to_ascii_lowercase().into())
                .collect()
        } else {
            Vec::new()
        };
        Self {
            hostnames,
            parents: list(spec, "parentRefs")
                .iter()
                .filter_map(|p| parent(p, namespace))
                .collect(),
            rules,
        }
    }

    /// The index of the rule with a name.
    pub fn rule_named(&self, name: &str) -> Option<usize> {
        self.rules
            .iter()
            .position(|rule| rule.name.as_deref() == Some(name))
    }
}

impl BackendRef {
    /// Reads a backendRef of an object in a namespace; nothing if it names nothing.
    pub fn read(value: &Value, namespace: &str) -> Option<Self> {
        let group = value
            .get("group")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let kind = text(value, "kind").unwrap_or("Service");
        let namespace = text(value, "namespace").unwrap_or(namespace);
        let name = text(value, "name").filter(|n| is_name(n))?;
        (is_name(namespace) && is_name(kind)).then(|| Self {
            kind: GroupKind::new(group, kind),
            namespace: namespace.into(),
            name: name.into(),
            port: number(value, "port"),
        })
    }
}

fn parent(value: &Value, namespace: &str) -> Option<ParentRef> {
    let group = value.get("group").and_then(Value::as_str);
    let kind = text(value, "kind").unwrap_or("Gateway");
    let kind = match (group.unwrap_or(groups::GATEWAY), kind) {
        (groups::GATEWAY_X, "XListenerSet") => GroupKind::new(groups::GATEWAY, "ListenerSet"),
        (group, kind) => GroupKind::new(group, kind),
    };
    Some(ParentRef {
        kind,
        namespace: text(value, "namespace").unwrap_or(namespace).into(),
        name: text(value, "name")?.into(),
        section: text(value, "sectionName").map(Into::into),
        port: number(value, "port"),
    })
}

/// Rules in their order. Of two rules of one name the first has it; the other goes by its index.
fn rules(values: &[Value], namespace: &str) -> Vec<Rule> {
    let mut found: Vec<Rule> = Vec::with_capacity(values.len());
    for value in values {
        let name = text(value, "name")
            .filter(|n| is_name(n) && !n.starts_with('#'))
            .filter(|n| !found.iter().any(|r| r.name.as_deref() == Some(*n)));
        found.push(Rule {
            name: name.map(Into::into),
            backends: list(value, "backendRefs")
                .iter()
                .filter_map(|b| BackendRef::read(b, namespace))
                .collect(),
            extensions: list(value, "filters")
                .iter()
                .filter_map(extension)
                .collect(),
        });
    }
    found
}

fn extension(value: &Value) -> Option<ExtensionRef> {
    let reference = value
        .get("extensionRef")
        .filter(|_| text(value, "type") == Some("ExtensionRef"))?;
    let group = reference
        .get("group")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(ExtensionRef {
        kind: GroupKind::new(group, text(reference, "kind")?),
        name: text(reference, "name")?.into(),
    })
}
