//! The command line: parses arguments, runs a command, and maps its result to an exit code.
//!
//! Commands query a [`QueryBackend`](crate::insight::QueryBackend): a snapshot in this process
//! ([`LocalBackend`](crate::insight::LocalBackend)) or a running server ([`RemoteBackend`]).

mod args;
mod commands;
mod connect;
mod envoy_admin;
mod error;
mod levels;
mod names;
mod policies;
mod remote;
mod render;
mod reports;
mod review;
mod session;
mod why_not;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use args::{CommonArgs, Format, QueryArgs, SourceArgs, TestArgs};
pub use commands::serve::ServeArgs;
pub use commands::test;
use commands::{
    admission, check, completion, descriptors, diff, explain, explain_code, get, health, lint, man,
    mcp, preview, profiles, reach, report_objects, resolve, status, topology, verify, version,
};
pub use error::{CliError, ExitStatus};
pub use remote::{RemoteBackend, health};

/// Show the effective policies of every Gateway > Route > Backend path, and explain every value.
#[derive(Debug, Parser)]
#[command(name = "entail", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  findings, or not found
  2  usage error
  3  unreadable input, unreachable server, or incomplete answer";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gRPC server for data planes and operators.
    Serve(Box<ServeArgs>),
    /// Print the effective policies of a path, of every path through an object, or of all paths.
    Get(get::GetArgs),
    /// Explain each value of an effective policy: the policy that sets it, and those that it overrides.
    Explain(explain::ExplainArgs),
    /// Show the rule that matches a request, and the effective policies of that rule.
    Resolve(Box<resolve::ResolveArgs>),
    /// List policies with their conditions, how far each is in force, and what overrides it.
    Status(status::StatusArgs),
    /// List the paths and objects that a policy affects.
    Reach(reach::ReachArgs),
    /// Check policies for problems: invalid specs, missing targets, lost values, ambiguous settings.
    Lint(Box<lint::LintArgs>),
    /// Check assertions about effective policies; exit code 1 if one fails.
    Check(Box<check::CheckArgs>),
    /// Print findings and results of assertions as report objects, or keep those of a cluster up to date.
    Report(Box<report_objects::ReportArgs>),
    /// Print the page about the code of a finding, or of a reason in an explanation; list all codes.
    ExplainCode(explain_code::ExplainCodeArgs),
    /// Show how effective policies differ between two sets of manifests; exit code 1 if any is lost.
    Diff(diff::DiffArgs),
    /// Show the effect of a change before it is applied; exit code 1 if a value or a path is lost.
    Preview(preview::PreviewArgs),
    /// Compare effective policies with the configuration that a proxy has; exit code 1 if they differ.
    Verify(Box<verify::VerifyArgs>),
    /// Print the topology with the policies attached to it.
    Topology(topology::TopologyArgs),
    /// Check policies against test cases; the last line is `N passed, N failed`.
    Test(TestArgs),
    /// List the built-in profiles of policy kinds.
    Profiles(profiles::ProfilesArgs),
    /// Print the configuration of the admission webhook, which warns of what a change takes away.
    Admission(admission::AdmissionArgs),
    /// Check the health of a server; for probes.
    Health(health::HealthArgs),
    /// Print the API descriptors as a FileDescriptorSet.
    #[command(after_help = "\
Examples:
  entail descriptors > entail.binpb
  grpcurl -protoset entail.binpb list")]
    Descriptors,
    /// Print the version.
    Version,
    /// Print a shell completion script.
    Completion(completion::CompletionArgs),
    /// Write the manual pages of all commands into a directory.
    Man(man::ManArgs),
    /// Answer the tools of a Model Context Protocol client over standard input and output; read-only.
    Mcp(Box<mcp::McpArgs>),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().map(Path::new);
    let is_plugin = program
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
            // `--help` and `--version` also end here. A failed write cannot be reported.
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
        Command::Lint(args) => lint::run(*args),
        Command::Check(args) => check::run(*args),
        Command::Report(args) => report_objects::run(&args),
        Command::ExplainCode(args) => explain_code::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Preview(args) => preview::run(args),
        Command::Verify(args) => verify::run(*args),
        Command::Topology(args) => topology::run(args),
        Command::Test(args) => connect::test(&args),
        Command::Profiles(args) => profiles::run(&args),
        Command::Admission(args) => admission::run(&args),
        Command::Health(args) => health::run(&args),
        Command::Descriptors => descriptors::run(),
        Command::Version => version::run(),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Mcp(args) => mcp::run(*args),
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
