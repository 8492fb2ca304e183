//! `entail status`: policies with their conditions, how far they are in force, and what overrides
//! them.

use clap::Args;

use super::args::CommonArgs;
use super::document::Document;
use super::names::NameArgs;
use super::policies::{self, NamedPolicy};
use super::report::{self, Report};
use super::session::Session;
use super::text::Style;
use super::{CliError, ExitStatus, insight_json, parameters_text, status_text};
use crate::api::v1;

/// Arguments of `entail status`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Without NAME, lists all policies by kind; with the NAME of a policy, also shows its references.

Examples:
  entail status --manifests examples/bakery
  entail status cachepolicy/platform/fresh-daily --manifests examples/bakery
  entail status --kind RetryPolicy --manifests examples/bakery -o yaml
  entail status --server 127.0.0.1:50051 -o json")]
pub struct StatusArgs {
    /// The policy; all if there is none.
    #[command(flatten)]
    pub policy: NameArgs,
    /// The source, the kinds, and the output format.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Policy statuses of one snapshot.
struct StatusReport {
    version: Option<v1::Version>,
    policies: Vec<v1::PolicyStatus>,
    parameters: Vec<v1::UnreadParameters>,
    /// One policy was requested: print it in full.
    is_single: bool,
}

impl Report for StatusReport {
    fn document(&self, states: &[v1::KindState]) -> Document {
        insight_json::statuses(
            self.version.as_ref(),
            states,
            &self.policies,
            &self.parameters,
        )
    }

    fn table(&self, out: &mut dyn std::io::Write, style: Style) -> std::io::Result<()> {
        status_text::table(out, &self.policies, self.is_single, style)?;
        parameters_text::notes(out, &self.parameters)
    }
}

/// Runs the command.
pub(in crate::cli) fn run(args: StatusArgs) -> Result<ExitStatus, CliError> {
    let query = args.common.with_name(args.policy).recover_name();
    let name = query.name()?;
    let mut session = Session::open(&query)?;
    let (statuses, states) = match name.as_deref() {
        Some(name) => {
            let NamedPolicy { status, reply } = policies::get_policy(&mut session, name, "")?;
            let states = session.incomplete(&reply.kinds);
            let statuses = StatusReport {
                version: reply.version,
                policies: vec![status],
                parameters: Vec::new(),
                is_single: true,
            };
            (statuses, states)
        }
        None => {
            let all = policies::list_policies(&mut session)?;
            let states = session.incomplete(&all.kinds);
            let statuses = StatusReport {
                version: session.status.version.clone(),
                policies: all.policies,
                parameters: all.parameters,
                is_single: false,
            };
            (statuses, states)
        }
    };
    report::print(&statuses, query.output, &states)?;
    Ok(session.exit(&states))
}
