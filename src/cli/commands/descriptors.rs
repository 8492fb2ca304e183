//! `entail descriptors`.

use std::io::{IsTerminal, Write};

use super::{CliError, ExitStatus, console};
use crate::api::descriptors;

/// Writes the descriptors of the API.
pub(in crate::cli) fn run() -> Result<ExitStatus, CliError> {
    if std::io::stdout().is_terminal() {
        let message = "descriptors are not for people: write them to a file, as in `entail descriptors > entail.binpb`";
        return Err(CliError::Usage(message.to_owned()));
    }
    let mut out = console::stdout();
    out.write_all(&descriptors(false))?;
    out.flush()?;
    Ok(ExitStatus::Success)
}
