//! Checks whether a parentRef attaches a route to a listener (specification 1.4).

use super::Topology;
use super::build::projected_listeners;
use super::hostname;
use super::ports::PortHostnames;
use crate::model::{
    GroupKind, LabelSelector, MetadataMap, ObjectKey, PathErrorReason, Str, groups,
};
use crate::store::{
    AllowedNamespaces, Listener, NamespacedName, ParentRef, Route, RouteKind, Store,
};
use std::collections::BTreeMap;

/// The labels of the namespaces that exist.
pub(super) type Labels = BTreeMap<Str, MetadataMap>;

/// The context in which a listener selects namespaces.
pub(super) struct ListenerContext<'a> {
    /// The namespace of the Gateway or ListenerSet.
    pub namespace: &'a str,
    /// The labels of the namespaces that exist.
    pub labels: &'a Labels,
    /// The hostnames of listeners, if a route loses those that another listener of the port has (specification
    /// 12.5).
    pub isolated: Option<&'a PortHostnames>,
}

/// A Route whose parentRefs are checked.
pub(super) struct AttachingRoute<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) route: &'a Route,
    pub(super) kind: &'static RouteKind,
    /// The Route that the controller makes of it (specification 1.9).
    generated: Option<ObjectKey>,
}

impl<'a> AttachingRoute<'a> {
    /// The Route with a key; `None` if there is none.
    pub(super) fn of(store: &'a Store, key: &'a ObjectKey) -> Option<Self> {
        Some(Self {
            key,
            route: store.route(key)?,
            kind: store.route_kind(&key.kind)?,
            generated: store.generated(key),
        })
    }

    /// Whether a list of kinds admits it.
    fn is_among(&self, kinds: &[GroupKind]) -> bool {
        let generated = self.generated.as_ref();
        kinds.contains(&self.key.kind) || generated.is_some_and(|key| kinds.contains(&key.kind))
    }
}

/// Checks one parentRef of a route against one listener of the parent that it names.
///
/// # Errors
/// Returns the reason of the first condition that fails.
pub(super) fn check_parent_ref(
    parent: &ParentRef,
    attaching: &AttachingRoute<'_>,
    listener: &Listener,
    context: &ListenerContext<'_>,
) -> Result<(), PathErrorReason> {
    let AttachingRoute {
        key,
        route,
        kind: row,
        ..
    } = attaching;
    let section = parent.section.as_ref().is_none_or(|s| *s == listener.name);
    let port = parent.port.is_none_or(|p| p == listener.port);
    if !section || !port {
        return Err(PathErrorReason::NoMatchingParent);
    }
    let kinds = listener.kinds.as_ref();
    let kind = kinds.is_none_or(|kinds| attaching.is_among(kinds))
        && row.supports_protocol(&listener.protocol, listener.passthrough);
    if !kind || !admits(&listener.namespaces, &key.namespace, context) {
        return Err(PathErrorReason::NotAllowedByListeners);
    }
    if row.hostnames && !hostname::intersect(listener.hostname.as_deref(), &route.hostnames) {
        return Err(PathErrorReason::NoMatchingListenerHostname);
    }
    let isolated = context.isolated.filter(|_| row.hostnames);
    if isolated.is_some_and(|isolated| !isolated.leaves_any(listener, &route.hostnames)) {
        return Err(PathErrorReason::NoMatchingListenerHostname);
    }
    Ok(())
}

/// Whether `from` allows a namespace.
pub(super) fn admits(
    from: &AllowedNamespaces,
    namespace: &str,
    context: &ListenerContext<'_>,
) -> bool {
    match from {
        AllowedNamespaces::None | AllowedNamespaces::Selector(None) => false,
        AllowedNamespaces::Same => namespace == context.namespace,
        AllowedNamespaces::All => true,
        AllowedNamespaces::Selector(Some(selector)) => {
            selected(selector, namespace, context.labels)
        }
    }
}

impl Topology {
    /// Whether `from`, in an object of namespace `own`, allows a namespace.
    pub fn admits_namespace(&self, from: &AllowedNamespaces, own: &str, namespace: &str) -> bool {
        let context = ListenerContext {
            namespace: own,
            labels: &self.labels,
            isolated: None,
        };
        admits(from, namespace, &context)
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

impl Topology {
    /// The reason why a route is not attached to a listener: of all parentRefs to the listener's object, the
    /// reason of the one that passes the most conditions, or NoMatchingParent if there is none.
    pub(super) fn parent_rejection(
        &self,
        store: &Store,
        key: &ObjectKey,
        parent_kind: &str,
        name: &NamespacedName,
        listener: &str,
    ) -> PathErrorReason {
        let Some(attaching) = AttachingRoute::of(store, key) else {
            return PathErrorReason::RouteNotFound;
        };
        let is_set = parent_kind == "ListenerSet";
        let listeners = projected_listeners(store, name, is_set).unwrap_or_default();
        let context = ListenerContext {
            namespace: &name.0,
            labels: &self.labels,
            isolated: self.isolated_hostnames(name, is_set),
        };
        let parents = &attaching.route.parents;
        parents
            .iter()
            .filter(|p| names(p, parent_kind, &name.0, &name.1))
            .filter_map(|parent| {
                let listener = listeners.iter().find(|l| *l.name == *listener)?;
                check_parent_ref(parent, &attaching, listener, &context).err()
            })
            .max()
            .unwrap_or_else(
                || match self.is_displaced(key, parent_kind, name, listener) {
                    true => PathErrorReason::RouteNotServed,
                    false => PathErrorReason::NoMatchingParent,
                },
            )
    }
}
