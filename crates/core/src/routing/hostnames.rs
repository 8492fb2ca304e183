//! Precedence and overlap of hostnames (Gateway API, HTTPRoute `hostnames`).

use hashbrown::HashSet;

use crate::model::Str;

/// The specificity of a hostname: exact hostnames before wildcards, then by length. No hostname is
/// the least specific.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Specificity {
    is_exact: bool,
    length: usize,
}

/// A set of hostnames that answers whether another hostname overlaps with one of them.
#[derive(Debug, Default)]
pub(super) struct HostnameSet {
    names: HashSet<String>,
    /// The wildcards that cover a hostname of the set.
    above: HashSet<String>,
    /// Whether the set contains the empty hostname, which matches all hosts.
    all: bool,
}

impl Specificity {
    /// Returns the specificity of a hostname; empty means no hostname.
    pub fn of(hostname: &str) -> Self {
        Self {
            is_exact: !hostname.is_empty() && !hostname.starts_with('*'),
            length: hostname.len(),
        }
    }
}

impl HostnameSet {
    /// Adds a hostname to the set.
    pub fn add(&mut self, hostname: &str) {
        self.all |= hostname.is_empty();
        self.above.extend(wildcards(hostname));
        self.names.insert(hostname.to_owned());
    }

    /// Reports whether a hostname has hosts in common with one of the set.
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

/// Reports whether the hostname of a listener matches a host.
pub(super) fn matches(hostname: Option<&Str>, host: &str) -> bool {
    let hostname = hostname.map_or("", |name| &**name);
    hostname.is_empty() || hosts_of(host).any(|candidate| candidate == hostname)
}

/// Returns the hostnames that match a host, from the most specific: the host itself, wildcards from
/// the longest, and the empty hostname.
pub(super) fn hosts_of(host: &str) -> impl Iterator<Item = String> {
    let own = (!host.is_empty()).then(|| host.to_owned());
    own.into_iter()
        .chain(wildcards(host))
        .chain([String::new()])
}

/// Returns the wildcards that cover a hostname, without itself, from the longest.
fn wildcards(hostname: &str) -> impl Iterator<Item = String> {
    let labels = hostname.strip_prefix("*.").unwrap_or(hostname);
    let dots = labels.match_indices('.').map(|(at, _)| at);
    // A wildcard stands for at least one character.
    let dots = dots.filter(|at| *at > 0);
    dots.filter_map(|at| labels.get(at..).map(|rest| format!("*{rest}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::hostname::intersection;

    #[test]
    fn a_host_matches_itself_wildcards_and_the_empty_hostname() {
        let found: Vec<_> = hosts_of("a.b.c").collect();
        assert_eq!(found, ["a.b.c", "*.b.c", "*.c", ""]);
        assert_eq!(hosts_of("").collect::<Vec<_>>(), [""]);
        assert!(matches(Some(&"*.b.c".into()), "x.a.b.c"));
        assert!(!matches(Some(&"*.b.c".into()), "b.c"));
        assert!(matches(None, ""));
    }

    #[test]
    fn overlap_is_symmetric() {
        let overlap = |one: &str, other: &str| {
            let mut set = HostnameSet::default();
            set.add(one);
            set.overlaps(other)
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
    fn exact_hostnames_are_more_specific_than_wildcards() {
        let order = ["", "*.b", "*.a.b", "b", "a.b"].map(Specificity::of);
        assert!(order.is_sorted());
    }
}
