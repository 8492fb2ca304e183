//! Assertions that a change breaks.

use super::ChangedObject;
use super::text::{count, line};
use crate::insight::BrokenAssertion;
use entail_core::model::PathName;

/// Says which assertion a change breaks, on how many paths, and where first, if that may be named.
pub fn broken_warning(object: ChangedObject<'_>, broken: &BrokenAssertion) -> String {
    let subject = object.subject();
    let paths = count(usize::try_from(broken.paths).unwrap_or(usize::MAX), "path");
    let assertion = &broken.object;
    let is_named =
        assertion.namespace.is_empty() || object.names.includes_policy(&assertion.namespace);
    let name = match is_named {
        true => format!("the assertion {}", assertion.name),
        false => "an assertion of another namespace".to_owned(),
    };
    let first = route_named(object, &broken.first).map(|route| format!(", the first at {route}"));
    let first = first.unwrap_or_default();
    line(&format!("{subject} breaks {name} on {paths}{first}"))
}

/// The Route of a path, if it may be named.
fn route_named(object: ChangedObject<'_>, path: &str) -> Option<String> {
    let Ok(PathName::Traffic(path)) = PathName::parse(path) else {
        return None;
    };
    let route = path.route?;
    let may = object
        .names
        .includes(route.kind, route.namespace, route.name);
    may.then(|| format!("{}/{}/{}", route.kind, route.namespace, route.name))
}
