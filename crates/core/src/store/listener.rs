//! Projections of Gateways, ListenerSets and their listeners.

use super::projection::{is_name, port, text};
use crate::model::{Encoded, GroupKind, LabelSelector, Str, groups};
use crate::profile::{ListenerTraits, TlsMode};

/// A Gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// `gatewayClassName`.
    pub class: Str,
    /// The listeners of the Gateway itself.
    pub listeners: Vec<Listener>,
    /// `allowedListeners.namespaces`: namespaces whose ListenerSets the Gateway admits. None by
    /// default.
    pub allowed_listeners: AllowedNamespaces,
}

/// A ListenerSet.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerSet {
    /// Namespace and name of the parent Gateway; `None` if the parentRef is not a Gateway.
    pub gateway: Option<(Str, Str)>,
    /// The listeners of the set.
    pub listeners: Vec<Listener>,
}

/// A listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Name, unique in the Gateway or ListenerSet.
    pub name: Str,
    /// Port.
    pub port: u16,
    /// Protocol.
    pub protocol: Str,
    /// Hostname in lower case; `None` matches all hosts.
    pub hostname: Option<Str>,
    /// Whether `tls.mode` is Passthrough; the default is Terminate.
    pub passthrough: bool,
    /// Whether `tls` is set.
    pub tls: bool,
    /// Whether `tls.certificateRefs` has entries.
    pub certificates: bool,
    /// `allowedRoutes.kinds`; `None` allows the kinds of the protocol.
    pub kinds: Option<Vec<GroupKind>>,
    /// `allowedRoutes.namespaces`; the default is Same.
    pub namespaces: AllowedNamespaces,
}

/// A selection of namespaces.
#[derive(Clone, Debug, PartialEq)]
pub enum AllowedNamespaces {
    /// No namespace.
    None,
    /// The namespace of the object.
    Same,
    /// All namespaces.
    All,
    /// The namespaces with matching labels. A malformed selector (`None`) matches no namespace.
    Selector(Option<LabelSelector>),
}

impl Listener {
    /// What the limits of profiles look at (specification 2.10).
    pub fn traits(&self) -> ListenerTraits<'_> {
        let mode = match self.passthrough {
            true => TlsMode::Passthrough,
            false => TlsMode::Terminate,
        };
        ListenerTraits {
            protocol: &self.protocol,
            hostname: self.hostname.as_ref().is_some_and(|name| !name.is_empty()),
            tls_mode: self.tls.then_some(mode),
            certificates: self.certificates,
        }
    }
}

impl Gateway {
    pub(super) fn read(spec: Encoded<'_>) -> Self {
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
    pub(super) fn read(spec: Encoded<'_>, namespace: &str) -> Self {
        let parent = spec.get("parentRef").unwrap_or(Encoded::EMPTY_OBJECT);
        let group = parent.text_of("group");
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
    fn read(value: Option<Encoded<'_>>, default: Self) -> Self {
        match value.and_then(|v| text(v, "from")) {
            None => default,
            Some("Same") => AllowedNamespaces::Same,
            Some("All") => AllowedNamespaces::All,
            Some("Selector") => AllowedNamespaces::Selector(
                value
                    .and_then(|v| v.get("selector"))
                    .and_then(|s| LabelSelector::read(&s.value()).ok()),
            ),
            Some(_) => AllowedNamespaces::None,
        }
    }
}

/// Reads the listeners of an object, in order. Listeners with a repeated or invalid name are dropped.
fn listeners(spec: Encoded<'_>) -> Vec<Listener> {
    let mut listeners: Vec<Listener> = Vec::new();
    for value in spec.items_of("listeners") {
        let Some(name) = text(value, "name").filter(|n| is_name(n)) else {
            continue;
        };
        if !listeners.iter().any(|l| &*l.name == name) {
            listeners.push(listener(value, name));
        }
    }
    listeners
}

fn listener(value: Encoded<'_>, name: &str) -> Listener {
    let allowed = value.get("allowedRoutes");
    let allowed = allowed.unwrap_or(Encoded::EMPTY_OBJECT);
    let kinds: Vec<Encoded<'_>> = allowed.items_of("kinds").collect();
    let tls = value.get("tls").filter(|tls| !tls.is_null());
    let mode = tls.and_then(|tls| text(tls, "mode"));
    Listener {
        name: name.into(),
        port: port(value).unwrap_or_default(),
        protocol: text(value, "protocol").unwrap_or_default().into(),
        hostname: text(value, "hostname").map(|h| h.to_ascii_lowercase().into()),
        passthrough: mode == Some("Passthrough"),
        tls: tls.is_some(),
        certificates: tls.is_some_and(|tls| tls.items_of("certificateRefs").next().is_some()),
        kinds: (!kinds.is_empty()).then(|| {
            kinds
                .iter()
                .filter_map(|kind| {
                    let group = kind.text_of("group");
                    Some(GroupKind::new(
                        group.unwrap_or(groups::GATEWAY),
                        text(*kind, "kind")?,
                    ))
                })
                .collect()
        }),
        namespaces: AllowedNamespaces::read(allowed.get("namespaces"), AllowedNamespaces::Same),
    }
}
