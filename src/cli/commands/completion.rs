//! `entail completion`.

use std::io::Write;

use clap::Args;
use clap_complete::Shell;

use super::{CliError, ExitStatus, console};

/// Prints a script that completes commands in a shell.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  source <(entail completion bash)
  entail completion zsh > \"${fpath[1]}/_entail\"
  entail completion fish > ~/.config/fish/completions/entail.fish")]
pub struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Prints the script.
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
    // Into memory first: the generator panics when it cannot write.
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let mut out = console::stdout();
    out.write_all(&script)?;
    out.flush()?;
    Ok(ExitStatus::Success)
}
