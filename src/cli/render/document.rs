//! The documents that `-o json` and `-o yaml` print: JSON values whose fields keep their documented
//! order.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

use crate::printable::{escape, has_hidden, is_hidden};

/// A value to print.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cli) enum Document {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Document>),
    /// Fields in their order.
    Map(Vec<Field>),
    /// JSON text that is printed unchanged, on one line.
    Json(String),
}

/// A field with its name.
pub(in crate::cli) type Field = (Cow<'static, str>, Document);

impl Document {
    /// Fields in their order.
    pub(in crate::cli) fn map<const N: usize>(fields: [(&'static str, Document); N]) -> Self {
        let fields = fields.into_iter();
        Document::Map(fields.map(|(name, value)| (name.into(), value)).collect())
    }

    /// A string.
    pub(in crate::cli) fn text(text: &str) -> Self {
        Document::Text(text.to_owned())
    }

    /// Fields in their order, all of them strings.
    pub(in crate::cli) fn text_fields<const N: usize>(fields: [(&'static str, &str); N]) -> Self {
        Document::map(fields.map(|(name, text)| (name, Document::text(text))))
    }

    /// A list of converted items.
    pub(in crate::cli) fn list<T>(items: &[T], convert: impl Fn(&T) -> Document) -> Self {
        Document::List(items.iter().map(convert).collect())
    }

    /// A list of strings.
    pub(in crate::cli) fn texts<S: AsRef<str>>(texts: &[S]) -> Self {
        Document::list(texts, |text| Document::text(text.as_ref()))
    }

    /// A converted value; null if there is none.
    pub(in crate::cli) fn optional<T>(
        value: Option<T>,
        convert: impl FnOnce(T) -> Document,
    ) -> Self {
        value.map_or(Document::Null, convert)
    }

    /// JSON text that is printed unchanged if it has no hidden characters; a string if it is not JSON.
    pub(in crate::cli) fn exact(json: &str) -> Self {
        match serde_json::from_str::<IgnoredAny>(json) {
            Ok(IgnoredAny) if !has_hidden(json) => Document::Json(json.to_owned()),
            // Hidden characters are escaped when the parsed value is printed.
            Ok(IgnoredAny) => serde_json::from_str::<Value>(json)
                .map_or_else(|_| Document::text(json), Document::from),
            Err(_) => Document::text(json),
        }
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Document::Null => serializer.serialize_unit(),
            Document::Bool(bool) => serializer.serialize_bool(*bool),
            Document::Number(number) => number.serialize(serializer),
            Document::Text(text) => serializer.serialize_str(text),
            Document::List(items) => serializer.collect_seq(items),
            Document::Map(fields) => {
                serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
            }
            Document::Json(text) => match serde_json::from_str::<Value>(text) {
                Ok(value) => Document::from(value).serialize(serializer),
                Err(_) => serializer.serialize_str(text),
            },
        }
    }
}

impl From<Value> for Document {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Document::Null,
            Value::Bool(bool) => Document::Bool(bool),
            Value::Number(number) => Document::Number(number),
            Value::String(text) => Document::Text(text),
            Value::Array(items) => Document::List(items.into_iter().map(Into::into).collect()),
            Value::Object(map) => {
                Document::Map(map.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
            }
        }
    }
}

impl From<u32> for Document {
    fn from(number: u32) -> Self {
        Document::Number(number.into())
    }
}

/// Returns a quoted string that is valid in JSON and in YAML. All hidden characters are escaped.
pub(in crate::cli) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    append_quoted(text, &mut quoted);
    quoted
}

/// Appends a string as [`quoted`] returns it.
pub(in crate::cli) fn append_quoted(text: &str, out: &mut String) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if text.bytes().all(is_plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        // A string always serializes.
        out.push_str(&without_hidden(
            serde_json::to_string(text).unwrap_or_default(),
        ));
    }
}

/// Escapes the hidden characters of a compact JSON text, of which serde_json escapes only a few. They are in strings.
pub(in crate::cli) fn without_hidden(json: String) -> String {
    match has_hidden(&json) {
        // Four digits are enough for all of them.
        true => escape(&json, is_hidden),
        false => json,
    }
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
            assert!(!quoted(text).contains(is_hidden));
        }
    }

    #[test]
    fn json_is_kept_as_it_is_or_is_a_string() {
        let text = "{\"a\":[1.50]}";
        assert_eq!(Document::exact(text), Document::Json(text.to_owned()));
        assert_eq!(Document::exact("{"), Document::text("{"));
        let hidden = Document::exact("\"\u{202e}\"");
        assert_eq!(hidden, Document::text("\u{202e}"));
    }
}
