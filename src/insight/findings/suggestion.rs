//! Suggests names for targets that do not exist. Names of other namespaces are never suggested.

use entail_core::attach::ReferenceOutcome;
use entail_core::effective::World;
use entail_core::model::{Outcome, groups};
use entail_core::profile::{Policy, ReferenceTarget};
use entail_core::store::Projection;

/// Returns a suggestion for a reference to a missing target; empty if there is none.
pub(super) fn hint(world: &World, policy: &Policy, outcome: &ReferenceOutcome) -> String {
    if outcome.outcome != Outcome::TargetNotFound {
        return String::new();
    }
    let Some(reference) = policy.references.iter().find(|r| r.field == outcome.field) else {
        return String::new();
    };
    let ReferenceTarget::Name(name) = &reference.target else {
        return String::new();
    };
    let own = &policy.key.namespace;
    if reference.namespace.as_ref().is_some_and(|ns| ns != own) {
        return String::new();
    }
    let objects = world.store().of_kind(&reference.kind);
    let mut candidates: Vec<(&str, &Projection)> = objects
        .filter(|((namespace, _), _)| namespace == own || namespace.is_empty())
        .map(|((_, name), entry)| (&**name, &entry.projection))
        .collect();
    if reference.kind.is(groups::CORE, "Namespace") {
        candidates.retain(|(name, _)| *name == &**own);
    }
    let exists = candidates.iter().find(|(found, _)| *found == &**name);
    let near = match (exists, &reference.section) {
        (Some((_, projection)), Some(section)) => nearest(section, sections(projection)),
        _ => nearest(
            name,
            candidates
                .iter()
                .map(|(name, _)| (*name).to_owned())
                .collect(),
        ),
    };
    near.map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

/// The names of an object's sections.
fn sections(projection: &Projection) -> Vec<String> {
    let text = |name: &std::sync::Arc<str>| name.to_string();
    match projection {
        Projection::Gateway(gateway) => gateway.listeners.iter().map(|l| text(&l.name)).collect(),
        Projection::ListenerSet(set) => set.listeners.iter().map(|l| text(&l.name)).collect(),
        Projection::Route(route) => {
            let names = route.rules.iter().filter_map(|r| r.name.as_ref());
            names.map(text).collect()
        }
        Projection::Service(ports) => {
            let names = ports.0.iter().filter_map(|(name, _)| name.as_ref());
            names.map(text).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the name with the smallest edit distance, up to a third of the length.
fn nearest(misspelled: &str, names: Vec<String>) -> Option<String> {
    let most = misspelled.chars().count().div_ceil(3).max(1);
    names
        .into_iter()
        .map(|name| (distance(misspelled, &name), name))
        .filter(|(edits, _)| *edits <= most)
        .min()
        .map(|(_, name)| name)
}

/// The Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, left) in a.chars().enumerate() {
        let mut diagonal = at;
        let mut last = at + 1;
        if let Some(first) = row.first_mut() {
            *first = last;
        }
        for (right, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let changed = diagonal + usize::from(left != *right);
            diagonal = *cell;
            last = changed.min(last + 1).min(*cell + 1);
            *cell = last;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
        let names = || vec!["storefront".to_owned(), "backdoor".to_owned()];
        assert_eq!(
            nearest("storefornt", names()),
            Some("storefront".to_owned())
        );
        assert_eq!(nearest("nothing", names()), None);
    }
}
