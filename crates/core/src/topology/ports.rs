//! Listeners of a Gateway that have one port (specification 7.6).

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::build::{gateway_api, projected_listeners};
use super::hostname::intersection;
use super::{ListenerNode, ListenerSetNode, NodeId, RootController, RoutingTraits, Topology};
use crate::model::Str;
use crate::store::{Listener, NamespacedName, Store};

/// The protocol of listeners that a port cannot tell apart.
const HTTP: &str = "HTTP";

/// The HTTP listeners that share their port with another of the same Gateway.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedPorts {
    groups: Vec<PortGroup>,
    by_listener: HashMap<NodeId, usize>,
}

/// The HTTP listeners of one port of a Gateway, its own first, then those of its ListenerSets from the oldest.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortGroup {
    pub(crate) port: u16,
    pub(crate) listeners: Vec<NodeId>,
}

/// The hostnames of the listeners of a Gateway and its ListenerSets, by port.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortHostnames(HashMap<u16, HashSet<Str>>);

impl PortHostnames {
    /// Whether a route has a hostname at a listener that no other listener of the port has. A route without
    /// hostnames has that of the listener.
    pub(super) fn leaves_any(&self, listener: &Listener, hostnames: &[Str]) -> bool {
        let own = listener.hostname.as_deref().unwrap_or_default();
        let Some(all) = self.0.get(&listener.port).filter(|_| !hostnames.is_empty()) else {
            return true;
        };
        let mut served = hostnames
            .iter()
            .filter_map(|hostname| intersection(own, hostname));
        served.any(|hostname| hostname == own || !all.contains(hostname))
    }
}

impl SharedPorts {
    /// The listeners that share the port of a listener, itself among them; `None` if it shares none.
    pub(crate) fn of(&self, listener: NodeId) -> Option<&PortGroup> {
        self.groups.get(*self.by_listener.get(&listener)?)
    }

    fn add(&mut self, group: PortGroup) {
        if group.listeners.len() < 2 {
            return;
        }
        for listener in &group.listeners {
            self.by_listener.insert(*listener, self.groups.len());
        }
        self.groups.push(group);
    }
}

impl Topology {
    /// Orders the ListenerSets of each Gateway by age, then by name.
    pub(super) fn rank_sets(&mut self, store: &Store) {
        for gateway in self.gateways.values_mut() {
            let created = |name: &NamespacedName| {
                let entry = store.get(&gateway_api("ListenerSet", name));
                let created = entry.and_then(|entry| entry.object.created);
                (created.is_none(), created)
            };
            let mut order: Vec<_> = gateway.sets.iter().map(|set| set.name.clone()).collect();
            order.sort_by_cached_key(|name| (created(name), format!("{}/{}", name.0, name.1)));
            let ranks: HashMap<NamespacedName, usize> = order.into_iter().zip(0..).collect();
            for set in &mut gateway.sets {
                set.rank = ranks.get(&set.name).copied().unwrap_or_default();
            }
        }
    }

    /// Records what the controllers of Gateways do: whether they follow delegation, and the hostnames of listeners, by
    /// port, below those that isolate listeners by them.
    pub(super) fn apply_traits(
        &mut self,
        store: &Store,
        traits_of: &dyn Fn(&RootController) -> RoutingTraits,
    ) {
        let mut known: BTreeMap<RootController, RoutingTraits> = BTreeMap::new();
        for (name, gateway) in &mut *self.gateways {
            let controller = gateway.controller(self.classes.get(&gateway.class));
            let traits = known.get(&controller).copied();
            let traits = traits.unwrap_or_else(|| traits_of(&controller));
            known.insert(controller, traits);
            gateway.delegates = traits.delegates;
            gateway.serves_one_stream_route = traits.serves_one_stream_route;
            if !traits.isolates_hostnames {
                continue;
            }
            let mut ports = PortHostnames::default();
            let sets = gateway.admitted();
            let sets = sets.map(|set| projected_listeners(store, &set.name, true));
            let own = projected_listeners(store, name, false);
            for listener in std::iter::once(own).chain(sets).flatten().flatten() {
                let hostname = listener.hostname.iter().filter(|name| !name.is_empty());
                let of_port = ports.0.entry(listener.port).or_default();
                of_port.extend(hostname.cloned());
            }
            self.port_hostnames.insert(name.clone(), ports);
        }
    }

    /// The hostnames of the listeners beside those of an object, if its Gateway isolates them.
    pub(super) fn isolated_hostnames(
        &self,
        name: &NamespacedName,
        is_set: bool,
    ) -> Option<&PortHostnames> {
        if self.port_hostnames.is_empty() {
            return None;
        }
        let gateway = self.gateway_of(name, is_set)?;
        self.port_hostnames.get(gateway)
    }

    /// Finds the HTTP listeners that share a port.
    pub(super) fn share_ports(&mut self, store: &Store) {
        let mut shared = SharedPorts::default();
        for (name, gateway) in &*self.gateways {
            let mut ports: BTreeMap<u16, PortGroup> = BTreeMap::new();
            let mut known: HashSet<(u16, NodeId)> = HashSet::new();
            let mut add = |nodes: &[ListenerNode], listeners: &[Listener]| {
                let http = nodes.iter().zip(listeners);
                for (node, listener) in http.filter(|(_, l)| *l.protocol == *HTTP) {
                    let group = ports.entry(listener.port).or_default();
                    group.port = listener.port;
                    if known.insert((listener.port, node.node)) {
                        group.listeners.push(node.node);
                    }
                }
            };
            let listeners =
                |name, is_set| projected_listeners(store, name, is_set).unwrap_or_default();
            add(&gateway.listeners, listeners(name, false));
            for set in admitted_by_age(&gateway.sets) {
                add(&set.listeners, listeners(&set.name, true));
            }
            ports.into_values().for_each(|group| shared.add(group));
        }
        *self.shared_ports = shared;
    }

    /// The listener with a name in the ListenerSets that a Gateway admits: that of the oldest.
    pub(crate) fn listener_of_sets(&self, gateway: &NamespacedName, name: &str) -> Option<NodeId> {
        let sets = admitted_by_age(&self.gateways.get(gateway)?.sets);
        let mut listeners = sets.into_iter().flat_map(|set| &set.listeners);
        let found = listeners.find(|listener| *listener.name == *name);
        found.map(|listener| listener.node)
    }

    /// The ListenerSets that a Gateway admits, from the oldest on.
    pub(crate) fn admitted_sets(&self, gateway: &NamespacedName) -> impl Iterator<Item = NodeId> {
        let gateway = self.gateways.get(gateway).into_iter();
        let sets = gateway.flat_map(|gateway| admitted_by_age(&gateway.sets));
        sets.map(|set| set.node)
    }

    /// Whether a listener of a ListenerSet shares its port with a listener that is not of the set.
    pub(crate) fn shares_port_outside_its_set(&self, listener: NodeId) -> bool {
        let set = &self.key(listener).object;
        let group = self.shared_ports.of(listener);
        let mut others = group.into_iter().flat_map(|group| &group.listeners);
        others.any(|other| self.key(*other).object != *set)
    }
}

fn admitted_by_age(sets: &[ListenerSetNode]) -> Vec<&ListenerSetNode> {
    let mut admitted: Vec<_> = sets.iter().filter(|set| set.admitted).collect();
    admitted.sort_by_key(|set| set.rank);
    admitted
}
