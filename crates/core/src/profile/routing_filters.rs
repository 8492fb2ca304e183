//! Filter kinds that are a part of routing and no policies (specification 2.7). They are listed in a YAML
//! file, so that adding one needs no Rust code.

use std::sync::LazyLock;

use serde::Deserialize;

use super::document::ProfileError;
use crate::model::GroupKind;

const FILE: (&str, &str) = (
    "built-in routing-filters.yaml",
    include_str!("routing-filters.yaml"),
);

/// A filter kind that its project documents as a part of routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingFilter {
    /// The kind. Its API group says which project it belongs to.
    pub kind: GroupKind,
    /// What a filter of the kind does.
    pub purpose: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: EntryKind,
    purpose: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryKind {
    group: String,
    kind: String,
}

/// The list of filter kinds that are a part of routing, parsed once.
///
/// # Errors
/// The built-in file is malformed, which a test rules out. Then no kind is known to be a part of routing.
pub fn routing_filters() -> &'static Result<Vec<RoutingFilter>, ProfileError> {
    static FILTERS: LazyLock<Result<Vec<RoutingFilter>, ProfileError>> = LazyLock::new(parse);
    &FILTERS
}

/// Whether a kind is in the list.
pub fn is_routing_filter(kind: &GroupKind) -> bool {
    let mut filters = routing_filters().iter().flatten();
    filters.any(|filter| filter.kind == *kind)
}

fn parse() -> Result<Vec<RoutingFilter>, ProfileError> {
    let (name, text) = FILE;
    let entries: Vec<Entry> = serde_saphyr::from_str(text)
        .map_err(|error| ProfileError::new(name.to_owned(), error.to_string()))?;
    let filters = entries.into_iter().map(|entry| RoutingFilter {
        kind: GroupKind::new(entry.kind.group, entry.kind.kind),
        purpose: entry.purpose,
    });
    Ok(filters.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::built_in;

    #[test]
    fn routing_filters_are_kinds_without_a_profile_of_projects_with_profiles() {
        let filters = routing_filters().as_ref().unwrap();
        assert!(!filters.is_empty());
        for filter in filters {
            let mut profiles = built_in()
                .iter()
                .flatten()
                .map(|(_, profile)| profile.policy());
            assert!(
                profiles.clone().all(|kind| kind != filter.kind),
                "{}",
                filter.kind
            );
            assert!(
                profiles.any(|kind| kind.group == filter.kind.group),
                "{}",
                filter.kind
            );
            assert!(!filter.purpose.is_empty());
        }
    }
}
