//! A review as Markdown, for a comment on a pull request: losses first, one screen, the same for the same change.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::changes::{is_lost, path_end, value};
use super::findings::severity_name;
use super::policies::short_kind;
use super::review::{MovedValue, Review};
use super::short_path::short_path;
use super::spec::origin_name;
use super::text::{count, printable, printable_line, shortened};
use crate::api::v1;
use v1::assertion_result::Outcome;
use v1::finding::Severity;

/// Maximum number of rows of a table; the others are counted.
const MAX_ROWS: usize = 10;
/// Number of objects with the same change from which they share a row.
const MANY_OBJECTS: usize = 5;
/// Maximum width of a value, in characters.
const MAX_VALUE: usize = 60;

/// A row of a table of values.
type Row = [String; 4];

/// Writes a review.
pub(in crate::cli) fn write(
    out: &mut dyn Write,
    review: &Review,
    states: &[v1::KindState],
    all: bool,
) -> io::Result<()> {
    let most = if all { usize::MAX } else { MAX_ROWS };
    if review.is_empty() && states.is_empty() {
        return writeln!(out, "### Effective policies: no change");
    }
    writeln!(out, "### Effective policies: {}", headline(review))?;
    not_complete(out, review, states)?;
    let broken: Vec<String> = review.broken.iter().map(broken).collect();
    list(out, "Assertions that break", &broken, most)?;
    let weakened: Vec<String> = review.weakened.iter().map(|line| text(line)).collect();
    list(out, "Assertions that say less", &weakened, most)?;
    let (lost, changed) = value_rows(&review.changes);
    let (lost, changed) = (grouped(lost), grouped(changed));
    let head = ["Object", "Kind", "Field", "Was"];
    table(out, "Lost", head, &lost, most)?;
    moves(out, review, most)?;
    bare(out, review, most)?;
    let removed: Vec<String> = review
        .removed()
        .iter()
        .map(|path| code(&short_path(path)))
        .collect();
    list(out, "Paths removed", &removed, most)?;
    let findings: Vec<String> = review.new_findings.iter().map(finding).collect();
    list(out, "New findings", &findings, most)?;
    table(
        out,
        "Changed",
        ["Object", "Kind", "Field", "Change"],
        &changed,
        most,
    )?;
    let moved: Vec<Row> = review
        .moves
        .iter()
        .flat_map(|one| {
            one.changed
                .iter()
                .map(|value| moved_row(&one.object, value))
        })
        .collect();
    table(
        out,
        "Changed by another way",
        ["Object", "Kind", "Field", "Change"],
        &moved,
        most,
    )?;
    let added = review.changes.paths_added.len();
    if added > 0 && review.moves.is_empty() {
        writeln!(out, "\n{} added.", capital(&count(added, "path")))?;
    }
    if review.resolved_findings > 0 {
        writeln!(
            out,
            "\n{} resolved.",
            capital(&count(review.resolved_findings, "finding"))
        )?;
    }
    Ok(())
}

/// What is not known, and whether there are more changes.
fn not_complete(out: &mut dyn Write, review: &Review, states: &[v1::KindState]) -> io::Result<()> {
    let is_truncated = review.changes.truncated;
    let mut lines: Vec<String> = states
        .iter()
        .map(|state| format!("{}: {}", code(&state.kind), text(&state.message)))
        .collect();
    lines.extend(is_truncated.then(|| "there are more changes than could be compared".to_owned()));
    list(out, "Not complete", &lines, usize::MAX)
}

/// The worst that the change does, in a few words.
fn headline(review: &Review) -> String {
    let (lost, changed) = value_rows(&review.changes);
    let moved = review.moves.iter().filter(|one| one.has_losses()).count();
    let errors = review
        .new_findings
        .iter()
        .filter(|one| one.severity() == Severity::Error)
        .count();
    let parts = [
        (review.broken.len(), "assertion breaks", "assertions break"),
        (
            review.weakened.len(),
            "assertion says less",
            "assertions say less",
        ),
        (lost.len(), "value lost", "values lost"),
        (
            moved,
            "route part loses policies or values by another way",
            "route parts lose policies or values by another way",
        ),
        (
            bare_groups(review).len(),
            "new path without a policy that all others have",
            "new paths without policies that all others have",
        ),
        (review.removed().len(), "path removed", "paths removed"),
        (errors, "new error", "new errors"),
        (changed.len(), "value changed", "values changed"),
    ];
    let told: Vec<String> = parts
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| format!("{number} {}", if number == 1 { one } else { many }))
        .collect();
    match told.is_empty() {
        true => "no value changes".to_owned(),
        false => told.join(", "),
    }
}

/// The rows of values that are lost, and of those that change otherwise, each object and field once.
fn value_rows(changes: &v1::PreviewChangeResponse) -> (Vec<Row>, Vec<Row>) {
    let mut lost: BTreeMap<[String; 3], (String, usize)> = BTreeMap::new();
    let mut changed = BTreeMap::new();
    for change in &changes.changes {
        for unit in &change.units {
            for path in &change.paths {
                let key = [
                    path_end(path),
                    short_kind(&change.kind).to_owned(),
                    unit.unit.clone(),
                ];
                let (rows, text) = match is_lost(unit) {
                    true => (
                        &mut lost,
                        side(unit.before_json.as_deref(), unit.before_origin.as_ref()),
                    ),
                    false => (&mut changed, both_sides(unit)),
                };
                rows.entry(key).or_insert((text, 0)).1 += 1;
            }
        }
        for rejected in &change.newly_rejected {
            let name = rejected
                .policy
                .as_ref()
                .map(super::spec::policy_name)
                .unwrap_or_default();
            let key = [
                name,
                short_kind(&change.kind).to_owned(),
                "(rejected)".to_owned(),
            ];
            let told = format!("{}: {}", rejected.reason, rejected.message);
            changed.entry(key).or_insert((text(&told), 0)).1 += change.paths.len();
        }
    }
    (rows_of(lost), rows_of(changed))
}

fn rows_of(rows: BTreeMap<[String; 3], (String, usize)>) -> Vec<Row> {
    let row = |([object, kind, field], (told, paths)): ([String; 3], (String, usize))| {
        let on = match paths {
            0 | 1 => String::new(),
            paths => format!(" ({})", count(paths, "path")),
        };
        [
            format!("{}{on}", code(&object)),
            text(&kind),
            code(&field),
            told,
        ]
    };
    rows.into_iter().map(row).collect()
}

/// Rows with one row for the same of many objects, at the place of its first.
fn grouped(rows: Vec<Row>) -> Vec<Row> {
    let mut numbers: BTreeMap<[String; 3], usize> = BTreeMap::new();
    let same = |[_, kind, field, told]: &Row| [kind.clone(), field.clone(), told.clone()];
    for row in &rows {
        *numbers.entry(same(row)).or_default() += 1;
    }
    let mut found = Vec::new();
    for row in rows {
        let number = numbers.get_mut(&same(&row));
        match number {
            // The others of a group.
            Some(0) => {}
            Some(number) if *number >= MANY_OBJECTS => {
                let more = std::mem::take(number) - 1;
                let [object, kind, field, told] = row;
                found.push([
                    format!("{object} and {more} more objects"),
                    kind,
                    field,
                    told,
                ]);
            }
            _ => found.push(row),
        }
    }
    found
}

/// A value with the policy that sets it.
fn side(json: Option<&str>, origin: Option<&v1::Origin>) -> String {
    let value = code(&shortened(&value(json), MAX_VALUE));
    match origin.map(origin_name) {
        Some(origin) => format!("{value} by {}", text(&origin)),
        None => value,
    }
}

fn both_sides(unit: &v1::ChangedUnit) -> String {
    let same =
        unit.before_origin.as_ref().map(origin_name) == unit.after_origin.as_ref().map(origin_name);
    let origin = unit.before_origin.as_ref().filter(|_| !same);
    let before = side(unit.before_json.as_deref(), origin);
    let after = side(unit.after_json.as_deref(), unit.after_origin.as_ref());
    format!("{before} → {after}")
}

fn moved_row(object: &str, moved: &MovedValue) -> Row {
    let told = |json: &Option<String>| code(&shortened(&value(json.as_deref()), MAX_VALUE));
    [
        code(object),
        text(&moved.kind),
        code(&moved.field),
        format!("{} → {}", told(&moved.before), told(&moved.after)),
    ]
}

/// The rules and backends that lose kinds because their paths go another way.
fn moves(out: &mut dyn Write, review: &Review, most: usize) -> io::Result<()> {
    let losing = review.moves.iter().filter(|one| !one.lost.is_empty());
    let lines: Vec<String> = losing
        .map(|one| {
            format!(
                "{} is without {}: {} → {}",
                code(&one.object),
                text(&one.lost.join(", ")),
                code(&short_path(&one.from)),
                code(&short_path(&one.to))
            )
        })
        .collect();
    list(out, "Lost by another way", &lines, most)
}

/// The new paths without a kind that all others have, by Gateway and path.
fn bare_groups(review: &Review) -> BTreeMap<(&str, &str), Vec<&super::review::BarePath>> {
    let mut groups: BTreeMap<(&str, &str), Vec<_>> = BTreeMap::new();
    for one in &review.bare {
        groups
            .entry((&one.gateway, &one.path))
            .or_default()
            .push(one);
    }
    groups
}

fn bare(out: &mut dyn Write, review: &Review, most: usize) -> io::Result<()> {
    let lines: Vec<String> = bare_groups(review)
        .into_iter()
        .map(|((gateway, path), kinds)| {
            let names: Vec<String> = kinds
                .iter()
                .map(|one| match one.is_unknown {
                    true => format!("{} (not known)", one.kind),
                    false => one.kind.clone(),
                })
                .collect();
            let others = kinds.first().map_or(0, |one| one.others);
            format!(
                "{} has no {}, which {} of {} have",
                code(&short_path(path)),
                text(&names.join(", ")),
                match others {
                    1 => "the other path".to_owned(),
                    others => format!("all {others} others"),
                },
                code(gateway)
            )
        })
        .collect();
    list(out, "New, without policies that others have", &lines, most)
}

/// An assertion, why it does not hold, and on which paths.
fn broken(result: &v1::AssertionResult) -> String {
    let word = match result.outcome() {
        Outcome::Unknown | Outcome::Unspecified => "not known",
        Outcome::Invalid => "invalid",
        Outcome::Failed | Outcome::Passed => "fails",
    };
    let mut line = format!("{}: {word}", code(&result.object));
    let count = result.failed + result.unknown;
    if count > 0 {
        line.push_str(&format!(" on {count} of {} paths", result.paths));
    }
    for part in [&result.description, &result.message] {
        if !part.is_empty() {
            line.push_str(&format!(": {}", text(part)));
        }
    }
    if let Some(first) = result.failures.first() {
        let path = code(&short_path(&first.path));
        line.push_str(&format!("; the first is {path}: {}", text(&first.message)));
    }
    line
}

fn finding(finding: &v1::Finding) -> String {
    let severity = severity_name(finding.severity());
    let about = match (finding.object.as_str(), finding.location.as_str()) {
        ("", "") => String::new(),
        ("", location) => format!(" {}:", code(location)),
        (object, _) => format!(" {}:", code(object)),
    };
    format!(
        "{severity} {} {}:{about} {}",
        finding.code,
        text(&finding.reason),
        text(&finding.message)
    )
}

fn table(
    out: &mut dyn Write,
    heading: &str,
    head: [&str; 4],
    rows: &[Row],
    most: usize,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n**{heading}**\n")?;
    writeln!(out, "| {} |\n|---|---|---|---|", head.join(" | "))?;
    for row in rows.iter().take(most) {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    more(out, rows.len(), most)
}

fn list(out: &mut dyn Write, heading: &str, lines: &[String], most: usize) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n**{heading}**\n")?;
    for line in lines.iter().take(most) {
        writeln!(out, "- {line}")?;
    }
    more(out, lines.len(), most)
}

fn more(out: &mut dyn Write, number: usize, most: usize) -> io::Result<()> {
    match number.checked_sub(most) {
        Some(more @ 1..) => writeln!(out, "\nand {more} more (`--all`)"),
        _ => Ok(()),
    }
}

/// A text as code: nothing in it is Markdown, a mention or HTML. Names come from tenants.
fn code(text: &str) -> String {
    let text = printable_line(text).replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    match longest {
        0 => format!("`{text}`"),
        _ => format!("{fence} {text} {fence}"),
    }
}

/// A text whose Markdown, mentions and HTML mean nothing.
fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).replace('\n', " ").chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // A mention would notify people.
            '@' => escaped.push_str("&#64;"),
            '\\' | '`' | '|' | '*' | '_' | '[' | ']' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_of_many_objects_is_one_row() {
        let row = |object: usize, told: &str| {
            [
                format!("o{object}"),
                "K".to_owned(),
                "f".to_owned(),
                told.to_owned(),
            ]
        };
        let mut rows: Vec<Row> = (0..7).map(|object| row(object, "a")).collect();
        rows.insert(3, row(9, "b"));
        let found = grouped(rows);
        let objects: Vec<&str> = found.iter().map(|row| &*row[0]).collect();
        assert_eq!(objects, ["o0 and 6 more objects", "o9"]);
        let few: Vec<Row> = (0..4).map(|object| row(object, "a")).collect();
        assert_eq!(grouped(few.clone()), few);
    }

    #[test]
    fn texts_of_tenants_are_no_markup() {
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(
            text("<b> @all `x` [l](u) | #1"),
            "&lt;b&gt; &#64;all \\`x\\` \\[l\\](u) \\| \\#1"
        );
    }
}
