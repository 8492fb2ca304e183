//! Namespaces of Routes that are not among the files, where listeners select Routes by labels of their Namespaces.

use std::collections::BTreeSet;

use serde_json::Value;

use entail_core::effective::World;
use entail_core::model::{GroupKind, ObjectKey, Str, groups};

/// Maximum number of Namespaces that are named.
const MAX_NAMED: usize = 5;

/// Returns a message about the Namespaces of Routes and ListenerSets that files do not contain, although listeners select
/// by labels of Namespaces; `None` if there are none. Such a Namespace is taken for one without labels.
pub fn missing_namespaces(world: &World) -> Option<String> {
    let store = world.store();
    let namespace = GroupKind::new(groups::CORE, "Namespace");
    // Only a cluster reports the states of kinds.
    if store.state(&namespace).is_some() {
        return None;
    }
    let listener_set = GroupKind::new(groups::GATEWAY, "ListenerSet");
    let mut listening = [GroupKind::gateway(), listener_set.clone()].into_iter();
    let selects = listening.any(|kind| {
        let mut objects = store.of_kind(&kind);
        objects.any(|(_, entry)| {
            let spec = entry.object.body.get("spec");
            spec.is_some_and(|spec| selects_namespaces(&spec))
        })
    });
    if !selects {
        return None;
    }
    let of_routes = store.routes().map(|(key, _)| key.namespace);
    let of_sets = store.of_kind(&listener_set);
    let of_sets = of_sets.map(|((namespace, _), _)| namespace.clone());
    let used: BTreeSet<_> = of_routes.chain(of_sets).collect();
    let is_missing = |name: &&Str| {
        let key = ObjectKey::new(namespace.clone(), "", (*name).clone());
        store.get(&key).is_none()
    };
    let missing: Vec<_> = used.iter().filter(is_missing).collect();
    let named: Vec<String> = missing
        .iter()
        .take(MAX_NAMED)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = match missing.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| {
        format!(
            "the manifests do not contain the Namespace {}{more}: it counts as one without labels, and listeners select by \
             them; add the Namespace to the manifests",
            named.join(", ")
        )
    })
}

/// Whether a Gateway or a ListenerSet selects by labels of Namespaces.
fn selects_namespaces(spec: &Value) -> bool {
    let is_selector = |value: Option<&Value>| value.and_then(Value::as_str) == Some("Selector");
    let listeners = spec.get("listeners").and_then(Value::as_array);
    let mut listeners = listeners.into_iter().flatten();
    is_selector(spec.pointer("/allowedListeners/namespaces/from"))
        || listeners.any(|listener| is_selector(listener.pointer("/allowedRoutes/namespaces/from")))
}
