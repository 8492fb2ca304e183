//! What `-o json` and `-o yaml` print: like a JSON value, but fields keep the order in which they
//! are documented.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::Value;
use serde_json::value::RawValue;

use super::text::is_hidden;

/// A value to print.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) enum Document {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, exactly as it was written.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Document>),
    /// Fields in their order.
    Map(Vec<(String, Document)>),
    /// JSON as it is, on one line.
    Json(String),
}

impl Document {
    /// Fields in their order.
    pub(in crate::cli) fn map<const N: usize>(fields: [(&str, Document); N]) -> Self {
        let fields = fields.into_iter();
        Document::Map(
            fields
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    /// A string.
    pub(in crate::cli) fn text(text: &str) -> Self {
        Document::Text(text.to_owned())
    }

    /// A list of what `each` makes of the items.
    pub(in crate::cli) fn list<T>(items: &[T], each: impl Fn(&T) -> Document) -> Self {
        Document::List(items.iter().map(each).collect())
    }

    /// A JSON text as it is; a string should it be none.
    pub(in crate::cli) fn exact(json: &str) -> Self {
        match serde_json::from_str::<&RawValue>(json) {
            Ok(_) => Document::Json(json.to_owned()),
            Err(_) => Document::text(json),
        }
    }

    /// The same, JSON texts taken apart.
    pub(in crate::cli) fn opened(&self) -> Cow<'_, Document> {
        match self {
            Document::Json(text) => match serde_json::from_str::<Value>(text) {
                Ok(value) => Cow::Owned(value.into()),
                Err(_) => Cow::Owned(Document::text(text)),
            },
            other => Cow::Borrowed(other),
        }
    }

    /// Whether it is neither a list nor a map with something in it.
    pub(in crate::cli) fn is_leaf(&self) -> bool {
        match self {
            Document::List(items) => items.is_empty(),
            Document::Map(fields) => fields.is_empty(),
            _ => true,
        }
    }
}

impl From<Value> for Document {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Document::Null,
            Value::Bool(bool) => Document::Bool(bool),
            Value::Number(number) => Document::Number(number.to_string()),
            Value::String(text) => Document::Text(text),
            Value::Array(items) => Document::List(items.into_iter().map(Into::into).collect()),
            Value::Object(map) => {
                Document::Map(map.into_iter().map(|(k, v)| (k, v.into())).collect())
            }
        }
    }
}

/// A string in quotes, as JSON and YAML both read it. Characters that do not show are written
/// out.
pub(in crate::cli) fn quoted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 2);
    shown.push('"');
    for c in text.chars() {
        match c {
            '"' => shown.push_str("\\\""),
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            // All of them are in the plane that four digits reach; writing to a String does not
            // fail.
            c if is_hidden(c) => drop(write!(shown, "\\u{:04x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown.push('"');
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_strings_read_back() {
        for text in [
            "",
            "a\"b\\c\n\t\r\u{1b}\u{7f}\u{85}\u{2028}\u{feff}",
            "ä 🥐 \u{ffff}",
        ] {
            assert_eq!(serde_json::from_str::<String>(&quoted(text)).unwrap(), text);
        }
    }

    #[test]
    fn numbers_keep_their_text() {
        let text = "1.50000000000000000000000001e+400";
        assert_eq!(Document::exact(text), Document::Json(text.to_owned()));
        let opened = Document::exact(text).opened().into_owned();
        assert_eq!(opened, Document::Number(text.to_owned()));
        assert_eq!(Document::exact("{"), Document::text("{"));
    }
}
