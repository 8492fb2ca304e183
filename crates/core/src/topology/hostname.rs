//! Intersection of hostnames (specification 1.4).

use crate::model::Str;

/// Whether the hostnames of a listener and a route intersect. An absent hostname matches all. Hostnames
/// must be in lower case.
pub(crate) fn intersect(listener: Option<&str>, route: &[Str]) -> bool {
    let Some(listener) = listener else {
        return true;
    };
    let intersects =
        |hostname: &Str| !hostname.is_empty() && intersection(listener, hostname).is_some();
    route.is_empty() || route.iter().any(intersects)
}

/// Whether a listener and a route with these hostnames serve a host that a hostname, or a wildcard, includes. An absent
/// hostname of the listener matches all, and so does an empty list. Hostnames must be in lower case.
pub fn overlap(listener: Option<&str>, route: &[Str], hostname: &str) -> bool {
    let listener = listener.unwrap_or_default();
    if route.is_empty() {
        return intersection(listener, hostname).is_some();
    }
    let mut both = route.iter().filter_map(|own| intersection(listener, own));
    both.any(|both| intersection(both, hostname).is_some())
}

/// The intersection of two hostnames: the more specific one, or `None` if they have no host in common. An
/// empty hostname matches all.
pub(crate) fn intersection<'h>(listener: &'h str, route: &'h str) -> Option<&'h str> {
    let covers = |wide: &str, name: &str| {
        let suffix = wide.strip_prefix('*');
        wide.is_empty()
            || wide == name
            || suffix.is_some_and(|s| name.len() > wide.len() - 1 && name.ends_with(s))
    };
    if covers(listener, route) {
        Some(route)
    } else if covers(route, listener) {
        Some(listener)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hostnames_intersect(listener: &str, route: &str) -> bool {
        intersect(Some(listener), &[route.into()])
    }

    #[test]
    fn wildcards_match_one_or_more_labels() {
        assert!(hostnames_intersect("*.a.b", "x.a.b"));
        assert!(hostnames_intersect("*.a.b", "y.x.a.b"));
        assert!(!hostnames_intersect("*.a.b", "a.b"));
        assert!(!hostnames_intersect("*.a.b", "xa.b"));
        assert!(hostnames_intersect("x.a.b", "*.a.b"));
        assert!(hostnames_intersect("*.a.b", "*.x.a.b"));
        assert!(!hostnames_intersect("*.a.b", "*.c.b"));
        assert!(hostnames_intersect("x.a.b", "x.a.b"));
        assert!(!hostnames_intersect("x.a.b", "y.a.b"));
    }

    #[test]
    fn absent_hostnames_match_all() {
        assert!(intersect(None, &["x".into()]));
        assert!(intersect(Some("x"), &[]));
    }

    #[test]
    fn what_is_served_overlaps_with_a_hostname() {
        for (listener, route, hostname, expected) in [
            (None, vec![], "a.b", true),
            (Some("*.b"), vec![], "a.b", true),
            (Some("*.b"), vec![], "*.a.b", true),
            (Some("c.b"), vec![], "a.b", false),
            (Some("*.b"), vec!["c.b"], "a.b", false),
            (Some("*.b"), vec!["c.b", "a.b"], "a.b", true),
            (None, vec!["*.b"], "a.b", true),
            (Some("a.b"), vec!["x.y"], "x.y", false),
        ] {
            let names: Vec<Str> = route.iter().map(|name: &&str| Str::from(*name)).collect();
            let found = overlap(listener, &names, hostname);
            assert_eq!(found, expected, "{listener:?} {route:?} {hostname}");
        }
    }

    #[test]
    fn the_intersection_is_the_more_specific_hostname() {
        for (listener, route, both) in [
            ("", "", Some("")),
            ("", "a.b", Some("a.b")),
            ("a.b", "", Some("a.b")),
            ("*.b", "a.b", Some("a.b")),
            ("*.b", "b", None),
            ("a.b", "*.b", Some("a.b")),
            ("*.b", "*.a.b", Some("*.a.b")),
            ("*.a.b", "*.b", Some("*.a.b")),
            ("*.a.b", "*.c.b", None),
            ("a.b", "c.b", None),
        ] {
            assert_eq!(intersection(listener, route), both, "{listener} {route}");
        }
    }
}
