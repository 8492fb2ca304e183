//! [`Report`]: an answer that can be printed as text, JSON or YAML.

use std::io::{self, Write};

use super::document::Document;
use super::session::{incomplete_line, incomplete_lines};
use super::text::{Style, printable, wrapped};
use super::{CliError, Format, console, json, yaml};
use crate::api::v1;

/// The first line of the text output of a truncated answer.
pub(in crate::cli) const TRUNCATED: &str = "INCOMPLETE: the answer is truncated: narrow the query";

/// An answer that can be printed in every format.
pub(in crate::cli) trait Report {
    /// Returns the answer as a document, for JSON and YAML.
    fn document(&self, states: &[v1::KindState]) -> Document;

    /// Writes the answer as text.
    ///
    /// # Errors
    /// `out` cannot be written.
    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()>;

    /// Whether the server truncated the answer.
    fn truncated(&self) -> bool {
        false
    }
}

/// Prints an answer, preceded by the kinds that are incomplete.
pub(in crate::cli) fn print(
    report: &dyn Report,
    format: Format,
    states: &[v1::KindState],
) -> Result<(), CliError> {
    print_styled(report, format, states, console::style())
}

/// Prints an answer as [`print`] does, its text in a style.
pub(in crate::cli) fn print_styled(
    report: &dyn Report,
    format: Format,
    states: &[v1::KindState],
    style: Style,
) -> Result<(), CliError> {
    let mut out = console::stdout();
    match format {
        Format::Table | Format::Wide => {
            let style = style.with_full_names(format == Format::Wide);
            for line in incomplete_lines(states, style) {
                writeln!(out, "{line}")?;
            }
            if report.truncated() {
                writeln!(out, "{}", style.alert(TRUNCATED))?;
            }
            if !states.is_empty() || report.truncated() {
                writeln!(out)?;
            }
            report.table(&mut out, style)?;
        }
        Format::Json => {
            warn_incomplete(states);
            json::write(&mut out, &report.document(states), 0)?;
            writeln!(out)?;
        }
        Format::Yaml => {
            warn_incomplete(states);
            yaml::write(&mut out, &report.document(states))?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Prints the incomplete kinds on standard error, for output that a program reads.
pub(in crate::cli) fn warn_incomplete(states: &[v1::KindState]) {
    for state in states {
        console::print_error(&format!("warning: {}", incomplete_line(state)));
    }
}

/// Writes wrapped text. Lines after the first are indented by two more columns.
pub(in crate::cli) fn write_wrapped(
    out: &mut dyn Write,
    text: &str,
    indent: usize,
    paint: impl Fn(&str) -> String,
) -> io::Result<()> {
    for (at, line) in wrapped(&printable(text), indent + 2).iter().enumerate() {
        let indent = if at == 0 { indent } else { indent + 2 };
        writeln!(out, "{:indent$}{}", "", paint(line))?;
    }
    Ok(())
}

/// Writes `on PATH`, one path per line: the first `most` of them, unless the style lists all, and the number of the
/// others.
pub(in crate::cli) fn write_paths(
    out: &mut dyn Write,
    paths: &[String],
    most: usize,
    style: Style,
) -> io::Result<()> {
    let most = style.most(most);
    for (at, path) in paths.iter().take(most).enumerate() {
        let on = if at == 0 { "on" } else { "  " };
        writeln!(out, "  {on} {}", style.path(path))?;
    }
    if let Some(more @ 1..) = paths.len().checked_sub(most) {
        writeln!(out, "     and {more} more (`--all` lists them)")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::text::{text_width, width};

    #[test]
    fn lines_fit_and_names_are_not_broken() {
        let long = "n".repeat(150);
        let mut out = Vec::new();
        let text = format!("{}{long}", "word ".repeat(50));
        write_wrapped(&mut out, &text, 4, str::to_owned).unwrap();
        let text = String::from_utf8(out).unwrap();
        for line in text.lines() {
            assert!(
                width(line) <= text_width() || line.contains(&long),
                "{line}"
            );
        }
        assert!(text.contains(&long));
    }

    #[test]
    fn further_paths_are_counted() {
        let paths: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let mut out = Vec::new();
        write_paths(&mut out, &paths, 2, Style::new(false)).unwrap();
        assert_eq!(
            out,
            b"  on a\n     b\n     and 1 more (`--all` lists them)\n"
        );
    }
}
