//! `entail status`: every policy, whether it is accepted, how far it is in force, and who beats it.

use clap::Args;

use super::answer::{self, Answer};
use super::args::ReadArgs;
use super::document::Document;
use super::policies::{self, Named};
use super::session::Session;
use super::text::Style;
use super::{CliError, Exit, insight_messages, status_text};
use crate::api::v1;

/// Tells the statuses of policies.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Without POLICY all policies are told, by kind; with POLICY also what it refers to.

Examples:
  entail status --manifests examples/bakery
  entail status cachepolicy/platform/fresh-daily --manifests examples/bakery
  entail status --kind RetryPolicy --manifests examples/bakery -o yaml
  entail status --server 127.0.0.1:50051 -o json")]
pub struct StatusArgs {
    /// Only this policy, `kind/namespace/name`.
    #[arg(value_name = "POLICY")]
    pub policy: Option<String>,
    /// Where answers come from and how they are printed.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Policies with their statuses.
struct Statuses {
    version: Option<v1::Version>,
    policies: Vec<v1::PolicyStatus>,
    /// One policy was asked for: all of it is told.
    whole: bool,
}

impl Answer for Statuses {
    fn document(&self, states: &[v1::KindState]) -> Document {
        insight_messages::statuses(self.version.as_ref(), states, &self.policies)
    }

    fn table(&self, out: &mut dyn std::io::Write, style: Style) -> std::io::Result<()> {
        status_text::table(out, &self.policies, self.whole, style)
    }
}

/// Answers and prints.
pub(super) fn run(args: StatusArgs) -> Result<Exit, CliError> {
    let ask = args.read.ask(args.policy).settled();
    let mut session = Session::open(&ask)?;
    let name = ask.name.as_deref().filter(|name| !name.is_empty());
    let (statuses, states) = match name {
        Some(name) => {
            let Named { status, reply } = policies::named(&mut session, name, "")?;
            let states = session.incomplete(&reply.kinds);
            let statuses = Statuses {
                version: reply.version,
                policies: vec![status],
                whole: true,
            };
            (statuses, states)
        }
        None => {
            let all = policies::all(&mut session)?;
            let states = session.incomplete(&all.kinds);
            let statuses = Statuses {
                version: session.status.version.clone(),
                policies: all.policies,
                whole: false,
            };
            (statuses, states)
        }
    };
    answer::print(&statuses, ask.output, &states)?;
    Ok(session.exit(&states))
}
