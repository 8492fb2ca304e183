//! From a `sectionName` to a section (specification 3.1).

use super::Context;
use crate::model::{NodeKey, ObjectKey, Section};
use crate::store::{Listener, Projection, Route};

impl Context<'_> {
    /// The node that a reference names: the object, or the section of it; `None` if there is no
    /// such section.
    pub(super) fn section(&self, object: ObjectKey, name: Option<&str>) -> Option<NodeKey> {
        let Some(name) = name else {
            return Some(NodeKey::whole(object));
        };
        let projection = self.store.get(&object).map(|entry| &entry.projection);
        let has = |listeners: &[Listener]| {
            let found = listeners.iter().any(|l| *l.name == *name);
            found.then(|| Section::Listener(name.into()))
        };
        let section = match projection? {
            Projection::Gateway(gateway) => has(&gateway.listeners),
            Projection::ListenerSet(set) => has(&set.listeners),
            Projection::Route(route) => self.rule(route, name).map(Section::Rule),
            Projection::Service(ports) => ports.named(name).map(Section::Port),
            _ => None,
        };
        Some(NodeKey::section(object, section?))
    }

    /// The index of a rule by name, or by its number where the profile lets unnamed rules be
    /// addressed so; explicit names win.
    fn rule(&self, route: &Route, name: &str) -> Option<u32> {
        let index = route.rule_named(name).or_else(|| {
            let (before, after) = self.profile.unnamed_rules.as_ref()?;
            let number = name
                .strip_prefix(before.as_str())?
                .strip_suffix(after.as_str())?;
            let index = number.parse::<usize>().ok()?.checked_sub(1)?;
            // Written as it would be printed, and unnamed.
            let canonical = (index + 1).to_string() == number;
            let rule = route.rules.get(index)?;
            (canonical && rule.name.is_none()).then_some(index)
        });
        u32::try_from(index?).ok()
    }
}
