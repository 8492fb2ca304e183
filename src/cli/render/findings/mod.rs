//! Findings in the formats of `entail lint` and `entail check`: text, documents, SARIF, JUnit, and workflow commands of
//! GitHub.

mod github;
mod junit;
mod sarif;
mod text;

pub(in crate::cli) use self::text::severity_name;

use std::io::{self, Write};

use clap::ValueEnum;

use super::document::Document;
use super::report::{self, Report};
use super::text::Style;
use super::{CliError, Format, console, insight_json, json};
use crate::api::v1;
use crate::insight::Code;
use v1::finding::Severity;

/// Output format of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FindingsFormat {
    /// Human-readable text; on a terminal with short names of paths.
    #[value(alias = "table")]
    Text,
    /// Human-readable text with full names of paths.
    Wide,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit XML, for the test reports of CI systems.
    Junit,
    /// Workflow commands of GitHub Actions, which annotate the lines of a change.
    Github,
}

/// What `entail lint` or `entail check` found.
pub(in crate::cli) struct Findings {
    version: Option<v1::Version>,
    findings: Vec<Finding>,
    /// The number of findings that were left out.
    ignored: usize,
    /// The name of the command, for test reports.
    suite: &'static str,
    /// What was tested and is as it should be, each with its location.
    passed: Vec<(String, String)>,
}

/// A finding, and what it means for the command.
struct Finding {
    message: v1::Finding,
    effect: Effect,
}

/// What a finding means for the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The command fails.
    Fails,
    /// Something is not known, so that the command cannot pass.
    Unknown,
    /// None.
    Remark,
}

/// Where a finding is, if a file is known.
#[derive(Debug, PartialEq)]
pub(in crate::cli) struct FileLocation<'f> {
    /// The path of the file.
    pub(in crate::cli) file: &'f str,
    /// The number of the line, from 1.
    pub(in crate::cli) line: Option<u32>,
}

/// Prints a report, or its findings in a format of CI systems, and the kinds that are incomplete.
///
/// # Errors
/// Standard output cannot be written.
pub(in crate::cli) fn print(
    report: &dyn Report,
    findings: &Findings,
    format: FindingsFormat,
    (states, style): (&[v1::KindState], Style),
) -> Result<(), CliError> {
    let print = |format| report::print_styled(report, format, states, style);
    let text = match format {
        FindingsFormat::Text => return print(Format::Table),
        FindingsFormat::Wide => return print(Format::Wide),
        FindingsFormat::Yaml => return print(Format::Yaml),
        FindingsFormat::Json => return print(Format::Json),
        FindingsFormat::Sarif => findings.sarif(states)?,
        FindingsFormat::Junit => findings.junit(states)?,
        FindingsFormat::Github => findings.workflow_commands(),
    };
    report::warn_incomplete(states);
    console::write(&text)
}

/// Creates a finding about an input: a file, or an option.
pub(in crate::cli) fn about_input(code: Code, location: String, message: String) -> v1::Finding {
    v1::Finding {
        severity: code.severity().into(),
        reason: code.reason().to_owned(),
        location,
        object: String::new(),
        message,
        code: code.id().to_owned(),
        count: 1,
        places: Vec::new(),
    }
}

/// The findings about inputs that cannot be read. Refused profiles are among the findings of the server.
pub(in crate::cli) fn of_inputs(problems: &[v1::Problem]) -> impl Iterator<Item = v1::Finding> {
    problems.iter().filter_map(|problem| {
        let code = Code::find(&problem.code).filter(|code| *code != Code::ProfileRefused)?;
        let (location, message) = (problem.location.clone(), problem.message.clone());
        Some(about_input(code, location, message))
    })
}

impl Findings {
    /// Takes the findings, sorts them, and marks those that make the command fail.
    pub(in crate::cli) fn new(
        version: Option<v1::Version>,
        findings: Vec<v1::Finding>,
        ignored: usize,
        fails: impl Fn(Severity) -> bool,
    ) -> Self {
        let mut findings: Vec<Finding> = findings
            .into_iter()
            .map(|message| Finding {
                effect: match fails(severity_of(&message)) {
                    true => Effect::Fails,
                    false => Effect::Remark,
                },
                message,
            })
            .collect();
        // By the number of the line, which the order of the server does not know.
        findings.sort_by(|a, b| a.order().cmp(&b.order()));
        Self {
            version,
            findings,
            ignored,
            suite: "entail lint",
            passed: Vec::new(),
        }
    }

    /// Makes them the results of a command that tests: what passed, with locations, and which findings say that
    /// something is not known.
    pub(in crate::cli) fn of_tests(
        mut self,
        suite: &'static str,
        passed: Vec<(String, String)>,
        is_unknown: impl Fn(&v1::Finding) -> bool,
    ) -> Self {
        for finding in &mut self.findings {
            if is_unknown(&finding.message) {
                finding.effect = Effect::Unknown;
            }
        }
        Self {
            suite,
            passed,
            ..self
        }
    }

    /// Whether a finding makes the command fail.
    pub(in crate::cli) fn fails(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.effect == Effect::Fails)
    }

    /// The findings as SARIF 2.1.0.
    ///
    /// # Errors
    /// The text cannot be written, which does not happen in memory.
    pub(in crate::cli) fn sarif(&self, states: &[v1::KindState]) -> Result<String, CliError> {
        let mut text = Vec::new();
        json::write(&mut text, &sarif::log(&self.findings, states), 0)?;
        text.push(b'\n');
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The findings as JUnit XML: one test case for each, for what passed, and for each incomplete kind.
    ///
    /// # Errors
    /// The text cannot be written, which does not happen in memory.
    pub(in crate::cli) fn junit(&self, states: &[v1::KindState]) -> Result<String, CliError> {
        Ok(junit::report(self, states)?)
    }

    /// The findings as workflow commands of GitHub Actions.
    pub(in crate::cli) fn workflow_commands(&self) -> String {
        let commands = self.findings.iter();
        commands.map(github::command).collect()
    }

    /// The number of findings of a severity.
    fn count(&self, severity: Severity) -> usize {
        let severities = self.findings.iter().map(Finding::severity);
        severities.filter(|other| *other == severity).count()
    }
}

impl Finding {
    fn severity(&self) -> Severity {
        severity_of(&self.message)
    }

    /// The order of findings: by severity, file, line, object and code.
    fn order(&self) -> (Severity, &str, u32, &str, &str, &str) {
        let message = &self.message;
        let place = file_location_in(&message.location);
        let file = place.as_ref().map_or("", |place| place.file);
        let line = place.as_ref().and_then(|place| place.line).unwrap_or(0);
        (
            self.severity(),
            file,
            line,
            &message.object,
            &message.code,
            &message.message,
        )
    }

    /// The file that the finding is about, if it is known.
    fn file_location(&self) -> Option<FileLocation<'_>> {
        let place = file_location_in(&self.message.location)?;
        // Without a line it may be the name of an object, except for what is wrong with a file.
        let about_files = [
            Code::Broken,
            Code::Malformed,
            Code::Unreadable,
            Code::Duplicate,
            Code::WrongType,
            Code::UnknownField,
        ];
        let mut about_files = about_files.iter().map(|code| code.id());
        let is_file = place.line.is_some() || about_files.any(|id| id == self.message.code);
        let is_stream = place.file.starts_with('<') || place.file.starts_with("--");
        (is_file && !is_stream).then_some(place)
    }

    /// The code with the reason, such as `E021 TargetNotFound`.
    fn title(&self) -> String {
        let message = &self.message;
        let title = format!("{} {}", message.code, message.reason);
        title.trim().to_owned()
    }

    /// The message with all places, on several lines.
    fn full_text(&self) -> String {
        let message = &self.message;
        let mut lines = vec![one_line(&message.message)];
        lines.extend(message.places.iter().map(|place| one_line(place)));
        let more = self.further_places();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines.join("\n")
    }

    /// The number of places that are not listed.
    fn further_places(&self) -> u64 {
        let message = &self.message;
        let listed = u64::try_from(message.places.len()).unwrap_or(u64::MAX);
        match listed {
            0 => 0,
            listed => message.count.saturating_sub(listed),
        }
    }
}

/// The severity of a finding. A severity that this version does not know counts as a warning.
fn severity_of(finding: &v1::Finding) -> Severity {
    match finding.severity() {
        Severity::Unspecified => Severity::Warning,
        severity => severity,
    }
}

/// Splits a location into file and line.
pub(in crate::cli) fn file_location_in(location: &str) -> Option<FileLocation<'_>> {
    let numbered = location.rsplit_once(':').and_then(|(file, line)| {
        Some(FileLocation {
            file,
            line: Some(line.parse().ok()?),
        })
    });
    let whole = FileLocation {
        file: location,
        line: None,
    };
    numbered.or((!location.is_empty()).then_some(whole))
}

/// A text without line breaks: messages of parsers contain them.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Report for Findings {
    fn document(&self, states: &[v1::KindState]) -> Document {
        let findings: Vec<&v1::Finding> = self.findings.iter().map(|f| &f.message).collect();
        insight_json::findings(self.version.as_ref(), &findings, self.ignored, states)
    }

    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        text::write(self, out, style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Findings about a policy, all of which fail.
    pub(super) fn findings(messages: Vec<v1::Finding>) -> Findings {
        Findings::new(None, messages, 0, |_| true)
    }

    pub(super) fn finding(code: Code, location: &str) -> v1::Finding {
        v1::Finding {
            object: "K.x.example/a/b".to_owned(),
            ..about_input(code, location.to_owned(), "first\n  second".to_owned())
        }
    }

    #[test]
    fn a_location_is_a_file_with_a_line() {
        let place = |file, line| Some(FileLocation { file, line });
        assert_eq!(file_location_in("a/b.yaml:12"), place("a/b.yaml", Some(12)));
        assert_eq!(file_location_in("C:/b.yaml"), place("C:/b.yaml", None));
        assert_eq!(file_location_in(""), None);
        let all = findings(vec![
            finding(Code::Unreadable, "m"),
            finding(Code::ProfileRefused, "PolicyProfile/p"),
            finding(Code::Broken, "<stdin>:3"),
        ]);
        let files: Vec<_> = all.findings.iter().map(Finding::file_location).collect();
        assert_eq!(files, [None, None, place("m", None)]);
    }

    #[test]
    fn findings_are_sorted_by_the_number_of_the_line() {
        let all = findings(vec![
            finding(Code::NoScope, "a.yaml:10"),
            finding(Code::NoScope, "a.yaml:9"),
            finding(Code::Invalid, "b.yaml:1"),
        ]);
        let order = all.findings.iter().map(|f| &*f.message.location);
        assert_eq!(
            order.collect::<Vec<_>>(),
            ["b.yaml:1", "a.yaml:9", "a.yaml:10"]
        );
    }
}
