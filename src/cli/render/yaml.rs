//! Writes documents as YAML, in block style. Strings are JSON strings wherever it is not plain
//! that every reader of YAML takes them for strings.

use std::io::{self, Write};

use super::document::{Document, quoted};

/// Longer keys are written in the explicit form: readers look for the colon only so far.
const MAX_KEY: usize = 1_000;

/// Writes a document as lines, each with the indent.
pub(in crate::cli) fn write(
    out: &mut dyn Write,
    document: &Document,
    indent: usize,
) -> io::Result<()> {
    block(out, document, indent, false)
}

/// Writes a document behind `- `, its further lines with the indent.
pub(in crate::cli) fn write_item(
    out: &mut dyn Write,
    document: &Document,
    indent: usize,
) -> io::Result<()> {
    write!(out, "{:indent$}- ", "")?;
    block(out, document, indent + 2, true)
}

/// `inline`: the cursor stands behind a dash, where the first line begins.
fn block(out: &mut dyn Write, document: &Document, indent: usize, inline: bool) -> io::Result<()> {
    match &*document.opened() {
        Document::List(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                let before = if inline && at == 0 { 0 } else { indent };
                write!(out, "{:before$}- ", "")?;
                block(out, item, indent + 2, true)?;
            }
            Ok(())
        }
        Document::Map(fields) if !fields.is_empty() => {
            for (at, (name, value)) in fields.iter().enumerate() {
                let before = if inline && at == 0 { 0 } else { indent };
                write!(out, "{:before$}", "")?;
                field(out, name, value, indent)?;
            }
            Ok(())
        }
        leaf => {
            let before = if inline { 0 } else { indent };
            writeln!(out, "{:before$}{}", "", scalar(leaf))
        }
    }
}

fn field(out: &mut dyn Write, name: &str, value: &Document, indent: usize) -> io::Result<()> {
    let key = string(name);
    if key.len() > MAX_KEY {
        write!(out, "? {key}\n{:indent$}:", "")?;
    } else {
        write!(out, "{key}:")?;
    }
    let value = &*value.opened();
    if value.is_leaf() {
        return writeln!(out, " {}", scalar(value));
    }
    writeln!(out)?;
    // As kubectl does: dashes stand below the key.
    let deeper = match value {
        Document::List(_) => indent,
        _ => indent + 2,
    };
    block(out, value, deeper, false)
}

/// A leaf on one line.
pub(in crate::cli) fn scalar(leaf: &Document) -> String {
    match leaf {
        Document::Null => "null".to_owned(),
        Document::Bool(bool) => bool.to_string(),
        Document::Number(text) | Document::Json(text) => text.clone(),
        Document::Text(text) => string(text),
        Document::List(_) => "[]".to_owned(),
        Document::Map(_) => "{}".to_owned(),
    }
}

/// A string, plain where that is safe.
pub(in crate::cli) fn string(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// Whether every reader takes the bare text for the string that it is.
fn is_plain(text: &str) -> bool {
    // Words that some version of YAML reads as something else.
    const TAKEN: [&str; 12] = [
        "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity",
    ];
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '#');
    let is_taken = TAKEN.iter().any(|word| text.eq_ignore_ascii_case(word));
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
    // The colon of a URL is no end of a key.
    let words = text.replacen("://", "//", 1);
    words.chars().all(is_word) && (is_duration(text) || starts_well && !is_taken)
}

/// `10s`, `250ms`: a number with a unit that no reader takes for a number.
fn is_duration(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < text.len() && matches!(unit, "ms" | "s" | "m" | "h")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn written(value: &Value) -> String {
        let mut out = Vec::new();
        write(&mut out, &Document::from(value.clone()), 0).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Any reader of YAML will do.
    fn read_back(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn it_looks_as_people_write_it() {
        let value = json!({
            "backoff": "250ms", "attempts": 5, "codes": [502, 503], "none": null,
            "rules": {"who": {"anonymous": true}}, "empty": {}, "list": [],
            "items": [{"a": 1, "b": [{"c": 2}]}, [[1]], "x"],
        });
        let expected = "\
attempts: 5
backoff: 250ms
codes:
- 502
- 503
empty: {}
items:
- a: 1
  b:
  - c: 2
- - - 1
- x
list: []
none: null
rules:
  who:
    anonymous: true
";
        assert_eq!(written(&value), expected);
        assert_eq!(read_back(expected), value);
    }

    #[test]
    fn what_is_not_plainly_a_string_is_quoted() {
        for text in [
            "",
            " ",
            "yes",
            "NO",
            "on",
            "Null",
            "~",
            "1",
            "1.5",
            "1e3",
            "0x1f",
            "0o7",
            "1_000",
            "12:30:45",
            "2001-01-01",
            ".inf",
            "-",
            "- a",
            "a: b",
            "a #b",
            "a\nb",
            "*x",
            "&x",
            "!x",
            "%x",
            "@x",
            "`x",
            "[x",
            "{x",
            "'x",
            "\"x",
            "|",
            ">",
            "?",
            "=",
            "<<",
            "\u{85}",
            "\u{2028}",
            "\u{feff}x",
            "ä",
            "1d",
            "1f",
            "+1",
            "\u{7f}",
            "a:",
            "a://b://c",
            "://a",
        ] {
            assert!(string(text).starts_with('"'), "{text}");
            assert_eq!(read_back(&written(&json!({"k": text, text: 1})))["k"], text);
        }
    }

    #[test]
    fn what_is_plainly_a_string_is_not_quoted() {
        for text in [
            "a",
            "a.b/c",
            "250ms",
            "HTTPRoute/a/b##0",
            "https://a.b/c",
            "rules/#0",
            "some-text_x",
        ] {
            assert_eq!(string(text), text);
        }
    }

    #[test]
    fn long_keys_and_numbers_survive() {
        let long = "k".repeat(5_000);
        let text = written(&json!({&long: {"a": [1]}, "b": 1}));
        assert!(
            text.contains("? kkk") && text.contains("\n:\n  a:\n  - 1\n"),
            "{text}"
        );
        let exact = Document::exact("{\"num\": 123456789012345678901234567890.10}");
        let mut out = Vec::new();
        write_item(&mut out, &exact, 2).unwrap();
        assert_eq!(out, b"  - num: 123456789012345678901234567890.10\n");
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
            "[-0-9a-fxnoyest.:# ]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,5}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_written_reads_back(value in any_value()) {
            let value = json!({"root": value});
            prop_assert_eq!(read_back(&written(&value)), value);
        }
    }
}
