//! Lenient projections: few fields of each kind, unknown ones ignored. A malformed object costs
//! only itself.

use serde_json::Value;

use super::{Gateway, Grant, ListenerSet, Route};
use crate::model::{GroupKind, Object, ObjectKey, Str, groups};

/// What rules read of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    /// A GatewayClass: its controllerName.
    GatewayClass(Str),
    /// A Gateway.
    Gateway(Gateway),
    /// A ListenerSet.
    ListenerSet(ListenerSet),
    /// A route of any kind.
    Route(Route),
    /// A Service.
    Service(ServicePorts),
    /// A ReferenceGrant.
    Grant(Grant),
    /// Any other kind: it exists.
    Other,
}

/// The ports of a Service: name, if it has one, and number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServicePorts(pub Vec<(Option<Str>, u16)>);

impl Projection {
    /// Projects an object. The version of its API does not matter.
    pub fn of(key: &ObjectKey, object: &Object) -> Self {
        let spec = object.body.get("spec").unwrap_or(&Value::Null);
        let namespace = &key.namespace;
        match (&*key.kind.group, &*key.kind.kind) {
            (groups::GATEWAY, "GatewayClass") => {
                Projection::GatewayClass(text(spec, "controllerName").unwrap_or_default().into())
            }
            (groups::GATEWAY, "Gateway") => Projection::Gateway(Gateway::read(spec)),
            (groups::GATEWAY, "ListenerSet") => {
                Projection::ListenerSet(ListenerSet::read(spec, namespace))
            }
            (groups::GATEWAY, "ReferenceGrant") => Projection::Grant(Grant::read(spec)),
            (groups::CORE, "Service") => Projection::Service(ServicePorts::read(spec)),
            _ => match super::route_kind(&key.kind) {
                Some(row) => Projection::Route(Route::read(row, spec, namespace)),
                None => Projection::Other,
            },
        }
    }
}

impl Projection {
    /// Whether objects of a kind decide which paths there are, or what their policies mean.
    pub fn affects_topology(kind: &GroupKind) -> bool {
        let name = &*kind.kind;
        match &*kind.group {
            groups::GATEWAY | groups::GATEWAY_X => {
                matches!(
                    name,
                    "GatewayClass" | "Gateway" | "ListenerSet" | "XListenerSet" | "ReferenceGrant"
                ) || super::route_kind(kind).is_some()
            }
            groups::CORE => matches!(name, "Service" | "Namespace"),
            groups::APIEXTENSIONS => name == "CustomResourceDefinition",
            groups::ENTAIL => name == "PolicyProfile",
            _ => false,
        }
    }
}

impl ServicePorts {
    fn read(spec: &Value) -> Self {
        let ports = list(spec, "ports")
            .iter()
            .filter_map(|p| Some((text(p, "name").map(Str::from), number(p, "port")?)))
            .collect();
        Self(ports)
    }

    /// Whether there is such a port.
    pub fn has(&self, port: u16) -> bool {
        self.0.iter().any(|(_, number)| *number == port)
    }

    /// The number of a named port.
    pub fn named(&self, name: &str) -> Option<u16> {
        self.0
            .iter()
            .find(|(n, _)| n.as_deref() == Some(name))
            .map(|(_, number)| *number)
    }
}

/// A string field that is not empty.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field)?.as_str().filter(|t| !t.is_empty())
}

/// A list field; absent ones are empty.
pub(super) fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A port number.
pub(super) fn number(value: &Value, field: &str) -> Option<u16> {
    let number = value.get(field)?.as_u64()?;
    u16::try_from(number).ok().filter(|&n| n > 0)
}

/// Whether a name can be a part of a path's name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}
