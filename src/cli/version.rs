//! `entail version`.

use std::io::Write;

use super::{CliError, Exit, output};

/// Prints the version.
pub(super) fn run() -> Result<Exit, CliError> {
    let mut out = output::stdout();
    writeln!(out, "entail {}", env!("CARGO_PKG_VERSION"))?;
    out.flush()?;
    Ok(Exit::Fine)
}
