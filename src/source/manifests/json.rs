//! Documents that are JSON.
//!
//! JSON is YAML, and reading it as such takes a small part of the time. Documents in which the two could differ, and
//! all with an error, are left to the reader of YAML, which knows what kubectl does and what to say.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use entail_core::model::BodyWriter;

use super::document::{Document, DocumentContent};
use super::limits::Limits;
use super::read::member_kind;
use crate::bounded_value::MAX_DEPTH;
use crate::bounded_value::containers_of_text;

/// Maximum length of a key. In YAML, a key that is followed by `:` has at most 1 024 characters.
const MAX_KEY: usize = 1_000;

/// Reads a value within the limits of its document, and writes it.
struct Nested<'r> {
    /// The levels that may be below.
    levels: usize,
    reading: &'r mut Reading,
}

/// A document that is read.
struct Reading {
    /// The number of values that may follow.
    values: usize,
    /// The number of lists and maps that may follow.
    containers: usize,
    body: BodyWriter,
}

/// Reads the name of a field, and writes it.
struct FieldName<'r>(&'r mut BodyWriter);

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
    let mut reading = Reading {
        values: limits.values(),
        containers: containers_of_text(text.len()),
        body: BodyWriter::with_capacity(content.len()),
    };
    let nested = Nested {
        levels: MAX_DEPTH,
        reading: &mut reading,
    };
    let mut json = serde_json::Deserializer::from_str(content);
    nested.deserialize(&mut json).ok()?;
    json.end().ok()?;
    let body = reading.body.finish();
    let before = text.len().saturating_sub(content.len());
    let newlines = text.bytes().take(before).filter(|byte| *byte == b'\n');
    let line = u32::try_from(newlines.count()).ok()?.saturating_add(1);
    let value = body.encoded();
    let items = value.get("items").filter(|items| items.is_list());
    // Where the items are is known only if all are on one line.
    if items.is_some() && content.trim_end().contains('\n') {
        return None;
    }
    let items = vec![line; items.map_or(0, |items| items.items().count())];
    let content = match value.text_of("kind").and_then(member_kind) {
        // Its items are taken out of it.
        Some(_) => DocumentContent::Value(body.value()),
        None => DocumentContent::Encoded(body),
    };
    Some(Document {
        line,
        content,
        items,
    })
}

impl<'r> Nested<'r> {
    /// What is one level below, in a list or map: the levels that may be below that, and what is read.
    fn below<E: Error>(self) -> Result<(usize, &'r mut Reading), E> {
        let left = self.reading.containers.checked_sub(1);
        self.reading.containers = left.ok_or_else(|| E::custom("too many lists and maps"))?;
        let levels = self.levels.checked_sub(1);
        let levels = levels.ok_or_else(|| E::custom("too deep"))?;
        Ok((levels, self.reading))
    }
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let left = self.reading.values.checked_sub(1);
        self.reading.values = left.ok_or_else(|| D::Error::custom("too many values"))?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that YAML reads alike")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.reading.body.null();
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.reading.body.bool(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.reading.body.signed(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.reading.body.unsigned(value);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.reading.body.text(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let (levels, reading) = self.below()?;
        let list = reading.body.begin_list();
        while let reading = &mut *reading
            && access
                .next_element_seed(Nested { levels, reading })?
                .is_some()
        {}
        reading.body.end_list(list);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let (levels, reading) = self.below()?;
        let map = reading.body.begin_map();
        while access
            .next_key_seed(FieldName(&mut reading.body))?
            .is_some()
        {
            let reading = &mut *reading;
            access.next_value_seed(Nested { levels, reading })?;
        }
        match reading.body.end_map(map) {
            true => Ok(()),
            false => Err(A::Error::custom("a key that comes twice")),
        }
    }
}

impl<'de> DeserializeSeed<'de> for FieldName<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldName<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key that YAML reads alike")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<(), E> {
        if name.len() > MAX_KEY {
            return Err(E::custom("a key that YAML refuses"));
        }
        self.0.name(name);
        Ok(())
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
                assert_eq!(
                    (found.line, &found.items),
                    (expected.line, &expected.items),
                    "{text}"
                );
                let values = [found, expected].map(|document| document.content.into_value());
                assert_eq!(values[0], values[1], "{text}");
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
