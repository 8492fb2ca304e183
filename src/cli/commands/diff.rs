//! `entail diff`: what changes between two sets of manifests.

use std::path::PathBuf;

use clap::Args;

use super::args::ManifestArgs;
use super::changes::ChangeReport;
use super::policies::short_kind;
use super::session::Session;
use super::{CliError, ExitStatus, Format, connect, report};
use crate::api::v1;

/// Compares two sets of manifests.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Not the texts are compared but what they come to. Exit code 1 tells that something gets lost: a
value that is there in A, or a path.

Examples:
  entail diff examples/bakery new-bakery
  entail diff examples/bakery new-bakery --kind RetryPolicy -o yaml
  entail diff main.yaml branch.yaml --profiles profiles/")]
pub struct DiffArgs {
    /// The manifests as they are: a file or a directory.
    #[arg(value_name = "A")]
    pub before: PathBuf,
    /// The manifests as they are to be.
    #[arg(value_name = "B")]
    pub after: PathBuf,
    /// Profiles of policy kinds for both, beside those in the manifests. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub profiles: Vec<PathBuf>,
    /// Compare what can be read, even if some files cannot.
    #[arg(long)]
    pub allow_partial: bool,
    /// How much a manifest may hold.
    #[command(flatten)]
    pub limits: ManifestArgs,
    /// Only this policy kind, as `Kind.group` or `Kind`. May be repeated.
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// Compares and prints.
pub(in crate::cli) fn run(args: &DiffArgs) -> Result<ExitStatus, CliError> {
    let connect::Comparison {
        reply,
        after,
        known,
    } = connect::compare(
        [&args.before, &args.after],
        &args.profiles,
        args.allow_partial,
        args.limits,
    )?;
    let connect::Connection {
        mut ask,
        incomplete,
    } = after;
    let mut status = ask.server_status()?;
    // A kind that only A describes is known, too.
    for kind in known {
        if !status.kinds.iter().any(|other| other.kind == kind.kind) {
            status.kinds.push(kind);
        }
    }
    let session = Session {
        ask,
        kinds: wanted(&args.kinds, &status),
        status,
        is_partial: incomplete,
    };
    let states = session.incomplete(&reply.kinds);
    let changes = ChangeReport::of(reply, &session.kinds);
    report::print(&changes, args.output, &states)?;
    Ok(changes.exit(session.exit(&states)))
}

/// The full names of kinds. One that is written without its group stands for all of that name:
/// here it chooses what is told, and nothing is asked in its name.
fn wanted(texts: &[String], status: &v1::GetServerStatusResponse) -> Vec<String> {
    let mut found = Vec::new();
    for text in texts {
        let known = status.kinds.iter().map(|kind| kind.kind.as_str());
        let same: Vec<String> = known
            .filter(|kind| {
                kind.eq_ignore_ascii_case(text) || short_kind(kind).eq_ignore_ascii_case(text)
            })
            .map(str::to_owned)
            .collect();
        match same.is_empty() {
            true => found.push(text.clone()),
            false => found.extend(same),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_group_stands_for_all_of_its_name() {
        let status = v1::GetServerStatusResponse {
            kinds: ["A.x", "A.y", "B.x"]
                .map(|kind| v1::KindStatus {
                    kind: kind.to_owned(),
                    ..v1::KindStatus::default()
                })
                .into(),
            ..v1::GetServerStatusResponse::default()
        };
        let texts = ["a", "b.X", "C"].map(str::to_owned);
        assert_eq!(wanted(&texts, &status), ["A.x", "A.y", "B.x", "C"]);
    }
}
