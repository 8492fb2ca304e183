//! The commands: a file each. They print what the room `insight` says, whether a snapshot in this
//! process answers or a running server.

mod args;
mod commands;
mod connect;
mod error;
mod levels;
mod policies;
mod remote;
mod render;
mod session;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use args::{CommonArgs, Format, QueryArgs, SourceArgs, TestArgs};
pub use commands::serve::ServeArgs;
pub use commands::test;
use commands::{
    completion, descriptors, diff, explain, get, health, lint, preview, profiles, reach, resolve,
    status, topology, version,
};
pub use error::{CliError, ExitStatus};
pub use remote::{RemoteBackend, health};

/// Knows which policies are in effect on every Gateway > Route > Backend path, and why.
#[derive(Debug, Parser)]
#[command(name = "entail", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 findings, or nothing has that name; 2 wrong usage;
3 input that cannot be read, a server out of reach, or a kind of which not everything is known.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server that data planes and people ask.
    Serve(Box<ServeArgs>),
    /// Print the effective policies of a path, of every path through an object, or of all paths.
    Get(get::GetArgs),
    /// Tell for each value who said it, what it beat, and why.
    Explain(explain::ExplainArgs),
    /// Tell which rule a request takes, and what holds there.
    Resolve(Box<resolve::ResolveArgs>),
    /// Tell which policies are accepted, how far each is in force, and who beats it.
    Status(status::StatusArgs),
    /// Tell every path and object that a policy affects.
    Reach(reach::ReachArgs),
    /// List what is worth a look: invalid policies, dangling targets, silent losses, traps.
    Lint(lint::LintArgs),
    /// Tell what changes between two sets of manifests; exit code 1 if something gets lost.
    Diff(diff::DiffArgs),
    /// Tell what a change would do before anyone applies it; exit code 1 if something gets lost.
    Preview(preview::PreviewArgs),
    /// Print the topology with the policies attached to it.
    Topology(topology::TopologyArgs),
    /// Run conformance cases; the last line is `N passed, N failed`.
    Test(TestArgs),
    /// List the built-in profiles of policy kinds.
    Profiles(profiles::ProfilesArgs),
    /// Ask a server whether it serves; for probes.
    Health(health::HealthArgs),
    /// Write the descriptors of the API: a FileDescriptorSet, for tools that take one.
    #[command(after_help = "\
Examples:
  entail descriptors > entail.binpb
  grpcurl -protoset entail.binpb list")]
    Descriptors,
    /// Print the version.
    Version,
    /// Print a script that completes commands in a shell.
    Completion(completion::CompletionArgs),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let called = arguments.first().map(Path::new);
    let is_plugin = called
        .and_then(Path::file_stem)
        .is_some_and(|stem| stem.to_string_lossy().starts_with("kubectl-entail"));
    let mut command = Cli::command();
    if is_plugin {
        command = command.bin_name("kubectl entail");
    }
    let parsed = command
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let result = match parsed {
        Ok(cli) => run(cli.command, is_plugin),
        Err(error) => {
            // Help and version are no errors; nothing is left to do if they cannot be printed.
            let _ = error.print();
            return if error.use_stderr() {
                ExitStatus::Usage.into()
            } else {
                ExitStatus::Success.into()
            };
        }
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) => error.report(),
    }
}

fn run(command: Command, is_plugin: bool) -> Result<ExitStatus, CliError> {
    match command {
        Command::Serve(args) => connect::serve(&args),
        Command::Get(args) => get::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Resolve(args) => resolve::run(*args),
        Command::Status(args) => status::run(args),
        Command::Reach(args) => reach::run(args),
        Command::Lint(args) => lint::run(args),
        Command::Diff(args) => diff::run(&args),
        Command::Preview(args) => preview::run(args),
        Command::Topology(args) => topology::run(args),
        Command::Test(args) => connect::test(&args),
        Command::Profiles(args) => profiles::run(&args),
        Command::Health(args) => health::run(&args),
        Command::Descriptors => descriptors::run(),
        Command::Version => version::run(),
        Command::Completion(args) => completion::run(&args, Cli::command(), is_plugin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
