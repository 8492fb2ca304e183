//! Namespaces of Routes that are not among the files, where listeners select Routes by labels of their Namespaces.

use std::collections::BTreeSet;

use crate::insight::abridged;
use entail_core::effective::World;
use entail_core::model::{GroupKind, ObjectKey, Str, groups};
use entail_core::store::{AllowedNamespaces, Listener, NAMESPACE_NAME_LABEL, Projection};

/// Maximum number of Namespaces that are named.
const MAX_NAMED: usize = 5;

/// Returns a message about the Namespaces of Routes and ListenerSets that files do not contain, although listeners select
/// by labels of Namespaces; `None` if none of them is missing. Answers take a missing Namespace as one without labels.
pub fn missing_namespaces(world: &World) -> Option<String> {
    let store = world.store();
    let namespace = GroupKind::new(groups::CORE, "Namespace");
    // Only a cluster reports the states of kinds.
    if store.state(&namespace).is_some() || store.is_assumed_complete(&namespace) {
        return None;
    }
    let listener_set = GroupKind::new(groups::GATEWAY, "ListenerSet");
    let mut kinds = [GroupKind::gateway(), listener_set.clone()].into_iter();
    let selects = kinds.any(|kind| {
        let mut objects = store.of_kind(&kind);
        objects.any(|(_, entry)| selects_namespaces(&entry.projection))
    });
    if !selects {
        return None;
    }
    let of_routes = store.routes().map(|(key, _)| key.namespace);
    let of_sets = store.of_kind(&listener_set);
    let of_sets = of_sets.map(|((namespace, _), _)| namespace.clone());
    let used: BTreeSet<Str> = of_routes.chain(of_sets).collect();
    let is_missing = |name: &Str| {
        let key = ObjectKey::new(namespace.clone(), "", name.clone());
        store.get(&key).is_none()
    };
    let missing = used.into_iter().filter(is_missing);
    let missing: Vec<String> = missing.map(|name| format!("`{name}`")).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "the manifests do not contain the Namespace {}: its labels are not known, and listeners select by them, so \
             that paths may be others; add the Namespace to the manifests, or set `--assume-complete Namespace` if \
             it has none",
            abridged(&missing, MAX_NAMED)
        )
    })
}

/// Whether a Gateway or a ListenerSet selects by labels of Namespaces that only these say.
fn selects_namespaces(object: &Projection) -> bool {
    let is_selector = |allowed: &AllowedNamespaces| matches!(allowed, AllowedNamespaces::Selector(Some(selector)) if !selector.reads_only(NAMESPACE_NAME_LABEL));
    let any_selects = |listeners: &[Listener]| {
        let mut listeners = listeners.iter();
        listeners.any(|listener| is_selector(&listener.namespaces))
    };
    match object {
        Projection::Gateway(gateway) => {
            is_selector(&gateway.allowed_listeners) || any_selects(&gateway.listeners)
        }
        Projection::ListenerSet(set) => any_selects(&set.listeners),
        _ => false,
    }
}
