//! `entail completion`: prints a shell completion script.

use std::io::Write;

use clap::Args;
use clap_complete::Shell;

use super::{CliError, ExitStatus, console};

/// Arguments of `entail completion`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  source <(entail completion bash)
  entail completion zsh > \"${fpath[1]}/_entail\"
  entail completion fish > ~/.config/fish/completions/entail.fish")]
pub struct CompletionArgs {
    /// Shell to generate the script for.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Runs the command.
pub(in crate::cli) fn run(
    args: &CompletionArgs,
    mut command: clap::Command,
    is_plugin: bool,
) -> Result<ExitStatus, CliError> {
    let name = if is_plugin {
        "kubectl-entail"
    } else {
        "entail"
    };
    let mut script = Vec::new();
    // Generate into memory first: the generator panics if a write fails.
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let mut out = console::stdout();
    out.write_all(&script)?;
    out.flush()?;
    Ok(ExitStatus::Success)
}
