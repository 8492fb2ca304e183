//! Finds expectations that assert nothing: a case with one passes whatever the answers are.

use serde_json::{Map, Value};

use super::case::Case;

/// Returns a message for each part of `expect` that asserts nothing, with its field.
///
/// It reads the document as written, because an empty field and a missing one parse to the same.
pub(super) fn empty_expectations(case: &Value) -> Vec<String> {
    // A missing or malformed `expect` is an error of the parser.
    let Some(expect) = case.get("expect").and_then(Value::as_object) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut add = |field: String, advice: &str| {
        found.push(format!("{field}: asserts nothing: {advice}"));
    };
    if expect.is_empty() {
        add(
            "expect".to_owned(),
            "add `effective`, `status` or another expectation",
        );
    }
    for (field, value) in expect {
        let field_path = format!("expect.{field}");
        if is_empty(value) {
            add(field_path, "fill or remove it");
            continue;
        }
        match field.as_str() {
            "effective" => effective(&field_path, value, &mut add),
            "status" => statuses(&field_path, value, &mut add),
            "paths" | "losses" => {
                for (name, inner) in entries(value) {
                    if is_empty(inner) {
                        add(format!("{field_path}.{name}"), "fill or remove it");
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns a message for each invalid path without a reason, which passes for any misspelt name.
pub(super) fn unexplained_paths(case: &Case) -> Vec<String> {
    let invalid = case.expect.paths.invalid.iter().enumerate();
    invalid
        .filter(|(_, invalid)| invalid.reason.is_none())
        .map(|(index, invalid)| {
            format!(
                "expect.paths.invalid[{index}]: any misspelt name passes: add the `reason` for \
                 which `{}` is not a path",
                invalid.path
            )
        })
        .collect()
}

fn effective(field: &str, value: &Value, add: &mut impl FnMut(String, &str)) {
    for (index, entry) in items(value) {
        let field = format!("{field}[{index}]");
        let lists = [
            "policies",
            "origins",
            "rejected",
            "unknown",
            "undecided",
            "listed",
        ];
        // No unknown kind at all is an assertion, too.
        let all_unknown = entry.get("allUnknown").is_some_and(Value::is_array);
        if !all_unknown
            && lists
                .iter()
                .all(|list| entry.get(*list).is_none_or(is_empty))
        {
            add(
                field,
                "add `policies`, `origins`, `rejected`, `listed`, `unknown` or `undecided`",
            );
            continue;
        }
        for (kind, units) in entry.get("origins").into_iter().flat_map(entries) {
            if is_empty(units) {
                add(format!("{field}.origins.{kind}"), "fill or remove it");
            }
        }
    }
}

fn statuses(field: &str, value: &Value, add: &mut impl FnMut(String, &str)) {
    for (index, entry) in items(value) {
        let asserts = |(name, value): (&String, &Value)| name != "policy" && !value.is_null();
        if !entry.iter().any(asserts) {
            add(
                format!("{field}[{index}]"),
                "add `accepted`, `inForce`, `overriddenBy` or `ancestors`",
            );
        }
    }
}

/// The mappings of a list, with their indices.
fn items(value: &Value) -> impl Iterator<Item = (usize, &Map<String, Value>)> {
    let items = value.as_array().into_iter().flatten().enumerate();
    items.filter_map(|(index, item)| Some((index, item.as_object()?)))
}

/// The entries of a mapping.
fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
