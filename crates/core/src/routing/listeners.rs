//! The listeners of a Gateway that can accept a request.

use std::cmp::Reverse;

use hashbrown::HashMap;

use super::hostnames::{Specificity, matches};
use super::request::Protocol;
use crate::model::{GroupKind, ObjectKey, Str, Timestamp, groups};
use crate::store::{Listener, NamespacedName, Projection, ROUTE_KINDS, Store};
use crate::topology::build::projected_listeners;
use crate::topology::{GatewayNode, ListenerNode};

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
            let created = created(store, &set.name).unwrap_or(Timestamp(i64::MAX));
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
    let key = |candidate: &ListenerCandidate<'_>| {
        let listener = candidate.listener;
        let protocol = listener.protocol.clone();
        (listener.port, protocol, candidate.hostname().to_owned())
    };
    let mut first: HashMap<_, (Option<&NamespacedName>, usize)> = HashMap::new();
    for candidate in candidates.iter() {
        let first_with_key = first.entry(key(candidate)).or_insert((candidate.set, 0));
        first_with_key.1 += usize::from(first_with_key.0 == candidate.set);
    }
    for candidate in candidates.iter_mut() {
        let first_with_key = first.get(&key(candidate));
        candidate.is_conflicted =
            first_with_key.is_some_and(|(set, count)| *set != candidate.set || *count > 1);
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
