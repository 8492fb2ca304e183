//! Whether a route joins a listener, and the first reason why not (SEMANTICS §1.4).

use super::hostname;
use crate::model::{GroupKind, LabelSelector, ObjectKey, PathReason, Str, groups};
use crate::store::{Listener, NamespacesFrom, ParentRef, Route, RouteKind};
use std::collections::BTreeMap;

/// Labels of the namespaces that exist.
pub(super) type Labels = BTreeMap<Str, BTreeMap<String, String>>;

/// What a listener stands in.
pub(super) struct Place<'a> {
    /// Namespace of the Gateway or ListenerSet.
    pub namespace: &'a str,
    /// Labels of namespaces.
    pub labels: &'a Labels,
}

/// Checks one parentRef of a route against one listener of the parent that it names.
pub(super) fn join(
    parent: &ParentRef,
    key: &ObjectKey,
    row: &RouteKind,
    route: &Route,
    listener: &Listener,
    place: &Place<'_>,
) -> Result<(), PathReason> {
    let section = parent.section.as_ref().is_none_or(|s| *s == listener.name);
    let port = parent.port.is_none_or(|p| p == listener.port);
    if !section || !port {
        return Err(PathReason::NoMatchingParent);
    }
    let kind = match &listener.kinds {
        Some(kinds) => kinds.contains(&key.kind),
        None => row.fits(&listener.protocol, listener.passthrough),
    };
    if !kind || !admits(&listener.namespaces, &key.namespace, place) {
        return Err(PathReason::NotAllowedByListeners);
    }
    if row.hostnames && !hostname::intersect(listener.hostname.as_deref(), &route.hostnames) {
        return Err(PathReason::NoMatchingListenerHostname);
    }
    Ok(())
}

/// Whether a choice of namespaces admits one.
pub(super) fn admits(from: &NamespacesFrom, namespace: &str, place: &Place<'_>) -> bool {
    match from {
        NamespacesFrom::None | NamespacesFrom::Selector(None) => false,
        NamespacesFrom::Same => namespace == place.namespace,
        NamespacesFrom::All => true,
        NamespacesFrom::Selector(Some(selector)) => selected(selector, namespace, place.labels),
    }
}

fn selected(selector: &LabelSelector, namespace: &str, labels: &Labels) -> bool {
    labels
        .get(namespace)
        .is_some_and(|labels| selector.matches(labels))
}

/// Whether a parentRef names an object.
pub(super) fn names(parent: &ParentRef, kind: &str, namespace: &str, name: &str) -> bool {
    let group = if kind == "Service" {
        groups::CORE
    } else {
        groups::GATEWAY
    };
    parent.kind == GroupKind::new(group, kind)
        && *parent.namespace == *namespace
        && *parent.name == *name
}
