//! Standard output and standard error.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use super::CliError;
use super::text::{Style, printable};

/// Returns buffered, locked standard output.
pub(in crate::cli) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 * 1024, io::stdout().lock())
}

/// Returns the style of standard output: colours if it is a terminal, `NO_COLOR` is not set, and
/// `TERM` is not `dumb`.
pub(in crate::cli) fn style() -> Style {
    let is_disabled = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    Style::new(io::stdout().is_terminal() && !is_disabled)
}

/// Writes a text to standard output.
///
/// # Errors
/// Standard output cannot be written.
pub(in crate::cli) fn write(text: &str) -> Result<(), CliError> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints a message on standard error. Ignores write errors: they cannot be reported.
pub(in crate::cli) fn print_error(message: &str) {
    let _ = writeln!(io::stderr().lock(), "entail: {}", printable(message));
}
