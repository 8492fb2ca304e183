use std::fmt::Write as _;

use serde_json::json;

use super::*;

/// Parses a text on a thread with the stack size of the parser thread.
fn read(text: &str) -> Result<Document, DocumentError> {
    let text = text.to_owned();
    let thread = std::thread::Builder::new().stack_size(crate::source::manifests::read::STACK);
    let read = move || super::read(&text, Limits::default());
    thread.spawn(read).unwrap().join().unwrap()
}

fn one(text: &str) -> Value {
    read(text).unwrap().content.into_value()
}

#[track_caller]
fn refused(text: &str, line: u32, word: &str) {
    let error = read(text).err().unwrap();
    assert_eq!(error.line, line, "{}", error.message);
    assert!(error.message.contains(word), "{}", error.message);
}

#[test]
fn documents_and_items_have_their_lines() {
    let text = "# a comment\n---\nkind: List\nitems:\n- a: 1\n  b: 2\n\n- {a: 2}\n";
    let actual = read(text).unwrap();
    assert_eq!(
        (actual.line, actual.items.as_slice()),
        (3, [5, 8].as_slice())
    );
    assert_eq!(one("# nothing\n"), Value::Null);
    assert_eq!(one(""), Value::Null);
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
    assert_eq!(one("a: 1\r\nb: 2\r\n"), json!({"a": 1, "b": 2}));
}

#[test]
fn scalars_are_read_as_by_kubectl() {
    // YAML, and the JSON that sigs.k8s.io/yaml v1.6.0 converts it to.
    for (text, json) in [
        ("yes", "true"),
        ("Off", "false"),
        ("oN", "\"oN\""),
        ("tRue", "\"tRue\""),
        ("!!bool \"yes\"", "true"),
        ("", "null"),
        ("~", "null"),
        ("nULL", "\"nULL\""),
        ("0755", "493"),
        ("-0755", "-493"),
        ("0o755", "493"),
        ("0b101", "5"),
        ("-0x1f", "-31"),
        ("+0x1F", "31"),
        ("1_000", "1000"),
        ("1__0", "10"),
        ("1_000.5", "1000.5"),
        ("'1__0'", "\"1__0\""),
        ("|-\n  1__0", "\"1__0\""),
        ("_1", "\"_1\""),
        ("089", "89"),
        ("00", "0"),
        ("+1", "1"),
        ("-0", "0"),
        (".5", "0.5"),
        ("1.50", "1.5"),
        ("50.0", "50"),
        ("1e3", "1000"),
        ("0xFFFFFFFFFFFFFFFFFF", "\"0xFFFFFFFFFFFFFFFFFF\""),
        ("0x", "\"0x\""),
        ("1:20", "\"1:20\""),
        ("2001-12-14", "\"2001-12-14\""),
        ("1.2.3", "\"1.2.3\""),
        ("1e", "\"1e\""),
        ("1e400", "\"1e400\""),
        ("=", "\"=\""),
        ("!!str 1", "\"1\""),
        ("!!int '3'", "3"),
        ("!!binary aGk=", "\"hi\""),
    ] {
        let actual = one(&format!("v: {text}\n"));
        assert_eq!(actual["v"].to_string(), json, "{text}");
    }
}

#[test]
fn bare_letters_are_text() {
    for text in ["y", "Y", "n", "N"] {
        assert_eq!(one(&format!("{text}: {text}")), json!({text: text}));
    }
}

#[test]
fn integers_of_64_bits_are_exact_and_other_numbers_are_doubles() {
    for (text, json) in [
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("-9223372036854775809", "-9.223372036854776e+18"),
        ("123456789012345678901234567890", "1.2345678901234568e+29"),
        ("0.1000000000000000055511151231257827", "0.1"),
        ("1e22", "1e+22"),
        ("1e-400", "0"),
        ("5e-324", "5e-324"),
    ] {
        assert_eq!(one(text).to_string(), json, "{text}");
        assert_eq!(one(&format!("{{\"a\": {text}}}"))["a"].to_string(), json);
    }
}

#[test]
fn the_private_keys_of_serde_json_are_plain_data() {
    for key in [
        "$serde_json::private::Number",
        "$serde_json::private::RawValue",
        "__serde_saphyr_private_spanned",
    ] {
        let value = json!({"a": {key: "1.50"}, key: {"b": [1]}});
        assert_eq!(one(&value.to_string()), value);
        let text = format!("a:\n  {key}: \"1.50\"\n{key}:\n  b: [1]\n");
        assert_eq!(one(&text), value);
        assert_eq!(
            serde_json::from_str::<Value>(&value.to_string()).unwrap(),
            value
        );
    }
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    assert_eq!(
        one("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\ne: *x\n"),
        json!({"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}, "e": {"b": 1, "c": 2}})
    );
    // As with kubectl, a merge key overrides earlier fields.
    assert_eq!(
        one("a: &x {b: 1, c: 2}\nd: {c: 3, <<: *x}\n")["d"],
        json!({"b": 1, "c": 2})
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
    refused("b: *a", 1, "anchor");
}

#[test]
fn keys_become_text_and_are_unique() {
    assert_eq!(
        one("on: 1\ny2: 2\n0x1F: 3\n? ''\n: 4\n1.50: 5"),
        json!({"true": 1, "y2": 2, "31": 3, "": 4, "1.5": 5})
    );
    refused("a: 1\nb:\n  c: 1\n  c: 2\n", 4, "twice");
    refused("{\"a\": 1,\n \"a\": 2}", 2, "twice");
    refused("1: a\n\"1\": b", 2, "twice");
    refused("on: a\nyes: b", 2, "twice");
    for text in ["~: 1", "? [a]\n: 1", "? {a: 1}\n: 1", ": 1"] {
        refused(&format!("a: 1\n{text}"), 2, "must be text");
    }
}

#[test]
fn values_without_json_are_rejected_with_their_line() {
    refused("a: 1\nb: [.inf]", 2, "JSON");
    refused("a: !!int x", 1, "tag");
    refused("a: !!bool 1", 1, "tag");
    refused("a: !!binary '-'", 1, "tag");
}

#[test]
fn quoted_text_may_be_indented_less_than_its_mapping() {
    let text = "a:\n  b:\n  - c: \"one\ntwo\n   three\n\nfour\"\n    d: 'x\ny'\ne: 1\n";
    let expected = json!({"a": {"b": [{"c": "one two three\nfour", "d": "x y"}]}, "e": 1});
    assert_eq!(one(text), expected);
    // Line numbers do not change.
    refused("a: \"x\ny\"\nb: [1", 3, "not valid YAML");
}

#[test]
fn hostile_texts_are_rejected() {
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
    refused(&laughs, 5, "lists and mappings");
    refused(&chain, 10, "deeper");
    let long = format!(
        "a: &a {}\nb: [{}]",
        "x".repeat(1_000_000),
        "*a, ".repeat(100)
    );
    refused(&long, 2, "--max-manifest-size");
    // In memory, these are a hundred times their text.
    let many = ["{\"\": 0}"; 20_000].join(",\n");
    refused(
        &format!("{{\"a\": [\n{many}]}}"),
        17_500,
        "lists and mappings",
    );
    refused(
        &format!("a:\n{}", "- b: c\n".repeat(20_000)),
        15_833,
        "lists and mappings",
    );
}

#[test]
fn errors_of_broken_texts_have_their_line() {
    refused("a: 1\nb: [1, 2", 2, "not valid YAML");
    refused("a:\n  b: 1\n\tc: 2", 2, "not valid YAML");
    refused("a: b: c", 1, "not valid YAML");
    refused("a: *nope", 1, "anchor");
    refused("a: 'x", 1, "not valid YAML");
}

#[test]
fn every_part_of_a_text_is_parsed_or_rejected() {
    let text = "a: &x {b: [1, \"é\\u00e9\", 'c']}\nd: |\n  e\n? f\n: *x\n<<: {g: !!str 1, h: \"i\nj\"}\n...\n";
    for (at, _) in text.char_indices() {
        let _ = read(text.get(..at).unwrap());
        let _ = read(text.get(at..).unwrap());
    }
}

#[test]
fn indenting_the_lines_of_a_quoted_scalar_has_an_end() {
    // No indentation helps, because the library counts lines in another way. Each attempt doubled the text.
    refused(":\n\"\rm", 3, "quoted");
    let more = "x\n".repeat(200);
    let text = format!("a:\n  b: \"x\n{more}  y\"\n  c: 1\n");
    let words = format!("{}y", "x ".repeat(201));
    assert_eq!(one(&text), json!({"a": {"b": words, "c": 1}}));
}
