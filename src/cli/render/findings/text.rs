//! Findings as text: the code first, then what and where, then what to ask for.

use std::io::{self, Write};

use super::super::text::{Style, count, printable, printable_line, text_width, wrapped_to};
use super::{Finding, Findings, one_line};
use crate::api::v1::finding::Severity;

/// Text is at most this wide: logs of CI systems are narrow.
const WIDTH: usize = 80;

/// The column of the lines after the first: that of what follows a code.
const INDENT: usize = 5;

/// Writes the findings and their number.
pub(super) fn write(findings: &Findings, out: &mut dyn Write, style: Style) -> io::Result<()> {
    for finding in &findings.findings {
        write_finding(finding, out, style)?;
    }
    let mut total = format!(
        "{}, {}, {}",
        count(findings.count(Severity::Error), "error"),
        count(findings.count(Severity::Warning), "warning"),
        count(findings.count(Severity::Note), "note"),
    );
    if findings.ignored > 0 {
        total.push_str(&format!("; {} ignored", findings.ignored));
    }
    writeln!(out, "{total}")?;
    let first = findings.findings.first();
    let code = first.map(|first| first.message.code.as_str());
    if let Some(code) = code.filter(|code| !code.is_empty()) {
        let hint =
            format!("`entail explain-code {code}` says what {code} means and how to mend it");
        writeln!(out, "{}", style.dim(&hint))?;
    }
    Ok(())
}

fn write_finding(finding: &Finding, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let message = &finding.message;
    let severity = finding.severity();
    let head = format!("{}:", severity_name(severity));
    let text = format!("{head} {} [{}]", one_line(&message.message), message.reason);
    for (at, line) in lines(&text, INDENT, style).iter().enumerate() {
        match line.strip_prefix(&head).filter(|_| at == 0) {
            Some(rest) => {
                let head = format!("{:<4} {head}", message.code);
                writeln!(out, "{}{rest}", paint(severity, &head, style))?;
            }
            None => writeln!(out, "{:INDENT$}{line}", "")?,
        }
    }
    for place in &message.places {
        for (at, line) in lines(&one_line(place), INDENT + 1, style)
            .iter()
            .enumerate()
        {
            let mark = if at == 0 { "-" } else { " " };
            writeln!(out, "{:>INDENT$} {line}", mark)?;
        }
    }
    let more = finding.further_places();
    if more > 0 {
        writeln!(out, "{:>INDENT$} and {more} more (`--all` lists them)", "-")?;
    }
    let at = [&message.location, &message.object];
    let at = at.into_iter().filter(|part| !part.is_empty());
    let at: Vec<String> = at.map(|part| printable_line(part)).collect();
    // Names are never broken: people copy them.
    let width = 4 + at
        .iter()
        .map(|part| part.chars().count() + 2)
        .sum::<usize>();
    match at.as_slice() {
        [location, object] if width > columns() => {
            writeln!(out, "{}", style.dim(&format!("  --> {location}")))?;
            writeln!(out, "{}", style.dim(&format!("      {object}")))
        }
        [] => Ok(()),
        parts => writeln!(out, "{}", style.dim(&format!("  --> {}", parts.join(": ")))),
    }
}

fn columns() -> usize {
    text_width().min(WIDTH)
}

fn lines(text: &str, indent: usize, style: Style) -> Vec<String> {
    wrapped_to(&style.sentence(&printable(text)), columns(), indent)
}

/// The name of a severity.
pub(in crate::cli) fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning | Severity::Unspecified => "warning",
        Severity::Note => "note",
    }
}

fn paint(severity: Severity, text: &str, style: Style) -> String {
    match severity {
        Severity::Error => style.alert(text),
        Severity::Warning | Severity::Unspecified => style.warning(text),
        Severity::Note => style.cyan(text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{finding, findings};
    use super::*;
    use crate::insight::Code;

    fn text_of(findings: &Findings) -> String {
        let mut out = Vec::new();
        write(findings, &mut out, Style::new(false)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_finding_is_what_and_where() {
        let all = findings(vec![
            finding(Code::Invalid, "a.yaml:1"),
            finding(Code::FoldOrder, ""),
        ]);
        assert_eq!(
            text_of(&all),
            "E020 error: first second [Invalid]\n  --> a.yaml:1: K.x.example/a/b\n\
             E033 note: first second [FoldOrder]\n  --> K.x.example/a/b\n\
             1 error, 0 warnings, 1 note\n\
             `entail explain-code E020` says what E020 means and how to mend it\n"
        );
        let none = Findings::new(None, Vec::new(), 2, |_| true);
        assert_eq!(text_of(&none), "0 errors, 0 warnings, 0 notes; 2 ignored\n");
    }

    #[test]
    fn places_are_listed_and_the_others_counted() {
        let mut several = finding(Code::SilentLoss, "a.yaml:1");
        several.count = 5;
        several.places = vec!["`a` is lost".to_owned(), "`b` is lost".to_owned()];
        let text = text_of(&findings(vec![several]));
        let places = "    - `a` is lost\n    - `b` is lost\n    - and 3 more (`--all` lists them)\n  --> a.yaml:1";
        assert!(text.contains(places), "{text}");
    }

    #[test]
    fn lines_fit_and_names_are_not_broken() {
        let mut long = finding(Code::NoScope, "a.yaml:1");
        long.message = "word ".repeat(60);
        long.places = vec!["place ".repeat(30)];
        long.count = 2;
        long.object = format!("K/a/{}", "n".repeat(74));
        let object = long.object.clone();
        let text = text_of(&findings(vec![long]));
        assert!(text.contains(&format!("  --> a.yaml:1\n      {object}\n")));
        let mut others = text.lines().filter(|line| !line.contains(&object));
        assert!(others.all(|line| line.chars().count() <= WIDTH), "{text}");
    }
}
