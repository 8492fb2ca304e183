//! The listeners of a Gateway that requests come in by.

use std::cmp::Reverse;

use hashbrown::HashMap;

use super::hostnames::{Specificity, matches};
use super::request::Protocol;
use crate::model::{GroupKind, ObjectKey, Str, Timestamp, groups};
use crate::store::{Listener, NamespacedName, Projection, ROUTE_KINDS, Store};
use crate::topology::build::projected_listeners;
use crate::topology::{GatewayNode, ListenerNode};

/// A listener.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListenerCandidate<'t> {
    /// The ListenerSet that it is of.
    pub set: Option<&'t NamespacedName>,
    pub node: &'t ListenerNode,
    pub listener: &'t Listener,
    /// Whether another one of the same port, protocol and hostname goes before it.
    pub is_conflicted: bool,
}

/// Which candidates are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListenerFilter<'a> {
    pub set: Option<&'a NamespacedName>,
    pub listener: Option<&'a Str>,
    pub port: Option<u16>,
    pub protocol: Protocol,
}

impl<'t> ListenerCandidate<'t> {
    /// The listeners of a Gateway and of the ListenerSets that it admits, in order of precedence:
    /// its own, then those of the older set, then of the first name.
    pub fn all(store: &'t Store, name: &NamespacedName, gateway: &'t GatewayNode) -> Vec<Self> {
        let own = projected_listeners(store, name, false).unwrap_or_default();
        let mut candidates = paired(None, &gateway.listeners, own);
        let mut sets: Vec<_> = gateway.sets.iter().filter(|set| set.admitted).collect();
        sets.sort_by_cached_key(|set| {
            let created = created(store, &set.name).unwrap_or(Timestamp(i64::MAX));
            (created, format!("{}/{}", set.name.0, set.name.1))
        });
        for set in sets {
            let listeners = projected_listeners(store, &set.name, true).unwrap_or_default();
            candidates.extend(paired(Some(&set.name), &set.listeners, listeners));
        }
        mark_conflicts(&mut candidates);
        candidates
    }

    /// Whether it is among those that are looked at.
    pub fn passes(&self, wanted: &ListenerFilter<'_>) -> bool {
        let named = wanted.listener.is_none_or(|name| *name == self.node.name);
        // A name alone is that of a listener of the Gateway itself.
        let of_set = match wanted.set {
            Some(set) => self.set == Some(set),
            None => wanted.listener.is_none() || self.set.is_none(),
        };
        let port = wanted.port.is_none_or(|port| port == self.listener.port);
        named && of_set && port && accepts_protocol(&self.listener.protocol, wanted.protocol)
    }

    /// Whether it takes requests to a host.
    pub fn accepts_host(&self, host: &str) -> bool {
        matches(self.listener.hostname.as_ref(), host)
    }

    /// How much its hostname says, to be sorted by from the one that says most.
    pub fn rank(&self) -> Reverse<Specificity> {
        Reverse(Specificity::of(self.hostname()))
    }

    /// Its hostname; empty if it has none.
    pub fn hostname(&self) -> &'t str {
        self.listener.hostname.as_deref().unwrap_or_default()
    }
}

fn paired<'t>(
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

/// Of listeners with one port, protocol and hostname the Gateway's own goes first, then that of the
/// first set; two of one object are both out.
fn mark_conflicts(candidates: &mut [ListenerCandidate<'_>]) {
    let key = |candidate: &ListenerCandidate<'_>| {
        let listener = candidate.listener;
        let protocol = listener.protocol.clone();
        (listener.port, protocol, candidate.hostname().to_owned())
    };
    let mut first: HashMap<_, (Option<&NamespacedName>, usize)> = HashMap::new();
    for candidate in candidates.iter() {
        let known = first.entry(key(candidate)).or_insert((candidate.set, 0));
        known.1 += usize::from(known.0 == candidate.set);
    }
    for candidate in candidates.iter_mut() {
        let known = first.get(&key(candidate));
        candidate.is_conflicted =
            known.is_some_and(|(set, count)| *set != candidate.set || *count > 1);
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

/// Whether a listener of a protocol is one for requests of another; one outside the standard ones
/// may be for all.
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
