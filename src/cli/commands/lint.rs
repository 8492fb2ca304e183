//! `entail lint`: what is worth a look, a line each, as compilers tell it.

use std::io::{self, Write};

use clap::Args;

use super::args::CommonArgs;
use super::document::Document;
use super::report::{self, Report};
use super::session::Session;
use super::text::{Style, count, printable, wrapped};
use super::{CliError, ExitStatus, insight_json};
use crate::api::v1;
use v1::finding::Severity;

/// Lists what is worth a look.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Lines read `place: severity: object: message [Reason]`. Errors do not do what they say, warnings
probably do not do what is meant, notes are good to know. Exit code 1 tells of errors and warnings.

Examples:
  entail lint --manifests examples/bakery
  entail lint --kind CachePolicy --manifests examples/bakery
  entail lint --server 127.0.0.1:50051 -o json")]
pub struct LintArgs {
    /// Where answers come from and how they are printed.
    #[command(flatten)]
    pub read: CommonArgs,
}

/// What is worth a look.
struct LintReport {
    reply: v1::ListFindingsResponse,
    /// Whether lines are broken where a terminal ends.
    wraps: bool,
}

/// Answers and prints.
pub(in crate::cli) fn run(args: LintArgs) -> Result<ExitStatus, CliError> {
    let ask = args.read.with_name(None);
    let mut session = Session::open(&ask)?;
    let reply = session.ask.list_findings(v1::ListFindingsRequest {
        kinds: session.kinds.clone(),
    })?;
    let states = session.incomplete(&reply.kinds);
    let findings = LintReport {
        reply,
        wraps: report::on_terminal(),
    };
    report::print(&findings, ask.output, &states)?;
    Ok(match session.exit(&states) {
        ExitStatus::Success if findings.any() => ExitStatus::Findings,
        exit => exit,
    })
}

impl LintReport {
    /// Whether there is an error or a warning.
    fn any(&self) -> bool {
        self.number(Severity::Error) + self.number(Severity::Warning) > 0
    }

    /// How many are of a severity. A severity that this program does not know is taken for a
    /// warning: it may be one.
    fn number(&self, severity: Severity) -> usize {
        let severities = self.reply.findings.iter().map(severity_of);
        severities.filter(|found| *found == severity).count()
    }
}

fn severity_of(finding: &v1::Finding) -> Severity {
    match finding.severity() {
        Severity::Unspecified => Severity::Warning,
        severity => severity,
    }
}

impl Report for LintReport {
    fn document(&self, states: &[v1::KindState]) -> Document {
        insight_json::findings(&self.reply, states)
    }

    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        for finding in &self.reply.findings {
            let lines = if self.wraps {
                wrapped(&line(finding), 4)
            } else {
                vec![line(finding)]
            };
            let mut painted = false;
            for (at, line) in lines.iter().enumerate() {
                let indent = if at == 0 { 0 } else { 4 };
                let text = if painted {
                    line.clone()
                } else {
                    paint(line, finding, style)
                };
                painted |= text != *line;
                writeln!(out, "{:indent$}{text}", "")?;
            }
        }
        writeln!(
            out,
            "{}, {}, {}",
            count(self.number(Severity::Error), "error"),
            count(self.number(Severity::Warning), "warning"),
            count(self.number(Severity::Note), "note"),
        )
    }
}

/// `place: severity: object: message [Reason]`, without what is not known.
fn line(finding: &v1::Finding) -> String {
    let mut line = String::new();
    let parts = [
        finding.place.as_str(),
        word(severity_of(finding)),
        finding.object.as_str(),
    ];
    for part in parts.iter().filter(|part| !part.is_empty()) {
        line.push_str(part);
        line.push_str(": ");
    }
    line.push_str(&finding.message);
    if !finding.reason.is_empty() {
        line.push_str(&format!(" [{}]", finding.reason));
    }
    // A line is a finding: those of parsers have messages of several lines.
    let words: Vec<&str> = line.split_whitespace().collect();
    printable(&words.join(" "))
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning | Severity::Unspecified => "warning",
        Severity::Note => "note",
    }
}

/// The line with its severity in colour.
fn paint(line: &str, finding: &v1::Finding, style: Style) -> String {
    let severity = severity_of(finding);
    let word = format!("{}:", word(severity));
    let colour = match severity {
        Severity::Note => style.cyan(&word),
        _ => style.alert(&word),
    };
    line.replacen(&word, &colour, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::text::{WIDTH, width};

    fn finding(severity: Severity, place: &str) -> v1::Finding {
        v1::Finding {
            severity: severity.into(),
            reason: "Why".to_owned(),
            place: place.to_owned(),
            object: "K/a/b".to_owned(),
            message: "first\n  second".to_owned(),
        }
    }

    fn shown(findings: &[v1::Finding], wraps: bool) -> String {
        let findings = LintReport {
            reply: v1::ListFindingsResponse {
                findings: findings.to_vec(),
                ..v1::ListFindingsResponse::default()
            },
            wraps,
        };
        let mut out = Vec::new();
        findings.table(&mut out, Style::new(false)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_finding_is_a_line() {
        let text = shown(
            &[
                finding(Severity::Error, "a.yaml:1"),
                finding(Severity::Note, ""),
                finding(Severity::Unspecified, ""),
            ],
            false,
        );
        assert_eq!(
            text,
            "a.yaml:1: error: K/a/b: first second [Why]\n\
             note: K/a/b: first second [Why]\n\
             warning: K/a/b: first second [Why]\n\
             1 error, 1 warning, 1 note\n"
        );
    }

    #[test]
    fn a_terminal_is_not_overrun() {
        let mut long = finding(Severity::Warning, "a.yaml:1");
        long.message = "word ".repeat(60);
        let text = shown(&[long], true);
        assert!(text.lines().count() > 3);
        assert!(text.lines().all(|line| width(line) <= WIDTH), "{text}");
    }
}
