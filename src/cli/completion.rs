//! `entail completion`.

use std::io::Write;

use clap::Args;
use clap_complete::Shell;

use super::{CliError, Exit, output};

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
pub(super) fn run(
    args: &CompletionArgs,
    mut command: clap::Command,
    is_plugin: bool,
) -> Result<Exit, CliError> {
    let name = if is_plugin {
        "kubectl-entail"
    } else {
        "entail"
    };
    let mut script = Vec::new();
    // Into memory first: the generator panics when it cannot write.
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let mut out = output::stdout();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Fine)
}
