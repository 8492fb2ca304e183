//! Compares what entail computes with what the controllers of the policy kinds do.
//!
//! A *judge* is a child process that contains the code of a controller and answers one JSON request
//! per line. Each judge has a module here, which generates worlds, asks entail and the judge, and
//! records each comparison in a [`report::Report`]. Differences that `known/JUDGE.yaml` describes
//! are counted by class; any other difference fails the run, and so does a class without one.

#![allow(
    clippy::indexing_slicing,
    reason = "a missing field of a JSON value is null, and lists are indexed below their length"
)]

mod agreement;
mod judge;
mod known;
mod report;
// The random numbers of the worlds in tests/rules: one generator for both.
#[path = "../../rules/oracle/rng.rs"]
mod rng;

mod envoy;
mod envoy_gateway;
mod policy_machinery;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use judge::{Judge, JudgeError};
use known::KnownClasses;
use report::Report;

/// Compare entail with a controller
#[derive(Debug, Parser)]
#[command(name = "entail-controllers")]
pub struct Arguments {
    /// The controller to compare with
    #[arg(long, value_enum, required_unless_present = "agreement")]
    judge: Option<JudgeName>,
    /// The program of the judge
    #[arg(long, value_name = "FILE", required_unless_present = "agreement")]
    program: Option<PathBuf>,
    /// The binary of Envoy, for the judge `envoy`
    #[arg(long, value_name = "FILE", required_if_eq("judge", "envoy"))]
    proxy: Option<PathBuf>,
    /// The differences that are known
    #[arg(long, value_name = "FILE", required_unless_present = "agreement")]
    known: Option<PathBuf>,
    /// The number of random worlds
    #[arg(long, value_name = "N", default_value_t = 100)]
    worlds: u64,
    /// The seed of the first world
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Compare on the controller's own test inputs, too
    #[arg(long)]
    golden: bool,
    /// Write the report to this file as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the document for readers from reports, and compare nothing
    #[arg(long, value_name = "REPORT", num_args = 1.., conflicts_with = "judge")]
    agreement: Vec<PathBuf>,
}

/// The controllers that entail is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JudgeName {
    /// The translator of Envoy Gateway.
    EnvoyGateway,
    /// Envoy with the configuration of Envoy Gateway's translator: the rules of requests.
    Envoy,
    /// The topology and the order of policies of Kuadrant, with the strategies of its operator.
    PolicyMachinery,
}

/// What is compared in a run.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The seed of the first random world.
    pub seed: u64,
    /// The number of random worlds; their seeds follow one another.
    pub worlds: u64,
    /// Whether the controller's own test inputs are compared, too.
    pub golden: bool,
}

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The judge cannot be started or has ended.
    #[error("judge: {0}")]
    Judge(#[from] JudgeError),
    /// A file cannot be read, written or parsed.
    #[error("{0}: {1}")]
    File(String, String),
    /// An argument is missing.
    #[error("missing argument: {0}")]
    Argument(&'static str),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let passed = if arguments.agreement.is_empty() {
        compare(&arguments)
    } else {
        agreement::print(&arguments.agreement).map(|()| true)
    };
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the comparisons, prints the outcome, and returns whether all passed.
fn compare(arguments: &Arguments) -> Result<bool, RunError> {
    let name = arguments.judge.ok_or(RunError::Argument("--judge"))?;
    let program = arguments
        .program
        .as_ref()
        .ok_or(RunError::Argument("--program"))?;
    let file = arguments
        .known
        .as_ref()
        .ok_or(RunError::Argument("--known"))?;
    let known = KnownClasses::read(file)?;
    let mut judge = Judge::start(program)?;
    let scope = Scope {
        seed: arguments.seed,
        worlds: arguments.worlds,
        golden: arguments.golden,
    };
    let controller = match name {
        JudgeName::Envoy => envoy::controller(judge.controller()),
        JudgeName::EnvoyGateway | JudgeName::PolicyMachinery => judge.controller(),
    };
    let mut report = Report::new(controller, &scope);
    match name {
        JudgeName::Envoy => {
            let proxy = arguments.proxy.as_ref();
            let proxy = proxy.ok_or(RunError::Argument("--proxy"))?;
            envoy::run(&scope, proxy, &mut judge, &mut report)?;
        }
        JudgeName::EnvoyGateway => envoy_gateway::run(&scope, &mut judge, &mut report)?,
        JudgeName::PolicyMachinery => policy_machinery::run(&scope, &mut judge, &mut report)?,
    }
    let outcome = report.finish(&known);
    if let Some(path) = &arguments.report {
        let text = serde_json::to_string_pretty(&outcome)
            .map_err(|error| RunError::File(path.display().to_string(), error.to_string()))?;
        fs::write(path, text + "\n")
            .map_err(|error| RunError::File(path.display().to_string(), error.to_string()))?;
    }
    Ok(outcome.print())
}
