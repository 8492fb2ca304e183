//! Explanations as text.

use std::io::{self, Write};

use serde_json::Value;

use super::document::Document;
use super::get_text::{rejected, write_alert};
use super::json::compact;
use super::levels::kind_name;
use super::report::write_paths;
use super::spec::{self, block_name, on_one_line, origin_name, policy_name};
use super::text::{Style, beside, column, printable, shortened, text_width};
use crate::api::v1;

/// Maximum number of paths to print; the others are counted.
const MAX_PATHS: usize = 5;

/// Maximum width of the left column.
const MAX_LEFT: usize = 46;

/// Writes the explanation of a kind on some paths.
pub(in crate::cli) fn kind(
    out: &mut dyn Write,
    paths: &[String],
    kind: &v1::KindExplanation,
    style: Style,
) -> io::Result<()> {
    let policy = kind.policy.clone().unwrap_or_default();
    let name = printable(&kind_name(&policy));
    writeln!(out, "{}", style.bold(&style.cyan(&name)))?;
    write_paths(out, paths, MAX_PATHS, style)?;
    if policy.inherited_only {
        let text =
            "inherited only: the kind takes effect at a lower level; these are the values so far";
        writeln!(out, "  {}", style.dim(text))?;
    }
    if !kind.nodes.is_empty() {
        writeln!(
            out,
            "\n  {}",
            style.bold("attached, from least to most specific")
        )?;
        nodes(out, &kind.nodes, style)?;
    }
    if !kind.units.is_empty() {
        writeln!(out, "\n  {}", style.bold("values"))?;
        units(out, &kind.units, style)?;
    }
    if !policy.listed.is_empty() {
        writeln!(
            out,
            "\n  {}",
            style.bold("listed in this order, not merged")
        )?;
        for (at, listed) in policy.listed.iter().enumerate() {
            let name = listed.policy.as_ref().map(policy_name).unwrap_or_default();
            let left = printable(&format!("    {}. {name}", at + 1));
            let right = printable(&format!("on {}", listed.node));
            writeln!(out, "{}", beside(&left, &right, MAX_LEFT, style))?;
        }
    }
    write_remarks(out, &policy, kind, style)?;
    rejected(out, &policy.rejected, 4, style)?;
    writeln!(out)
}

/// Writes warnings, losses, and why the kind is not computed.
fn write_remarks(
    out: &mut dyn Write,
    policy: &v1::EffectivePolicy,
    kind: &v1::KindExplanation,
    style: Style,
) -> io::Result<()> {
    let has_none = policy.rejected.is_empty()
        && policy.not_computed.is_empty()
        && policy.unknown.is_none()
        && kind.lost_units.is_empty()
        && kind.warnings.is_empty();
    if !has_none {
        writeln!(out)?;
    }
    for warning in &kind.warnings {
        write_alert(out, &format!("note: {warning}"), 4, style)?;
    }
    for unit in &kind.lost_units {
        let text = "is set by a less specific policy and missing in the result";
        write_alert(out, &format!("lost: {unit} {text}"), 4, style)?;
    }
    if let Some(unknown) = &policy.unknown {
        write_alert(out, &format!("unknown: {}", unknown.message), 4, style)?;
    }
    if !policy.not_computed.is_empty() {
        let text = format!("not computed: {}", policy.not_computed);
        write_alert(out, &text, 4, style)?;
    }
    Ok(())
}

/// Writes the nodes as a tree, each below the previous one.
fn nodes(out: &mut dyn Write, nodes: &[v1::AttachedNode], style: Style) -> io::Result<()> {
    for (depth, node) in nodes.iter().enumerate() {
        let indent = depth * 3;
        let branch = if depth == 0 { "" } else { "└─ " };
        let lead = " ".repeat(4 + indent.saturating_sub(3));
        // Omit the level if it equals the kind of the node.
        let is_level = node.node.starts_with(&format!("{}/", node.level));
        let level = match is_level || node.node == node.level {
            true => String::new(),
            false if node.precedes_child_routes => {
                format!(" ({}, precedes its child Routes)", node.level)
            }
            false => format!(" ({})", node.level),
        };
        writeln!(
            out,
            "{lead}{branch}{}",
            printable(&format!("{}{level}", node.node))
        )?;
        let bar = if depth + 1 < nodes.len() {
            "│  "
        } else {
            "   "
        };
        for attached in &node.policies {
            let name = attached
                .policy
                .as_ref()
                .map(policy_name)
                .unwrap_or_default();
            let left = format!("{}{bar}* {}", " ".repeat(4 + indent), printable(&name));
            let right = printable(&attached.blocks.join("; "));
            writeln!(out, "{}", beside(&left, &right, MAX_LEFT + 8, style))?;
        }
    }
    Ok(())
}

fn units(out: &mut dyn Write, units: &[v1::UnitExplanation], style: Style) -> io::Result<()> {
    let lefts: Vec<String> = units.iter().map(|unit| unit_left(unit, 4)).collect();
    let at = column(lefts.iter().map(String::as_str), MAX_LEFT);
    for (unit, left) in units.iter().zip(&lefts) {
        writeln!(out, "{}", beside(left, &origin_column(unit), at, style))?;
        if let Some(value) = long_value(unit) {
            for line in spec::lines(&value, &[], 6).1 {
                writeln!(out, "{}", shortened(&printable(&line.text), text_width()))?;
            }
        }
        for overridden in &unit.overridden {
            write_overridden(out, unit, overridden, style)?;
        }
    }
    Ok(())
}

/// `unit = value`, `unit =` before a value of many lines, or `unit (no value)`.
fn unit_left(unit: &v1::UnitExplanation, indent: usize) -> String {
    let name = match unit.unit.as_str() {
        "*" => "(the whole)",
        name => name,
    };
    let text = match unit.value_json.as_deref() {
        None => format!("{:indent$}{name} (no value)", ""),
        Some(_) if long_value(unit).is_some() => format!("{:indent$}{name} =", ""),
        Some(json) => {
            let value = parsed(json);
            let value = on_one_line(&value).unwrap_or_else(|| compact(&Document::from(value)));
            format!("{:indent$}{name} = {value}", "")
        }
    };
    printable(&text)
}

/// The value of a unit if it needs several lines.
fn long_value(unit: &v1::UnitExplanation) -> Option<Value> {
    let value = parsed(unit.value_json.as_deref()?);
    on_one_line(&value).is_none().then_some(value)
}

/// The policy that set or removed a unit, or why it has no value.
fn origin_column(unit: &v1::UnitExplanation) -> String {
    let text = match (&unit.origin, &unit.value_json) {
        (Some(origin), Some(_)) => format!("<- {}", origin_text(origin, &unit.strategy)),
        (Some(origin), None) => format!("<- removed by {}", origin_text(origin, &unit.strategy)),
        (None, None) if unit.overridden.is_empty() => "no policy sets it".to_owned(),
        (None, None) => "no value is in effect:".to_owned(),
        (None, Some(_)) => String::new(),
    };
    printable(&text)
}

fn origin_text(origin: &v1::Origin, strategy: &str) -> String {
    let comma = if strategy.is_empty() { "" } else { ", " };
    let block = block_name(origin.block());
    format!("{} ({block}{comma}{strategy})", origin_name(origin))
}

/// Writes a value that is not in effect, and why.
fn write_overridden(
    out: &mut dyn Write,
    unit: &v1::UnitExplanation,
    overridden: &v1::OverriddenPolicy,
    style: Style,
) -> io::Result<()> {
    let verb = if unit.origin.is_some() {
        "overrides"
    } else {
        "dropped"
    };
    let name = overridden
        .policy
        .as_ref()
        .map(policy_name)
        .unwrap_or_default();
    // Print the unit only if it differs from that of the value in effect.
    let subunit = match overridden.unit == unit.unit {
        true => String::new(),
        false => format!(" {}", overridden.unit),
    };
    let value = compact_value(&overridden.value_json);
    let (before, after) = (
        printable(&format!("      {verb} {name}{subunit}: ")),
        printable(&format!(" ({})", overridden.reason)),
    );
    let (used, end) = (super::text::width(&before), super::text::width(&after));
    let room = text_width().saturating_sub(used);
    let value = printable(&value);
    // Of a long value its beginning is printed; the reason is never cut, and has a line of its own if need be.
    let fits = super::text::width(&value) + end <= room;
    if !fits && room < end + 24 {
        let line = format!("{before}{}", shortened(&value, room.max(12)));
        writeln!(out, "{}", style.loss(&shortened(&line, text_width())))?;
        return writeln!(out, "{:8}{}", "", style.loss(after.trim_start()));
    }
    let line = format!(
        "{before}{}{after}",
        shortened(&value, room.saturating_sub(end).max(12))
    );
    writeln!(out, "{}", style.loss(&shortened(&line, text_width())))
}

/// Formats a value on one line.
fn compact_value(json: &str) -> String {
    let value = parsed(json);
    on_one_line(&value).unwrap_or_else(|| compact(&value.into()))
}

/// Parses JSON text. Invalid JSON becomes a string.
fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::from(json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::explain_summary::fixtures::{cakes, overridden, unit};
    use crate::cli::render::text::width;

    fn text_of(paths: &[String], explained: &v1::KindExplanation) -> String {
        let mut out = Vec::new();
        kind(&mut out, paths, explained, Style::new(false)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_explanation_has_all_parts() {
        let text = text_of(&["gateways/a/b".to_owned()], &cakes());
        for line in [
            "RetryPolicy.policies.bakery.example",
            "  on gateways/a/b",
            "    Namespace/baker",
            "    └─ HTTPRoute/baker/cakes (Route)",
            "    attempts = 5  <- baker/be-patient (defaults, PatchDefaults)",
            "    backoff = 2s  <- baker/let-them-cool (defaults, PatchDefaults)",
            "      overrides baker/be-patient: 250ms (more specific default)",
            "    lost: timeout is set by a less specific policy and missing in the result",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn units_without_value_have_a_reason() {
        let mut explained = cakes();
        let mut gone = unit("a", None, None);
        gone.overridden = vec![overridden("x", "a.b", "1", "unset")];
        explained.units = vec![gone, unit("b", None, Some("y")), unit("c", None, None)];
        let text = text_of(&[], &explained);
        for line in [
            "    a (no value)  no value is in effect:",
            "      dropped baker/x a.b: 1 (unset)",
            "    b (no value)  <- removed by baker/y (defaults, PatchDefaults)",
            "    c (no value)  no policy sets it",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn all_lines_fit_and_further_paths_are_counted() {
        let long = "long ".repeat(60);
        let mut explained = cakes();
        let json = serde_json::json!({"a": {"b": [{"c": long}]}}).to_string();
        let mut unit = unit(&"unit".repeat(20), Some(&json), Some(&"name".repeat(30)));
        unit.overridden = vec![overridden(&"name".repeat(20), "*", &json, "older")];
        explained.units.push(unit);
        let paths: Vec<String> = (0..8).map(|n| format!("gateways/a/{n}")).collect();
        let text = text_of(&paths, &explained);
        assert!(text.contains("gateways/a/4\n     and 3 more ("), "{text}");
        for line in text.lines() {
            assert!(width(line) <= text_width(), "{line}");
        }
    }
}
