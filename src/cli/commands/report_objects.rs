//! `entail report`: findings and results of assertions as report objects of a cluster.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::super::render::document::without_hidden;
use super::super::reports::{ReportFormat, reports};
use super::args::SourceArgs;
use super::session::Session;
use super::{CliError, ExitStatus, QueryArgs, console};
use crate::api::v1;
use crate::app::{ReportWriter, WrittenReports};
use crate::config::ClusterSettings;

/// Arguments of `entail report`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
One report for each namespace with findings or assertions, and one for the cluster, all named
`entail`. Without --write, they are printed, and nothing is written. With it, a report is written
only if it differs, and deleted if there is nothing to report any more; the command needs the rights
to do that and no others, and runs until it is ended. Servers never write.

Examples:
  entail report --manifests examples/bakery
  entail report --server 127.0.0.1:50051 --write
  entail report --server 127.0.0.1:50051 --write --once --format policyreport")]
pub struct ReportArgs {
    /// The source of answers.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The kinds of report objects.
    #[arg(long, value_enum, default_value_t = ReportFormat::Openreports)]
    pub format: ReportFormat,
    /// Write the reports to the cluster, and follow what changes.
    #[arg(long)]
    pub write: bool,
    /// Kubeconfig of the cluster to write to. Default: `KUBECONFIG`, `~/.kube/config`, or the account of this pod.
    #[arg(long, value_name = "FILE", requires = "write")]
    pub write_kubeconfig: Option<PathBuf>,
    /// Write once, and end.
    #[arg(long, requires = "write")]
    pub once: bool,
    /// Seconds between two looks at the source.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..))]
    pub interval: u64,
}

/// Runs the command.
pub(in crate::cli) fn run(args: &ReportArgs) -> Result<ExitStatus, CliError> {
    if !args.write {
        let (reports, exit) = read(args)?;
        let texts = reports
            .iter()
            .map(|report| without_hidden(report.to_string()));
        let texts = texts.map(|report| format!("---\n{report}\n"));
        console::write(&texts.collect::<String>())?;
        return Ok(exit);
    }
    let access = ClusterSettings {
        kubeconfig: args.write_kubeconfig.clone(),
        ..ClusterSettings::default()
    };
    let writer = ReportWriter::connect(&access, args.format.kinds());
    let writer = writer.map_err(|error| CliError::Unreadable(error.to_string()))?;
    loop {
        // A source that cannot be read leaves the reports as they are.
        let done = read(args).and_then(|(reports, exit)| {
            // Of what could not be read there may be findings, too: those of before stay.
            let keep = exit != ExitStatus::Success;
            let written = writer.write(&reports, keep).map_err(CliError::Unreadable)?;
            Ok((written, exit))
        });
        match done {
            Ok((written, exit)) => {
                tell(&written);
                if args.once {
                    let failed = !written.problems.is_empty();
                    return Ok(if failed { ExitStatus::Incomplete } else { exit });
                }
            }
            Err(error) if args.once => return Err(error),
            Err(error) => console::print_error(&format!("error: {error}")),
        }
        sleep(Duration::from_secs(args.interval));
    }
}

/// Reads the source. Returns its reports, and whether it was complete.
fn read(args: &ReportArgs) -> Result<(Vec<Value>, ExitStatus), CliError> {
    let mut session = Session::open(&QueryArgs {
        source: args.source.clone(),
        ..QueryArgs::default()
    })?;
    let findings = session.backend.all_findings(Vec::new(), 0)?;
    let results = session
        .backend
        .all_assertions(v1::CheckAssertionsRequest::default())?;
    let states = session.incomplete(&findings.kinds);
    let made = reports(args.format, &findings.findings, &results.results);
    Ok((made, session.exit(&states)))
}

fn tell(written: &WrittenReports) {
    for problem in &written.problems {
        console::print_error(&format!("warning: {problem}"));
    }
    let (changed, deleted) = (written.written, written.deleted);
    if changed + deleted > 0 {
        let unchanged = written.unchanged;
        console::print_error(&format!(
            "note: reports: {changed} written, {deleted} deleted, {unchanged} unchanged"
        ));
    }
}
