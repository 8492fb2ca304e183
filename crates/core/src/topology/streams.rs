//! TCPRoutes and UDPRoutes on listeners of controllers that serve one of them (specification 1.4).

use hashbrown::{HashMap, HashSet};

use super::build::gateway_api;
use super::parent_ref::AttachingRoute;
use super::{GatewayNode, NodeId, Topology};
use crate::model::{NodeKey, ObjectKey, Section};
use crate::store::{NamespacedName, RouteKind};

/// The Routes of which a listener serves one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum StreamFamily {
    /// TLSRoutes, of which several are served, and which come before TCPRoutes.
    Tls,
    Tcp,
    Udp,
}

/// The listeners that stream Routes have taken.
#[derive(Debug, Default)]
pub(super) struct StreamListeners {
    /// The Route that has taken a listener: a TLSRoute or a TCPRoute, or a UDPRoute.
    taken: HashMap<(NodeId, bool), (StreamFamily, usize)>,
    /// The Routes that lost a listener to another.
    pub(super) displaced: HashSet<(NodeId, usize)>,
}

impl StreamFamily {
    /// The family of a Route kind; `None` if listeners serve all Routes of the kind.
    pub(super) fn of(kind: &RouteKind) -> Option<Self> {
        match kind.kind {
            "TLSRoute" => Some(Self::Tls),
            "TCPRoute" => Some(Self::Tcp),
            "UDPRoute" => Some(Self::Udp),
            _ => None,
        }
    }
}

impl StreamListeners {
    /// Lets a Route take a listener. Returns false if the listener does not serve it.
    pub(super) fn take(
        &mut self,
        attaching: &AttachingRoute<'_>,
        listener: NodeId,
        route: usize,
    ) -> bool {
        let Some(family) = StreamFamily::of(attaching.kind) else {
            return true;
        };
        let has_one_rule = family == StreamFamily::Tls || attaching.route.rules.len() == 1;
        let is_udp = family == StreamFamily::Udp;
        let serves = has_one_rule && {
            let taken = self
                .taken
                .entry((listener, is_udp))
                .or_insert((family, route));
            taken.1 == route || family == StreamFamily::Tls
        };
        if !serves {
            self.displaced.insert((listener, route));
        }
        serves
    }
}

impl Topology {
    /// Whether the controller of a Gateway, or of the Gateway of a ListenerSet, serves one stream Route of a listener.
    pub(super) fn serves_one_stream_route(&self, name: &NamespacedName, is_set: bool) -> bool {
        let has_set = |gateway: &&GatewayNode| gateway.sets.iter().any(|set| set.name == *name);
        let gateway = match is_set {
            false => self.gateways.get(name),
            true => self.gateways.values().find(has_set),
        };
        gateway.is_some_and(|gateway| gateway.serves_one_stream_route)
    }

    /// The Routes that lost a listener to another Route, with the listener.
    pub(crate) fn displaced_routes(&self) -> impl Iterator<Item = (NodeId, &ObjectKey)> {
        let displaced = self.displaced.iter();
        displaced.filter_map(|(listener, route)| Some((*listener, &self.routes.get(*route)?.key)))
    }

    /// Whether a Route lost a listener to another Route.
    pub(super) fn is_displaced(
        &self,
        route: &ObjectKey,
        parent_kind: &str,
        parent: &NamespacedName,
        listener: &str,
    ) -> bool {
        let section = Section::Listener(listener.into());
        let listener = NodeKey::section(gateway_api(parent_kind, parent), section);
        let place = (self.node(&listener), self.route_index.get(route));
        match place {
            (Some(listener), Some(&route)) => self.displaced.contains(&(listener, route)),
            _ => false,
        }
    }
}
