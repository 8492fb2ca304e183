//! Suggests names for targets that do not exist. Names of other namespaces are never suggested.

use crate::insight::Visibility;
use entail_core::attach::ReferenceOutcome;
use entail_core::effective::World;
use entail_core::model::{ObjectKey, Outcome, Str, did_you_mean};
use entail_core::profile::{Policy, ReferenceTarget};
use entail_core::store::Projection;

/// Returns a suggestion for a reference to a missing target; empty if there is none.
pub(in crate::insight) fn hint(
    world: &World,
    policy: &Policy,
    outcome: &ReferenceOutcome,
    visibility: &dyn Visibility,
) -> String {
    if outcome.outcome != Outcome::TargetNotFound {
        return String::new();
    }
    let Some(reference) = policy.references.iter().find(|r| r.field == outcome.field) else {
        return String::new();
    };
    let ReferenceTarget::Name(name) = &reference.target else {
        return String::new();
    };
    let own = &policy.key.namespace;
    if reference.namespace.as_ref().is_some_and(|ns| ns != own) {
        return String::new();
    }
    let objects = world.store().of_kind(&reference.kind);
    let mut candidates: Vec<(&str, &Projection)> = objects
        .filter(|((namespace, _), _)| *namespace == own || namespace.is_empty())
        .filter(|&((namespace, name), _)| {
            let key = ObjectKey::new(reference.kind.clone(), namespace.clone(), name.clone());
            visibility.includes_object(&key)
        })
        .map(|((_, name), entry)| (&**name, &entry.projection))
        .collect();
    if reference.kind.is_namespace() {
        candidates.retain(|(name, _)| *name == &**own);
    }
    let exists = candidates
        .iter()
        .find(|(candidate, _)| *candidate == &**name);
    match (exists, &reference.section) {
        (Some((_, projection)), Some(section)) => did_you_mean(section, sections(projection)),
        _ => did_you_mean(
            name,
            candidates
                .iter()
                .map(|(name, _)| (*name).to_owned())
                .collect(),
        ),
    }
}

/// The names of an object's sections.
fn sections(projection: &Projection) -> Vec<String> {
    let text = |name: &Str| name.to_string();
    match projection {
        Projection::Gateway(gateway) => gateway.listeners.iter().map(|l| text(&l.name)).collect(),
        Projection::ListenerSet(set) => set.listeners.iter().map(|l| text(&l.name)).collect(),
        Projection::Route(route) => {
            let names = route.rules.iter().filter_map(|r| r.name.as_ref());
            names.map(text).collect()
        }
        Projection::Service(ports) => {
            let names = ports.0.iter().filter_map(|(name, _)| name.as_ref());
            names.map(text).collect()
        }
        _ => Vec::new(),
    }
}
