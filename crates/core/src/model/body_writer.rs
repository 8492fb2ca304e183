//! Writes JSON values in compact form part by part.

use serde_json::{Map, Number, Value};

use super::body::{Body, Reader, tag};
use super::words;

/// Writes the compact form of a JSON value part by part, as a parser meets them, so that nothing is allocated for each.
/// After [`end_map`](Self::end_map) has found a name twice, what is written has no meaning.
#[derive(Debug, Default)]
pub struct BodyWriter {
    out: Vec<u8>,
    /// Where the fields begin that the open maps have so far.
    fields: Vec<usize>,
    /// The fields of a map in another order.
    sorted: Vec<u8>,
}

/// A list that is not complete.
#[derive(Debug)]
#[must_use]
pub struct OpenList {
    start: usize,
}

/// A map that is not complete.
#[derive(Debug)]
#[must_use]
pub struct OpenMap {
    start: usize,
    /// The number of fields of the maps around it.
    fields: usize,
}

impl BodyWriter {
    /// A writer with room for some bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            out: Vec::with_capacity(bytes),
            ..Self::default()
        }
    }

    /// Writes a value.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.bool(*value),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                let list = self.begin_list();
                items.iter().for_each(|item| self.value(item));
                self.end_list(list);
            }
            Value::Object(fields) => self.map(fields),
        }
    }

    /// Writes a map.
    pub fn map(&mut self, fields: &Map<String, Value>) {
        debug_assert!(fields.keys().is_sorted(), "maps of serde_json are sorted");
        let map = self.begin_map();
        for (name, value) in fields {
            append_text(name, &mut self.out);
            self.value(value);
        }
        close(&mut self.out, map.start);
    }

    /// Writes null.
    pub fn null(&mut self) {
        self.out.push(tag::NULL);
    }

    /// Writes true or false.
    pub fn bool(&mut self, value: bool) {
        self.out.push(if value { tag::TRUE } else { tag::FALSE });
    }

    /// Writes a number that is not negative.
    pub fn unsigned(&mut self, number: u64) {
        self.out.push(tag::UNSIGNED);
        append_length(number, &mut self.out);
    }

    /// Writes a number.
    pub fn signed(&mut self, number: i64) {
        match u64::try_from(number) {
            Ok(number) => self.unsigned(number),
            Err(_) => {
                self.out.push(tag::SIGNED);
                self.out.extend_from_slice(&number.to_le_bytes());
            }
        }
    }

    fn number(&mut self, number: &Number) {
        if let Some(unsigned) = number.as_u64() {
            self.unsigned(unsigned);
        } else if let Some(signed) = number.as_i64() {
            self.signed(signed);
        } else {
            self.out.push(tag::FLOAT);
            let float = number.as_f64().unwrap_or_default();
            self.out.extend_from_slice(&float.to_le_bytes());
        }
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) {
        self.out.push(tag::STRING);
        append_text(text, &mut self.out);
    }

    /// Begins a list, of which the items follow.
    pub fn begin_list(&mut self) -> OpenList {
        self.out.push(tag::LIST);
        OpenList {
            start: self.out.len(),
        }
    }

    /// Ends a list.
    pub fn end_list(&mut self, list: OpenList) {
        close(&mut self.out, list.start);
    }

    /// Begins a map, of which the fields follow: a name and a value each, in any order.
    pub fn begin_map(&mut self) -> OpenMap {
        self.out.push(tag::MAP);
        OpenMap {
            start: self.out.len(),
            fields: self.fields.len(),
        }
    }

    /// Writes the name of a field, of which the value follows.
    pub fn name(&mut self, name: &str) {
        self.fields.push(self.out.len());
        append_text(name, &mut self.out);
    }

    /// Ends a map. Returns whether its names differ from each other.
    pub fn end_map(&mut self, map: OpenMap) -> bool {
        let starts = self.fields.get(map.fields..).unwrap_or_default();
        let out = &self.out;
        let name = |start: usize| Reader(out.get(start..).unwrap_or_default()).text_bytes();
        if !starts.is_sorted_by(|a, b| name(*a) < name(*b)) {
            let ends = starts.iter().skip(1).copied().chain([out.len()]);
            let mut fields: Vec<(usize, usize)> = starts.iter().copied().zip(ends).collect();
            fields.sort_unstable_by_key(|&(start, _)| name(start));
            if !fields.is_sorted_by(|a, b| name(a.0) < name(b.0)) {
                return false;
            }
            self.sorted.clear();
            for (start, end) in fields {
                let field = out.get(start..end).unwrap_or_default();
                self.sorted.extend_from_slice(field);
            }
            self.out.truncate(map.start);
            append_length(self.sorted.len() as u64, &mut self.out);
            self.out.extend_from_slice(&self.sorted);
        } else {
            close(&mut self.out, map.start);
        }
        self.fields.truncate(map.fields);
        true
    }

    /// The value, which must be complete.
    pub fn finish(self) -> Body {
        Body(self.out.into())
    }
}

/// Puts the size in bytes of what follows a place before it, so that it can be skipped.
pub(super) fn close(out: &mut Vec<u8>, start: usize) {
    let size = out.len().saturating_sub(start);
    append_length(size as u64, out);
    if let Some(sized) = out.get_mut(start..) {
        sized.rotate_left(size);
    }
}

/// Appends a text: twice its length and its bytes, or one more than twice the number of a common word.
fn append_text(text: &str, out: &mut Vec<u8>) {
    if let Some(number) = words::number(text) {
        return append_length(2 * number + 1, out);
    }
    append_length(2 * text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number in groups of seven bits, the lowest first.
fn append_length(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Writes a value, the fields of maps from the last to the first if they are `reversed`.
    fn write(value: &Value, reversed: bool, to: &mut BodyWriter) {
        match value {
            Value::Null => to.null(),
            Value::Bool(value) => to.bool(*value),
            Value::Number(number) => match number.as_u64() {
                Some(number) => to.unsigned(number),
                None => to.signed(number.as_i64().unwrap()),
            },
            Value::String(text) => to.text(text),
            Value::Array(items) => {
                let list = to.begin_list();
                items.iter().for_each(|item| write(item, reversed, to));
                to.end_list(list);
            }
            Value::Object(fields) => {
                let map = to.begin_map();
                let mut fields: Vec<_> = fields.iter().collect();
                if reversed {
                    fields.reverse();
                }
                for (name, value) in fields {
                    to.name(name);
                    write(value, reversed, to);
                }
                assert!(to.end_map(map));
            }
        }
    }

    #[test]
    fn what_is_written_part_by_part_is_the_value() {
        let long = "x".repeat(400);
        let value = json!({
            "kind": "Gateway", "": 1, "a": [null, true, false, "", [], {}, {"long": long, "kinds": -5, "kind": 0}],
            "metadata": {"z": {"y": {"b": u64::MAX, "a": i64::MIN}}, "name": "a"}, "spec": {"x": [[{"q": 1, "p": 2}]]},
        });
        for reversed in [false, true] {
            let mut writer = BodyWriter::default();
            write(&value, reversed, &mut writer);
            let written = writer.finish();
            assert_eq!(written, Body::new(&value));
            assert_eq!(written.value(), value);
        }
    }

    #[test]
    fn a_name_that_comes_twice_is_noticed() {
        for names in [
            &["a", "a"][..],
            &["b", "a", "c", "b"],
            &["kind", "name", "kind"],
        ] {
            let mut writer = BodyWriter::default();
            let map = writer.begin_map();
            for name in names {
                writer.name(name);
                writer.null();
            }
            assert!(!writer.end_map(map), "{names:?}");
        }
    }
}
