//! `entail check`: checks assertions about effective policies.

use std::path::PathBuf;

use clap::Args;
use jiff::civil::Date;

use super::args::SourceArgs;
use super::assertions::Assertions;
use super::findings::{self, FindingsFormat};
use super::preview::read_manifests;
use super::session::Session;
use super::{CliError, ExitStatus, QueryArgs, console};
use crate::api::v1;
use crate::api::v1::finding::Severity;
use crate::insight::MAX_SAMPLES;

/// Arguments of `entail check`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Assertions are EffectivePolicyAssertion and ClusterEffectivePolicyAssertion objects: what the
effective policies of some paths must be like, but for named exceptions. Exit code 1: an assertion
has failed, is invalid, or there is none. Exit code 3: it is not known whether all hold.

Examples:
  entail check --manifests examples/bakery -f assertions.yaml
  entail check --manifests . -o junit
  entail check --server 127.0.0.1:50051 clustereffectivepolicyassertion/auth-everywhere
  entail check --kube --date 2027-03-01")]
pub struct CheckArgs {
    /// Only these assertions, `kind/namespace/name` or `kind/name`; all by default.
    #[arg(value_name = "ASSERTION")]
    pub names: Vec<String>,
    /// Manifests to apply before the check, such as more assertions: a file, a directory, or `-`. With --manifests, they
    /// are read with the others. May be repeated.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The source of answers.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = FindingsFormat::Text)]
    pub output: FindingsFormat,
    /// Name up to 1000 paths of an assertion instead of the first ten.
    #[arg(long)]
    pub all: bool,
    /// The day of the check, which decides what exceptions count; today in UTC by default.
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = date)]
    pub date: Option<Date>,
}

fn date(text: &str) -> Result<Date, String> {
    text.parse().map_err(|_| "use `YYYY-MM-DD`".to_owned())
}

/// Moves names of assertions back from `--manifests`, which takes several values and so those that follow them.
fn recover_names(args: &mut CheckArgs) {
    let is_name = |path: &mut PathBuf| {
        let kind = path.to_str().and_then(|text| text.split_once('/'));
        let kind = kind.map(|(kind, _)| kind.to_ascii_lowercase());
        let is_one =
            |kind: String| kind.contains("policyassertion") || matches!(&*kind, "epa" | "cepa");
        kind.is_some_and(is_one) && !path.exists()
    };
    let manifests = &mut args.source.manifests;
    while manifests.len() > 1
        && let Some(name) = manifests.pop_if(is_name)
    {
        args.names.insert(0, name.to_string_lossy().into_owned());
    }
}

/// Runs the command.
pub(in crate::cli) fn run(mut args: CheckArgs) -> Result<ExitStatus, CliError> {
    recover_names(&mut args);
    let mut manifests = String::new();
    if args.source.manifests.is_empty() {
        manifests = read_manifests(&args.files)?;
    } else {
        args.source.manifests.append(&mut args.files);
    }
    let needs_all = !args.source.manifests.is_empty() && !args.source.allow_partial;
    let mut session = Session::open(&QueryArgs {
        source: args.source,
        ..QueryArgs::default()
    })?;
    let reply = session.backend.all_assertions(v1::CheckAssertionsRequest {
        names: args.names,
        manifests,
        date: args.date.map(|date| date.to_string()).unwrap_or_default(),
        max_paths: if args.all { MAX_SAMPLES } else { 0 },
        ..v1::CheckAssertionsRequest::default()
    });
    let reply = reply.map_err(|error| session.failure(error))?;
    for problem in &reply.problems {
        let (location, message) = (&problem.location, &problem.message);
        console::print_error(&format!("warning: {location}: {message}"));
        session.is_partial = true;
    }
    // What is malformed in manifests may be an assertion that nobody checks then.
    let inputs = findings::of_inputs(&session.status.problems);
    let inputs = inputs.filter(|found| needs_all && found.severity() == Severity::Error);
    let inputs: Vec<v1::Finding> = inputs.collect();
    session.is_partial |= !inputs.is_empty();
    let states = session.incomplete(&reply.kinds);
    if reply.results.is_empty() {
        return Err(session.not_found(
            "no assertions: add EffectivePolicyAssertion or ClusterEffectivePolicyAssertion objects, or name files \
             of them with `-f`"
                .to_owned(),
        ));
    }
    let results = Assertions::new(reply);
    let style = console::style().listing_all(args.all);
    findings::print(
        &results,
        &results.findings(inputs),
        args.output,
        (&states, style),
    )?;
    Ok(match results.exit() {
        ExitStatus::Success => session.exit(&states),
        exit => exit,
    })
}
