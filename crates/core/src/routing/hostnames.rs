//! Hostnames by how much they say (Gateway API, HTTPRoute `hostnames` and precedence).

use hashbrown::HashSet;

use crate::model::Str;

/// How much a hostname says: exact ones before wildcards, then by length; none says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Specificity {
    is_exact: bool,
    length: usize,
}

/// Hostnames, to find whether others have hosts in common with them.
#[derive(Debug, Default)]
pub(super) struct HostnameSet {
    names: HashSet<String>,
    /// The wildcards that cover one of them.
    above: HashSet<String>,
    /// Whether one is no hostname, which is all.
    all: bool,
}

impl Specificity {
    /// Of a hostname; the empty one is none.
    pub fn of(hostname: &str) -> Self {
        Self {
            is_exact: !hostname.is_empty() && !hostname.starts_with('*'),
            length: hostname.len(),
        }
    }
}

impl HostnameSet {
    /// Adds a hostname.
    pub fn add(&mut self, hostname: &str) {
        self.all |= hostname.is_empty();
        self.above.extend(wildcards(hostname));
        self.names.insert(hostname.to_owned());
    }

    /// Whether a hostname has hosts in common with one of them.
    pub fn overlaps(&self, hostname: &str) -> bool {
        if self.names.is_empty() {
            return false;
        }
        self.all
            || hostname.is_empty()
            || self.names.contains(hostname)
            || self.above.contains(hostname)
            || wildcards(hostname).any(|wildcard| self.names.contains(&wildcard))
    }
}

/// Whether a listener's hostname is meant by a host.
pub(super) fn matches(hostname: Option<&Str>, host: &str) -> bool {
    let hostname = hostname.map_or("", |name| &**name);
    hostname.is_empty() || hosts_of(host).any(|known| known == hostname)
}

/// The hostnames that a host may be found by, from the one that says most: itself, wildcards from
/// the longest, and none.
pub(super) fn hosts_of(host: &str) -> impl Iterator<Item = String> {
    let own = (!host.is_empty()).then(|| host.to_owned());
    own.into_iter()
        .chain(wildcards(host))
        .chain([String::new()])
}

/// The wildcards that cover a hostname, but for itself; from the longest.
fn wildcards(hostname: &str) -> impl Iterator<Item = String> {
    let labels = hostname.strip_prefix("*.").unwrap_or(hostname);
    let dots = labels.match_indices('.').map(|(at, _)| at);
    dots.filter_map(|at| labels.get(at..).map(|rest| format!("*{rest}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::hostname::intersection;

    #[test]
    fn a_host_is_found_by_itself_by_wildcards_and_by_none() {
        let found: Vec<_> = hosts_of("a.b.c").collect();
        assert_eq!(found, ["a.b.c", "*.b.c", "*.c", ""]);
        assert_eq!(hosts_of("").collect::<Vec<_>>(), [""]);
        assert!(matches(Some(&"*.b.c".into()), "x.a.b.c"));
        assert!(!matches(Some(&"*.b.c".into()), "b.c"));
        assert!(matches(None, ""));
    }

    #[test]
    fn overlaps_are_found_both_ways() {
        let overlap = |one: &str, other: &str| {
            let mut taken = HostnameSet::default();
            taken.add(one);
            taken.overlaps(other)
        };
        let names = ["", "a.b", "b", "*.b", "*.a.b", "x.a.b", "*.c", "y.c"];
        for one in names {
            for other in names {
                let expected = intersection(one, other).is_some();
                assert_eq!(overlap(one, other), expected, "{one} {other}");
            }
        }
        assert!(!HostnameSet::default().overlaps(""));
    }

    #[test]
    fn exact_ones_say_more_than_wildcards() {
        let order = ["", "*.b", "*.a.b", "b", "a.b"].map(Specificity::of);
        assert!(order.is_sorted());
    }
}
