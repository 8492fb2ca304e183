//! `entail descriptors`: prints the API descriptors as a `FileDescriptorSet`.

use std::io::{IsTerminal, Write};

use super::{CliError, ExitStatus, console};
use crate::api::descriptors;

/// Runs the command.
///
/// # Errors
/// Standard output is a terminal, or cannot be written.
pub(in crate::cli) fn run() -> Result<ExitStatus, CliError> {
    if std::io::stdout().is_terminal() {
        let message = "descriptors are binary: redirect them to a file, as in `entail descriptors > entail.binpb`";
        return Err(CliError::Usage(message.to_owned()));
    }
    let mut out = console::stdout();
    out.write_all(&descriptors(false))?;
    out.flush()?;
    Ok(ExitStatus::Success)
}
