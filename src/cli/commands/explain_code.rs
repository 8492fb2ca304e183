//! `entail explain-code`: prints the page about the code of a finding, or lists all codes.

use std::io::{self, Write};

use clap::Args;

use super::findings::severity_name;
use super::lint::unknown_code;
use super::page_text::write_page;
use super::text::{Style, wrapped_to};
use super::{CliError, ExitStatus, console};
use crate::insight::Code;

/// The width of a page.
const WIDTH: usize = 80;

/// Arguments of `entail explain-code`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  entail explain-code
  entail explain-code E021
  entail explain-code TargetNotFound
  entail explain-code 'more specific override'")]
pub struct ExplainCodeArgs {
    /// The code, the reason of a finding, or the reason of an explanation; all codes if there is none.
    #[arg(value_name = "CODE")]
    pub code: Option<String>,
}

/// Runs the command.
pub(in crate::cli) fn run(args: &ExplainCodeArgs) -> Result<ExitStatus, CliError> {
    let mut out = console::stdout();
    match &args.code {
        None => list(&mut out, console::style())?,
        Some(name) => match Code::find(name.trim()) {
            Some(code) => write_page(&mut out, code.page(), WIDTH, console::style())?,
            None => return Err(CliError::NotFound(unknown_code(name))),
        },
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Writes one line for each code.
fn list(out: &mut dyn Write, style: Style) -> io::Result<()> {
    for code in Code::ALL {
        let severity = severity_name(code.severity());
        let lines = wrapped_to(code.title(), WIDTH, 14);
        writeln!(
            out,
            "{} {severity:<8} {}",
            style.bold(code.id()),
            lines.join("\n              ")
        )?;
    }
    writeln!(
        out,
        "`entail explain-code {}` prints the page of one",
        Code::TargetNotFound.id()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_a_line_for_each_code() {
        let mut out = Vec::new();
        list(&mut out, Style::new(false)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), Code::ALL.len() + 1);
        assert!(text.contains("E021 error    The target of a reference does not exist\n"));
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
    }
}
