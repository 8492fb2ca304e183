//! `entail test`: checks policies against test cases (`docs/testing.md`).

mod assertions;
mod case;
mod check;
mod diff;
mod expected_failures;
mod fixtures;
mod names;
mod read;

use std::io::Write;
use std::path::PathBuf;

pub use case::{Case, OneOrMany};
pub use check::{Mismatch, check};
use expected_failures::ExpectedFailures;
pub(in crate::cli) use names::unknown_names;
pub use read::read_cases;
use read::{RefusedCase, read_files};

use super::{CliError, ExitStatus, TestArgs, connect, console};

/// Runs the command. The last line of the output is `N passed, N failed`, with `, N refused` if there
/// are cases that cannot run.
///
/// # Errors
/// A file cannot be read or parsed.
pub(in crate::cli) fn run(args: &TestArgs) -> Result<ExitStatus, CliError> {
    let mut lists = ExpectedFailures::default();
    for (path, list) in [(&args.pending, "pending"), (&args.disputed, "disputed")] {
        if let Some(path) = path {
            lists.read(path, list)?;
        }
    }
    let mut files: Vec<&PathBuf> = Vec::new();
    for path in &args.files {
        // `entail test cases/*.yaml` also matches the lists of expected failures.
        match path.file_stem().and_then(|s| s.to_str()) {
            Some(list @ ("pending" | "disputed")) => lists.read(path, list)?,
            _ => files.push(path),
        }
    }
    let runner = connect::CaseRunner::new(&args.profiles)?;
    let found = read_files(&files)?;
    for warning in &found.warnings {
        console::print_error(&format!("warning: {warning}"));
    }
    let out = &mut console::stdout();
    let mut results = TestResults::default();
    for refused in &found.refused {
        results.refuse(refused);
    }
    for (place, case) in &found.cases {
        match runner.run(case) {
            Ok(mismatches) => results.count(out, &lists, place, case, &mismatches)?,
            Err(errors) => results.refuse(&RefusedCase {
                place: place.clone(),
                name: Some(case.name.clone()),
                errors,
            }),
        }
    }
    let names = found.cases.iter().map(|(_, case)| case.name.as_str());
    let refused = found.refused.iter().filter_map(|case| case.name.as_deref());
    for (list, name) in lists.unused(names.chain(refused)) {
        results.failed += 1;
        writeln!(
            out,
            "FAIL {name}: listed as {list}, but there is no such case"
        )?;
    }
    results.end(out)
}

/// The results of the cases.
#[derive(Debug, Default)]
struct TestResults {
    passed: usize,
    failed: usize,
    refused: usize,
    listed: Vec<String>,
}

impl TestResults {
    /// Counts a case that cannot run, and prints its errors on standard error.
    fn refuse(&mut self, case: &RefusedCase) {
        self.refused += 1;
        for line in case.to_string().lines() {
            console::print_error(&format!("error: {line}"));
        }
    }

    /// Counts a case, and prints it if it fails.
    fn count(
        &mut self,
        out: &mut dyn Write,
        lists: &ExpectedFailures,
        place: &str,
        case: &Case,
        mismatches: &[Mismatch],
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
                    "FAIL {name} ({place}): passes, but is listed as {list}: remove it from the list"
                )?;
            }
            (None, false) => {
                self.failed += 1;
                writeln!(out, "FAIL {name} ({place})")?;
                for mismatch in mismatches {
                    write!(out, "{mismatch}")?;
                }
            }
        }
        Ok(())
    }

    /// Prints the expected failures and the last line.
    fn end(&self, out: &mut dyn Write) -> Result<ExitStatus, CliError> {
        for line in &self.listed {
            writeln!(out, "{line}")?;
        }
        write!(out, "{} passed, {} failed", self.passed, self.failed)?;
        if self.refused > 0 {
            write!(out, ", {} refused", self.refused)?;
        }
        writeln!(out)?;
        out.flush()?;
        Ok(if self.refused > 0 {
            ExitStatus::Incomplete
        } else if self.failed > 0 {
            ExitStatus::Findings
        } else {
            ExitStatus::Success
        })
    }
}
