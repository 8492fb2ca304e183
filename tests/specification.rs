//! `docs/specification.md` and the cases belong together: every rule has a case, every case names its rules,
//! and the list of cases in the document is up to date. The cases of requests are the worlds of
//! `tests/matching`.
//!
//! `UPDATE=1 cargo test --test specification` rewrites the list.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- cases: begin -->\n";
const END: &str = "<!-- cases: end -->\n";
/// Rules below this heading need no case.
const DECIDED: &str = "\n## Decided, not implemented yet\n";
/// Most cases that the list shows of one rule.
const SHOWN: usize = 6;
/// Most characters of a line that is not part of a table.
const WIDTH: usize = 120;

struct Rule {
    number: String,
    /// The program does not follow it yet.
    decided: bool,
}

struct Case {
    /// The folder below `tests`.
    folder: &'static str,
    /// The name of the case's file without the extension.
    file: String,
    name: String,
    sections: Vec<String>,
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The texts after each `start`, up to `end`.
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
            let link = format!("[{number}](#cases-{id})");
            assert!(rest.starts_with(&link), "rule {number} lacks {link}");
            rules.push(Rule { number, decided });
        }
    }
    rules
}

/// Reads the cases of all files as text: `name` and `sections` stand on lines of their own.
fn cases() -> Vec<Case> {
    let mut files: Vec<(&'static str, PathBuf)> = Vec::new();
    for folder in ["conformance", "matching"] {
        let entries = std::fs::read_dir(root("tests").join(folder)).unwrap();
        files.extend(entries.map(|entry| (folder, entry.unwrap().path())));
    }
    files.retain(|(_, path)| path.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    let mut cases = Vec::new();
    for (folder, path) in files {
        let file = path.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for document in text.split("\n---\n") {
            let field = |name| document.lines().find_map(|line| line.strip_prefix(name));
            // The lists of pending and disputed cases and the fixtures have no field `name`.
            let Some(name) = field("name: ") else {
                continue;
            };
            let sections = field("sections: ").unwrap_or_default();
            let numbers = sections.split(['[', ']', ',', '\'', '"', ' ']);
            cases.push(Case {
                folder,
                file: file.to_owned(),
                name: name.to_owned(),
                sections: numbers
                    .filter(|s| !s.is_empty())
                    .map(str::to_owned)
                    .collect(),
            });
        }
    }
    cases
}

/// The cases of a rule; those that cite it first come first.
fn of<'c>(rule: &Rule, cases: &'c [Case]) -> Vec<&'c Case> {
    let place = |case: &Case| case.sections.iter().position(|s| *s == rule.number);
    let mut found: Vec<&Case> = cases.iter().filter(|c| place(c).is_some()).collect();
    found.sort_by_key(|case| (place(case), case.sections.len()));
    found
}

/// Wraps the words of an item of a list.
fn wrapped(words: &[String]) -> String {
    let mut lines = vec!["-".to_owned()];
    for word in words {
        let line = lines.last_mut().unwrap();
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("  {word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

/// The list of cases, as it stands between the markers.
fn list(rules: &[Rule], cases: &[Case]) -> String {
    let mut out = "\n".to_owned();
    let mut files = BTreeMap::new();
    for rule in rules {
        let found = of(rule, cases);
        let mut shown: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for case in found.iter().take(SHOWN) {
            let name = case.name.strip_prefix(&format!("{}/", case.file));
            let name = format!("`{}`", name.unwrap_or(&case.name));
            shown.entry(&case.file).or_default().push(name);
            files.insert(case.file.as_str(), case.folder);
        }
        let groups: Vec<String> = shown
            .iter()
            .map(|(file, names)| format!("[{file}] {}", names.join(", ")))
            .collect();
        let mut text = groups.join("; ");
        match found.len() {
            0 => text.push_str("no case yet"),
            n if n > SHOWN => text.push_str(&format!("; and {} more", n - SHOWN)),
            _ => {}
        }
        let (number, id) = (&rule.number, rule.number.replace('.', "-"));
        let mut words = vec![format!("<a id=\"cases-{id}\"></a>[{number}](#rule-{id}):")];
        words.extend(text.split(' ').map(str::to_owned));
        out.push_str(&wrapped(&words));
    }
    for (file, folder) in files {
        out.push_str(&format!("\n[{file}]: ../tests/{folder}/{file}.yaml"));
    }
    out + "\n\n"
}

#[test]
fn rules_and_cases_belong_together() {
    let path = root("docs/specification.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (rules, cases) = (rules(&text), cases());
    let mut wrong = Vec::new();
    let mut numbers = BTreeSet::new();
    for rule in &rules {
        if !numbers.insert(&rule.number) {
            wrong.push(format!("rule {} occurs twice", rule.number));
        }
        if !rule.decided && of(rule, &cases).is_empty() {
            wrong.push(format!("rule {} has no case", rule.number));
        }
    }
    for case in &cases {
        if case.sections.is_empty() {
            wrong.push(format!("case {} has no `sections: [..]`", case.name));
        }
        let unknown = case.sections.iter().filter(|s| !numbers.contains(s));
        wrong.extend(unknown.map(|s| format!("case {} cites {s}, which is not a rule", case.name)));
    }
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let now = format!("{head}{BEGIN}{}{END}{tail}", list(&rules, &cases));
    let anchors: BTreeSet<&str> = between(&now, "<a id=\"", "\"").collect();
    let links = between(&now, "](#", ")").filter(|l| l.starts_with("rule-"));
    let dangling = links.filter(|link| !anchors.contains(link));
    wrong.extend(dangling.map(|link| format!("no rule has the anchor #{link}")));
    let text_lines = now.lines().filter(|line| !line.starts_with('|'));
    let long = text_lines.filter(|line| line.chars().count() > WIDTH);
    wrong.extend(long.map(|line| format!("longer than {WIDTH} characters: {line}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, now).unwrap();
    } else {
        let advice =
            "the list of cases is out of date: run `UPDATE=1 cargo test --test specification`";
        assert!(text == now, "{advice}");
    }
}
