//! Standard output and standard error.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use super::CliError;
use super::text::{Style, printable};

/// Returns buffered, locked standard output.
pub(in crate::cli) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 * 1024, io::stdout().lock())
}

/// Returns the style of standard output. On a terminal, path names are short, and text has colours unless `NO_COLOR` is set
/// or `TERM` is `dumb`. `CLICOLOR_FORCE` keeps colours for a pager.
pub(in crate::cli) fn style() -> Style {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_forced = is_set("CLICOLOR_FORCE")
        && std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    let is_terminal = io::stdout().is_terminal();
    let style = Style::new(is_forced || is_terminal && !is_set("NO_COLOR") && !is_dumb);
    match is_terminal {
        true => style.with_short_names(),
        false => style,
    }
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
