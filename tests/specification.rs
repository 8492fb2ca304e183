//! `docs/specification.md` and the conformance cases belong together: every rule has a case, every case
//! names its rules, and the list of cases in the document is up to date.
//!
//! `UPDATE=1 cargo test --test specification` rewrites the list.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- cases: begin -->\n";
const END: &str = "<!-- cases: end -->\n";
/// Rules below this heading need no case.
const DECIDED: &str = "\n## Decided, not implemented yet\n";
/// Most cases that the list shows of one rule.
const SHOWN: usize = 6;
const WIDTH: usize = 120;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A rule of the specification.
struct Rule {
    number: String,
    /// The program does not follow it yet.
    decided: bool,
}

/// A case, read from the text of its file.
struct Case {
    /// The file's name without the extension.
    file: String,
    name: String,
    sections: Vec<String>,
}

/// What stands between `start` and `end`, at each place where `start` does.
fn between<'t>(text: &'t str, start: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
    let parts = text.split(start).skip(1);
    parts.filter_map(move |part| Some(part.split_once(end)?.0))
}

/// The rules in the order of the document. A rule begins with `<a id="rule-4-3"></a>[4.3](#cases-4-3)`.
fn rules(text: &str) -> Vec<Rule> {
    let (followed, rest) = text.split_once(DECIDED).unwrap();
    let rest = rest.split_once("\n## ").unwrap().0;
    let mut rules = Vec::new();
    for (part, decided) in [(followed, false), (rest, true)] {
        for part in part.split("<a id=\"rule-").skip(1) {
            let (id, rest) = part.split_once("\"></a>").unwrap();
            let number = id.replace('-', ".");
            assert!(
                rest.starts_with(&format!("[{number}](#cases-{id})")),
                "rule {number} links to other cases than its own"
            );
            rules.push(Rule { number, decided });
        }
    }
    rules
}

/// The cases of all files, in the order of their names.
fn cases() -> Vec<Case> {
    let entries = std::fs::read_dir(root("tests/conformance")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        for document in text.split("\n---\n") {
            let field = |name: &str| {
                let mut values = document.lines().filter_map(|line| line.strip_prefix(name));
                values.next().map(str::trim)
            };
            // The lists of pending and disputed cases have no field `name` of their own.
            let Some(name) = field("name:") else { continue };
            let list = field("sections:").unwrap_or_default();
            let list = list.trim_start_matches('[').trim_end_matches(']');
            let numbers = list.split(',').map(|s| s.trim().trim_matches(['\'', '"']));
            cases.push(Case {
                file: file.clone(),
                name: name.trim_matches(['\'', '"']).to_owned(),
                sections: numbers
                    .filter(|s| !s.is_empty())
                    .map(str::to_owned)
                    .collect(),
            });
        }
    }
    cases
}

/// The cases of a rule, those that cite it first of all before the others.
fn of<'c>(rule: &Rule, cases: &'c [Case]) -> Vec<&'c Case> {
    let place = |case: &Case| case.sections.iter().position(|s| *s == rule.number);
    let mut found: Vec<&Case> = cases.iter().filter(|c| place(c).is_some()).collect();
    found.sort_by_key(|case| (place(case), case.sections.len()));
    found
}

/// Wraps the words of an item of a list.
fn wrapped(item: &str) -> String {
    let (mut out, mut width) = (String::new(), 0);
    for word in item.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            out.push_str("\n  ");
            width = 2;
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += length;
    }
    out
}

/// The list of cases, as it stands between the markers.
fn list(rules: &[Rule], cases: &[Case]) -> String {
    let mut out = "\n".to_owned();
    let mut files = BTreeSet::new();
    for rule in rules {
        let found = of(rule, cases);
        let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for case in found.iter().take(SHOWN) {
            let prefix = format!("{}/", case.file);
            let name = case.name.strip_prefix(&prefix).unwrap_or(&case.name);
            names
                .entry(&case.file)
                .or_default()
                .push(format!("`{name}`"));
        }
        files.extend(names.keys().copied());
        let groups: Vec<String> = names
            .iter()
            .map(|(file, names)| format!("[{file}] {}", names.join(", ")))
            .collect();
        let (number, id) = (&rule.number, rule.number.replace('.', "-"));
        let mut item = format!(
            "- <a\u{a0}id=\"cases-{id}\"></a>[{number}](#rule-{id}): {}",
            groups.join("; ")
        );
        match found.len() {
            0 => item.push_str("no case yet"),
            n if n > SHOWN => write!(item, "; and {} more", n - SHOWN).unwrap(),
            _ => {}
        }
        writeln!(out, "{}", wrapped(&item).replace('\u{a0}', " ")).unwrap();
    }
    out.push('\n');
    for file in files {
        writeln!(out, "[{file}]: ../tests/conformance/{file}.yaml").unwrap();
    }
    out.push('\n');
    out
}

#[test]
fn rules_and_cases_belong_together() {
    let path = root("docs/specification.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (rules, cases) = (rules(&text), cases());
    let mut wrong = Vec::new();
    let mut numbers = BTreeSet::new();
    for rule in &rules {
        if !numbers.insert(rule.number.as_str()) {
            wrong.push(format!("rule {} stands twice", rule.number));
        }
        if !rule.decided && of(rule, &cases).is_empty() {
            wrong.push(format!("rule {} has no case", rule.number));
        }
    }
    for case in &cases {
        if case.sections.is_empty() {
            wrong.push(format!("case {} has no `sections: [..]`", case.name));
        }
        for section in case
            .sections
            .iter()
            .filter(|s| !numbers.contains(s.as_str()))
        {
            wrong.push(format!(
                "case {} cites {section}, which is no rule",
                case.name
            ));
        }
    }
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let now = format!("{head}{BEGIN}{}{END}{tail}", list(&rules, &cases));
    let anchors: BTreeSet<&str> = between(&now, "<a id=\"", "\"").collect();
    for link in between(&now, "](#", ")") {
        let own = link.starts_with("rule-") || link.starts_with("cases-");
        if own && !anchors.contains(link) {
            wrong.push(format!("nothing has the anchor #{link}"));
        }
    }
    let long = now
        .lines()
        .filter(|line| !line.starts_with('|') && line.chars().count() > WIDTH);
    wrong.extend(long.map(|line| format!("more than {WIDTH} characters: {line}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, now).unwrap();
    } else {
        assert!(
            text == now,
            "the list of cases is out of date: run with UPDATE=1"
        );
    }
}
