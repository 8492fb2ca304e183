//! The output of `entail verify`.

use std::io::{self, Write};

use super::document::{Document, Field};
use super::proto_json;
use super::report::Report;
use super::text::{Style, count, printable, wrapped_to};
use crate::api::v1;
use crate::verify::{self, Finding, Group, Verdict};

/// The width of the text, in columns.
const WIDTH: usize = 80;

/// The most places of a finding that the text names.
const MAX_PLACES: usize = 3;

/// The result of a comparison.
pub(in crate::cli) struct VerifyReport {
    /// The version of the snapshot that the effective policies are of.
    pub(in crate::cli) version: v1::Version,
    /// The result.
    pub(in crate::cli) found: verify::Report,
}

impl VerifyReport {
    /// The first line: whether the proxy has what it should have.
    fn headline(&self) -> String {
        let summary = &self.found.summary;
        let compared = format!(
            "{} and {}",
            count(summary.rules, "rule"),
            count(summary.listeners, "listener")
        );
        match summary.differing {
            0 => format!("No differences in {compared}"),
            differing => format!("{differing} of {compared} differ"),
        }
    }

    /// The second line: how many fields have which result.
    fn counts(&self) -> String {
        let summary = &self.found.summary;
        let counts = Verdict::LISTED
            .map(|verdict| format!("{} {}", self.found.count(verdict), words(verdict)))
            .join(", ");
        let in_part = match summary.same_in_part {
            0 => String::new(),
            number => format!(" ({number} in part)"),
        };
        format!("{counts}, {} the same{in_part}", summary.same)
    }
}

impl Report for VerifyReport {
    fn document(&self, states: &[v1::KindState]) -> Document {
        let report = &self.found;
        let summary = &report.summary;
        let mut counts: Vec<Field> = Vec::new();
        let mut add = |name: &'static str, value: usize| {
            counts.push((name.into(), Document::from(serde_json::Value::from(value))));
        };
        add("rules", summary.rules);
        add("listeners", summary.listeners);
        add("differing", summary.differing);
        add("differs", report.count(Verdict::Differs));
        add("missing", report.count(Verdict::Missing));
        add("extra", report.count(Verdict::Extra));
        add("cannotTell", report.count(Verdict::CannotTell));
        add("same", summary.same);
        add("sameInPart", summary.same_in_part);
        Document::map([
            ("version", proto_json::version(&self.version)),
            ("kinds", proto_json::kinds(states)),
            ("summary", Document::Map(counts)),
            ("findings", Document::list(&report.groups, group_document)),
            ("otherGateways", Document::texts(&report.other_gateways)),
        ])
    }

    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        writeln!(out, "{}", style.bold(&self.headline()))?;
        writeln!(out, "{}", self.counts())?;
        for group in &self.found.groups {
            writeln!(out)?;
            write_group(out, group, style)?;
        }
        let others = &self.found.other_gateways;
        if !others.is_empty() {
            let text = format!(
                "Not compared, because the proxy does not serve {}: {}",
                if others.len() == 1 { "it" } else { "them" },
                others.join(", ")
            );
            writeln!(out)?;
            write_lines(out, &text, 0)?;
        }
        Ok(())
    }
}

fn group_document(group: &Group) -> Document {
    let finding = &group.finding;
    let optional =
        |value: &Option<String>| Document::optional(value.as_ref(), |text| Document::text(text));
    Document::map([
        ("verdict", Document::text(finding.verdict.name())),
        ("kind", Document::text(&finding.kind)),
        ("field", Document::text(&finding.field)),
        ("expected", optional(&finding.expected)),
        ("actual", optional(&finding.actual)),
        ("origins", Document::texts(&finding.origins)),
        ("reason", Document::text(&finding.reason)),
        (
            "places",
            Document::list(&group.places, |(path, proxy)| {
                Document::text_fields([("path", path), ("proxy", proxy)])
            }),
        ),
    ])
}

fn write_group(out: &mut dyn Write, group: &Group, style: Style) -> io::Result<()> {
    let finding = &group.finding;
    let verdict = words(finding.verdict).to_uppercase();
    let verdict = match finding.verdict {
        Verdict::CannotTell => style.bold(&verdict),
        _ => style.alert(&verdict),
    };
    let what = match (finding.kind.as_str(), finding.field.as_str()) {
        ("", _) => "rule".to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, field) => format!("{kind} {field}"),
    };
    writeln!(out, "{verdict} {}", printable(&what))?;
    for line in values(finding) {
        write_lines(out, &line, 2)?;
    }
    let most = style.most(MAX_PLACES);
    for (at, (path, proxy)) in group.places.iter().take(most).enumerate() {
        writeln!(
            out,
            "  {} {}",
            if at == 0 { "on" } else { "  " },
            style.path(path)
        )?;
        if !proxy.is_empty() {
            writeln!(out, "     in {}", printable(proxy))?;
        }
    }
    if let Some(more @ 1..) = group.places.len().checked_sub(most) {
        writeln!(out, "     and {more} more (`--all` lists them)")?;
    }
    Ok(())
}

/// The lines with the values of a finding.
fn values(finding: &Finding) -> Vec<String> {
    let mut lines = Vec::new();
    let origins = match finding.origins.as_slice() {
        [] => String::new(),
        origins => format!(" (set by {})", origins.join(", ")),
    };
    match &finding.expected {
        Some(value) => lines.push(format!("expected: {value}{origins}")),
        None if finding.verdict == Verdict::Extra && !finding.kind.is_empty() => {
            lines.push("expected: nothing".to_owned());
        }
        None if !finding.origins.is_empty() => {
            lines.push(format!("set by {}", finding.origins.join(", ")));
        }
        None => {}
    }
    match &finding.actual {
        Some(value) => lines.push(format!("proxy: {value}")),
        None if finding.verdict == Verdict::Missing && !finding.kind.is_empty() => {
            lines.push("proxy: nothing".to_owned());
        }
        None => {}
    }
    if !finding.reason.is_empty() {
        lines.push(finding.reason.clone());
    }
    lines
}

/// Writes wrapped text. Lines after the first are indented by two more columns.
fn write_lines(out: &mut dyn Write, text: &str, indent: usize) -> io::Result<()> {
    for (at, line) in wrapped_to(&printable(text), WIDTH, indent + 2)
        .iter()
        .enumerate()
    {
        let indent = if at == 0 { indent } else { indent + 2 };
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

/// A verdict in text.
fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Differs => "differs",
        Verdict::Missing => "missing",
        Verdict::Extra => "extra",
        Verdict::CannotTell => "cannot tell",
        Verdict::Same => "same",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::text::width;

    fn report() -> VerifyReport {
        let finding = Finding {
            verdict: Verdict::Differs,
            kind: "RetryPolicy.example.com".to_owned(),
            field: "attempts".to_owned(),
            expected: Some("word ".repeat(40)),
            actual: Some("3".to_owned()),
            origins: vec!["shop/retry".to_owned()],
            reason: String::new(),
        };
        let places = ["a", "b", "c", "d"].map(|path| (path.to_owned(), "route".to_owned()));
        let found = verify::Report {
            groups: vec![Group {
                finding,
                places: places.into(),
            }],
            other_gateways: vec!["gateways/a/b".to_owned()],
            ..verify::Report::default()
        };
        VerifyReport {
            version: v1::Version::default(),
            found,
        }
    }

    #[test]
    fn lines_fit_and_further_places_are_counted() {
        let mut out = Vec::new();
        report().table(&mut out, Style::new(false)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| width(line) <= WIDTH), "{text}");
        assert!(
            text.contains("DIFFERS RetryPolicy.example.com attempts\n"),
            "{text}"
        );
        assert!(text.contains("and 1 more"), "{text}");
        assert!(text.contains("shop/retry)\n  proxy: 3\n"), "{text}");
    }

    #[test]
    fn documents_have_all_places() {
        let text = super::super::json::compact(&report().document(&[]));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let finding = &value["findings"][0];
        assert_eq!(finding["verdict"], "differs");
        assert_eq!(finding["places"].as_array().unwrap().len(), 4);
        assert_eq!(value["summary"]["differs"], 4);
    }
}
