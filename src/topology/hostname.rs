//! Intersection of hostnames (SEMANTICS §1.4).

use crate::model::Str;

/// Whether a listener's hostname and a route's have an intersection; absent ones match all.
/// Hostnames are lower case already.
pub(super) fn intersect(listener: Option<&str>, route: &[Str]) -> bool {
    let Some(listener) = listener else {
        return true;
    };
    route.is_empty() || route.iter().any(|hostname| overlap(listener, hostname))
}

fn overlap(a: &str, b: &str) -> bool {
    match (a.strip_prefix('*'), b.strip_prefix('*')) {
        (None, None) => a == b,
        (Some(suffix), None) => covers(suffix, b),
        (None, Some(suffix)) => covers(suffix, a),
        // Two wildcards overlap if one's suffix ends with the other's.
        (Some(one), Some(other)) => one.ends_with(other) || other.ends_with(one),
    }
}

/// `*.a.b` matches one or more labels: `suffix` is `.a.b`.
fn covers(suffix: &str, hostname: &str) -> bool {
    hostname
        .strip_suffix(suffix)
        .is_some_and(|labels| !labels.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joins(listener: &str, route: &str) -> bool {
        intersect(Some(listener), &[route.into()])
    }

    #[test]
    fn wildcards_match_one_or_more_labels() {
        assert!(joins("*.a.b", "x.a.b"));
        assert!(joins("*.a.b", "y.x.a.b"));
        assert!(!joins("*.a.b", "a.b"));
        assert!(!joins("*.a.b", "xa.b"));
        assert!(joins("x.a.b", "*.a.b"));
        assert!(joins("*.a.b", "*.x.a.b"));
        assert!(!joins("*.a.b", "*.c.b"));
        assert!(joins("x.a.b", "x.a.b"));
        assert!(!joins("x.a.b", "y.a.b"));
    }

    #[test]
    fn absent_ones_match_all() {
        assert!(intersect(None, &["x".into()]));
        assert!(intersect(Some("x"), &[]));
    }
}
