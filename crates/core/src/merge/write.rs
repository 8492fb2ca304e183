//! Writes merged rules as JSON text directly from the tree, without building a JSON value.

use serde_json::{Map, Value};

use super::tree::MergeTree;
use super::unit_value::UnitValue;
use crate::model::write_text;

impl MergeTree<'_> {
    /// Returns the value without tombstones as compact JSON with sorted keys (specification 5.2, 6.5).
    pub fn to_json(&self) -> Option<String> {
        let mut out = Vec::with_capacity(1_024);
        self.write(&mut out);
        String::from_utf8(out).ok()
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            MergeTree::Leaf(leaf) => match &leaf.value {
                UnitValue::Encoded(value) => value.write_json(out),
                UnitValue::Decoded(value) => write_value(value, out),
            },
            MergeTree::Object(object) => {
                let fields = object.fields.iter().filter(|(_, tree)| !tree.is_null());
                write_fields(fields, out, |tree, out| tree.write(out));
            }
            MergeTree::Items(list) => {
                write_items(list.items.iter(), out, |(_, tree), out| tree.write(out));
            }
        }
    }
}

/// Writes a value without the nulls of its objects. Nulls in lists are plain data.
fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => write_map(map, out),
        other => write_plain(other, out),
    }
}

fn write_map(map: &Map<String, Value>, out: &mut Vec<u8>) {
    let fields = map.iter().filter(|(_, value)| !value.is_null());
    write_fields(fields, out, write_value);
}

fn write_plain(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, value);
}

fn write_fields<K: AsRef<str>, V>(
    fields: impl Iterator<Item = (K, V)>,
    out: &mut Vec<u8>,
    write: impl Fn(V, &mut Vec<u8>),
) {
    out.push(b'{');
    for (at, (name, value)) in fields.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_text(name.as_ref(), out);
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}

fn write_items<V>(
    items: impl Iterator<Item = V>,
    out: &mut Vec<u8>,
    write: impl Fn(V, &mut Vec<u8>),
) {
    out.push(b'[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}
