//! `entail descriptors`.

use std::io::{IsTerminal, Write};

use super::{CliError, Exit, output};
use crate::api::descriptors;

/// Writes the descriptors of the API.
pub(super) fn run() -> Result<Exit, CliError> {
    if std::io::stdout().is_terminal() {
        let message = "descriptors are not for people: write them to a file, as in `entail descriptors > entail.binpb`";
        return Err(CliError::Usage(message.to_owned()));
    }
    let mut out = output::stdout();
    out.write_all(&descriptors(false))?;
    out.flush()?;
    Ok(Exit::Fine)
}
