//! Routes of the kinds that profiles declare besides those of the Gateway API (specification 1.9).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{NamespacedName, Projection, Route, RouteKind, Store, route_kind};
use crate::model::{GroupKind, ObjectKey};
use crate::profile::DeclaredRouteKind;

/// The declared Route kinds of a store, and their Routes.
#[derive(Clone, Debug, Default)]
pub(super) struct DeclaredRoutes {
    kinds: BTreeMap<GroupKind, DeclaredRouteKind>,
    routes: BTreeMap<ObjectKey, Route>,
}

impl Store {
    /// Reads the objects of declared kinds as Routes.
    pub(crate) fn declare_route_kinds(&mut self, kinds: BTreeMap<GroupKind, DeclaredRouteKind>) {
        let mut routes = BTreeMap::new();
        for declared in kinds.values() {
            let Some(row) = route_kind(&declared.like) else {
                continue;
            };
            for ((namespace, name), entry) in self.of_kind(&declared.kind) {
                let key = ObjectKey::new(declared.kind.clone(), namespace.clone(), name.clone());
                let route =
                    Route::read(row, entry.object.body.spec(), namespace, &declared.backend);
                routes.insert(key, route);
            }
        }
        self.declared = Arc::new(DeclaredRoutes { kinds, routes });
    }

    /// Takes over the declared kinds of another store, whose objects of these kinds are the same.
    pub(crate) fn share_declared_routes(&mut self, other: &Store) {
        self.declared = Arc::clone(&other.declared);
    }

    /// Whether Routes of a kind are read as those of a declared kind.
    pub(crate) fn declares(&self, kind: &GroupKind) -> bool {
        self.declared.kinds.contains_key(kind)
    }

    /// The properties of a Route kind of the Gateway API, or of the one that a declared kind is like; `None` for
    /// any other kind.
    pub fn route_kind(&self, kind: &GroupKind) -> Option<&'static RouteKind> {
        route_kind(kind).or_else(|| route_kind(&self.declared.kinds.get(kind)?.like))
    }

    /// The Route with a key.
    pub fn route(&self, key: &ObjectKey) -> Option<&Route> {
        match &self.get(key)?.projection {
            Projection::Route(route) => Some(route),
            _ => self.declared.routes.get(key),
        }
    }

    /// The Routes of declared kinds, ordered by kind, namespace and name.
    pub(super) fn declared_routes(&self) -> impl Iterator<Item = (ObjectKey, &Route)> {
        let routes = self.declared.routes.iter();
        routes.map(|(key, route)| (key.clone(), route))
    }

    /// The declared kinds of Routes.
    pub(crate) fn declared_route_kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.declared.kinds.keys()
    }

    /// The kinds whose Routes generate Routes of a kind.
    pub(crate) fn generators(&self, kind: &GroupKind) -> impl Iterator<Item = &GroupKind> {
        let declared = self.declared.kinds.values();
        let generate =
            declared.filter(move |declared| declared.generates && declared.like == *kind);
        generate.map(|declared| &declared.kind)
    }

    /// The Route that the controller makes of a Route, whether it exists or not; `None` if it makes none.
    pub(crate) fn generated(&self, route: &ObjectKey) -> Option<ObjectKey> {
        let declared = self.declared.kinds.get(&route.kind)?;
        let (namespace, name): NamespacedName = (route.namespace.clone(), route.name.clone());
        declared
            .generates
            .then(|| ObjectKey::new(declared.like.clone(), namespace, name))
    }

    /// The kind of backends for which a backendRef of a Route names none.
    pub(crate) fn default_backend(&self, route: &GroupKind) -> GroupKind {
        match self.declared.kinds.get(route) {
            Some(declared) => declared.backend.clone(),
            None => GroupKind::service(),
        }
    }

    /// Whether objects of a kind affect the paths or define policy kinds.
    pub fn affects_topology(&self, kind: &GroupKind) -> bool {
        Projection::affects_topology(kind) || self.declares(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Change, Object, groups};
    use crate::store::ProfileSources;
    use serde_json::json;

    #[test]
    fn of_two_declarations_that_differ_the_first_counts() {
        let profile = |kind: &str, like: &str| {
            let name = format!("{}.x.io", kind.to_lowercase());
            let body = json!({
                "apiVersion": "entail.dev/v1alpha1", "kind": "PolicyProfile", "metadata": {"name": name},
                "spec": {
                    "preset": "direct", "policy": {"group": "x.io", "kind": kind},
                    "routeKinds": [{"group": "x.io", "kind": "XRoute", "like": like}],
                },
            });
            let kind = GroupKind::new(groups::ENTAIL, "PolicyProfile");
            Arc::new(Object::new(ObjectKey::new(kind, "", name), body))
        };
        let mut store = Store::default();
        store.apply(Change {
            upserts: vec![profile("B", "TCPRoute"), profile("A", "GRPCRoute")],
            ..Change::default()
        });
        let mut registry = ProfileSources::default().resolve(&store);
        registry.declare_route_kinds(&mut store);
        let kind = store.route_kind(&GroupKind::parse("XRoute.x.io")).unwrap();
        assert_eq!(kind.kind, "GRPCRoute");
        let [problem] = registry.problems.as_slice() else {
            panic!("{:?}", registry.problems);
        };
        assert!(problem.reason.contains("`a.x.io`"), "{problem:?}");
    }
}
