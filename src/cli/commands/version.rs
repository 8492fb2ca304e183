//! `entail version`: prints the version.

use std::io::Write;

use super::{CliError, ExitStatus, console};

/// Runs the command.
pub(in crate::cli) fn run() -> Result<ExitStatus, CliError> {
    let mut out = console::stdout();
    writeln!(out, "entail {}", env!("CARGO_PKG_VERSION"))?;
    out.flush()?;
    Ok(ExitStatus::Success)
}
