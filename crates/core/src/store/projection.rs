//! Lenient projections of objects: the needed fields of each kind. Unknown fields are ignored, and
//! malformed fields affect only their own object.

use super::{Gateway, Grant, ListenerSet, Route};
use crate::model::{Encoded, GroupKind, Object, ObjectKey, Str, groups, shared_name};

/// The fields of an object that rules need. Most objects have none, so those of the others are boxed.
#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    /// A GatewayClass: its `controllerName`.
    GatewayClass(Str),
    /// A Gateway.
    Gateway(Box<Gateway>),
    /// A ListenerSet.
    ListenerSet(Box<ListenerSet>),
    /// A route of any kind.
    Route(Box<Route>),
    /// A Service.
    Service(ServicePorts),
    /// A ReferenceGrant.
    Grant(Box<Grant>),
    /// Any other kind: only its existence matters.
    Other,
}

/// The ports of a Service: optional name and number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServicePorts(pub Box<[(Option<Str>, u16)]>);

impl Projection {
    /// Projects an object. The API version does not matter.
    pub fn of(key: &ObjectKey, object: &Object) -> Self {
        // Looked up only for kinds that have a projection; policies have none.
        let spec = || object.body.spec();
        let namespace = &key.namespace;
        match (&*key.kind.group, &*key.kind.kind) {
            (groups::GATEWAY, "GatewayClass") => {
                Projection::GatewayClass(text(spec(), "controllerName").unwrap_or_default().into())
            }
            (groups::GATEWAY, "Gateway") => Projection::Gateway(Box::new(Gateway::read(spec()))),
            (groups::GATEWAY, "ListenerSet") => {
                Projection::ListenerSet(Box::new(ListenerSet::read(spec(), namespace)))
            }
            (groups::GATEWAY, "ReferenceGrant") => Projection::Grant(Box::new(Grant::read(spec()))),
            (groups::CORE, "Service") => Projection::Service(ServicePorts::read(spec())),
            _ => match super::route_kind(&key.kind) {
                Some(row) => {
                    let service = GroupKind::service();
                    let route = Route::read(row, spec(), namespace, &service);
                    Projection::Route(Box::new(route))
                }
                None => Projection::Other,
            },
        }
    }
}

impl Projection {
    /// Reports whether objects of a kind affect the paths or define policy kinds.
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
            groups::ENTAIL => matches!(name, "PolicyProfile" | "ControllerAlias"),
            _ => false,
        }
    }

    /// Reports whether all answers can depend on a kind. A kind counts as one of Routes by its name, because it may not
    /// be known which kinds of Routes are declared (specification 1.9).
    pub fn may_affect_topology(kind: &GroupKind) -> bool {
        Self::affects_topology(kind) || kind.kind.ends_with("Route")
    }
}

impl ServicePorts {
    fn read(spec: Encoded<'_>) -> Self {
        let ports = spec
            .items_of("ports")
            .filter_map(|p| Some((text(p, "name").map(shared_name), port(p)?)))
            .collect();
        Self(ports)
    }

    /// Reports whether the Service has a port.
    pub fn has(&self, port: u16) -> bool {
        self.0.iter().any(|(_, number)| *number == port)
    }

    /// Returns the numbers of all ports.
    pub fn numbers(&self) -> impl Iterator<Item = u16> {
        self.0.iter().map(|(_, number)| *number)
    }

    /// Returns the number of a named port.
    pub fn named(&self, name: &str) -> Option<u16> {
        self.0
            .iter()
            .find(|(n, _)| n.as_deref() == Some(name))
            .map(|(_, number)| *number)
    }
}

/// Returns a string field; `None` if it is absent, empty or not a string.
pub(super) fn text<'v>(value: Encoded<'v>, field: &str) -> Option<&'v str> {
    value.text_of(field).filter(|text| !text.is_empty())
}

/// Returns the field `port` if it is a valid port number.
pub(super) fn port(value: Encoded<'_>) -> Option<u16> {
    let number = value.get("port")?.unsigned()?;
    u16::try_from(number).ok().filter(|&n| n > 0)
}

/// Reports whether a name can be a part of a path name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}
