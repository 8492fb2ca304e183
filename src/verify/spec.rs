//! The rules of an effective policy, with the fields that no row compares.

use serde_json::Value;

use super::convert::{Convert, lookup};
use super::rows::KindRows;

/// The rules of an effective policy.
#[derive(Debug)]
pub(super) struct Spec {
    rules: Value,
    /// The fields that no row compares, as dotted paths.
    pub(super) unread: Vec<String>,
}

impl Spec {
    /// Reads rules; `None` if they are not JSON.
    pub(super) fn read(json: &str, kind: &KindRows) -> Option<Self> {
        let rules: Value = serde_json::from_str(json).ok()?;
        let mut unread = Vec::new();
        add_unread(&rules, "", kind, &mut unread);
        Some(Self { rules, unread })
    }

    /// The value of a field; `None` if it is not set.
    pub(super) fn field(&self, path: &str) -> Option<&Value> {
        let steps: Vec<&str> = path.split('.').collect();
        lookup(&self.rules, &steps)
    }
}

/// Adds the fields below a path that no row compares.
fn add_unread(value: &Value, path: &str, kind: &KindRows, unread: &mut Vec<String>) {
    let rows = || {
        kind.rows
            .iter()
            .filter(|row| !matches!(row.convert, Convert::Block))
    };
    if rows().any(|row| row.field == path) || kind.implied.contains(&path) {
        return;
    }
    let below = |row: &super::rows::Row| {
        let rest = row.field.strip_prefix(path);
        path.is_empty() || rest.is_some_and(|rest| rest.starts_with('.'))
    };
    match value {
        Value::Object(fields) if kind.rows.iter().any(below) => {
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                add_unread(value, &path, kind, unread);
            }
        }
        _ => unread.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::rows::KINDS;

    #[test]
    fn fields_without_a_row_are_found() {
        let kind = KINDS
            .iter()
            .find(|kind| kind.kind == "BackendTrafficPolicy")
            .unwrap();
        let json = r#"{"retry": {"numRetries": 3, "new": {"a": 1}}, "dns": {"x": 1}, "timeout": {"http": {}},
            "healthCheck": {"active": {"type": "HTTP", "http": {"path": "/"}}}}"#;
        let spec = Spec::read(json, kind).unwrap();
        assert_eq!(spec.unread, ["dns", "retry.new"]);
        assert_eq!(spec.field("retry.numRetries"), Some(&Value::from(3)));
        assert_eq!(spec.field("retry.other"), None);
    }
}
