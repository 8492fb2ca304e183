//! What a caller may see. Responses are the same as if everything else did not exist.

use std::borrow::Cow;

use super::Budget;
use crate::snapshot::Snapshot;
use entail_core::model::{GroupKind, ObjectKey, PathName, PathPrefix, Root, groups};

/// Decides which paths, kinds and objects a caller may see.
pub trait Visibility {
    /// Whether the caller sees everything.
    fn is_unrestricted(&self) -> bool;

    /// Whether the caller sees a path.
    fn includes_path(&self, name: &str) -> bool;

    /// How much the caller sees of a path and of all paths below it. `delegates` is whether Routes may stand below
    /// other Routes.
    fn coverage(&self, name: &str, delegates: bool) -> Coverage {
        let _ = (name, delegates);
        match self.is_unrestricted() {
            true => Coverage::All,
            false => Coverage::Part,
        }
    }

    /// Whether the caller sees policies of a kind.
    fn includes_kind(&self, kind: &GroupKind) -> bool;

    /// Whether the caller sees an object on its own, independent of the paths that it is on.
    fn includes_object(&self, key: &ObjectKey) -> bool;

    /// Finds out which of some objects the caller sees, all at once, so that later questions about them need not wait.
    fn prepare(&self, objects: &[ObjectKey]) {
        let _ = objects;
    }

    /// Whether objects count as invisible because there were too many to check.
    fn is_truncated(&self) -> bool {
        false
    }

    /// The work that a query of the caller may do.
    fn budget(&self) -> &Budget {
        Budget::unlimited()
    }
}

/// How much a caller sees of a path and of all paths below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Everything.
    All,
    /// Possibly a part: each path has to be checked.
    Part,
    /// Nothing.
    Nothing,
}

/// Sees the objects for which a function returns true, and their paths.
#[derive(Clone, Copy, Debug)]
pub struct ObjectVisibility<F>(pub F);

/// The paths and kinds of an access rule. The default is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessScope {
    prefixes: Vec<PathPrefix>,
    kinds: Vec<GroupKind>,
}

impl AccessScope {
    /// Creates a scope of the paths below prefixes, and of kinds. An empty list does not restrict.
    pub fn new(prefixes: Vec<PathPrefix>, kinds: Vec<GroupKind>) -> Self {
        Self { prefixes, kinds }
    }

    /// Whether the scope has all kinds, so that shared answers can be sent.
    pub fn has_all_kinds(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Whether a path is in the scope.
    pub fn has_path(&self, name: &str) -> bool {
        self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| prefix.covers(name))
    }

    /// Whether a kind is in the scope. Kinds of the topology are in every scope, because all answers
    /// depend on them.
    pub fn has_kind(&self, kind: &GroupKind) -> bool {
        self.has_all_kinds() || self.lists(kind) || Snapshot::affects_topology(kind)
    }

    fn lists(&self, kind: &GroupKind) -> bool {
        self.kinds.iter().any(|listed| listed.names(kind))
    }

    /// Returns the requested kinds that are in the scope; empty for all kinds. If none is in the scope,
    /// returns a kind that does not exist.
    pub fn narrow<'k>(&'k self, requested: &'k [GroupKind]) -> Cow<'k, [GroupKind]> {
        if requested.is_empty() {
            return Cow::Borrowed(&self.kinds);
        }
        if self.has_all_kinds() {
            return Cow::Borrowed(requested);
        }
        let both = requested.iter().filter(|kind| self.lists(kind));
        // A resource kind may be requested of which only sections are in the scope.
        let sections = self.kinds.iter().filter(|kind| {
            let mut requested = requested.iter();
            requested.any(|one| one != *kind && one.names(kind))
        });
        let mut both: Vec<GroupKind> = both.chain(sections).cloned().collect();
        if both.is_empty() {
            both.push(GroupKind::new("", ""));
        }
        both.into()
    }

    /// Returns the parts of the requested prefixes that are in the scope; `None` for all paths.
    pub fn below(&self, requested: Vec<PathPrefix>) -> Option<Vec<PathPrefix>> {
        if self.prefixes.is_empty() {
            return (!requested.is_empty()).then_some(requested);
        }
        if requested.is_empty() {
            return Some(self.prefixes.clone());
        }
        let narrower = |requested: &PathPrefix| {
            let (of, requested) = (self.prefixes.clone().into_iter(), requested.clone());
            of.filter_map(move |own| {
                if own.covers(requested.as_str()) {
                    Some(requested.clone())
                } else {
                    requested.covers(own.as_str()).then_some(own)
                }
            })
        };
        Some(requested.iter().flat_map(narrower).collect())
    }
}

impl Visibility for AccessScope {
    fn is_unrestricted(&self) -> bool {
        self.prefixes.is_empty() && self.kinds.is_empty()
    }

    fn includes_path(&self, name: &str) -> bool {
        self.has_path(name)
    }

    fn coverage(&self, name: &str, _: bool) -> Coverage {
        if self.has_path(name) {
            return Coverage::All;
        }
        let is_below = |prefix: &PathPrefix| {
            let rest = prefix.as_str().strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        match self.prefixes.iter().any(is_below) {
            true => Coverage::Part,
            false => Coverage::Nothing,
        }
    }

    fn includes_kind(&self, kind: &GroupKind) -> bool {
        self.has_kind(kind)
    }

    /// Does not search the paths of an object: a caller with restricted paths sees no object on its own.
    fn includes_object(&self, key: &ObjectKey) -> bool {
        self.prefixes.is_empty() && self.has_kind(&key.kind)
    }
}

impl<F: Fn(&ObjectKey) -> bool> Visibility for ObjectVisibility<F> {
    fn is_unrestricted(&self) -> bool {
        false
    }

    fn includes_path(&self, name: &str) -> bool {
        object_of(name).is_some_and(|key| self.0(&key))
    }

    fn coverage(&self, name: &str, delegates: bool) -> Coverage {
        let is_below_route = || match PathName::parse(name) {
            Ok(PathName::Traffic(walk)) => walk.route.is_some(),
            _ => false,
        };
        // Whoever sees a Route sees everything below it, apart from other Routes.
        if delegates || !is_below_route() {
            return Coverage::Part;
        }
        match self.includes_path(name) {
            true => Coverage::All,
            false => Coverage::Nothing,
        }
    }

    fn includes_kind(&self, _: &GroupKind) -> bool {
        true
    }

    fn includes_object(&self, key: &ObjectKey) -> bool {
        self.0(key)
    }
}

/// Returns the object whose `get` permission covers a path: the route of a path that has one, since
/// whoever may get a route may see its effective policies down to the backends; otherwise the
/// ListenerSet or the root.
fn object_of(path: &str) -> Option<ObjectKey> {
    let gateway = |kind| GroupKind::new(groups::GATEWAY, kind);
    let core = |kind| GroupKind::new(groups::CORE, kind);
    let traffic = match PathName::parse(path).ok()? {
        PathName::GatewayClass(name) => {
            return Some(ObjectKey::new(gateway("GatewayClass"), "", name));
        }
        PathName::Namespace(name) => return Some(ObjectKey::new(core("Namespace"), "", name)),
        PathName::Traffic(traffic) => traffic,
    };
    if let Some(route) = traffic.route {
        return Some(route.key());
    }
    if let Some(set) = traffic.listener_set {
        return Some(ObjectKey::new(
            gateway("ListenerSet"),
            set.namespace,
            set.name,
        ));
    }
    Some(match traffic.root {
        Root::Gateway { namespace, name } => ObjectKey::new(gateway("Gateway"), namespace, name),
        Root::Mesh {
            namespace, name, ..
        } => ObjectKey::new(core("Service"), namespace, name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(names: &[&str]) -> Vec<PathPrefix> {
        let parsed = names.iter().map(|name| PathPrefix::parse(name).unwrap());
        parsed.collect()
    }

    fn kinds(names: &[&str]) -> Vec<GroupKind> {
        names.iter().map(|name| GroupKind::parse(name)).collect()
    }

    #[test]
    fn requested_prefixes_are_restricted_to_the_scope() {
        const GATEWAY: &str = "gateways/a/gw";
        const ROUTE: &str = "gateways/a/gw/listeners/http/routes/HTTPRoute/b/r";
        const OTHER: &str = "gateways/a/other";
        for (own, requested, followed) in [
            (vec![], vec![], None),
            (vec![], vec![GATEWAY], Some(vec![GATEWAY])),
            (vec![GATEWAY], vec![], Some(vec![GATEWAY])),
            (vec![GATEWAY], vec![ROUTE], Some(vec![ROUTE])),
            (vec![ROUTE], vec![GATEWAY], Some(vec![ROUTE])),
            (vec![GATEWAY], vec![OTHER], Some(vec![])),
            (
                vec![GATEWAY, OTHER],
                vec![OTHER, ROUTE],
                Some(vec![OTHER, ROUTE]),
            ),
        ] {
            let scope = AccessScope::new(prefixes(&own), Vec::new());
            let below = scope.below(prefixes(&requested));
            let followed = followed.map(|names: Vec<&str>| prefixes(&names));
            assert_eq!(below, followed, "{own:?} {requested:?}");
        }
    }

    #[test]
    fn requested_kinds_are_restricted_to_the_scope() {
        for (own, requested, narrowed) in [
            (vec![], vec![], vec![]),
            (vec![], vec!["A.x"], vec!["A.x"]),
            (vec!["A.x"], vec![], vec!["A.x"]),
            (vec!["A.x", "B.x"], vec!["B.x", "C.x"], vec!["B.x"]),
        ] {
            let scope = AccessScope::new(Vec::new(), kinds(&own));
            assert_eq!(
                scope.narrow(&kinds(&requested)),
                kinds(&narrowed),
                "{own:?} {requested:?}"
            );
        }
        // An empty list would be all kinds.
        let scope = AccessScope::new(Vec::new(), kinds(&["A.x"]));
        let other = kinds(&["C.x"]);
        assert_eq!(*scope.narrow(&other), [GroupKind::new("", "")]);
    }

    #[test]
    fn topology_kinds_are_in_every_scope() {
        let scope = AccessScope::new(Vec::new(), kinds(&["A.x"]));
        assert!(scope.has_kind(&GroupKind::parse("HTTPRoute.gateway.networking.k8s.io")));
        assert!(!scope.has_kind(&GroupKind::parse("C.x")));
        assert!(!scope.is_unrestricted() && AccessScope::default().is_unrestricted());
    }

    #[test]
    fn the_name_of_a_resource_kind_covers_its_sections() {
        let whole = AccessScope::new(Vec::new(), kinds(&["A.x", "B.x"]));
        assert!(whole.has_kind(&GroupKind::parse("A:in.x")));
        assert_eq!(*whole.narrow(&kinds(&["A:in.x"])), kinds(&["A:in.x"]));
        let part = AccessScope::new(Vec::new(), kinds(&["A:in.x"]));
        assert!(!part.has_kind(&GroupKind::parse("A:out.x")));
        assert_eq!(*part.narrow(&kinds(&["A.x", "B.x"])), kinds(&["A:in.x"]));
        assert_eq!(*part.narrow(&kinds(&["A:out.x"])), [GroupKind::new("", "")]);
    }

    #[test]
    fn the_permission_for_a_path_is_that_of_its_last_object_that_is_not_a_backend() {
        for (path, object) in [
            ("gatewayclasses/c", "GatewayClass/c"),
            ("namespaces/n", "Namespace/n"),
            ("gateways/a/gw", "Gateway/a/gw"),
            ("gateways/a/gw/listeners/l", "Gateway/a/gw"),
            (
                "gateways/a/gw/listenersets/b/s/listeners/l",
                "ListenerSet/b/s",
            ),
            (
                "gateways/a/gw/listeners/l/routes/GRPCRoute/b/r/rules/#0/backends/Service/c/s/ports/80",
                "GRPCRoute/b/r",
            ),
            ("mesh/*/services/a/s", "Service/a/s"),
            ("mesh/b/services/a/s/routes/HTTPRoute/b/r", "HTTPRoute/b/r"),
        ] {
            let key = object_of(path).unwrap();
            assert_eq!(key.to_string(), object, "{path}");
        }
        assert!(object_of("gateways/a").is_none());
    }
}
