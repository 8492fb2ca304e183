//! The effect of a change on effective policies, for `diff` and `preview`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use prost::Message;
use serde_json::Value;

use super::document::{Document, quoted};
use super::get_text::rejected;
use super::json::compact;
use super::policies::short_kind;
use super::report::{Report, write_paths};
use super::session::is_selected;
use super::spec::{block_name, origin_name};
use super::text::{Style, count, printable, printable_line, shortened, text_width, width, wrapped};
use super::{ExitStatus, console, insight_json};
use crate::api::v1;
use entail_core::model::{BackendStep, PathName, RuleStep};

/// Maximum number of paths to print per change; the others are counted.
const MAX_PATHS: usize = 3;

/// Maximum number of lines to print per section; the others are counted.
const MAX_LINES: usize = 20;

/// Minimum width of a shortened value, in columns.
const MIN_VALUE: usize = 12;

/// The text of a missing value.
const NO_VALUE: &str = "(none)";

/// The effect of a change.
pub(in crate::cli) struct ChangeReport(v1::PreviewChangeResponse);

impl ChangeReport {
    /// Creates a report on these kinds; on all kinds if `kinds` is empty.
    pub(in crate::cli) fn of(mut reply: v1::PreviewChangeResponse, kinds: &[String]) -> Self {
        if !kinds.is_empty() {
            reply
                .changes
                .retain(|change| is_selected(kinds, &change.kind));
            reply.loses_values = reply.changes.iter().flat_map(|c| &c.units).any(is_lost);
            // Each begins with the key of a policy, and that with the kind.
            let kind_of =
                |warning: &String| warning.split('/').next().unwrap_or_default().to_owned();
            reply
                .warnings
                .retain(|warning| is_selected(kinds, &kind_of(warning)));
        }
        reply.changes = merged(reply.changes);
        Self(reply)
    }

    /// The merged changes.
    pub(in crate::cli) fn into_changes(self) -> v1::PreviewChangeResponse {
        self.0
    }

    /// What could not be read of the change.
    pub(in crate::cli) fn problems(&self) -> &[v1::Problem] {
        &self.0.problems
    }

    /// Prints on standard error why policies of the change have no effect.
    pub(in crate::cli) fn print_warnings(&self) {
        for warning in &self.0.warnings {
            console::print_error(&format!("warning: {}", printable_line(warning)));
        }
    }

    /// The exit status: incomplete if the answer is, and then whether a value or a path is lost.
    pub(in crate::cli) fn exit(&self, completeness: ExitStatus) -> ExitStatus {
        match completeness {
            ExitStatus::Success if self.0.truncated => ExitStatus::Incomplete,
            ExitStatus::Success if self.0.loses_values || !self.0.paths_removed.is_empty() => {
                ExitStatus::Findings
            }
            exit => exit,
        }
    }
}

/// Merges changes with equal text into one with the paths of all. Their answers can differ in units
/// that do not change, and in the policies that they override.
fn merged(changes: Vec<v1::ChangedAnswer>) -> Vec<v1::ChangedAnswer> {
    let mut indices: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut merged: Vec<v1::ChangedAnswer> = Vec::with_capacity(changes.len());
    for mut change in changes {
        let paths = std::mem::take(&mut change.paths);
        let next = merged.len();
        let at = *indices.entry(change.encode_to_vec()).or_insert(next);
        if at == next {
            merged.push(change);
        }
        if let Some(change) = merged.get_mut(at) {
            change.paths.extend(paths);
        }
    }
    merged
}

/// Whether a unit loses its value.
pub(in crate::cli) fn is_lost(unit: &v1::ChangedUnit) -> bool {
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
            write_paths(out, &change.paths, MAX_PATHS, style)?;
            for unit in &change.units {
                for line in unit_lines(unit) {
                    let line = match is_lost(unit) {
                        true => style.alert(&line),
                        false => line,
                    };
                    writeln!(out, "{line}")?;
                }
            }
            rejected(out, &change.newly_rejected, 4, style)?;
            writeln!(out)?;
        }
        let sections = [
            ("paths added", &self.0.paths_added),
            ("paths removed", &self.0.paths_removed),
        ];
        for (heading, paths) in sections {
            let lines: Vec<String> = paths.iter().map(|path| style.path(path)).collect();
            section(out, heading, &lines, style)?;
        }
        section(out, "lost", &loss_lines(&self.0.changes), style)?;
        writeln!(out, "{}", summary(&self.0))
    }

    fn truncated(&self) -> bool {
        self.0.truncated
    }
}

/// Writes a heading with its lines and a blank line; nothing if there are no lines.
fn section(out: &mut dyn Write, heading: &str, lines: &[String], style: Style) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", style.bold(heading))?;
    let most = style.most(MAX_LINES);
    for line in lines.iter().take(most) {
        writeln!(out, "  {line}")?;
    }
    if let Some(more @ 1..) = lines.len().checked_sub(most) {
        writeln!(out, "  and {more} more (`--all` lists them)")?;
    }
    writeln!(out)
}

/// `unit: before (policy) -> after (policy)`, on two lines if one is too long.
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
    if width(&line) <= text_width() {
        return vec![line];
    }
    let arrow = "        -> ";
    let available = |used: usize| text_width().saturating_sub(used).max(MIN_VALUE);
    let used = width(arrow) + width(&new) + width(mark);
    let rooms = [available(width(&head) + width(&old)), available(used)];
    let [before, after] = shortened_apart([value(before), value(after)], rooms);
    vec![
        format!("{head}{before}{old}"),
        format!("{arrow}{after}{new}{mark}"),
    ]
}

/// Shortens two values to what fits, each to its columns. If that would leave the same of both, they begin where they
/// differ.
fn shortened_apart([before, after]: [String; 2], [most, most_after]: [usize; 2]) -> [String; 2] {
    let short = [shortened(&before, most), shortened(&after, most_after)];
    let fits = short == [before.clone(), after.clone()];
    let pairs = before.chars().zip(after.chars());
    let common = pairs.take_while(|(old, new)| old == new).count();
    // A part of the room is for what comes before the difference, and one for that itself.
    let part = most.min(most_after) / 3;
    if fits || before == after || common < 2 * part {
        return short;
    }
    let skipped = common.saturating_sub(part);
    let rest = |text: &str| format!("...{}", text.chars().skip(skipped).collect::<String>());
    [
        shortened(&rest(&before), most),
        shortened(&rest(&after), most_after),
    ]
}

/// The policies that set a unit before and after, as ` (policy)`. Includes the block if nothing else
/// differs.
fn origin_texts(unit: &v1::ChangedUnit) -> (String, String) {
    let name = |origin: &Option<v1::Origin>| origin.as_ref().map(origin_name).unwrap_or_default();
    let is_same_policy = name(&unit.before_origin) == name(&unit.after_origin);
    let shows_block = is_same_policy && unit.before_json == unit.after_json;
    let text = |origin: &Option<v1::Origin>| match origin {
        None => String::new(),
        Some(origin) if shows_block => {
            format!(" ({}, {})", origin_name(origin), block_name(origin.block()))
        }
        Some(origin) => format!(" ({})", origin_name(origin)),
    };
    (
        printable(&text(&unit.before_origin)),
        printable(&text(&unit.after_origin)),
    )
}

/// Formats a value on one line. A string of one word has no quotes.
pub(in crate::cli) fn value(json: Option<&str>) -> String {
    let Some(json) = json else {
        return NO_VALUE.to_owned();
    };
    let parsed = serde_json::from_str(json).unwrap_or_else(|_| Value::from(json));
    let text = match Document::from(parsed) {
        // Quotes distinguish the string `(none)` from a missing value.
        Document::Text(text) if text.contains(' ') || text.is_empty() || text == NO_VALUE => {
            quoted(&text)
        }
        Document::Text(text) => text,
        other => compact(&other),
    };
    printable_line(&text)
}

/// The units of a kind that an object loses, and the paths on which it loses them.
#[derive(Default)]
struct ObjectLosses<'c> {
    units: BTreeSet<&'c str>,
    paths: BTreeSet<&'c str>,
}

/// One line per object that loses values: the units, the kind, and the number of paths.
fn loss_lines(changes: &[v1::ChangedAnswer]) -> Vec<String> {
    let mut losses: BTreeMap<(String, &str), ObjectLosses<'_>> = BTreeMap::new();
    for change in changes {
        let lost = change.units.iter().filter(|unit| is_lost(unit));
        let units: Vec<&str> = lost.map(|unit| unit.unit.as_str()).collect();
        if units.is_empty() {
            continue;
        }
        for path in &change.paths {
            let key = (path_end(path), short_kind(&change.kind));
            let lost = losses.entry(key).or_default();
            lost.units.extend(units.iter());
            lost.paths.insert(path);
        }
    }
    let mut lines = Vec::new();
    for ((object, kind), ObjectLosses { units, paths }) in losses {
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

/// The route rule or backend at which a path ends, `Kind/namespace/name[#section]`; the path itself
/// if it ends above the routes.
pub(in crate::cli) fn path_end(path: &str) -> String {
    let traffic = match PathName::parse(path) {
        Ok(PathName::Traffic(traffic)) => traffic,
        _ => return path.to_owned(),
    };
    if let Some(BackendStep {
        kind,
        namespace,
        name,
    }) = traffic.backend
    {
        let port = traffic.port.map(|port| format!("#{port}"));
        return format!("{kind}/{namespace}/{name}{}", port.unwrap_or_default());
    }
    let Some(route) = traffic.route else {
        return path.to_owned();
    };
    let rule = match traffic.rule {
        None => String::new(),
        Some(RuleStep::Index(index)) => format!("##{index}"),
        Some(RuleStep::Name(name)) => format!("#{name}"),
    };
    format!("{}/{}/{}{rule}", route.kind, route.namespace, route.name)
}

/// The last line: how many answers change, and how many values are lost.
fn summary(reply: &v1::PreviewChangeResponse) -> String {
    let paths: BTreeSet<&String> = reply.changes.iter().flat_map(|c| &c.paths).collect();
    let lost = reply.changes.iter().flat_map(|change| &change.units);
    let lost = lost.filter(|unit| is_lost(unit)).count();
    let prefix = if reply.truncated { "at least " } else { "" };
    let verb = |number: usize, one: &'static str, many: &'static str| match number {
        1 => one,
        _ => many,
    };
    let mut text = format!(
        "{prefix}{} {} on {}, {} {} lost",
        count(reply.changes.len(), "effective policy"),
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
