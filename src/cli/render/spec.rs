//! A spec as lines of YAML-like text, each with the origin of its value.

use serde_json::Value;

use super::document::Document;
use super::json::compact;
use super::yaml::{scalar, string};
use crate::api::v1;
use entail_core::model::{Segment, Unit, item_value};

/// Maximum length of a list of scalars that is printed on one line.
const SHORT: usize = 60;

/// A line of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct SpecLine {
    /// The text, indented.
    pub(in crate::cli) text: String,
    /// The policy that set this value and those below; empty if a line above has it.
    pub(in crate::cli) origin: String,
}

/// The origins of a spec, by unit.
struct Origins(Vec<(Unit, String)>);

/// Returns the lines of a spec, and the origin of the whole spec, which belongs beside the heading.
pub(in crate::cli) fn lines(
    value: &Value,
    origins: &[v1::Origin],
    indent: usize,
) -> (String, Vec<SpecLine>) {
    let origins = Origins(
        origins
            .iter()
            .filter_map(|origin| Some((Unit::parse(&origin.unit)?, origin_comment(origin))))
            .collect(),
    );
    let mut lines = Vec::new();
    push_lines(value, &mut Unit::default(), &origins, indent, &mut lines);
    (origins.of(&Unit::default()), lines)
}

/// `from ns/name (defaults)`.
pub(in crate::cli) fn origin_comment(origin: &v1::Origin) -> String {
    format!(
        "from {} ({})",
        origin_name(origin),
        block_name(origin.block())
    )
}

/// The policies that set a unit, or the object that does.
pub(in crate::cli) fn origin_name(origin: &v1::Origin) -> String {
    if origin.policies.is_empty() {
        return origin.object.clone();
    }
    let names: Vec<String> = origin.policies.iter().map(policy_name).collect();
    names.join(" + ")
}

/// `namespace/name`, or `name` of a cluster-scoped policy.
pub(in crate::cli) fn policy_name(policy: &v1::PolicyRef) -> String {
    if policy.namespace.is_empty() {
        policy.name.clone()
    } else {
        format!("{}/{}", policy.namespace, policy.name)
    }
}

/// The name of a block.
pub(in crate::cli) fn block_name(block: v1::Block) -> &'static str {
    match block {
        v1::Block::Unspecified => "unknown block",
        v1::Block::ImplicitDefaults => "rules",
        v1::Block::Defaults => "defaults",
        v1::Block::Overrides => "overrides",
        v1::Block::OwnFields => "own fields",
    }
}

impl Origins {
    /// The comments of the origins of exactly this unit.
    fn of(&self, unit: &Unit) -> String {
        let matching = self.0.iter().filter(|(other, _)| other == unit);
        let texts: Vec<&str> = matching.map(|(_, text)| text.as_str()).collect();
        texts.join(", ")
    }

    /// Returns the segment of a list item below `unit`: its keys, if the unit of an origin identifies
    /// the item by keys.
    fn item(&self, unit: &Unit, item: &Value) -> Segment {
        let depth = unit.0.len();
        let below = self.0.iter().filter(|(other, _)| unit.covers(other));
        let segments = below.filter_map(|(other, _)| other.0.get(depth));
        for segment in segments {
            if let Segment::Item(keys) = segment {
                let has = |key: &str, value: &str| {
                    item.get(key)
                        .is_some_and(|field| item_value(field) == value)
                };
                if !keys.is_empty() && keys.iter().all(|(key, value)| has(key, value)) {
                    return segment.clone();
                }
            }
        }
        Segment::Item(Vec::new())
    }
}

/// Appends the lines of a value at `unit`.
fn push_lines(
    value: &Value,
    unit: &mut Unit,
    origins: &Origins,
    indent: usize,
    lines: &mut Vec<SpecLine>,
) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                unit.0.push(Segment::Field(key.as_str().into()));
                let own = origins.of(unit);
                match on_one_line(value) {
                    Some(text) => lines.push(line(indent, &string(key), &text, own)),
                    None => {
                        lines.push(line(indent, &string(key), "", own));
                        push_lines(value, unit, origins, indent + 2, lines);
                    }
                }
                unit.0.pop();
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                unit.0.push(origins.item(unit, item));
                let first = lines.len();
                push_lines(item, unit, origins, indent + 2, lines);
                if let Some(line) = lines.get_mut(first) {
                    dash(line, indent);
                    let own = origins.of(unit);
                    if line.origin.is_empty() {
                        line.origin = own;
                    }
                }
                unit.0.pop();
            }
        }
        leaf => lines.push(SpecLine {
            text: format!("{:indent$}{}", "", scalar(&Document::from(leaf.clone()))),
            origin: String::new(),
        }),
    }
}

/// Puts the dash of a list item before its first line.
fn dash(line: &mut SpecLine, indent: usize) {
    let text = line.text.trim_start_matches(' ');
    let before = line.text.len() - text.len();
    // If the item is a list, its first line already has a dash, further to the right.
    line.text = format!(
        "{:indent$}- {:rest$}{text}",
        "",
        "",
        rest = before - before.min(indent + 2)
    );
}

fn line(indent: usize, key: &str, value: &str, origin: String) -> SpecLine {
    let gap = if value.is_empty() { "" } else { " " };
    SpecLine {
        text: format!("{:indent$}{key}:{gap}{value}", ""),
        origin,
    }
}

/// Formats a value on one line: a scalar, an empty list or map, or a short list of scalars. `None` if
/// it needs several lines.
pub(in crate::cli) fn on_one_line(value: &Value) -> Option<String> {
    let is_leaf = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => true,
    };
    match value {
        leaf if is_leaf(leaf) => Some(scalar(&leaf.clone().into())),
        Value::Array(items) if items.iter().all(is_leaf) => {
            let text = compact(&value.clone().into());
            (text.len() <= SHORT).then_some(text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn origin(unit: &str, name: &str) -> v1::Origin {
        v1::Origin {
            unit: unit.to_owned(),
            policies: vec![v1::PolicyRef {
                namespace: "ns".to_owned(),
                name: name.to_owned(),
            }],
            block: v1::Block::Defaults.into(),
            ..v1::Origin::default()
        }
    }

    #[test]
    fn each_line_has_its_origin() {
        let spec = json!({
            "a": {"b": "10s", "c.d": 1}, "codes": [502, 503],
            "list": [{"name": "x", "v": 1}, {"name": "y", "v": [{"z": 1}]}],
        });
        let origins = [
            origin("a.b", "p"),
            origin("a.\"c.d\"", "q"),
            origin("list[name=y].v", "r"),
            origin("codes", "s"),
        ];
        let (whole, found) = lines(&spec, &origins, 2);
        assert_eq!(whole, "");
        let text: Vec<String> = found
            .iter()
            .map(|l| format!("{}|{}", l.text, l.origin))
            .collect();
        assert_eq!(
            text,
            [
                "  a:|",
                "    b: 10s|from ns/p (defaults)",
                "    c.d: 1|from ns/q (defaults)",
                "  codes: [502, 503]|from ns/s (defaults)",
                "  list:|",
                "    - name: x|",
                "      v: 1|",
                "    - name: \"y\"|",
                "      v:|from ns/r (defaults)",
                "        - z: 1|",
            ]
        );
    }

    #[test]
    fn the_whole_spec_may_have_one_origin() {
        let (whole, found) = lines(&json!([[1, {"a": 1}], "x"]), &[origin("*", "p")], 0);
        assert_eq!(whole, "from ns/p (defaults)");
        let text: Vec<&str> = found.iter().map(|l| l.text.as_str()).collect();
        assert_eq!(text, ["- - 1", "  - a: 1", "- x"]);
    }
}
