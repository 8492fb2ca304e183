//! Gateways, ListenerSets and their listeners.

use serde_json::Value;

use super::projection::{is_name, list, number, text};
use crate::model::{GroupKind, LabelSelector, Str, groups};

/// A Gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// `gatewayClassName`.
    pub class: Str,
    /// Its own listeners.
    pub listeners: Vec<Listener>,
    /// Namespaces whose ListenerSets it admits; none by default.
    pub allowed_listeners: AllowedNamespaces,
}

/// A ListenerSet.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerSet {
    /// Namespace and name of the Gateway that it names, if it names one.
    pub gateway: Option<(Str, Str)>,
    /// Its listeners.
    pub listeners: Vec<Listener>,
}

/// A listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Name, unique in its object.
    pub name: Str,
    /// Port.
    pub port: u16,
    /// Protocol.
    pub protocol: Str,
    /// Hostname, lower case; none matches all.
    pub hostname: Option<Str>,
    /// `tls.mode` is Passthrough; Terminate is the default.
    pub passthrough: bool,
    /// `allowedRoutes.kinds`; none: the protocol's kinds.
    pub kinds: Option<Vec<GroupKind>>,
    /// `allowedRoutes.namespaces`; Same by default.
    pub namespaces: AllowedNamespaces,
}

/// A choice of namespaces.
#[derive(Clone, Debug, PartialEq)]
pub enum AllowedNamespaces {
    /// None at all.
    None,
    /// The object's own.
    Same,
    /// All.
    All,
    /// Those with labels; one that cannot be read selects none.
    Selector(Option<LabelSelector>),
}

impl Gateway {
    pub(super) fn read(spec: &Value) -> Self {
        let sets = spec
            .get("allowedListeners")
            .and_then(|a| a.get("namespaces"));
        Self {
            class: text(spec, "gatewayClassName").unwrap_or_default().into(),
            listeners: listeners(spec),
            allowed_listeners: AllowedNamespaces::read(sets, AllowedNamespaces::None),
        }
    }
}

impl ListenerSet {
    pub(super) fn read(spec: &Value, namespace: &str) -> Self {
        let parent = spec.get("parentRef").unwrap_or(&Value::Null);
        let group = parent.get("group").and_then(Value::as_str);
        let is_gateway = group.unwrap_or(groups::GATEWAY) == groups::GATEWAY
            && text(parent, "kind").unwrap_or("Gateway") == "Gateway";
        let name = text(parent, "name").filter(|_| is_gateway);
        Self {
            gateway: name.map(|name| {
                let namespace = text(parent, "namespace").unwrap_or(namespace);
                (namespace.into(), name.into())
            }),
            listeners: listeners(spec),
        }
    }
}

impl AllowedNamespaces {
    fn read(value: Option<&Value>, default: Self) -> Self {
        match value.and_then(|v| text(v, "from")) {
            None => default,
            Some("Same") => AllowedNamespaces::Same,
            Some("All") => AllowedNamespaces::All,
            Some("Selector") => AllowedNamespaces::Selector(
                value
                    .and_then(|v| v.get("selector"))
                    .and_then(|s| LabelSelector::read(s).ok()),
            ),
            Some(_) => AllowedNamespaces::None,
        }
    }
}

/// Listeners in their order; a second one of a name has no name of its own and is left out.
fn listeners(spec: &Value) -> Vec<Listener> {
    let mut found: Vec<Listener> = Vec::new();
    for value in list(spec, "listeners") {
        let Some(name) = text(value, "name").filter(|n| is_name(n)) else {
            continue;
        };
        if !found.iter().any(|l| &*l.name == name) {
            found.push(listener(value, name));
        }
    }
    found
}

fn listener(value: &Value, name: &str) -> Listener {
    let allowed = value.get("allowedRoutes").unwrap_or(&Value::Null);
    let kinds = list(allowed, "kinds");
    let mode = value.get("tls").and_then(|tls| text(tls, "mode"));
    Listener {
        name: name.into(),
        port: number(value, "port").unwrap_or_default(),
        protocol: text(value, "protocol").unwrap_or_default().into(),
        hostname: text(value, "hostname").map(|h| h.to_ascii_lowercase().into()),
        passthrough: mode == Some("Passthrough"),
        kinds: (!kinds.is_empty()).then(|| {
            kinds
                .iter()
                .filter_map(|kind| {
                    let group = kind.get("group").and_then(Value::as_str);
                    Some(GroupKind::new(
                        group.unwrap_or(groups::GATEWAY),
                        text(kind, "kind")?,
                    ))
                })
                .collect()
        }),
        namespaces: AllowedNamespaces::read(allowed.get("namespaces"), AllowedNamespaces::Same),
    }
}
