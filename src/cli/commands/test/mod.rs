//! `entail test`: runs cases, as people write them to test their policies.

mod case;
mod check;
mod diff;
mod expected_failures;

use std::io::Write;
use std::path::Path;

pub use case::Case;
pub use check::{Mismatch, check};
use expected_failures::ExpectedFailures;

use super::{CliError, ExitStatus, TestArgs, connect, console};

/// Runs the cases of files. The last line is `N passed, N failed`.
///
/// # Errors
/// A file that cannot be read, or that holds no cases.
pub(in crate::cli) fn run(args: &TestArgs) -> Result<ExitStatus, CliError> {
    let mut lists = ExpectedFailures::default();
    for (path, word) in [(&args.pending, "pending"), (&args.disputed, "disputed")] {
        if let Some(path) = path {
            lists.read(path, word)?;
        }
    }
    let mut cases = Vec::new();
    for path in &args.files {
        // Lists that lie beside the cases, as in `entail test cases/*.yaml`.
        match path.file_stem().and_then(|s| s.to_str()) {
            Some(word @ ("pending" | "disputed")) => lists.read(path, word)?,
            _ => read(path, &mut cases)?,
        }
    }
    let out = &mut console::stdout();
    let mut tally = TestResults::default();
    let runner = connect::CaseRunner::new(&args.profiles)?;
    for (place, case) in &cases {
        let mut mismatches = runner.run(case);
        tally.count(out, &lists, place, case, &mut mismatches)?;
    }
    for (list, name) in lists.unused(cases.iter().map(|(_, case)| case.name.as_str())) {
        tally.failed += 1;
        writeln!(
            out,
            "FAIL {name}: {list} names it, and there is no such case"
        )?;
    }
    tally.end(out)
}

/// What came of the cases.
#[derive(Debug, Default)]
struct TestResults {
    passed: usize,
    failed: usize,
    listed: Vec<String>,
}

impl TestResults {
    fn count(
        &mut self,
        out: &mut dyn Write,
        lists: &ExpectedFailures,
        place: &str,
        case: &Case,
        mismatches: &mut [Mismatch],
    ) -> Result<(), CliError> {
        let name = &case.name;
        match (lists.of(name), mismatches.is_empty()) {
            (None, true) => self.passed += 1,
            (Some((list, why)), false) => {
                self.listed.push(format!("{list:<8}  {name}: {why}"));
            }
            (Some((list, _)), true) => {
                self.failed += 1;
                writeln!(
                    out,
                    "FAIL {name} ({place}): passes, but is listed as {list}: unlist it"
                )?;
            }
            (None, false) => {
                self.failed += 1;
                writeln!(out, "FAIL {name} ({place})")?;
                for mismatch in mismatches.iter() {
                    write!(out, "{mismatch}")?;
                }
            }
        }
        Ok(())
    }

    fn end(&self, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        for line in &self.listed {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "{} passed, {} failed", self.passed, self.failed)?;
        out.flush()?;
        Ok(if self.failed > 0 {
            ExitStatus::Findings
        } else {
            ExitStatus::Success
        })
    }
}

/// Reads the cases of a file with their places.
fn read(path: &Path, cases: &mut Vec<(String, Case)>) -> Result<(), CliError> {
    for (line, value) in connect::read_values(path)? {
        let place = format!("{}:{line}", path.display());
        let case = Case::read(&value)
            .map_err(|e| CliError::Unreadable(format!("{place}: no case: {e}")))?;
        if let Some((other, _)) = cases.iter().find(|(_, c)| c.name == case.name) {
            return Err(CliError::Unreadable(format!(
                "{place}: case `{}` has the name of the one at {other}: rename it",
                case.name
            )));
        }
        cases.push((place, case));
    }
    Ok(())
}
