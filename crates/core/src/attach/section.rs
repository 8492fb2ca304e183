//! Resolution of `sectionName` (specification 3.1).

use super::{AttachmentGroup, Context};
use crate::model::{GroupKind, NodeKey, ObjectKey, Section, groups};
use crate::store::{Listener, Projection, Route, Store};

/// Reports whether objects of a kind have sections: listeners, rules or ports.
pub(super) fn has_sections(store: &Store, kind: &GroupKind) -> bool {
    store.route_kind(kind).is_some()
        || kind.is(groups::GATEWAY, "Gateway")
        || kind.is(groups::GATEWAY, "ListenerSet")
        || kind.is(groups::CORE, "Service")
}

impl Context<'_> {
    /// Returns the node of an object or of a section of it. `None` if the section does not exist.
    pub(super) fn section(&self, object: ObjectKey, name: Option<&str>) -> Option<NodeKey> {
        let Some(name) = name else {
            return Some(NodeKey::whole(object));
        };
        let projection = self.store.get(&object).map(|entry| &entry.projection);
        // A backendRef may name an object that is not there (specification 1.4).
        let projection = projection.unwrap_or(&Projection::Other);
        let listener = |listeners: &[Listener]| {
            let exists = listeners.iter().any(|l| *l.name == *name);
            exists.then(|| Section::Listener(name.into()))
        };
        if let Some(route) = self.store.route(&object) {
            let rule = self.rule(route, name).map(Section::Rule);
            return Some(NodeKey::section(object, rule?));
        }
        let section = match projection {
            Projection::Gateway(gateway) => listener(&gateway.listeners),
            Projection::ListenerSet(set) => listener(&set.listeners),
            Projection::Service(ports) => {
                let number = self.port_number(&object.kind, name);
                let number = number.filter(|&number| ports.has(number));
                ports.named(name).or(number).map(Section::Port)
            }
            _ => self.port_of_backend(&object, name),
        };
        Some(NodeKey::section(object, section?))
    }

    /// The port of a backend that is no Service, if a backendRef names it (specification 3.6).
    fn port_of_backend(&self, backend: &ObjectKey, name: &str) -> Option<Section> {
        let port = Section::Port(self.port_number(&backend.kind, name)?);
        let node = NodeKey::section(backend.clone(), port.clone());
        self.topology.node(&node).map(|_| port)
    }

    /// The port that a section names by its number, if the kind can name ports so (specification 3.6). The names of
    /// ports contain a letter.
    fn port_number(&self, kind: &GroupKind, name: &str) -> Option<u16> {
        let is_number = name.bytes().all(|c| c.is_ascii_digit()) && !name.starts_with('0');
        (is_number && self.profile.names_ports_of(kind)).then(|| name.parse().ok())?
    }

    /// The listeners of a Gateway, and of the ListenerSets that it admits, that have a port. Empty if the Gateway
    /// itself has none (specification 3.6).
    pub(super) fn listeners_of_port(
        &self,
        gateway: &ObjectKey,
        port: u16,
    ) -> Vec<(NodeKey, AttachmentGroup)> {
        let name = (gateway.namespace.clone(), gateway.name.clone());
        let on_port = |object: ObjectKey, listeners: &[Listener]| -> Vec<NodeKey> {
            let named = listeners.iter().filter(|listener| listener.port == port);
            let sections = named.map(|listener| Section::Listener(listener.name.clone()));
            sections
                .map(|section| NodeKey::section(object.clone(), section))
                .collect()
        };
        let projection = self.store.get(gateway).map(|entry| &entry.projection);
        let Some(Projection::Gateway(projected)) = projection else {
            return Vec::new();
        };
        let mut nodes = on_port(gateway.clone(), &projected.listeners);
        if nodes.is_empty() {
            return Vec::new();
        }
        for set in self.topology.admitted_sets(&name) {
            let object = self.topology.key(set).object.clone();
            let projection = self.store.get(&object).map(|entry| &entry.projection);
            if let Some(Projection::ListenerSet(set)) = projection {
                nodes.extend(on_port(object, &set.listeners));
            }
        }
        let nodes = nodes.into_iter();
        nodes.map(|node| (node, AttachmentGroup::Port)).collect()
    }

    /// Returns the listener with a name in the ListenerSets of a Gateway, if the kind can name it as a section
    /// of the Gateway. If several have the name, that of the oldest ListenerSet counts (specification 7.5).
    pub(super) fn gateway_section(
        &self,
        gateway: &ObjectKey,
        name: &str,
    ) -> Option<(NodeKey, AttachmentGroup)> {
        let named = self.profile.listener_sets.gateway_sections;
        if !named || !gateway.kind.is(groups::GATEWAY, "Gateway") {
            return None;
        }
        let gateway = (gateway.namespace.clone(), gateway.name.clone());
        let node = self.topology.listener_of_sets(&gateway, name)?;
        Some((
            self.topology.key(node).clone(),
            AttachmentGroup::GatewaySection,
        ))
    }

    /// Returns the index of a rule by name, or by number if the profile has a pattern for unnamed
    /// rules. Names take precedence.
    fn rule(&self, route: &Route, name: &str) -> Option<u32> {
        let index = route.rule_named(name).or_else(|| {
            let (before, after) = self.profile.unnamed_rules.as_ref()?;
            let number = name
                .strip_prefix(before.as_str())?
                .strip_suffix(after.as_str())?;
            let index = number.parse::<usize>().ok()?.checked_sub(1)?;
            // The number must be in canonical form, and the rule must have no name.
            let canonical = (index + 1).to_string() == number;
            let rule = route.rules.get(index)?;
            (canonical && rule.name.is_none()).then_some(index)
        });
        u32::try_from(index?).ok()
    }
}
