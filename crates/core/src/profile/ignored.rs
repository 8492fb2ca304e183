//! Values that a controller does not look at on some paths, so that they are no rules there (specification 2.10).

use serde_json::{Map, Value};

use super::document::IgnoredDoc;
use super::forbidden::{is_set_in, path_of_items};
use crate::model::FieldStep;

/// A value that is left out of rules.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ignored {
    /// Where it stands; `[*]` stands for every item of a list.
    path: Vec<FieldStep>,
    /// It is left out only where there is a value here, in the same items of lists.
    beside: Option<Vec<FieldStep>>,
}

impl Ignored {
    /// Removes the value from rules.
    pub fn cut_out(&self, rules: &mut Map<String, Value>) {
        let mut value = Value::Object(std::mem::take(rules));
        cut_out(&mut value, &self.path, self.beside.as_deref());
        if let Value::Object(left) = value {
            *rules = left;
        }
    }
}

/// Removes what stands at a path, if something stands at the path `beside`. Both go through the same items of lists as
/// long as they are equal; behind that, `beside` is settled and `None`.
fn cut_out(value: &mut Value, path: &[FieldStep], beside: Option<&[FieldStep]>) {
    let Some((step, rest)) = path.split_first() else {
        return;
    };
    let beside = match beside {
        Some([first, below @ ..]) if first == step => Some(below),
        Some(beside) if !is_set_in(value, beside) => return,
        _ => None,
    };
    match (step, value) {
        (FieldStep::Field(name), Value::Object(fields)) if rest.is_empty() => {
            let is_beside = |value: &Value| beside.is_none_or(|below| is_set_in(value, below));
            if fields.get(name.as_str()).is_some_and(is_beside) {
                fields.remove(name.as_str());
            }
        }
        (FieldStep::Field(name), Value::Object(fields)) => {
            if let Some(inner) = fields.get_mut(name.as_str()) {
                cut_out(inner, rest, beside);
            }
        }
        (FieldStep::Any, Value::Array(items)) => {
            for item in items {
                cut_out(item, rest, beside);
            }
        }
        _ => {}
    }
}

/// Resolves a value that is left out.
///
/// # Errors
/// A path is malformed, or ends at the items of a list.
pub(super) fn ignored(doc: &IgnoredDoc) -> Result<Ignored, String> {
    let path = |text: &String| path_of_items(text, "limits.ignored");
    if doc.path.ends_with(']') {
        let path = &doc.path;
        return Err(format!(
            "limits.ignored: `{path}` is no field: name one of the items"
        ));
    }
    Ok(Ignored {
        path: path(&doc.path)?,
        beside: doc.beside.as_ref().map(path).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ignored_values_are_cut_out_beside_others_in_the_same_item() {
        let rules = json!({"a": {"b": [{"x": 1, "y": {"z": 1}}, {"x": 1}, 5], "c": 1}, "d": 1});
        for (path, beside, expected) in [
            (
                "a.b[*].x",
                Some("a.b[*].y.z"),
                json!({"a": {"b": [{"y": {"z": 1}}, {"x": 1}, 5], "c": 1}, "d": 1}),
            ),
            (
                "a.b[*].y.z",
                None,
                json!({"a": {"b": [{"x": 1, "y": {}}, {"x": 1}, 5], "c": 1}, "d": 1}),
            ),
            (
                "a.c",
                Some("d"),
                json!({"a": {"b": [{"x": 1, "y": {"z": 1}}, {"x": 1}, 5]}, "d": 1}),
            ),
            ("a.c", Some("e"), rules.clone()),
            (
                "a.b[*].y",
                Some("a.b[*].y.z"),
                json!({"a": {"b": [{"x": 1}, {"x": 1}, 5], "c": 1}, "d": 1}),
            ),
            ("a.b[*].y", Some("a.b[*].y.none"), rules.clone()),
            ("d.c", None, rules.clone()),
        ] {
            let doc = IgnoredDoc {
                path: path.to_owned(),
                beside: beside.map(str::to_owned),
            };
            let mut left = rules.as_object().unwrap().clone();
            ignored(&doc).unwrap().cut_out(&mut left);
            assert_eq!(Value::Object(left), expected, "{path} {beside:?}");
        }
    }
}
