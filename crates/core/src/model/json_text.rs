//! Writes encoded values as JSON text, without decoding them.

use super::body::{Encoded, Reader, tag};

impl Encoded<'_> {
    /// Appends the value as compact JSON without the nulls of its objects. Nulls in lists are plain data (specification
    /// 5.2).
    pub(crate) fn write_json(self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut reader = self.0;
        if write(&mut reader, false, out).is_none() {
            // No value that was encoded ends early.
            out.truncate(start);
            out.extend_from_slice(b"null");
        }
    }
}

/// Appends the value that a reader is at, and moves the reader to its end.
fn write(value: &mut Reader<'_>, with_nulls: bool, out: &mut Vec<u8>) -> Option<()> {
    let start = *value;
    match value.byte()? {
        tag::NULL => out.extend_from_slice(b"null"),
        tag::FALSE => out.extend_from_slice(b"false"),
        tag::TRUE => out.extend_from_slice(b"true"),
        tag::STRING => write_text_bytes(value.text_bytes()?, out)?,
        tag::LIST => {
            let mut items = Reader(value.sized()?);
            out.push(b'[');
            let first = out.len();
            while !items.0.is_empty() {
                separate(first, out);
                write(&mut items, true, out)?;
            }
            out.push(b']');
        }
        tag::MAP => {
            let mut fields = Reader(value.sized()?);
            out.push(b'{');
            let first = out.len();
            while !fields.0.is_empty() {
                let name = fields.text_bytes()?;
                if !with_nulls && !fields.is_not_null() {
                    fields.skip()?;
                    continue;
                }
                separate(first, out);
                write_text_bytes(name, out)?;
                out.push(b':');
                write(&mut fields, with_nulls, out)?;
            }
            out.push(b'}');
        }
        _ => {
            // A number.
            *value = start;
            let number = value.value()?;
            serde_json::to_writer(out, &number).ok()?;
        }
    }
    Some(())
}

/// Appends a comma unless nothing was written since a position.
fn separate(first: usize, out: &mut Vec<u8>) {
    if out.len() > first {
        out.push(b',');
    }
}

/// Appends a text as a JSON string.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    // The bytes of a string are UTF-8.
    let _ = write_text_bytes(text.as_bytes(), out);
}

/// Appends UTF-8 as a JSON string.
fn write_text_bytes(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let is_escaped = |&byte: &u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // All bytes are looked at, several at once.
    if text.iter().fold(false, |any, byte| any | is_escaped(byte)) {
        let text = std::str::from_utf8(text).ok()?;
        return serde_json::to_writer(out, text).ok();
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Body;
    use super::*;

    #[test]
    fn text_is_as_that_of_values() {
        for value in [
            json!(null),
            json!([true, false, 0, u64::MAX, -1, i64::MIN, 0.1, 1.0, -3.5e300]),
            json!({"a": {"b": [{"c": 1}, {}], "spec": "metadata"}, "": [], "z": "é\u{7f}\u{10ffff}"}),
            json!([
                "\"",
                "\\",
                "\u{0}",
                "\n",
                "/",
                "x".repeat(100),
                format!("{}\t", "x".repeat(100))
            ]),
        ] {
            let mut out = Vec::new();
            Body::new(&value).encoded().write_json(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }

    #[test]
    fn nulls_of_objects_are_left_out() {
        let value =
            json!({"a": null, "b": [null, {"c": null}], "d": {"e": null}, "f": 1, "g": null});
        let mut out = Vec::new();
        Body::new(&value).encoded().write_json(&mut out);
        let expected = json!({"b": [null, {"c": null}], "d": {}, "f": 1});
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), expected);
    }

    #[test]
    fn names_are_escaped() {
        for text in ["", "plain", "with \"quotes\"", "é\\\n"] {
            let mut out = Vec::new();
            write_text(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), json!(text).to_string());
        }
    }
}
