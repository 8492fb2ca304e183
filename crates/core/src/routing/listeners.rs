//! The listeners of a Gateway that can accept a request.

use std::cmp::Reverse;
use std::hash::Hash;

use hashbrown::HashMap;

use super::hostnames::{Specificity, matches};
use super::request::Protocol;
use crate::model::{GroupKind, ObjectKey, Str, Timestamp, groups};
use crate::store::{Listener, NamespacedName, Projection, ROUTE_KINDS, Store};
use crate::topology::build::projected_listeners;
use crate::topology::{GatewayNode, ListenerNode, Topology};

/// A listener that can accept a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListenerCandidate<'t> {
    /// The ListenerSet of the listener; `None` if it belongs to the Gateway.
    pub set: Option<&'t NamespacedName>,
    pub node: &'t ListenerNode,
    pub listener: &'t Listener,
    /// Whether another listener with the same port, protocol and hostname takes precedence.
    pub is_conflicted: bool,
}

/// A listener that another one of its Gateway conflicts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConflictingListener<'t> {
    /// The ListenerSet of the listener; `None` if it belongs to the Gateway.
    pub set: Option<&'t NamespacedName>,
    /// The name of the listener.
    pub name: &'t Str,
    /// Its port.
    pub port: u16,
    /// Its hostname; empty if it has none.
    pub hostname: &'t str,
    /// The protocols that can share its port.
    pub protocol: ListenerProtocols<'t>,
    /// What the listeners have in common, or not.
    pub conflict: ListenerConflict,
    /// Whether the other one belongs to the Gateway or ListenerSet before it, which takes precedence.
    pub is_preceded: bool,
}

/// Why two listeners conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListenerConflict {
    /// Both have the same port, protocol and hostname. HTTPS and TLS count as one protocol.
    Hostname,
    /// Both have the same port, and protocols that exclude each other there: HTTP, those with TLS, and TCP.
    Protocol,
}

/// The candidates to consider.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListenerFilter<'a> {
    pub set: Option<&'a NamespacedName>,
    pub listener: Option<&'a Str>,
    pub port: Option<u16>,
    pub protocol: Protocol,
}

impl<'t> ListenerCandidate<'t> {
    /// Returns the listeners of a Gateway and of the ListenerSets that it admits, in order of
    /// precedence: those of the Gateway, then of the sets by age and name.
    pub fn all(store: &'t Store, name: &NamespacedName, gateway: &'t GatewayNode) -> Vec<Self> {
        let own = projected_listeners(store, name, false).unwrap_or_default();
        let mut candidates = candidates_of(None, &gateway.listeners, own);
        let mut sets: Vec<_> = gateway.sets.iter().filter(|set| set.admitted).collect();
        sets.sort_by_cached_key(|set| {
            let created = created(store, &set.name).unwrap_or(Timestamp::LATEST);
            (created, format!("{}/{}", set.name.0, set.name.1))
        });
        for set in sets {
            let listeners = projected_listeners(store, &set.name, true).unwrap_or_default();
            candidates.extend(candidates_of(Some(&set.name), &set.listeners, listeners));
        }
        mark_conflicts(&mut candidates);
        candidates
    }

    /// Reports whether the candidate passes a filter.
    pub fn passes(&self, filter: &ListenerFilter<'_>) -> bool {
        let named = filter.listener.is_none_or(|name| *name == self.node.name);
        // Without a ListenerSet, a name refers to a listener of the Gateway itself.
        let of_set = match filter.set {
            Some(set) => self.set == Some(set),
            None => filter.listener.is_none() || self.set.is_none(),
        };
        let port = filter.port.is_none_or(|port| port == self.listener.port);
        named && of_set && port && accepts_protocol(&self.listener.protocol, filter.protocol)
    }

    /// Reports whether the listener accepts requests to a host.
    pub fn accepts_host(&self, host: &str) -> bool {
        matches(self.listener.hostname.as_ref(), host)
    }

    /// Returns a sort key that puts the most specific hostname first.
    pub fn rank(&self) -> Reverse<Specificity> {
        Reverse(Specificity::of(self.hostname()))
    }

    /// Returns the hostname; empty if the listener has none.
    pub fn hostname(&self) -> &'t str {
        self.listener.hostname.as_deref().unwrap_or_default()
    }
}

fn candidates_of<'t>(
    set: Option<&'t NamespacedName>,
    nodes: &'t [ListenerNode],
    listeners: &'t [Listener],
) -> Vec<ListenerCandidate<'t>> {
    let pairs = nodes.iter().zip(listeners);
    pairs
        .map(|(node, listener)| ListenerCandidate {
            set,
            node,
            listener,
            is_conflicted: false,
        })
        .collect()
}

/// Marks conflicts between listeners with the same port, protocol and hostname. The Gateway takes
/// precedence over sets, and earlier sets over later ones. Two listeners of one object conflict with
/// each other, and neither is used.
fn mark_conflicts(candidates: &mut [ListenerCandidate<'_>]) {
    let holders = Holders::of(candidates, |one| &*one.listener.protocol);
    for candidate in candidates.iter_mut() {
        let protocol = &*candidate.listener.protocol;
        candidate.is_conflicted = holders.other(candidate, protocol).is_some();
    }
}

/// The first object with each port, protocol and hostname in order of precedence, by its ListenerSet, and how many of its
/// listeners have them.
struct Holders<'t, P>(HashMap<(u16, P, &'t str), (Option<&'t NamespacedName>, usize)>);

impl<'t, P: Copy + Eq + Hash> Holders<'t, P> {
    fn of(
        candidates: &[ListenerCandidate<'t>],
        protocol: impl Fn(&ListenerCandidate<'t>) -> P,
    ) -> Self {
        let mut holders = HashMap::new();
        for one in candidates {
            let key = (one.listener.port, protocol(one), one.hostname());
            let holder = holders.entry(key).or_insert((one.set, 0));
            holder.1 += usize::from(holder.0 == one.set);
        }
        Self(holders)
    }

    /// The ListenerSet of the object that a listener conflicts with: its own or an earlier one.
    fn other(
        &self,
        one: &ListenerCandidate<'t>,
        protocol: P,
    ) -> Option<Option<&'t NamespacedName>> {
        let key = (one.listener.port, protocol, one.hostname());
        let (set, count) = *self.0.get(&key)?;
        (set != one.set || count > 1).then_some(set)
    }
}

/// Returns the listeners of a Gateway, and of those ListenerSets that it admits and `sees` accepts, that may not be
/// accepted beside others, in order of precedence (specification 1.4).
pub fn listener_conflicts<'t>(
    topology: &'t Topology,
    store: &'t Store,
    gateway: &NamespacedName,
    sees: &dyn Fn(&NamespacedName) -> bool,
) -> Vec<ConflictingListener<'t>> {
    let node = topology.gateways.get(gateway);
    let all = node.map(|node| ListenerCandidate::all(store, gateway, node));
    let mut all = all.unwrap_or_default();
    all.retain(|one| one.set.is_none_or(sees));
    let protocols_of = |one: &ListenerCandidate<'t>| ListenerProtocols::of(&one.listener.protocol);
    let holders = Holders::of(&all, protocols_of);
    let mut by_port: HashMap<(u16, ListenerProtocols<'_>), PortProtocols<'_>> = HashMap::new();
    for one in &all {
        let protocol = protocols_of(one);
        let port = by_port.entry((one.listener.port, protocol.transport()));
        let port = port.or_insert(PortProtocols {
            first: protocol,
            set: one.set,
            is_mixed: false,
        });
        port.is_mixed |= port.set == one.set && port.first != protocol;
    }
    let conflict_of = |one: &ListenerCandidate<'t>| {
        let (port, protocol) = (one.listener.port, protocols_of(one));
        let on_port = by_port.get(&(port, protocol.transport()))?;
        let (conflict, set) = match on_port.is_mixed || on_port.first != protocol {
            true => (ListenerConflict::Protocol, on_port.set),
            false => (ListenerConflict::Hostname, holders.other(one, protocol)?),
        };
        Some(ConflictingListener {
            set: one.set,
            name: &one.node.name,
            port,
            hostname: one.hostname(),
            protocol,
            conflict,
            is_preceded: set != one.set,
        })
    };
    all.iter().filter_map(conflict_of).collect()
}

/// The protocols on a port of one transport.
struct PortProtocols<'t> {
    /// That of the first listener.
    first: ListenerProtocols<'t>,
    /// The ListenerSet of the first listener.
    set: Option<&'t NamespacedName>,
    /// Whether the object of the first listener has others there.
    is_mixed: bool,
}

/// Protocols that can share a port if their hostnames differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenerProtocols<'t> {
    /// HTTP.
    Http,
    /// HTTPS and TLS.
    Tls,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// One that the Gateway API does not have: what it can share a port with is not known.
    Other(&'t str),
}

impl<'t> ListenerProtocols<'t> {
    fn of(protocol: &'t str) -> Self {
        match protocol {
            "HTTP" => Self::Http,
            "HTTPS" | "TLS" => Self::Tls,
            "TCP" => Self::Tcp,
            "UDP" => Self::Udp,
            other => Self::Other(other),
        }
    }

    /// The protocol whose ports these use: TCP for all that exclude each other, and otherwise their own.
    fn transport(self) -> Self {
        match self {
            Self::Http | Self::Tls | Self::Tcp => Self::Tcp,
            other => other,
        }
    }
}

fn created(store: &Store, set: &NamespacedName) -> Option<Timestamp> {
    let kind = GroupKind::new(groups::GATEWAY, "ListenerSet");
    let key = ObjectKey::new(kind, set.0.clone(), set.1.clone());
    let entry = store.get(&key)?;
    matches!(entry.projection, Projection::ListenerSet(_))
        .then_some(entry.object.created)
        .flatten()
}

/// Reports whether a listener with a protocol accepts requests of another protocol. A non-standard
/// listener protocol accepts all.
fn accepts_protocol(listener: &str, request: Protocol) -> bool {
    let mut standard = ROUTE_KINDS.iter().flat_map(|row| row.protocols);
    let is_standard = standard.any(|(name, _)| *name == listener);
    let fits = match request {
        Protocol::Http | Protocol::Grpc => matches!(listener, "HTTP" | "HTTPS"),
        Protocol::Tls => listener == "TLS",
        Protocol::Tcp => listener == "TCP",
        Protocol::Udp => listener == "UDP",
    };
    fits || !is_standard
}
