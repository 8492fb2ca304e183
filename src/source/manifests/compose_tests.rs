use std::fmt::Write as _;

use serde_json::json;

use super::*;

fn one(text: &str) -> Value {
    let mut documents = documents(text).unwrap();
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0).value
}

#[track_caller]
fn refused(text: &str, line: u32, word: &str) {
    let error = documents(text).err().unwrap();
    assert_eq!(error.line, line, "{}", error.message);
    assert!(error.message.contains(word), "{}", error.message);
}

#[test]
fn documents_and_items_know_their_lines() {
    let text = "\
# a comment
---
---
kind: List
items:
- a: 1
  b: 2

- {a: 2}
---
# nothing
...
---
kind: X
";
    let found: Vec<_> = documents(text).unwrap();
    let lines: Vec<_> = found.iter().map(|d| (d.line, d.items.as_slice())).collect();
    assert_eq!(lines, [(4, [6, 9].as_slice()), (14, [].as_slice())]);
}

#[test]
fn json_is_yaml() {
    let text = "{\n\t\"a\": [1, 2.50, true, null],\n\t\"b\": \"\\/\\ud83d\\ude00\\u0000\"\n}";
    assert_eq!(
        one(text),
        json!({"a": [1, 2.5, true, null], "b": "/😀\u{0}"})
    );
    let long = "x".repeat(100_000);
    let text = format!("[{{\"k\": \"{long}\", \"l\": [\"{long}\"]}}]");
    assert_eq!(one(&text), json!([{"k": long, "l": [long]}]));
    assert_eq!(one("\u{feff}a: 1\r\nb: 2\r\n"), json!({"a": 1, "b": 2}));
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    assert_eq!(
        one("a: &x {b: 1, c: 2}\nd: {c: 3, <<: *x}\ne: *x\n"),
        json!({"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}, "e": {"b": 1, "c": 2}})
    );
    assert_eq!(
        one("a: &x {b: 1}\nz: &z {b: 2, c: 3}\nd: {<<: [*x, *z]}\n"),
        json!({"a": {"b": 1}, "z": {"b": 2, "c": 3}, "d": {"b": 1, "c": 3}})
    );
    assert_eq!(
        one("a: &x 1\nb: &x 2\nc: *x\n&k k: *k\n"),
        json!({"a": 1, "b": 2, "c": 2, "k": "k"})
    );
    assert_eq!(one("\"<<\": {a: 1}"), json!({"<<": {"a": 1}}));
    refused("a: 1\n<<: 1", 2, "merge");
    refused("a: &a [*a]", 1, "inside");
    // Anchors end with their document.
    refused("a: &a 1\n---\nb: *a", 3, "anchor");
}

#[test]
fn keys_are_text_and_stand_once() {
    assert_eq!(
        one("on: 1\ny: 2\n1: 3\n? ''\n: 4"),
        json!({"on": 1, "y": 2, "1": 3, "": 4})
    );
    refused("a: 1\nb:\n  c: 1\n  c: 2\n", 4, "twice");
    refused("{\"a\": 1,\n \"a\": 2}", 2, "twice");
    refused("1: a\n\"1\": b", 2, "twice");
    refused("a: &x {}\nb:\n  <<: *x\n  <<: *x", 4, "twice");
    for text in ["~: 1", "? [a]\n: 1", "? {a: 1}\n: 1", ": 1"] {
        refused(text, 1, "must be text");
    }
}

#[test]
fn what_json_cannot_hold_is_refused_with_its_line() {
    refused("a: 1\nb: 1e400", 2, "too large");
    refused("a: 1\n---\nb: [.inf]", 3, "JSON");
    refused("a: !!int x", 1, "tag");
    refused("a: !!binary aGk=", 1, "binary");
    assert_eq!(
        one("a: !!str 1\nb: !mine 2\nc: !!int '3'\nd: !mine [x]"),
        json!({"a": "1", "b": "2", "c": 3, "d": ["x"]})
    );
}

#[test]
fn hostile_texts_are_refused() {
    refused(&"[".repeat(100_000), 1, "deeper");
    refused(&"{a: ".repeat(100_000), 1, "deeper");
    refused(&"- ".repeat(100_000), 1, "deeper");
    let mut laughs = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    let mut chain = "a0: &a0 [[[[[[[[[[x]]]]]]]]]]\n".to_owned();
    for i in 1..20 {
        let one = format!("*a{}", i - 1);
        let ten = [one.as_str(); 10].join(", ");
        writeln!(laughs, "b{i}: &a{i} [{ten}]").unwrap();
        writeln!(chain, "a{i}: &a{i} [[[[[[[[[[{one}]]]]]]]]]]").unwrap();
    }
    refused(&laughs, 6, "repeat too much");
    refused(&chain, 10, "deeper");
    let long = format!(
        "a: &a {}\nb: [{}]",
        "x".repeat(1_000_000),
        "*a, ".repeat(100)
    );
    refused(&long, 2, "repeat too much");
}

#[test]
fn broken_texts_say_where() {
    refused("a: 1\nb: [1, 2", 2, "no YAML");
    refused("a:\n  b: 1\n\tc: 2", 2, "no YAML");
    refused("a: b: c", 1, "no YAML");
    refused("a: *nope", 1, "anchor");
    refused("a: 'x", 1, "no YAML");
}

#[test]
fn every_prefix_of_a_text_is_read_or_refused() {
    let text =
        "a: &x {b: [1, \"é\\u00e9\", 'c']}\nd: |\n  e\n? f\n: *x\n---\n<<: {g: !!str 1}\n...\n";
    for (at, _) in text.char_indices() {
        let _ = documents(text.get(..at).unwrap());
        let _ = documents(text.get(at..).unwrap());
    }
}
