//! TCPRoutes and UDPRoutes on listeners of controllers that serve one of them (specification 1.4).

use hashbrown::{HashMap, HashSet};

use super::build::gateway_api;
use super::parent_ref::AttachingRoute;
use super::{NodeId, Topology};
use crate::model::{NodeKey, ObjectKey, Section, Str, Timestamp};
use crate::store::{NamespacedName, RouteKind, Store};

/// The Routes of which a listener serves one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum StreamFamily {
    /// TLSRoutes, of which several are served, and which come before TCPRoutes.
    Tls,
    Tcp,
    Udp,
}

/// The order in which stream Routes take listeners: from the oldest. Those without a time of creation are the last.
pub(super) type StreamOrder = (StreamFamily, (bool, Option<Timestamp>), Str, Str);

/// A listener as taken by TLSRoutes and TCPRoutes, or by UDPRoutes if it is true.
type StreamPlace = (NodeId, bool);

/// The listeners that stream Routes have taken.
#[derive(Debug, Default)]
pub(super) struct StreamListeners {
    /// The Route that has taken a listener; `None` for one that is hidden in this part of the world.
    pub(super) taken: HashMap<StreamPlace, Option<usize>>,
    /// The hidden Routes that take listeners.
    hidden: HashMap<StreamPlace, StreamOrder>,
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

/// The order of a Route among stream Routes; `None` if listeners serve all Routes of its kind.
pub(super) fn stream_order(
    store: &Store,
    key: &ObjectKey,
    created: Option<Timestamp>,
) -> Option<StreamOrder> {
    let family = StreamFamily::of(store.route_kind(&key.kind)?)?;
    let age = (created.is_none(), created);
    Some((family, age, key.namespace.clone(), key.name.clone()))
}

impl StreamListeners {
    /// Creates the listeners of a topology, of which only hidden Routes have taken some.
    pub(super) fn of(store: &Store, topology: &Topology) -> Self {
        let mut hidden: HashMap<StreamPlace, StreamOrder> = HashMap::new();
        for holder in store.hidden_holders() {
            let listener = topology.node(&holder.listener);
            let order = stream_order(store, &holder.route, holder.created);
            if let (Some(listener), Some(order)) = (listener, order) {
                hidden.insert((listener, order.0 == StreamFamily::Udp), order);
            }
        }
        Self {
            hidden,
            ..Self::default()
        }
    }

    /// Lets a Route take a listener. Returns false if the listener does not serve it.
    pub(super) fn take(
        &mut self,
        store: &Store,
        attaching: &AttachingRoute<'_>,
        (listener, route): (NodeId, usize),
    ) -> bool {
        let Some(family) = StreamFamily::of(attaching.kind) else {
            return true;
        };
        let has_one_rule = family == StreamFamily::Tls || attaching.route.rules.len() == 1;
        let is_udp = family == StreamFamily::Udp;
        let serves = has_one_rule && {
            let place = (listener, is_udp);
            let is_before = |hidden: &StreamOrder| {
                let created = store.get(attaching.key).and_then(|e| e.object.created);
                let order = stream_order(store, attaching.key, created);
                order.is_none_or(|order| *hidden < order)
            };
            let first = match self.hidden.get(&place) {
                Some(hidden) if is_before(hidden) => None,
                _ => Some(route),
            };
            let taken = self.taken.entry(place).or_insert(first);
            *taken == Some(route) || family == StreamFamily::Tls
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
        let gateway = self.gateway_of(name, is_set);
        let gateway = gateway.and_then(|gateway| self.gateways.get(gateway));
        gateway.is_some_and(|gateway| gateway.serves_one_stream_route)
    }

    /// The Routes that lost a listener to another Route, with the listener.
    pub(crate) fn displaced_routes(&self) -> impl Iterator<Item = (NodeId, &ObjectKey)> {
        let displaced = self.displaced.iter();
        displaced.filter_map(|(listener, route)| Some((*listener, &self.routes.get(*route)?.key)))
    }

    /// The stream Routes that have a listener which serves no other one of their kind, with the listener.
    pub(crate) fn stream_holders(&self) -> impl Iterator<Item = (NodeId, &ObjectKey)> {
        let holders = self.stream_holders.iter();
        holders.filter_map(|(listener, route)| Some((*listener, &self.routes.get(*route)?.key)))
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
        let place = (self.node(&listener), self.routes.number(route));
        match place {
            (Some(listener), Some(route)) => self.displaced.contains(&(listener, route)),
            _ => false,
        }
    }
}
