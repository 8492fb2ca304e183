//! What a caller may see. What it may not is to it as if it were not there.

use std::borrow::Cow;

use crate::snapshot::Snapshot;
use entail_core::model::{GroupKind, ObjectKey, PathPrefix};

/// What a caller may see of answers for people.
pub trait Visibility {
    /// Whether it sees everything.
    fn is_unrestricted(&self) -> bool;

    /// Whether it sees a path.
    fn includes_path(&self, name: &str) -> bool;

    /// How much it sees of a path and of all paths below it.
    fn coverage(&self, name: &str) -> Coverage {
        let _ = name;
        match self.is_unrestricted() {
            true => Coverage::All,
            false => Coverage::Part,
        }
    }

    /// Whether it sees policies of a kind.
    fn includes_kind(&self, kind: &GroupKind) -> bool;

    /// Whether it sees an object for itself, as opposed to what stands on the paths that it sees.
    fn includes_object(&self, key: &ObjectKey) -> bool;
}

/// How much a caller sees of a path and of all paths below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Everything.
    All,
    /// Perhaps a part: each path has to be asked for.
    Part,
    /// Nothing.
    Nothing,
}

/// Paths and kinds; all of them if nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessScope {
    prefixes: Vec<PathPrefix>,
    kinds: Vec<GroupKind>,
}

impl AccessScope {
    /// The paths below some prefixes, and some kinds; each all if there are none.
    pub fn new(prefixes: Vec<PathPrefix>, kinds: Vec<GroupKind>) -> Self {
        Self { prefixes, kinds }
    }

    /// Whether it holds all kinds: then answers are those that everybody gets.
    pub fn has_all_kinds(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Whether a path is in it.
    pub fn has_path(&self, name: &str) -> bool {
        self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| prefix.covers(name))
    }

    /// Whether a kind is in it. What paths are made of is in every scope: all answers rest on it.
    pub fn has_kind(&self, kind: &GroupKind) -> bool {
        self.has_all_kinds() || self.kinds.contains(kind) || Snapshot::affects_topology(kind)
    }

    /// The kinds that one who asks for some gets; all if there are none. Where none of them is in
    /// scope it is a kind that nothing has.
    pub fn narrow<'k>(&'k self, asked: &'k [GroupKind]) -> Cow<'k, [GroupKind]> {
        if asked.is_empty() {
            return Cow::Borrowed(&self.kinds);
        }
        if self.has_all_kinds() {
            return Cow::Borrowed(asked);
        }
        let both = asked.iter().filter(|kind| self.kinds.contains(kind));
        let mut both: Vec<GroupKind> = both.cloned().collect();
        if both.is_empty() {
            both.push(GroupKind::new("", ""));
        }
        both.into()
    }

    /// The prefixes that one who asks for some follows; `None` for all paths.
    pub fn below(&self, asked: Vec<PathPrefix>) -> Option<Vec<PathPrefix>> {
        if self.prefixes.is_empty() {
            return (!asked.is_empty()).then_some(asked);
        }
        if asked.is_empty() {
            return Some(self.prefixes.clone());
        }
        let narrower = |asked: &PathPrefix| {
            let (of, asked) = (self.prefixes.clone().into_iter(), asked.clone());
            of.filter_map(move |own| {
                if own.covers(asked.as_str()) {
                    Some(asked.clone())
                } else {
                    asked.covers(own.as_str()).then_some(own)
                }
            })
        };
        Some(asked.iter().flat_map(narrower).collect())
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

    /// Which paths an object is on is not asked: who sees some paths sees objects on them only.
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
    fn prefixes_are_those_in_scope_that_are_asked_for() {
        const GATEWAY: &str = "gateways/a/gw";
        const ROUTE: &str = "gateways/a/gw/listeners/http/routes/HTTPRoute/b/r";
        const OTHER: &str = "gateways/a/other";
        for (own, asked, followed) in [
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
            let below = scope.below(prefixes(&asked));
            let followed = followed.map(|names: Vec<&str>| prefixes(&names));
            assert_eq!(below, followed, "{own:?} {asked:?}");
        }
    }

    #[test]
    fn kinds_are_those_in_scope_that_are_asked_for() {
        for (own, asked, narrowed) in [
            (vec![], vec![], vec![]),
            (vec![], vec!["A.x"], vec!["A.x"]),
            (vec!["A.x"], vec![], vec!["A.x"]),
            (vec!["A.x", "B.x"], vec!["B.x", "C.x"], vec!["B.x"]),
        ] {
            let scope = AccessScope::new(Vec::new(), kinds(&own));
            assert_eq!(
                scope.narrow(&kinds(&asked)),
                kinds(&narrowed),
                "{own:?} {asked:?}"
            );
        }
        // An empty list would be all kinds.
        let scope = AccessScope::new(Vec::new(), kinds(&["A.x"]));
        let other = kinds(&["C.x"]);
        assert_eq!(*scope.narrow(&other), [GroupKind::new("", "")]);
    }

    #[test]
    fn what_paths_are_made_of_is_in_every_scope() {
        let scope = AccessScope::new(Vec::new(), kinds(&["A.x"]));
        assert!(scope.has_kind(&GroupKind::parse("HTTPRoute.gateway.networking.k8s.io")));
        assert!(!scope.has_kind(&GroupKind::parse("C.x")));
        assert!(!scope.is_unrestricted() && AccessScope::default().is_unrestricted());
    }
}
