//! Documents that are JSON.
//!
//! JSON is YAML, and reading it as such takes a small part of the time. Documents in which the two could differ, and
//! all with an error, are left to the reader of YAML, which knows what kubectl does and what to say.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::document::Document;
use super::limits::Limits;
use crate::bounded_value::MAX_DEPTH;
use crate::bounded_value::containers_of_text;

/// Maximum length of a key. In YAML, a key that is followed by `:` has at most 1 024 characters.
const MAX_KEY: usize = 1_000;

/// Reads a value within the limits of its document.
#[derive(Clone, Copy)]
struct Nested<'d> {
    /// The levels that may be below.
    levels: usize,
    /// The number of values that may follow.
    values: &'d Cell<usize>,
    /// The number of lists and maps that may follow.
    containers: &'d Cell<usize>,
}

/// Reads a document that is a JSON object. `None` if it is not, or has to be read as YAML.
pub(super) fn read(text: &str, limits: Limits) -> Option<Document> {
    let marked = text.trim_start_matches('\n').strip_prefix("---\n");
    let content = marked.unwrap_or(text).trim_start_matches([' ', '\n']);
    let differs = |byte: u8| !byte.is_ascii() || byte.is_ascii_control() && byte != b'\n';
    if !content.starts_with('{')
        || text.len() > limits.bytes()
        // YAML takes surrogates for characters, and so does JSON, but only in pairs.
        || content.contains("\\u")
        || content.bytes().any(differs)
    {
        return None;
    }
    let nested = Nested {
        levels: MAX_DEPTH,
        values: &Cell::new(limits.values()),
        containers: &Cell::new(containers_of_text(text.len())),
    };
    let mut json = serde_json::Deserializer::from_str(content);
    let value = nested.deserialize(&mut json).ok()?;
    json.end().ok()?;
    let before = text.len().saturating_sub(content.len());
    let newlines = text.bytes().take(before).filter(|byte| *byte == b'\n');
    let line = u32::try_from(newlines.count()).ok()?.saturating_add(1);
    let items = value.get("items").and_then(Value::as_array);
    // Where the items are is known only if all are on one line.
    if items.is_some() && content.trim_end().contains('\n') {
        return None;
    }
    let items = vec![line; items.map_or(0, Vec::len)];
    Some(Document { line, value, items })
}

impl Nested<'_> {
    /// What is one level below, in a list or map.
    fn below<E: Error>(self) -> Result<Self, E> {
        let left = self.containers.get().checked_sub(1);
        self.containers
            .set(left.ok_or_else(|| E::custom("too many lists and maps"))?);
        let levels = self.levels.checked_sub(1);
        let levels = levels.ok_or_else(|| E::custom("too deep"))?;
        Ok(Self { levels, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let left = self.values.get().checked_sub(1);
        self.values
            .set(left.ok_or_else(|| D::Error::custom("too many values"))?);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that YAML reads alike")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let (below, mut members) = (self.below()?, Vec::new());
        while let Some(member) = access.next_element_seed(below)? {
            members.push(member);
        }
        Ok(Value::Array(members))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let (below, mut fields) = (self.below()?, Map::new());
        while let Some(name) = access.next_key::<String>()? {
            let value = access.next_value_seed(below)?;
            if name.len() > MAX_KEY || fields.insert(name, value).is_some() {
                return Err(A::Error::custom("a key that YAML refuses"));
            }
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::source::manifests::document::yaml;
    use crate::source::manifests::read::STACK;

    fn json(text: &str) -> Option<Document> {
        read(text, Limits::default())
    }

    /// A generator of random numbers, by xorshift.
    struct Rng(u64);

    impl Rng {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }

        fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
            of[self.below(of.len() as u64) as usize]
        }
    }

    const TEXTS: [&str; 22] = [
        "",
        "a",
        "yes",
        "no",
        "null",
        "~",
        "1",
        "1_0",
        "<<",
        "0x1f",
        "1e3",
        "- x",
        "a: b",
        "# c",
        "&a",
        "*a",
        "!t",
        "{}",
        "%",
        "---",
        " x ",
        "\\\"\\\\\\/\\b\\f\\n\\r\\t",
    ];
    const SCALARS: [&str; 16] = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-7",
        "12",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "1.5",
        "1.0",
        "1e3",
        "-2E-2",
        "123456789012",
    ];

    fn write_value(rng: &mut Rng, depth: usize, out: &mut String) {
        let space = |rng: &mut Rng, out: &mut String| {
            out.push_str(rng.pick(&["", "", "", " ", "\n", "\n  ", "  "]));
        };
        let text = |rng: &mut Rng, out: &mut String| {
            let _ = write!(out, "\"{}{}\"", rng.pick(&TEXTS), rng.pick(&TEXTS));
        };
        let count = rng.below(4);
        match rng.below(if depth == 0 { 2 } else { 4 }) {
            0 => out.push_str(rng.pick(&SCALARS)),
            1 => text(rng, out),
            kind => {
                out.push(if kind == 2 { '[' } else { '{' });
                for number in 0..count {
                    if number > 0 {
                        out.push(',');
                    }
                    space(rng, out);
                    if kind == 3 {
                        text(rng, out);
                        space(rng, out);
                        out.push(':');
                        space(rng, out);
                    }
                    write_value(rng, depth - 1, out);
                    space(rng, out);
                }
                out.push(if kind == 2 { ']' } else { '}' });
            }
        }
    }

    #[test]
    fn what_is_read_as_json_is_what_yaml_says() {
        let compare = || {
            let (mut rng, mut compared) = (Rng(0x5EED_1234_5678_9ABC), 0);
            for _ in 0..4_000 {
                let mut text = rng
                    .pick(&["", "\n", "\n\n ", " ", "---\n", "\n---\n \n", " ---\n"])
                    .to_owned();
                text.push_str("{\"metadata\": ");
                write_value(&mut rng, 4, &mut text);
                text.push_str(rng.pick(&[", \"items\": [{}, 1]}", "}", "}\n", "} "]));
                let Some(found) = json(&text) else { continue };
                compared += 1;
                let expected = yaml(&text, Limits::default()).unwrap_or_else(|error| {
                    panic!("line {}: {}\n{text}", error.line, error.message)
                });
                assert_eq!(found.value, expected.value, "{text}");
                assert_eq!(found.line, expected.line, "{text}");
                assert_eq!(found.items, expected.items, "{text}");
            }
            assert!(compared > 1_000, "{compared}");
        };
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn(compare).unwrap().join().unwrap();
    }

    #[test]
    fn what_could_differ_is_left_to_yaml() {
        let long = "k".repeat(MAX_KEY + 1);
        let deep = format!(
            "{{\"a\":{}{}}}",
            "[".repeat(MAX_DEPTH),
            "]".repeat(MAX_DEPTH)
        );
        for text in [
            "",
            "a: 1",
            "[1]",
            "{\"a\": 1} x",
            "{\"a\": 1,}",
            "{a: 1}",
            "{\"a\": 1, \"a\": 2}",
            "{\"a\": 1.0}",
            "{\"a\": -0}",
            "{\"a\": \"\\u0041\"}",
            "{\"a\": \"é\"}",
            "{\"a\":\t1}",
            "{\"a\": \"\u{7f}\"}",
            "# c\n{\"a\": 1}",
            "{\"items\": [1,\n2]}",
            &format!("{{\"{long}\": 1}}"),
            &deep,
        ] {
            assert!(json(text).is_none(), "{text}");
        }
        let found = json("\n---\n{\"items\": [1, {}], \"n\": null}\n").unwrap();
        assert_eq!((found.line, found.items), (3, vec![3, 3]));
        assert!(read("{\"a\": [1, 2, 3]}", Limits { mib: 0 }).is_none());
    }
}
