//! Resolution of `sectionName` (specification 3.1).

use super::{AttachmentGroup, Context};
use crate::model::{GroupKind, NodeKey, ObjectKey, Section, groups};
use crate::store::{Listener, Projection, ROUTE_KINDS, Route};

/// Reports whether objects of a kind have sections: listeners, rules or ports.
pub(super) fn has_sections(kind: &GroupKind) -> bool {
    let is_route = ROUTE_KINDS
        .iter()
        .any(|row| kind.is(groups::GATEWAY, row.kind));
    is_route
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
        let listener = |listeners: &[Listener]| {
            let exists = listeners.iter().any(|l| *l.name == *name);
            exists.then(|| Section::Listener(name.into()))
        };
        let section = match projection? {
            Projection::Gateway(gateway) => listener(&gateway.listeners),
            Projection::ListenerSet(set) => listener(&set.listeners),
            Projection::Route(route) => self.rule(route, name).map(Section::Rule),
            Projection::Service(ports) => ports.named(name).map(Section::Port),
            _ => None,
        };
        Some(NodeKey::section(object, section?))
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
