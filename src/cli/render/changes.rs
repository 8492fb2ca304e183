//! What a change does to effective policies, for `diff` and `preview`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use prost::Message;
use serde_json::Value;

use super::document::{Document, quoted};
use super::get_text::rejected;
use super::json::compact;
use super::policies::short_kind;
use super::report::{Report, write_paths};
use super::spec::{block_name, origin_name};
use super::text::{Style, WIDTH, count, printable, shortened, width, wrapped};
use super::{ExitStatus, insight_json};
use crate::api::v1;
use entail_core::model::{BackendStep, PathName, RuleStep};

/// Paths of a change that are named; the others are counted.
const MOST_PATHS: usize = 3;

/// Paths that come or go, and objects that lose something, that are named.
const MOST_NAMED: usize = 20;

/// Least columns of a value that is shortened.
const LEAST_VALUE: usize = 12;

/// What a change does.
pub(in crate::cli) struct ChangeReport(v1::PreviewChangeResponse);

impl ChangeReport {
    /// Of these kinds only; of all if there are none.
    pub(in crate::cli) fn of(mut reply: v1::PreviewChangeResponse, kinds: &[String]) -> Self {
        if !kinds.is_empty() {
            reply.changes.retain(|change| kinds.contains(&change.kind));
            reply.loses = reply.changes.iter().flat_map(|c| &c.units).any(is_lost);
        }
        reply.changes = merged(reply.changes);
        Self(reply)
    }

    /// The exit: whether all is known, and then whether something gets lost.
    pub(in crate::cli) fn exit(&self, known: ExitStatus) -> ExitStatus {
        match known {
            ExitStatus::Success if self.0.truncated => ExitStatus::Incomplete,
            ExitStatus::Success if self.0.loses || !self.0.paths_removed.is_empty() => {
                ExitStatus::Findings
            }
            exit => exit,
        }
    }
}

/// Changes that read the same, once with the paths of all. Answers may differ in what does not
/// change, and in who was beaten.
fn merged(changes: Vec<v1::ChangedAnswer>) -> Vec<v1::ChangedAnswer> {
    let mut places: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut merged: Vec<v1::ChangedAnswer> = Vec::with_capacity(changes.len());
    for mut change in changes {
        let paths = std::mem::take(&mut change.paths);
        let next = merged.len();
        let at = *places.entry(change.encode_to_vec()).or_insert(next);
        if at == next {
            merged.push(change);
        }
        if let Some(change) = merged.get_mut(at) {
            change.paths.extend(paths);
        }
    }
    merged
}

/// A unit that has no value any more.
fn is_lost(unit: &v1::ChangedUnit) -> bool {
    unit.before_json.is_some() && unit.after_json.is_none()
}

impl Report for ChangeReport {
    fn document(&self, states: &[v1::KindState]) -> Document {
        insight_json::changes(&self.0, states)
    }

    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let mut kind = "";
        for change in &self.0.changes {
            if change.kind != kind {
                let name = printable(&change.kind);
                writeln!(out, "{}", style.bold(&style.cyan(&name)))?;
                kind = &change.kind;
            }
            write_paths(out, &change.paths, MOST_PATHS)?;
            for unit in &change.units {
                for line in unit_lines(unit) {
                    let line = match is_lost(unit) {
                        true => style.alert(&line),
                        false => line,
                    };
                    writeln!(out, "{line}")?;
                }
            }
            rejected(out, &change.newly_rejected, style)?;
            writeln!(out)?;
        }
        let comes_and_goes = [
            ("paths added", &self.0.paths_added),
            ("paths removed", &self.0.paths_removed),
        ];
        for (heading, paths) in comes_and_goes {
            let lines: Vec<String> = paths.iter().map(|path| printable(path)).collect();
            section(out, heading, &lines, style)?;
        }
        section(out, "lost", &loss_lines(&self.0.changes), style)?;
        writeln!(out, "{}", summary(&self.0))
    }

    fn truncated(&self) -> bool {
        self.0.truncated
    }
}

/// A heading with some lines, if there are any, and a blank line.
fn section(out: &mut dyn Write, heading: &str, lines: &[String], style: Style) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", style.bold(heading))?;
    for line in lines.iter().take(MOST_NAMED) {
        writeln!(out, "  {line}")?;
    }
    if lines.len() > MOST_NAMED {
        writeln!(out, "  and {} more", lines.len() - MOST_NAMED)?;
    }
    writeln!(out)
}

/// `unit: before (who) -> after (who)`, on two lines where one is too short.
fn unit_lines(unit: &v1::ChangedUnit) -> Vec<String> {
    let name = match unit.unit.as_str() {
        "*" => "(the whole)",
        name => name,
    };
    let mark = if is_lost(unit) { "  lost" } else { "" };
    let head = format!("    {}: ", printable(name));
    let (before, after) = (unit.before_json.as_deref(), unit.after_json.as_deref());
    let (old, new) = origin_texts(unit);
    let line = format!(
        "{head}{}{old} -> {}{new}{mark}",
        value(before),
        value(after)
    );
    if width(&line) <= WIDTH {
        return vec![line];
    }
    let arrow = "        -> ";
    let room = |used: usize| WIDTH.saturating_sub(used).max(LEAST_VALUE);
    let before = shortened(&value(before), room(width(&head) + width(&old)));
    let used = width(arrow) + width(&new) + width(mark);
    let after = shortened(&value(after), room(used));
    vec![
        format!("{head}{before}{old}"),
        format!("{arrow}{after}{new}{mark}"),
    ]
}

/// Who said the unit before and who says it after, ` (who)`. Blocks are told where nothing else
/// differs.
fn origin_texts(unit: &v1::ChangedUnit) -> (String, String) {
    let who = |origin: &Option<v1::Origin>| origin.as_ref().map(origin_name).unwrap_or_default();
    let same = who(&unit.before_origin) == who(&unit.after_origin);
    let tells_block = same && unit.before_json == unit.after_json;
    let told = |origin: &Option<v1::Origin>| match origin {
        None => String::new(),
        Some(origin) if tells_block => {
            format!(" ({}, {})", origin_name(origin), block_name(origin.block()))
        }
        Some(origin) => format!(" ({})", origin_name(origin)),
    };
    (
        printable(&told(&unit.before_origin)),
        printable(&told(&unit.after_origin)),
    )
}

/// A value on one line; a word alone without quotes.
fn value(json: Option<&str>) -> String {
    let Some(json) = json else {
        return "nothing".to_owned();
    };
    // Taken apart, since a word alone is told without its quotes.
    let parsed = serde_json::from_str(json).unwrap_or_else(|_| Value::from(json));
    let text = match Document::from(parsed) {
        // `nothing` in quotes is a value.
        Document::Text(text) if text.contains(' ') || text.is_empty() || text == "nothing" => {
            quoted(&text)
        }
        Document::Text(text) => text,
        other => compact(&other),
    };
    printable(&text).replace('\n', "\\n")
}

/// What an object loses of a kind, and on which paths.
#[derive(Default)]
struct ObjectLosses<'c> {
    units: BTreeSet<&'c str>,
    paths: BTreeSet<&'c str>,
}

/// The objects that lose something, a line each: what they lose of which kind, and on how many
/// paths.
fn loss_lines(changes: &[v1::ChangedAnswer]) -> Vec<String> {
    let mut found: BTreeMap<(String, &str), ObjectLosses<'_>> = BTreeMap::new();
    for change in changes {
        let lost = change.units.iter().filter(|unit| is_lost(unit));
        let units: Vec<&str> = lost.map(|unit| unit.unit.as_str()).collect();
        if units.is_empty() {
            continue;
        }
        for path in &change.paths {
            let key = (path_end(path), short_kind(&change.kind));
            let lost = found.entry(key).or_default();
            lost.units.extend(units.iter());
            lost.paths.insert(path);
        }
    }
    let mut lines = Vec::new();
    for ((object, kind), ObjectLosses { units, paths }) in found {
        let units: Vec<&str> = units.into_iter().collect();
        let text = format!(
            "{object} loses {} of {kind} on {}",
            units.join(", "),
            count(paths.len(), "path")
        );
        lines.push(wrapped(&printable(&text), 6).join("\n      "));
    }
    lines
}

/// The object at which a path ends, `Kind/namespace/name[#section]`; the path itself if it is not
/// read.
fn path_end(path: &str) -> String {
    let walk = match PathName::parse(path) {
        Ok(PathName::Traffic(walk)) => walk,
        _ => return path.to_owned(),
    };
    if let Some(BackendStep {
        kind,
        namespace,
        name,
    }) = walk.backend
    {
        let port = walk.port.map(|port| format!("#{port}"));
        return format!("{kind}/{namespace}/{name}{}", port.unwrap_or_default());
    }
    let Some(route) = walk.route else {
        return path.to_owned();
    };
    let rule = match walk.rule {
        None => String::new(),
        Some(RuleStep::Index(index)) => format!("##{index}"),
        Some(RuleStep::Name(name)) => format!("#{name}"),
    };
    format!("{}/{}/{}{rule}", route.kind, route.namespace, route.name)
}

/// What it comes to, in one line.
fn summary(reply: &v1::PreviewChangeResponse) -> String {
    let paths: BTreeSet<&String> = reply.changes.iter().flat_map(|c| &c.paths).collect();
    let lost = reply.changes.iter().flat_map(|change| &change.units);
    let lost = lost.filter(|unit| is_lost(unit)).count();
    let least = if reply.truncated { "at least " } else { "" };
    let verb = |number: usize, one: &'static str, many: &'static str| match number {
        1 => one,
        _ => many,
    };
    let mut text = format!(
        "{least}{} {} on {}, {} {} lost",
        count(reply.changes.len(), "answer"),
        verb(reply.changes.len(), "changes", "change"),
        count(paths.len(), "path"),
        count(lost, "value"),
        verb(lost, "is", "are"),
    );
    let (added, removed) = (reply.paths_added.len(), reply.paths_removed.len());
    if added + removed > 0 {
        text.push_str(&format!(
            "; {} added, {removed} removed",
            count(added, "path")
        ));
    }
    text
}

#[cfg(test)]
mod tests;
