//! Tests of the text of a change.

use super::*;

fn origin(name: &str, block: v1::Block) -> Option<v1::Origin> {
    Some(v1::Origin {
        policies: vec![v1::PolicyRef {
            namespace: "a".to_owned(),
            name: name.to_owned(),
        }],
        block: block.into(),
        ..v1::Origin::default()
    })
}

fn unit(before: Option<&str>, after: Option<&str>) -> v1::ChangedUnit {
    let origin_of = |value: Option<&str>, name| value.and(origin(name, v1::Block::Defaults));
    v1::ChangedUnit {
        unit: "x.y".to_owned(),
        before_json: before.map(str::to_owned),
        after_json: after.map(str::to_owned),
        before_origin: origin_of(before, "old"),
        after_origin: origin_of(after, "new"),
    }
}

fn text_of(reply: v1::PreviewChangeResponse) -> String {
    let mut out = Vec::new();
    let changes = ChangeReport(reply);
    changes.table(&mut out, Style::new(false)).unwrap();
    String::from_utf8(out).unwrap()
}

const BACKEND: &str = "gateways/p/g/listeners/l/routes/HTTPRoute/a/r/rules/#0/backends/Service/a/s";

fn reply() -> v1::PreviewChangeResponse {
    v1::PreviewChangeResponse {
        changes: vec![v1::ChangedAnswer {
            kind: "K.g".to_owned(),
            paths: vec![BACKEND.to_owned()],
            units: vec![unit(Some("5"), None), unit(Some("5"), Some("\"6 s\""))],
            newly_rejected: Vec::new(),
        }],
        loses_values: true,
        ..v1::PreviewChangeResponse::default()
    }
}

#[test]
fn a_change_shows_values_before_and_after() {
    let expected = "\
K.g
  on gateways/p/g/listeners/l/routes/HTTPRoute/a/r/rules/#0/backends/Service/a/s
    x.y: 5 (a/old) -> (none)  lost
    x.y: 5 (a/old) -> \"6 s\" (a/new)

lost
  Service/a/s loses x.y of K on 1 path

1 effective policy changes on 1 path, 1 value is lost
";
    assert_eq!(text_of(reply()), expected);
}

#[test]
fn a_missing_value_differs_from_the_string_for_it() {
    let lines = unit_lines(&unit(None, Some("\"(none)\"")));
    assert_eq!(lines, ["    x.y: (none) -> \"(none)\" (a/new)"]);
    let null = unit_lines(&unit(Some("null"), Some("\"a\\nb\"")));
    assert_eq!(null, ["    x.y: null (a/old) -> a\\nb (a/new)"]);
}

#[test]
fn the_block_is_shown_if_nothing_else_differs() {
    let mut moved = unit(Some("1"), Some("1"));
    moved.after_origin = origin("old", v1::Block::Overrides);
    assert_eq!(
        unit_lines(&moved),
        ["    x.y: 1 (a/old, defaults) -> 1 (a/old, overrides)"]
    );
}

#[test]
fn long_values_are_shortened_and_names_are_not() {
    let long = serde_json::json!({"k": "v".repeat(200)}).to_string();
    let lines = unit_lines(&unit(Some(&long), Some(&long)));
    assert_eq!(lines.len(), 2);
    assert!(
        lines.iter().all(|line| width(line) <= text_width()),
        "{lines:#?}"
    );
    assert!(lines[0].ends_with("... (a/old)") && lines[1].ends_with("... (a/new)"));
}

#[test]
fn changes_with_equal_text_are_merged() {
    let mut twice = reply();
    twice.changes.extend(reply().changes);
    twice.changes.push(v1::ChangedAnswer {
        kind: "L.g".to_owned(),
        ..twice.changes[0].clone()
    });
    let changes = ChangeReport::of(twice, &[]).0.changes;
    let paths: Vec<usize> = changes.iter().map(|change| change.paths.len()).collect();
    assert_eq!(paths, [2, 1]);
}

#[test]
fn the_exit_status_depends_on_losses() {
    let changes = |change: fn(&mut v1::PreviewChangeResponse), kinds: &[&str]| {
        let mut found = reply();
        change(&mut found);
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        ChangeReport::of(found, &kinds).exit(ExitStatus::Success)
    };
    assert_eq!(changes(|_| {}, &[]), ExitStatus::Findings);
    assert_eq!(changes(|_| {}, &["K.g"]), ExitStatus::Findings);
    assert_eq!(changes(|_| {}, &["L.g"]), ExitStatus::Success);
    assert_eq!(
        changes(|reply| reply.truncated = true, &[]),
        ExitStatus::Incomplete
    );
    let removed = |reply: &mut v1::PreviewChangeResponse| {
        reply.paths_removed = vec!["gateways/p/g".to_owned()];
    };
    assert_eq!(changes(removed, &["L.g"]), ExitStatus::Findings);
    assert_eq!(
        ChangeReport(reply()).exit(ExitStatus::Incomplete),
        ExitStatus::Incomplete
    );
}

#[test]
fn paths_end_at_route_rules_and_backends() {
    let rule = BACKEND.split("/backends").next().unwrap();
    assert_eq!(path_end(BACKEND), "Service/a/s");
    assert_eq!(path_end(&format!("{BACKEND}/ports/80")), "Service/a/s#80");
    assert_eq!(path_end(rule), "HTTPRoute/a/r##0");
    assert_eq!(path_end("gateways/p/g"), "gateways/p/g");
    assert_eq!(path_end("\u{1b}"), "\u{1b}");
}

#[test]
fn long_values_are_shortened_to_where_they_differ() {
    let rules = |requests: u32| {
        let other = "x".repeat(300);
        format!(r#"[{{"other": "{other}", "limit": {{"requests": {requests}}}}}]"#)
    };
    let (before, after) = (rules(5), rules(50));
    let changed = unit(Some(&before), Some(&after));
    let [old, new] = <[String; 2]>::try_from(unit_lines(&changed)).unwrap();
    assert!(old.contains("...") && old.contains("5}"), "{old}");
    assert!(new.contains("...") && new.contains("50}"), "{new}");
    // What differs at the beginning is seen from there.
    let changed = unit(
        Some(&format!("[1, {before}]")),
        Some(&format!("[2, {after}]")),
    );
    let [old, new] = <[String; 2]>::try_from(unit_lines(&changed)).unwrap();
    assert!(old.contains("[1, ") && new.contains("[2, "), "{old}\n{new}");
}
