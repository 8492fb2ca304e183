//! Helpers for JSON values: field paths of profiles, and the test for unset values.

use serde_json::Value;

/// One step of a field path in a profile, such as `spec.tracing[0]` or `spec.rules[*].x`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldStep {
    /// A field of an object.
    Field(String),
    /// An item of a list.
    Index(usize),
    /// `[*]`: an item that the caller chooses when it evaluates the path.
    Any,
    /// `[field=value]`: the first item of a list with this text in this field.
    With(String, String),
}

/// Parses a dotted field path. Returns `None` if the text is malformed.
pub fn parse_field_path(text: &str) -> Option<Vec<FieldStep>> {
    let mut steps = Vec::new();
    for part in text.split('.') {
        let (name, mut rest) = match part.find('[') {
            Some(at) => part.split_at(at),
            None => (part, ""),
        };
        if name.is_empty() {
            return None;
        }
        steps.push(FieldStep::Field(name.to_owned()));
        while !rest.is_empty() {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(match (index, index.split_once('=')) {
                ("*", _) => FieldStep::Any,
                (_, Some((field, value))) if !field.is_empty() => {
                    FieldStep::With(field.to_owned(), value.to_owned())
                }
                (number, _) => FieldStep::Index(number.parse().ok()?),
            });
            rest = after;
        }
    }
    Some(steps)
}

/// Formats a field path as [`parse_field_path`] reads it.
pub fn field_path_text(path: &[FieldStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            FieldStep::Field(name) if text.is_empty() => text.push_str(name),
            FieldStep::Field(name) => text.extend([".", name]),
            FieldStep::Index(index) => text.extend(["[", &index.to_string(), "]"]),
            FieldStep::Any => text.push_str("[*]"),
            FieldStep::With(field, value) => text.extend(["[", field, "=", value, "]"]),
        }
    }
    text
}

/// Returns the value at a field path. `[*]` selects the item with index `any`.
pub fn at_path<'v>(root: &'v Value, path: &[FieldStep], any: Option<usize>) -> Option<&'v Value> {
    path.iter().try_fold(root, |value, step| match step {
        FieldStep::Field(name) => value.get(name.as_str()),
        FieldStep::Index(index) => value.get(index),
        FieldStep::Any => value.get(any?),
        FieldStep::With(field, text) => {
            let mut items = value.as_array()?.iter();
            items.find(|item| item.get(field).and_then(Value::as_str) == Some(text))
        }
    })
}

/// Reports whether a value is unset: absent, null, or an empty string, list or map
/// (specification 6.4).
pub fn is_unset(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_with_indexes() {
        let value = json!({"spec": {"rules": [{"x": 1}, {"x": 2}]}});
        let fixed = parse_field_path("spec.rules[0].x").unwrap();
        let any = parse_field_path("spec.rules[*].x").unwrap();
        assert_eq!(at_path(&value, &fixed, None), Some(&json!(1)));
        assert_eq!(at_path(&value, &any, Some(1)), Some(&json!(2)));
        assert_eq!(at_path(&value, &any, None), None);
        let chosen = parse_field_path("l[t=b].v").unwrap();
        let list =
            json!({"l": [{"t": "a", "v": 1}, {"v": 2}, {"t": "b", "v": 3}, {"t": "b", "v": 4}]});
        assert_eq!(at_path(&list, &chosen, None), Some(&json!(3)));
        assert_eq!(at_path(&json!({"l": {"t": "b"}}), &chosen, None), None);
        for text in ["spec.rules[0].x", "spec.rules[*].x", "l[t=b].v"] {
            let path = parse_field_path(text).unwrap();
            assert_eq!(field_path_text(&path), text);
        }
        for bad in ["", "a..b", "a[", "a[x]", "a[=x]", "[0]"] {
            assert_eq!(parse_field_path(bad), None, "{bad}");
        }
    }
}
