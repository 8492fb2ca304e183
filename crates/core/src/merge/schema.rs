//! Shapes from the OpenAPI schema of a CRD, for the Structural granularity (specification 5.2).

use serde_json::Value;

use super::shape::{SegmentRef, Shape};

/// Returns the schema of a position below `root`; `None` if the schema does not describe it.
pub(super) fn descend<'s>(root: &'s Value, position: &[SegmentRef<'_>]) -> Option<&'s Value> {
    position.iter().try_fold(root, |node, step| match step {
        SegmentRef::Field(name) => {
            let own = node.get("properties").and_then(|p| p.get(*name));
            own.or_else(|| node.get("additionalProperties").filter(|a| a.is_object()))
        }
        SegmentRef::Item(_) => node.get("items"),
    })
}

/// Returns the shape that a schema node describes.
pub(super) fn shape(node: &Value) -> Shape {
    let text = |field: &str| node.get(field).and_then(Value::as_str);
    if text("x-kubernetes-map-type") == Some("atomic") {
        return Shape::Atomic;
    }
    match text("x-kubernetes-list-type") {
        Some("set") => return Shape::Set,
        Some("map") => {
            let keys = node
                .get("x-kubernetes-list-map-keys")
                .and_then(Value::as_array);
            let keys: Vec<String> = keys
                .into_iter()
                .flatten()
                .filter_map(|key| key.as_str().map(str::to_owned))
                .collect();
            if !keys.is_empty() {
                return Shape::Keyed(keys);
            }
        }
        _ => {}
    }
    match node.get("additionalProperties") {
        Some(values) if is_scalar(values) => Shape::Atomic,
        _ => Shape::Granular,
    }
}

/// Reports whether a schema node describes a scalar.
fn is_scalar(node: &Value) -> bool {
    let kind = node.get("type").and_then(Value::as_str);
    let int_or_string = node.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    int_or_string || matches!(kind, Some("string" | "integer" | "number" | "boolean"))
}
