//! Effective policies as text, with the origin of each value in a column.

use std::io::{self, Write};

use serde_json::Value;

use super::levels::kind_name;
use super::spec::{self, SpecLine, policy_name};
use super::text::{Style, beside, column, printable, shortened, wrapped};
use crate::api::v1;

/// Maximum width of the left column.
const MAX_LEFT: usize = 58;

/// Writes a path with its effective policies.
pub(in crate::cli) fn path(
    out: &mut dyn Write,
    path: &str,
    policies: &[v1::EffectivePolicy],
    style: Style,
) -> io::Result<()> {
    writeln!(out, "{}", style.bold(&style.path(path)))?;
    if policies.is_empty() {
        writeln!(out, "  no policy")?;
    }
    for each in policies {
        policy(out, each, 2, style)?;
    }
    Ok(())
}

/// Writes an effective policy, its name at column `indent`.
pub(in crate::cli) fn policy(
    out: &mut dyn Write,
    policy: &v1::EffectivePolicy,
    indent: usize,
    style: Style,
) -> io::Result<()> {
    let spec = policy.spec_json.as_deref().map(|text| {
        // Invalid JSON is printed as a string.
        serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
    });
    let (whole, lines) = match &spec {
        Some(value) => spec::lines(value, &policy.origins, indent + 2),
        None => (String::new(), Vec::new()),
    };
    let name = printable(&kind_name(policy));
    let inherited = match policy.inherited_only {
        true => " (inherited only; takes effect at a lower level)",
        false => "",
    };
    let heading = format!("{:indent$}{name}{inherited}", "");
    write_lines(out, &heading, &whole, &lines, style)?;
    if !policy.not_computed.is_empty() {
        let text = format!("not computed: {}", policy.not_computed);
        write_alert(out, &text, indent + 2, style)?;
    }
    if let Some(unknown) = &policy.unknown {
        let text = format!("unknown: {}", unknown.message);
        write_alert(out, &text, indent + 2, style)?;
    }
    for (at, listed) in policy.listed.iter().enumerate() {
        let name = listed.policy.as_ref().map(policy_name).unwrap_or_default();
        let left = printable(&format!("{:indent$}  {}. {name}", "", at + 1));
        let right = printable(&format!("# on {}", listed.node));
        writeln!(out, "{}", beside(&left, &right, MAX_LEFT, style))?;
        let value = serde_json::from_str(&listed.spec_json)
            .unwrap_or_else(|_| Value::from(listed.spec_json.as_str()));
        for line in spec::lines(&value, &[], indent + 5).1 {
            writeln!(out, "{}", beside(&printable(&line.text), "", 0, style))?;
        }
    }
    rejected(out, &policy.rejected, indent + 2, style)
}

/// Writes a coloured heading and the lines of a spec, with the origins in a column.
fn write_lines(
    out: &mut dyn Write,
    heading: &str,
    whole: &str,
    lines: &[SpecLine],
    style: Style,
) -> io::Result<()> {
    let lefts = lines.iter().filter(|line| !line.origin.is_empty());
    let lefts = lefts.map(|line| line.text.as_str());
    let lefts = lefts.chain((!whole.is_empty()).then_some(heading));
    let at = column(lefts, MAX_LEFT);
    let first = beside(heading, &comment(whole), at, style);
    // Colour the heading last: escape sequences must not count as columns.
    let head = shortened(heading, super::text::text_width());
    writeln!(out, "{}", first.replacen(&head, &style.cyan(&head), 1))?;
    for line in lines {
        let text = printable(&line.text);
        writeln!(out, "{}", beside(&text, &comment(&line.origin), at, style))?;
    }
    Ok(())
}

fn comment(origin: &str) -> String {
    if origin.is_empty() {
        String::new()
    } else {
        printable(&format!("# {origin}"))
    }
}

/// Writes the policies that are attached but not accepted.
pub(in crate::cli) fn rejected(
    out: &mut dyn Write,
    rejected: &[v1::RejectedPolicy],
    indent: usize,
    style: Style,
) -> io::Result<()> {
    for each in rejected {
        let name = each.policy.as_ref().map(policy_name).unwrap_or_default();
        let text = format!("rejected: {name} ({}): {}", each.reason, each.message);
        write_alert(out, &text, indent, style)?;
    }
    Ok(())
}

/// Writes a wrapped warning.
pub(in crate::cli) fn write_alert(
    out: &mut dyn Write,
    text: &str,
    indent: usize,
    style: Style,
) -> io::Result<()> {
    for (at, line) in wrapped(&printable(text), indent + 2).iter().enumerate() {
        let indent = if at == 0 { indent } else { indent + 2 };
        writeln!(out, "{:indent$}{}", "", style.alert(line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::text::{text_width, width};

    fn text_of(policy: v1::EffectivePolicy) -> String {
        let mut out = Vec::new();
        path(&mut out, "gateways/a/b", &[policy], Style::new(false)).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn origin(unit: &str, name: &str) -> v1::Origin {
        v1::Origin {
            unit: unit.to_owned(),
            policies: vec![v1::PolicyRef {
                namespace: "baker".to_owned(),
                name: name.to_owned(),
            }],
            block: v1::Block::Defaults.into(),
            ..v1::Origin::default()
        }
    }

    #[test]
    fn values_have_their_origins_beside_them() {
        let text = text_of(v1::EffectivePolicy {
            group: "g".to_owned(),
            kind: "RetryPolicy".to_owned(),
            spec_json: Some("{\"attempts\":5,\"backoff\":\"2s\"}".to_owned()),
            origins: vec![
                origin("attempts", "be-patient"),
                origin("backoff", "let-them-cool"),
            ],
            ..v1::EffectivePolicy::default()
        });
        assert_eq!(
            text,
            "gateways/a/b\n  RetryPolicy.g\n    \
             attempts: 5  # from baker/be-patient (defaults)\n    \
             backoff: 2s  # from baker/let-them-cool (defaults)\n"
        );
    }

    #[test]
    fn all_lines_fit() {
        let long = "x y ".repeat(80);
        let text = text_of(v1::EffectivePolicy {
            kind: "Kind".to_owned(),
            group: "group".repeat(30),
            spec_json: Some(serde_json::json!({"a": long, "b": {"c": long}, "d": 1}).to_string()),
            origins: vec![
                origin("*", "x"),
                origin("a", &"n".repeat(120)),
                origin("d", "y"),
            ],
            rejected: vec![v1::RejectedPolicy {
                policy: None,
                reason: "Invalid".to_owned(),
                message: long.clone(),
            }],
            not_computed: long,
            ..v1::EffectivePolicy::default()
        });
        for line in text.lines() {
            assert!(width(line) <= text_width(), "{line}");
        }
    }
}
