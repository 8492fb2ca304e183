//! `entail lint`: findings, each with a stable code, for people and for the tools that gate changes.

mod ignore;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(in crate::cli) use self::ignore::unknown_code;

use self::ignore::{IgnoreRule, Ignored};
use super::args::SourceArgs;
use super::document::Document;
use super::findings::{self, Findings, FindingsFormat};
use super::report::Report;
use super::session::Session;
use super::{CliError, ExitStatus, QueryArgs, console};
use crate::api::{ALL_KINDS, v1};
use crate::insight::{Code, MAX_PLACES, today};
use v1::finding::Severity;

/// Arguments of `entail lint`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each finding has a stable code: `entail explain-code E021` explains it. An error: the object does
not take effect as written. A warning: it probably does not do what is intended. A note: for
information. Exit code 1 if a finding has the severity of --fail-on, or a higher one.

An ignore file is a list in YAML. `object` is optional, and so is the last day on which the entry
counts, `expires`:
  - {code: E031, object: CachePolicy/shop/spare, reason: for the sale, expires: 2027-01-31}

Examples:
  entail lint --manifests examples/bakery
  entail lint --manifests examples/bakery --fail-on error --ignore E030
  entail lint --manifests examples/bakery --ignore-file lint-ignore.yaml -o sarif
  entail lint --server 127.0.0.1:50051 --kind CachePolicy -o json")]
pub struct LintArgs {
    /// The source of answers.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Only this policy kind, as `Kind.group`, or as `Kind` if it is unambiguous. May be repeated.
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = FindingsFormat::Text)]
    pub output: FindingsFormat,
    /// Print all places of a finding instead of the first three, up to 1000.
    #[arg(long)]
    pub all: bool,
    /// The least severity of a finding that makes the exit code 1.
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t = FailOn::Warning)]
    pub fail_on: FailOn,
    /// Leave out findings with this code, of all objects or of one: `E031`, or
    /// `E031:CachePolicy/shop/spare`. May be repeated.
    #[arg(long, value_name = "CODE[:OBJECT]", value_parser = ignore::parse_option)]
    pub ignore: Vec<IgnoreRule>,
    /// File of findings to leave out, each with a reason and, if wanted, the day it expires.
    #[arg(long, value_name = "FILE")]
    pub ignore_file: Option<PathBuf>,
}

/// The least severity that makes the exit code 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Errors.
    Error,
    /// Errors and warnings.
    Warning,
    /// All findings.
    Note,
    /// No finding.
    Never,
}

impl FailOn {
    /// Whether a finding with a severity makes the exit code 1.
    fn includes(self, severity: Severity) -> bool {
        match self {
            FailOn::Error => severity == Severity::Error,
            FailOn::Warning => severity != Severity::Note,
            FailOn::Note => true,
            FailOn::Never => false,
        }
    }
}

/// Runs the command.
pub(in crate::cli) fn run(args: LintArgs) -> Result<ExitStatus, CliError> {
    let mut rules = args.ignore;
    if let Some(path) = &args.ignore_file {
        rules.extend(ignore::read_file(path)?);
    }
    let max_places = if args.all { MAX_PLACES } else { 0 };
    let query = QueryArgs {
        source: args.source,
        kinds: args.kinds,
        ..QueryArgs::default()
    };
    let (session, reply) = found(&query, max_places)?;
    let states = session.incomplete(&reply.kinds);
    if reply.truncated {
        console::print_error("warning: the answer is truncated: there may be more findings");
    }
    let Ignored { mut left, count } = ignore::apply(&rules, reply.findings, today());
    if !session.kinds.is_empty() {
        // An entry may be about a kind that is not selected.
        left.retain(|finding| finding.code != Code::IgnoreUnused.id());
    }
    let findings = Findings::new(reply.version, left, count, |severity| {
        args.fail_on.includes(severity)
    });
    findings::print(
        &findings,
        &findings,
        args.output,
        (&states, console::style()),
    )?;
    Ok(match session.exit(&states) {
        ExitStatus::Success if findings.fails() => ExitStatus::Findings,
        ExitStatus::Success if reply.truncated => ExitStatus::Incomplete,
        exit => exit,
    })
}

/// The document that `-o json` prints without options.
///
/// # Errors
/// The source cannot be read.
pub(in crate::cli) fn document(query: &QueryArgs) -> Result<Document, CliError> {
    let (session, reply) = found(query, 0)?;
    let states = session.incomplete(&reply.kinds);
    let findings = Findings::new(reply.version, reply.findings, 0, |_| false);
    Ok(findings.document(&states))
}

/// All findings, those about inputs included, with the session that they are of.
fn found(
    query: &QueryArgs,
    max_places: i32,
) -> Result<(Session, v1::ListFindingsResponse), CliError> {
    let mut session = Session::open_for_findings(query)?;
    let kinds = session.kinds.clone();
    let mut reply = session.backend.all_findings(kinds, max_places)?;
    reply
        .findings
        .extend(findings::of_inputs(&session.status.problems));
    if !session.status.problems.is_empty() {
        // The findings about inputs say what cannot be read.
        let states = reply.kinds.len();
        reply.kinds.retain(|state| state.kind != ALL_KINDS);
        session.is_partial |= reply.kinds.len() < states;
    }
    Ok((session, reply))
}
