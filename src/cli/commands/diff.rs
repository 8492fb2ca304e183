//! `entail diff`: the differences in effective policies between two sets of manifests.

use std::path::PathBuf;

use clap::Args;

use super::args::{ControllerArgs, ManifestArgs};
use super::changes::ChangeReport;
use super::policies::short_kind;
use super::session::Session;
use super::{CliError, ExitStatus, Format, connect, console, report};
use crate::api::v1;

/// Arguments of `entail diff`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Compares effective policies, not texts. Exit code 1: a value or a path of A is missing in B.

Examples:
  entail diff examples/bakery new-bakery
  entail diff examples/bakery new-bakery --kind RetryPolicy -o yaml
  entail diff main.yaml branch.yaml --profiles profiles/")]
pub struct DiffArgs {
    /// Manifests before the change: a file or a directory.
    #[arg(value_name = "A")]
    pub before: PathBuf,
    /// Manifests after the change.
    #[arg(value_name = "B")]
    pub after: PathBuf,
    /// Profiles of policy kinds for both, in addition to those in the manifests. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub profiles: Vec<PathBuf>,
    /// What is known of controllers besides profiles.
    #[command(flatten)]
    pub controllers: ControllerArgs,
    /// Compare the readable files even if some files cannot be read.
    #[arg(long)]
    pub allow_partial: bool,
    /// How much a manifest may hold.
    #[command(flatten)]
    pub limits: ManifestArgs,
    /// Only this policy kind, as `Kind.group` or `Kind`. May be repeated.
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
    /// List everything, and not only the first entries.
    #[arg(long)]
    pub all: bool,
}

/// Runs the command.
pub(in crate::cli) fn run(args: &DiffArgs) -> Result<ExitStatus, CliError> {
    let connect::Comparison {
        reply,
        after,
        kinds_before,
    } = connect::compare(
        [&args.before, &args.after],
        &args.profiles,
        &args.controllers,
        args.allow_partial,
        args.limits,
    )?;
    let connect::Connection {
        mut backend,
        incomplete,
    } = after;
    let mut status = backend.server_status()?;
    // Include the kinds that only A has.
    for kind in kinds_before {
        if !status.kinds.iter().any(|other| other.kind == kind.kind) {
            status.kinds.push(kind);
        }
    }
    let session = Session {
        backend,
        kinds: selected_kinds(&args.kinds, &status),
        status,
        is_partial: incomplete,
    };
    let states = session.incomplete(&reply.kinds);
    let changes = ChangeReport::of(reply, &session.kinds);
    let style = console::style().listing_all(args.all);
    report::print_styled(&changes, args.output, &states, style)?;
    Ok(changes.exit(session.exit(&states)))
}

/// Returns the full names of kinds. A kind without a group selects all kinds of that name: it only
/// filters the differences, so that ambiguity is harmless.
fn selected_kinds(texts: &[String], status: &v1::GetServerStatusResponse) -> Vec<String> {
    let mut selected = Vec::new();
    for text in texts {
        let all = status.kinds.iter().map(|kind| kind.kind.as_str());
        let matching: Vec<String> = all
            .filter(|kind| {
                kind.eq_ignore_ascii_case(text) || short_kind(kind).eq_ignore_ascii_case(text)
            })
            .map(str::to_owned)
            .collect();
        match matching.is_empty() {
            true => selected.push(text.clone()),
            false => selected.extend(matching),
        }
    }
    selected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_group_selects_all_kinds_of_that_name() {
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
        assert_eq!(selected_kinds(&texts, &status), ["A.x", "A.y", "B.x", "C"]);
    }
}
