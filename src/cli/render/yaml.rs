//! Writes documents as YAML, in block style, by serde-saphyr. It quotes every string that some reader
//! of YAML 1.1 or 1.2 takes for something else.

use std::io::{self, Write};

use serde::Serialize;

use super::document::Document;
use super::json;
use super::text::is_hidden;

/// Writes a document as lines.
pub(in crate::cli) fn write(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    match block(document)? {
        Some(text) => out.write_all(text.as_bytes()),
        None => {
            json::write(out, document, 0)?;
            writeln!(out)
        }
    }
}

/// Writes a document as the item of a list.
pub(in crate::cli) fn write_item(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    match block(&[document])? {
        Some(text) => out.write_all(text.as_bytes()),
        None => {
            write!(out, "- ")?;
            json::write(out, document, 2)?;
            writeln!(out)
        }
    }
}

/// A string, number, boolean, null or empty collection on one line.
pub(in crate::cli) fn scalar(leaf: &Document) -> String {
    match block(leaf) {
        Ok(Some(text)) => text.trim_end().to_owned(),
        _ => json::compact(leaf),
    }
}

/// A string, plain where that is safe.
pub(in crate::cli) fn string(text: &str) -> String {
    scalar(&Document::text(text))
}

/// A value in block style. `None` if it has characters that do not show, such as those that change
/// the direction of a terminal's text: the library does not escape them, but JSON does, which is
/// YAML too.
fn block(value: &impl Serialize) -> io::Result<Option<String>> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(value, options).map_err(io::Error::other)?;
    let shows = !text.contains(|c: char| c != '\n' && is_hidden(c));
    Ok(shows.then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn written(value: &Value) -> String {
        let mut out = Vec::new();
        write(&mut out, &Document::from(value.clone())).unwrap();
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

    /// Strings that some reader takes for something else, or that do not show.
    const AMBIGUOUS: [&str; 45] = [
        "",
        " ",
        "yes",
        "NO",
        "on",
        "y",
        "Null",
        "~",
        "1",
        "1.5",
        "1e3",
        "0x1f",
        "0o7",
        "0777",
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
        "a:",
        "\u{85}",
        "\u{2028}",
        "\u{feff}x",
        "\u{202e}x",
        "\u{7f}",
        "\u{1b}[1m",
    ];

    #[test]
    fn what_some_reader_takes_for_something_else_is_quoted() {
        for text in AMBIGUOUS {
            assert!(string(text).starts_with(['"', '\'']), "{text}");
            assert!(!string(text).contains(is_hidden), "{text:?}");
            assert_eq!(read_back(&written(&json!({"k": text, text: 1})))["k"], text);
        }
        for text in [
            "a",
            "a.b/c",
            "250ms",
            "HTTPRoute/a/b##0",
            "https://a.b/c",
            "rules/#0",
            "ä b",
        ] {
            assert_eq!(string(text), text);
        }
    }

    #[test]
    fn long_keys_and_lists_of_documents_survive() {
        let long = "k".repeat(5_000);
        let value = json!({&long: {"a": [1]}, "b": 1});
        assert_eq!(read_back(&written(&value)), value);
        let spec = Document::exact("{\"b\":18446744073709551615,\"a\":2.50}");
        let mut out = Vec::new();
        for _ in 0..2 {
            write_item(&mut out, &Document::map([("spec", spec.clone())])).unwrap();
        }
        let item = "- spec:\n    a: 2.5\n    b: 18446744073709551615\n";
        assert_eq!(String::from_utf8(out).unwrap(), item.repeat(2));
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
