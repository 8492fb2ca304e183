//! `entail man`: the manual pages of all commands.

use std::path::PathBuf;

use clap::Args;

use super::{CliError, ExitStatus};

/// Arguments of `entail man`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  entail man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The directory; it must exist.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Runs the command.
pub(in crate::cli) fn run(args: &ManArgs, command: clap::Command) -> Result<ExitStatus, CliError> {
    clap_mangen::generate_to(command, &args.directory)
        .map_err(|error| CliError::Unreadable(format!("{}: {error}", args.directory.display())))?;
    Ok(ExitStatus::Success)
}
