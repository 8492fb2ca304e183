//! Writes documents as JSON: a list or map stands on one line if it fits, and has a line for each
//! item if not. A `Formatter` of serde_json cannot do that, for it sees no item before it writes;
//! nor can it embed JSON that is already written, as specs are.

use std::io::{self, Write};

use super::document::{Document, append_quoted};

/// Columns that a line fills before a list or map is broken into lines.
const WIDTH: usize = 110;

/// Size of a text in bytes from which it is written before the rest of the document is.
const FULL: usize = 32 << 10;

/// Writes a document, in texts of some length.
struct DocumentWriter<'o> {
    out: &'o mut dyn Write,
    /// What is not written yet.
    text: String,
}

/// Writes a document where the cursor stands; further lines are indented.
pub(in crate::cli) fn write(
    out: &mut dyn Write,
    document: &Document,
    indent: usize,
) -> io::Result<()> {
    let mut writer = DocumentWriter::new(out);
    writer.document(document, indent)?;
    writer.flush()
}

/// Writes an item of a list on a line of its own, with the comma that follows the item before it.
pub(in crate::cli) fn write_item(
    out: &mut dyn Write,
    at: usize,
    document: &Document,
    indent: usize,
) -> io::Result<()> {
    let mut writer = DocumentWriter::new(out);
    writer.next_line(at, indent)?;
    writer.document(document, indent)?;
    writer.flush()
}

impl<'o> DocumentWriter<'o> {
    fn new(out: &'o mut dyn Write) -> Self {
        let text = String::with_capacity(1 << 10);
        Self { out, text }
    }

    fn document(&mut self, document: &Document, indent: usize) -> io::Result<()> {
        let is_long = || fits(document, WIDTH.saturating_sub(indent)).is_none();
        match document {
            Document::List(items) if !items.is_empty() && is_long() => {
                self.text.push('[');
                for (at, item) in items.iter().enumerate() {
                    self.next_line(at, indent + 2)?;
                    self.document(item, indent + 2)?;
                }
                self.begin_line(indent);
                self.text.push(']');
            }
            Document::Map(fields) if !fields.is_empty() && is_long() => {
                self.text.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    self.next_line(at, indent + 2)?;
                    append_quoted(name, &mut self.text);
                    self.text.push_str(": ");
                    self.document(value, indent + 2)?;
                }
                self.begin_line(indent);
                self.text.push('}');
            }
            _ => append(document, &mut self.text),
        }
        Ok(())
    }

    /// Begins the line of an item. What is before it is written if it is long.
    fn next_line(&mut self, at: usize, indent: usize) -> io::Result<()> {
        if at > 0 {
            self.text.push(',');
        }
        if self.text.len() >= FULL {
            self.flush()?;
        }
        self.begin_line(indent);
        Ok(())
    }

    /// Begins a line. With `write!` and a width this takes as long as all else of a document.
    fn begin_line(&mut self, indent: usize) {
        const SPACES: &str = "                                ";
        self.text.push('\n');
        let mut left = indent;
        while left > 0 {
            let some = SPACES.get(..left).unwrap_or(SPACES);
            self.text.push_str(some);
            left -= some.len();
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }
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
        Document::Text(text) => append_quoted(text, out),
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
                append_quoted(name, out);
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
