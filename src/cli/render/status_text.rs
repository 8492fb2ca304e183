//! Policy statuses as text.

use std::io::{self, Write};

use super::report::write_wrapped;
use super::spec::policy_name;
use super::text::{Style, column, count, printable, text_width, width};
use crate::api::v1;

/// Writes policies grouped by kind. With `is_single`, writes one policy with its references.
pub(in crate::cli) fn table(
    out: &mut dyn Write,
    policies: &[v1::PolicyStatus],
    is_single: bool,
    style: Style,
) -> io::Result<()> {
    if policies.is_empty() {
        return writeln!(out, "no policies");
    }
    let mut kind = None;
    let names: Vec<String> = policies.iter().map(name).collect();
    let rights: Vec<String> = policies.iter().map(conditions).collect();
    // Leave room for the widest conditions.
    let widest = rights.iter().map(|right| width(right)).max().unwrap_or(0);
    let room = text_width().saturating_sub(widest + 4);
    let at = column(names.iter().map(String::as_str), room) + 2;
    for ((policy, name), right) in policies.iter().zip(&names).zip(&rights) {
        if kind != Some(&policy.kind) {
            if kind.is_some() {
                writeln!(out)?;
            }
            writeln!(out, "{}", style.bold(&style.cyan(&printable(&policy.kind))))?;
            kind = Some(&policy.kind);
        }
        heading(out, policy, (name, right), at, style)?;
        details(out, policy, style)?;
        if is_single {
            references(out, policy, style)?;
        }
    }
    if !is_single {
        writeln!(out)?;
        write_wrapped(out, &summary(policies), 0, str::to_owned)?;
    }
    Ok(())
}

fn name(policy: &v1::PolicyStatus) -> String {
    let name = policy.policy.as_ref().map(policy_name);
    printable(&name.unwrap_or_default())
}

/// The conditions of a policy, and how far it is in force.
fn conditions(policy: &v1::PolicyStatus) -> String {
    let mut parts: Vec<String> = policy.conditions.iter().take(2).map(condition).collect();
    if !policy.in_force.is_empty() {
        parts.push(policy.in_force.clone());
    }
    printable(&parts.join("  "))
}

/// Writes a policy with its conditions beside it.
fn heading(
    out: &mut dyn Write,
    policy: &v1::PolicyStatus,
    (name, right): (&str, &str),
    at: usize,
    style: Style,
) -> io::Result<()> {
    let paint = |text: &str| match is_effective(policy) {
        true => text.to_owned(),
        false => style.alert(text),
    };
    let gap = at.saturating_sub(width(name) + 2);
    // Names are never cut: conditions that do not fit beside one are printed below it.
    if gap >= 2 && at + width(right) <= text_width() {
        return writeln!(out, "  {name}{}{}", " ".repeat(gap), paint(right));
    }
    writeln!(out, "  {name}")?;
    let at = match at + width(right) <= text_width() {
        true => at,
        false => 4,
    };
    write_wrapped(out, right, at, paint)
}

/// Writes what overrides a policy, its messages, and its warnings.
fn details(out: &mut dyn Write, policy: &v1::PolicyStatus, style: Style) -> io::Result<()> {
    if !policy.overridden_by.is_empty() {
        let names: Vec<String> = policy.overridden_by.iter().map(policy_name).collect();
        write_wrapped(
            out,
            &format!("overridden by {}", names.join(", ")),
            4,
            str::to_owned,
        )?;
    }
    for message in messages(policy) {
        write_wrapped(out, &style.sentence(message), 4, |line| style.dim(line))?;
    }
    for warning in &policy.warnings {
        write_wrapped(
            out,
            &style.sentence(&format!("note: {warning}")),
            4,
            |line| style.dim(line),
        )?;
    }
    Ok(())
}

/// `Type=Status/Reason`, or `Type` alone if the status is True and the reason equals the type.
fn condition(condition: &v1::Condition) -> String {
    let v1::Condition {
        r#type,
        status,
        reason,
        ..
    } = condition;
    if status == "True" && reason == r#type {
        return r#type.clone();
    }
    format!("{type}={status}/{reason}")
}

/// The distinct messages of the conditions.
fn messages(policy: &v1::PolicyStatus) -> Vec<&str> {
    let mut messages: Vec<&str> = Vec::new();
    for condition in &policy.conditions {
        if !condition.message.is_empty() && !messages.contains(&condition.message.as_str()) {
            messages.push(&condition.message);
        }
    }
    messages
}

/// Whether a policy is accepted and in effect on at least one path.
fn is_effective(policy: &v1::PolicyStatus) -> bool {
    !matches!(policy.in_force.as_str(), "" | "None" | "NoScope")
}

/// Writes the references of a policy, its ancestors, and the units in which it is overridden.
fn references(out: &mut dyn Write, policy: &v1::PolicyStatus, style: Style) -> io::Result<()> {
    if !policy.references.is_empty() {
        writeln!(out, "\n  {}", style.bold("references"))?;
    }
    for reference in &policy.references {
        let text = format!("{}: {}", reference.field, reference.outcome);
        writeln!(out, "    {}", printable(&text))?;
        for node in &reference.nodes {
            writeln!(out, "      {}", printable(node))?;
        }
        if !reference.message.is_empty() {
            write_wrapped(out, &reference.message, 6, |line| style.dim(line))?;
        }
    }
    if !policy.ancestors.is_empty() {
        writeln!(out, "\n  {}", style.bold("ancestors"))?;
    }
    for ancestor in &policy.ancestors {
        writeln!(out, "    {}", printable(ancestor))?;
    }
    if !policy.overridden_units.is_empty() {
        writeln!(out, "\n  {}", style.bold("overridden on some paths"))?;
    }
    for unit in &policy.overridden_units {
        writeln!(out, "    {}", printable(unit))?;
    }
    Ok(())
}

/// The last line of the list: how many policies are in force.
fn summary(policies: &[v1::PolicyStatus]) -> String {
    let number = |selected: &[&str]| {
        let states = policies.iter().map(|policy| policy.in_force.as_str());
        states.filter(|state| selected.contains(state)).count()
    };
    let accepted = |status: &str| {
        let conditions = policies
            .iter()
            .filter_map(|policy| policy.conditions.first());
        conditions.filter(|first| first.status == status).count()
    };
    let mut text = format!(
        "{}: {} in force, {} in part, {} not at all, {} not accepted",
        count(policies.len(), "policy"),
        number(&["All", "AllWithAdditions"]),
        number(&["Part", "PartWithAdditions"]),
        number(&["None", "NoScope"]),
        accepted("False"),
    );
    let listed = number(&[""]).saturating_sub(accepted("False") + accepted("Unknown"));
    if listed > 0 {
        text.push_str(&format!(", {listed} listed"));
    }
    let unknown = number(&["Unknown"]) + accepted("Unknown");
    if unknown > 0 {
        text.push_str(&format!(", {unknown} not known"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(policy: v1::PolicyStatus) -> String {
        let mut out = Vec::new();
        table(&mut out, &[policy], true, Style::new(false)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn conditions_are_shortened() {
        let text = |status: &str, reason: &str| {
            condition(&v1::Condition {
                r#type: "Programmed".to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message: String::new(),
            })
        };
        assert_eq!(text("True", "Programmed"), "Programmed");
        assert_eq!(text("False", "Programmed"), "Programmed=False/Programmed");
        assert_eq!(text("True", "Part"), "Programmed=True/Part");
    }

    #[test]
    fn a_long_name_is_not_cut() {
        let name = "n".repeat(120);
        let text = text_of(v1::PolicyStatus {
            kind: "K.g".to_owned(),
            policy: Some(v1::PolicyRef {
                namespace: "a".to_owned(),
                name: name.clone(),
            }),
            conditions: vec![v1::Condition {
                r#type: "Accepted".to_owned(),
                status: "False".to_owned(),
                reason: "Invalid\u{1b}[2J".to_owned(),
                message: "why".to_owned(),
            }],
            ..v1::PolicyStatus::default()
        });
        assert!(text.contains(&format!("  a/{name}\n")), "{text}");
        assert!(
            text.contains("Accepted=False/Invalid\\u001b[2J\n    why\n"),
            "{text}"
        );
    }
}
