//! The results of assertions as text, as documents, and as findings.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::ExitStatus;
use super::document::Document;
use super::findings::{Findings, about_input};
use super::insight_json::{long_number, with_header};
use super::report::{Report, write_wrapped};
use super::text::{Style, count, printable_line};
use crate::api::v1;
use crate::insight::{Code, assertion_findings};
use entail_client::EnumName;
use entail_core::model::groups;
use v1::assertion_result::Outcome;
use v1::finding::Severity;

/// The results of assertions.
pub(in crate::cli) struct Assertions {
    reply: v1::CheckAssertionsResponse,
}

impl Assertions {
    /// Takes the results, those that need attention first.
    pub(in crate::cli) fn new(mut reply: v1::CheckAssertionsResponse) -> Self {
        reply.results.sort_by_key(|result| match result.outcome() {
            Outcome::Invalid => 0,
            Outcome::Failed => 1,
            Outcome::Unknown | Outcome::Unspecified => 2,
            Outcome::Passed => 3,
        });
        Self { reply }
    }

    /// The exit status: whether an assertion has failed, or is not known to hold.
    pub(in crate::cli) fn exit(&self) -> ExitStatus {
        let has = |outcome| self.count(outcome) > 0;
        if has(Outcome::Failed) || has(Outcome::Invalid) {
            ExitStatus::Findings
        } else if self.reply.truncated || has(Outcome::Unknown) || has(Outcome::Unspecified) {
            ExitStatus::Incomplete
        } else {
            ExitStatus::Success
        }
    }

    /// The results as findings, with what is wrong with the inputs: an assertion may be among them.
    pub(in crate::cli) fn findings(&self, inputs: Vec<v1::Finding>) -> Findings {
        let of_outcome = |outcome: Outcome| {
            let results = self.reply.results.iter();
            results.filter(move |result| result.outcome() == outcome)
        };
        let passed = of_outcome(Outcome::Passed);
        let passed = passed.map(|result| (result.object.clone(), result.location.clone()));
        let not_known: BTreeSet<&str> = of_outcome(Outcome::Unknown)
            .map(|result| &*result.object)
            .collect();
        let found = self.reply.results.iter().flat_map(|result| {
            let found = assertion_findings(result).into_iter();
            found.map(|(code, message)| v1::Finding {
                object: result.object.clone(),
                ..about_input(code, result.location.clone(), message)
            })
        });
        let version = self.reply.version.clone();
        let all = Findings::new(version, found.chain(inputs).collect(), 0, |severity| {
            severity == Severity::Error
        });
        all.of_tests("entail check", passed.collect(), |finding| {
            // What is wrong with an input is about no object.
            finding.object.is_empty() || not_known.contains(&*finding.object)
        })
    }

    fn count(&self, outcome: Outcome) -> usize {
        let results = self.reply.results.iter();
        results.filter(|result| result.outcome() == outcome).count()
    }

    fn write_totals(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = [
            (Outcome::Passed, "passed"),
            (Outcome::Failed, "failed"),
            (Outcome::Unknown, "not known"),
            (Outcome::Invalid, "invalid"),
        ];
        let counts = all
            .into_iter()
            .map(|(outcome, name)| (self.count(outcome), name));
        let counts: Vec<String> = counts
            .filter(|(count, name)| *count > 0 || *name == "passed")
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        let assertions = count(self.reply.results.len(), "assertion");
        writeln!(out, "{assertions}: {}", counts.join(", "))
    }
}

impl Report for Assertions {
    fn document(&self, states: &[v1::KindState]) -> Document {
        with_header(
            self.reply.version.as_ref(),
            states,
            [("results", Document::list(&self.reply.results, document))],
        )
    }

    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        for result in &self.reply.results {
            write_result(result, out, style)?;
        }
        self.write_totals(out)
    }

    fn truncated(&self) -> bool {
        self.reply.truncated
    }
}

fn write_result(result: &v1::AssertionResult, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let (word, paint): (_, &dyn Fn(&str) -> String) = match result.outcome() {
        Outcome::Passed => ("PASSED ", &|text| style.origin(text)),
        Outcome::Failed => ("FAILED ", &|text| style.alert(text)),
        Outcome::Invalid => ("INVALID", &|text| style.alert(text)),
        Outcome::Unknown | Outcome::Unspecified => ("UNKNOWN", &|text| style.warning(text)),
    };
    // The group is that of all assertions.
    let object = result
        .object
        .replacen(&format!(".{}/", groups::ENTAIL), "/", 1);
    let object = printable_line(&object);
    writeln!(out, "{} {object}{}", paint(word), of_paths(result))?;
    if !result.location.is_empty() && result.outcome() == Outcome::Invalid {
        writeln!(
            out,
            "  {}",
            style.dim(&format!("--> {}", printable_line(&result.location)))
        )?;
    }
    if !result.description.is_empty() {
        write_wrapped(out, &result.description, 2, |line| style.dim(line))?;
    }
    if !result.message.is_empty() {
        write_wrapped(out, &style.sentence(&result.message), 2, str::to_owned)?;
    }
    write_failures(result, out, style)?;
    for exception in &result.exceptions {
        write_exception(exception, out, style)?;
    }
    let remarks = assertion_findings(result).into_iter();
    for (code, message) in remarks.filter(|(code, _)| code.severity() != Severity::Error) {
        if code != Code::ExceptionExpired {
            write_wrapped(out, &format!("{}: {message}", code.id()), 2, |line| {
                style.warning(line)
            })?;
        }
    }
    Ok(())
}

/// The number of paths of a result, and of those that are not as expected.
fn of_paths(result: &v1::AssertionResult) -> String {
    let paths = count(usize::try_from(result.paths).unwrap_or(usize::MAX), "path");
    match (result.failed, result.unknown) {
        _ if result.outcome() == Outcome::Invalid => String::new(),
        (0, 0) => format!(": {paths}"),
        (failed, 0) => format!(": {failed} of {paths}"),
        (0, unknown) => format!(": {unknown} of {paths} not known"),
        (failed, unknown) => format!(": {failed} of {paths}, {unknown} not known"),
    }
}

/// Writes the paths that are not as expected, by the reason.
fn write_failures(
    result: &v1::AssertionResult,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for failure in &result.failures {
        let reason = reasons
            .iter_mut()
            .find(|(reason, _)| *reason == failure.message);
        match reason {
            Some((_, paths)) => paths.push(&failure.path),
            None => reasons.push((&failure.message, vec![&failure.path])),
        }
    }
    for (reason, paths) in reasons {
        write_wrapped(out, &style.sentence(reason), 2, |line| style.loss(line))?;
        for path in paths {
            writeln!(out, "    {}", style.path(path))?;
        }
    }
    let listed = u64::try_from(result.failures.len()).unwrap_or(u64::MAX);
    let more = (result.failed + result.unknown).saturating_sub(listed);
    match more {
        0 => Ok(()),
        more => writeln!(out, "    and {more} more (`--all` lists up to 1000)"),
    }
}

fn write_exception(
    exception: &v1::AssertionException,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    let v1::AssertionException {
        object,
        reason,
        expires,
        has_expired,
        paths,
    } = exception;
    if *has_expired {
        let text = format!("no longer excepted: {object}, until {expires}: {reason}");
        return write_wrapped(out, &text, 2, |line| style.warning(line));
    }
    if *paths == 0 {
        return Ok(());
    }
    let paths = count(usize::try_from(*paths).unwrap_or(usize::MAX), "path");
    let until = match expires.as_str() {
        "" => String::new(),
        expires => format!(" until {expires}"),
    };
    let text = format!("excepted: {object}, {paths}{until}: {reason}");
    write_wrapped(out, &text, 2, |line| style.dim(line))
}

fn document(result: &v1::AssertionResult) -> Document {
    let failure = |failure: &v1::AssertionPath| {
        Document::text_fields([
            ("path", failure.path.as_str()),
            ("outcome", failure.outcome().name()),
            ("message", &failure.message),
        ])
    };
    let exception = |exception: &v1::AssertionException| {
        Document::map([
            ("object", Document::text(&exception.object)),
            ("reason", Document::text(&exception.reason)),
            ("expires", Document::text(&exception.expires)),
            ("hasExpired", Document::Bool(exception.has_expired)),
            ("paths", long_number(exception.paths)),
        ])
    };
    Document::map([
        ("object", Document::text(&result.object)),
        ("location", Document::text(&result.location)),
        ("description", Document::text(&result.description)),
        ("outcome", Document::text(result.outcome().name())),
        ("message", Document::text(&result.message)),
        ("paths", long_number(result.paths)),
        ("failed", long_number(result.failed)),
        ("unknown", long_number(result.unknown)),
        ("failures", Document::list(&result.failures, failure)),
        ("exceptions", Document::list(&result.exceptions, exception)),
        ("enforce", Document::Bool(result.enforce)),
    ])
}
