//! What a caller may see. Responses are the same as if everything else did not exist.

use std::borrow::Cow;

use crate::snapshot::Snapshot;
use entail_core::model::{GroupKind, ObjectKey, PathPrefix};

/// Decides which paths, kinds and objects a caller may see.
pub trait Visibility {
    /// Whether the caller sees everything.
    fn is_unrestricted(&self) -> bool;

    /// Whether the caller sees a path.
    fn includes_path(&self, name: &str) -> bool;

    /// How much the caller sees of a path and of all paths below it.
    fn coverage(&self, name: &str) -> Coverage {
        let _ = name;
        match self.is_unrestricted() {
            true => Coverage::All,
            false => Coverage::Part,
        }
    }

    /// Whether the caller sees policies of a kind.
    fn includes_kind(&self, kind: &GroupKind) -> bool;

    /// Whether the caller sees an object on its own, independent of the paths that it is on.
    fn includes_object(&self, key: &ObjectKey) -> bool;
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

    fn coverage(&self, name: &str) -> Coverage {
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
}
