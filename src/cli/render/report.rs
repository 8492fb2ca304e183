//! Answers of commands that ask one question: printed for people or for programs.

use std::io::{self, IsTerminal, Write};

use super::document::Document;
use super::session::{incomplete_line, incomplete_lines};
use super::text::{Style, printable, wrapped};
use super::{CliError, Format, console, json, yaml};
use crate::api::v1;

/// What stands before the rest of a table where not everything was found.
const TRUNCATED: &str = "INCOMPLETE: more was found than is told: ask for less";

/// An answer that can be printed in every format.
pub(in crate::cli) trait Report {
    /// For programs.
    fn document(&self, states: &[v1::KindState]) -> Document;

    /// For people.
    ///
    /// # Errors
    /// It cannot be written.
    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()>;

    /// Whether there is more than the answer tells.
    fn truncated(&self) -> bool {
        false
    }
}

/// Prints an answer, with what is not known before it.
pub(in crate::cli) fn print(
    report: &dyn Report,
    format: Format,
    states: &[v1::KindState],
) -> Result<(), CliError> {
    let mut out = console::stdout();
    match format {
        Format::Table => {
            let style = console::style();
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

/// Tells on standard error what is not known, for readers of a document.
pub(in crate::cli) fn warn_incomplete(states: &[v1::KindState]) {
    for state in states {
        console::print_error(&format!("warning: {}", incomplete_line(state)));
    }
}

/// Whether lines are to fit a terminal. What is piped to a program keeps its lines whole.
pub(in crate::cli) fn on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes words, wrapped; lines after the first stand two columns further right.
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

/// Writes `on PATH`, each path on a line of its own, the first few of them.
pub(in crate::cli) fn write_paths(
    out: &mut dyn Write,
    paths: &[String],
    most: usize,
) -> io::Result<()> {
    for (at, path) in paths.iter().take(most).enumerate() {
        let on = if at == 0 { "on" } else { "  " };
        writeln!(out, "  {on} {}", printable(path))?;
    }
    if paths.len() > most {
        writeln!(out, "     and {} more", paths.len() - most)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::text::{WIDTH, width};

    #[test]
    fn words_fit_and_names_stay_whole() {
        let long = "n".repeat(150);
        let mut out = Vec::new();
        let text = format!("{}{long}", "word ".repeat(50));
        write_wrapped(&mut out, &text, 4, str::to_owned).unwrap();
        let text = String::from_utf8(out).unwrap();
        for line in text.lines() {
            assert!(width(line) <= WIDTH || line.contains(&long), "{line}");
        }
        assert!(text.contains(&long));
    }

    #[test]
    fn the_rest_of_the_paths_is_counted() {
        let paths: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let mut out = Vec::new();
        write_paths(&mut out, &paths, 2).unwrap();
        assert_eq!(out, b"  on a\n     b\n     and 1 more\n");
    }
}
