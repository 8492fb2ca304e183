//! `entail lint`: findings, one per line, in the format of compiler diagnostics.

use std::io::{self, Write};

use clap::Args;

use super::args::CommonArgs;
use super::document::Document;
use super::names::NameArgs;
use super::report::{self, Report};
use super::session::Session;
use super::text::{Style, count, printable, wrapped};
use super::{CliError, ExitStatus, insight_json};
use crate::api::v1;
use v1::finding::Severity;

/// Arguments of `entail lint`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each line is `location: severity: object: message [Reason]`. An error: the object does not take
effect as written. A warning: it probably does not do what is intended. A note: for information.
Exit code 1 if there is an error or a warning.

Examples:
  entail lint --manifests examples/bakery
  entail lint --kind CachePolicy --manifests examples/bakery
  entail lint --server 127.0.0.1:50051 -o json")]
pub struct LintArgs {
    /// The source, the kinds, and the output format.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// The findings.
struct LintReport {
    reply: v1::ListFindingsResponse,
    /// Whether to wrap lines at the width of a terminal.
    wraps: bool,
}

/// Runs the command.
pub(in crate::cli) fn run(args: LintArgs) -> Result<ExitStatus, CliError> {
    let query = args.common.with_name(NameArgs::default());
    let mut session = Session::open(&query)?;
    let reply = session.backend.all_findings(session.kinds.clone())?;
    let states = session.incomplete(&reply.kinds);
    let findings = LintReport {
        reply,
        wraps: report::on_terminal(),
    };
    report::print(&findings, query.output, &states)?;
    Ok(match session.exit(&states) {
        ExitStatus::Success if findings.has_problems() => ExitStatus::Findings,
        exit => exit,
    })
}

impl LintReport {
    /// Whether there is an error or a warning.
    fn has_problems(&self) -> bool {
        self.count(Severity::Error) + self.count(Severity::Warning) > 0
    }

    /// The number of findings of a severity.
    fn count(&self, severity: Severity) -> usize {
        let severities = self.reply.findings.iter().map(severity_of);
        severities.filter(|other| *other == severity).count()
    }
}

/// The severity of a finding. A severity that this version does not know counts as a warning.
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
            let mut is_painted = false;
            for (at, line) in lines.iter().enumerate() {
                let indent = if at == 0 { 0 } else { 4 };
                let text = if is_painted {
                    line.clone()
                } else {
                    paint(line, finding, style)
                };
                is_painted |= text != *line;
                writeln!(out, "{:indent$}{text}", "")?;
            }
        }
        writeln!(
            out,
            "{}, {}, {}",
            count(self.count(Severity::Error), "error"),
            count(self.count(Severity::Warning), "warning"),
            count(self.count(Severity::Note), "note"),
        )
    }
}

/// `location: severity: object: message [Reason]`, without the parts that are empty.
fn line(finding: &v1::Finding) -> String {
    let mut line = String::new();
    let parts = [
        finding.location.as_str(),
        severity_name(severity_of(finding)),
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
    // One line per finding: messages of parsers contain line breaks.
    let words: Vec<&str> = line.split_whitespace().collect();
    printable(&words.join(" "))
}

fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning | Severity::Unspecified => "warning",
        Severity::Note => "note",
    }
}

/// Colours the severity in a line.
fn paint(line: &str, finding: &v1::Finding, style: Style) -> String {
    let severity = severity_of(finding);
    let word = format!("{}:", severity_name(severity));
    let colour = match severity {
        Severity::Note => style.cyan(&word),
        _ => style.alert(&word),
    };
    line.replacen(&word, &colour, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::text::{text_width, width};

    fn finding(severity: Severity, location: &str) -> v1::Finding {
        v1::Finding {
            severity: severity.into(),
            reason: "Why".to_owned(),
            location: location.to_owned(),
            object: "K/a/b".to_owned(),
            message: "first\n  second".to_owned(),
        }
    }

    fn table_of(findings: &[v1::Finding], wraps: bool) -> String {
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
    fn each_finding_is_one_line() {
        let text = table_of(
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
    fn lines_fit_a_terminal() {
        let mut long = finding(Severity::Warning, "a.yaml:1");
        long.message = "word ".repeat(60);
        let text = table_of(&[long], true);
        assert!(text.lines().count() > 3);
        assert!(
            text.lines().all(|line| width(line) <= text_width()),
            "{text}"
        );
    }
}
