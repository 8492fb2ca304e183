//! Writes documents as JSON: a list or map stands on one line if it fits, and has a line for each
//! item if not. A `Formatter` of serde_json cannot do that, for it sees no item before it writes;
//! nor can it embed JSON that is already written, as specs are.

use std::io::{self, Write};

use super::document::{Document, quoted};

/// Columns that a line fills before a list or map is broken into lines.
const WIDTH: usize = 110;

/// Writes a document where the cursor stands; further lines are indented.
pub(in crate::cli) fn write(
    out: &mut dyn Write,
    document: &Document,
    indent: usize,
) -> io::Result<()> {
    let (open, close, number) = match document {
        Document::Null => return out.write_all(b"null"),
        Document::Bool(bool) => return write!(out, "{bool}"),
        Document::Number(number) => return write!(out, "{number}"),
        Document::Text(text) => return out.write_all(quoted(text).as_bytes()),
        Document::Json(text) => return out.write_all(text.as_bytes()),
        Document::List(items) => ("[", "]", items.len()),
        Document::Map(fields) => ("{", "}", fields.len()),
    };
    if number == 0 {
        out.write_all(open.as_bytes())?;
        return out.write_all(close.as_bytes());
    }
    if fits(document, WIDTH.saturating_sub(indent)).is_some() {
        return out.write_all(compact(document).as_bytes());
    }
    out.write_all(open.as_bytes())?;
    match document {
        Document::List(items) => {
            for (at, item) in items.iter().enumerate() {
                next_line(out, at, indent + 2)?;
                write(out, item, indent + 2)?;
            }
        }
        Document::Map(fields) => {
            for (at, (name, value)) in fields.iter().enumerate() {
                next_line(out, at, indent + 2)?;
                out.write_all(quoted(name).as_bytes())?;
                out.write_all(b": ")?;
                write(out, value, indent + 2)?;
            }
        }
        _ => {}
    }
    begin_line(out, indent)?;
    out.write_all(close.as_bytes())
}

/// What is left of a line of this many columns after a document on one line; `None` if it is too
/// long.
fn fits(document: &Document, room: usize) -> Option<usize> {
    let own = match document {
        Document::Null | Document::Bool(_) => 5,
        Document::Number(number) => number.to_string().len(),
        Document::Json(text) => text.len(),
        Document::Text(text) => text.len() + 2,
        Document::List(items) => {
            let rest = items.iter().try_fold(room.checked_sub(2)?, |room, item| {
                fits(item, room)?.checked_sub(2)
            });
            return rest;
        }
        Document::Map(fields) => {
            let rest = fields
                .iter()
                .try_fold(room.checked_sub(2)?, |room, (name, value)| {
                    fits(value, room.checked_sub(name.len() + 4)?)?.checked_sub(2)
                });
            return rest;
        }
    };
    room.checked_sub(own)
}

/// Begins the line of an item.
pub(in crate::cli) fn next_line(out: &mut dyn Write, at: usize, indent: usize) -> io::Result<()> {
    if at > 0 {
        out.write_all(b",")?;
    }
    begin_line(out, indent)
}

/// Begins a line. With `write!` and a width this takes as long as all else of a document.
fn begin_line(out: &mut dyn Write, indent: usize) -> io::Result<()> {
    const SPACES: &[u8] = &[b' '; 64];
    out.write_all(b"\n")?;
    let mut left = indent;
    while left > 0 {
        let some = SPACES.get(..left).unwrap_or(SPACES);
        out.write_all(some)?;
        left -= some.len();
    }
    Ok(())
}

/// A document on one line, for people.
pub(in crate::cli) fn compact(document: &Document) -> String {
    let mut text = String::new();
    append(document, &mut text);
    text
}

/// Appends a document on one line.
fn append(document: &Document, out: &mut String) {
    match document {
        Document::Null => out.push_str("null"),
        Document::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Document::Number(number) => out.push_str(&number.to_string()),
        Document::Json(text) => out.push_str(text),
        Document::Text(text) => out.push_str(&quoted(text)),
        Document::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                append(item, out);
            }
            out.push(']');
        }
        Document::Map(fields) => {
            out.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                out.push_str(&quoted(name));
                out.push_str(": ");
                append(value, out);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn documents_read_back() {
        let value = json!({
            "a": [1, 2.5, {"b": null}, [], {}, [[true]]],
            "empty": {}, "list": [], "text": "a\"\n\u{1b}", "": "ä",
        });
        let document = Document::from(value.clone());
        let mut written = Vec::new();
        write(&mut written, &document, 0).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), value);
        assert_eq!(
            serde_json::from_str::<Value>(&compact(&document)).unwrap(),
            value
        );
    }

    #[test]
    fn fields_stay_in_order() {
        let document = Document::map([("z", Document::Null), ("a", Document::Bool(true))]);
        let mut written = Vec::new();
        write(&mut written, &document, 0).unwrap();
        assert_eq!(written, b"{\"z\": null, \"a\": true}");
        let long = Document::map([
            ("z", Document::text(&"x".repeat(WIDTH))),
            ("a", Document::Json("[1,2.50]".to_owned())),
        ]);
        let mut written = Vec::new();
        write(&mut written, &long, 0).unwrap();
        let text = String::from_utf8(written).unwrap();
        assert!(text.starts_with("{\n  \"z\": \"xx"), "{text}");
        assert!(text.ends_with("\",\n  \"a\": [1,2.50]\n}"), "{text}");
    }
}
