//! Standard output and standard error.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use super::text::{Style, printable};

/// Buffered standard output.
pub(in crate::cli) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 * 1024, io::stdout().lock())
}

/// Colours, where standard output is a terminal and nobody asked for none.
pub(in crate::cli) fn style() -> Style {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    Style::new(io::stdout().is_terminal() && !refused)
}

/// Says something on standard error. If nobody can hear it, nothing is left to do.
pub(in crate::cli) fn print_error(message: &str) {
    let _ = writeln!(io::stderr().lock(), "entail: {}", printable(message));
}
