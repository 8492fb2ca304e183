//! `entail diff`: the differences in effective policies between two sets of manifests.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::args::{ControllerArgs, ManifestArgs};
use super::changes::ChangeReport;
use super::connect::ManifestSet;
use super::findings::Findings;
use super::policies::short_kind;
use super::review::Review;
use super::session::Session;
use super::{CliError, ExitStatus, Format, connect, console, report, review_markdown};
use crate::api::v1;
use crate::app::{Revision, RevisionRange};
use crate::insight::QueryBackend;

/// Output format of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// Human-readable table; on a terminal with short names of paths.
    #[default]
    Table,
    /// Human-readable table with full names of paths.
    Wide,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// Markdown, for a comment on a pull request.
    Markdown,
    /// SARIF 2.1.0, for code scanning: what the change takes away, and new findings.
    Sarif,
}

/// Arguments of `entail diff`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Compares effective policies, not texts. Exit code 1: a value or a path of A is missing in B; with
`-o markdown` or `sarif` also if an assertion breaks, a route moves away from a policy, a new path lacks a policy that all others of its
Gateway have, or an object has a new error.

Examples:
  entail diff examples/bakery new-bakery
  entail diff examples/bakery new-bakery --kind RetryPolicy -o yaml
  entail diff --git main..HEAD deploy/ -o markdown
  helm template . | entail diff live.yaml -")]
pub struct DiffArgs {
    /// Manifests before and after the change: two files or directories, `-` for standard input. With
    /// `--git`, the files and directories to compare; all if there are none.
    #[arg(value_name = "PATH", num_args = 0..)]
    pub paths: Vec<PathBuf>,
    /// Compare git revisions: `BASE..HEAD`, `BASE...HEAD` (since both parted), or `BASE` and the files of
    /// the work tree.
    #[arg(long, value_name = "RANGE")]
    pub git: Option<String>,
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
    #[arg(short, long, value_enum, default_value_t = DiffFormat::Table)]
    pub output: DiffFormat,
    /// List everything, and not only the first entries.
    #[arg(long)]
    pub all: bool,
}

/// Runs the command.
pub(in crate::cli) fn run(args: &DiffArgs) -> Result<ExitStatus, CliError> {
    let connect::Comparison {
        reply,
        mut before,
        after,
        kinds_before,
    } = connect::compare(
        sets(args)?,
        &args.profiles,
        &args.controllers,
        args.allow_partial,
        args.limits,
    )?;
    let connect::Connection {
        mut backend,
        incomplete,
        lacking,
    } = after;
    let mut status = backend.server_status()?;
    // Include the kinds that only A has.
    for kind in kinds_before {
        if !status.kinds.iter().any(|other| other.kind == kind.kind) {
            status.kinds.push(kind);
        }
    }
    let mut session = Session {
        backend,
        kinds: selected_kinds(&args.kinds, &status),
        status,
        is_partial: incomplete,
        lacking,
    };
    let states = session.incomplete(&reply.kinds);
    let changes = ChangeReport::of(reply, &session.kinds);
    let completeness = session.exit(&states);
    let format = match args.output {
        DiffFormat::Table => Format::Table,
        DiffFormat::Wide => Format::Wide,
        DiffFormat::Yaml => Format::Yaml,
        DiffFormat::Json => Format::Json,
        DiffFormat::Markdown | DiffFormat::Sarif => {
            let changes = changes.into_changes();
            return review(args, changes, (&mut *before, &mut session), &states);
        }
    };
    changes.print_warnings();
    let style = console::style().listing_all(args.all);
    report::print_styled(&changes, format, &states, style)?;
    Ok(changes.exit(completeness))
}

/// Prints what the change means for those who review it.
fn review(
    args: &DiffArgs,
    changes: v1::PreviewChangeResponse,
    (before, session): (&mut dyn QueryBackend, &mut Session),
    states: &[v1::KindState],
) -> Result<ExitStatus, CliError> {
    let review = Review::of(changes, before, &mut *session.backend, &session.kinds)?;
    let mut out = console::stdout();
    match args.output {
        DiffFormat::Sarif => {
            let version = session.status.version.clone();
            let found = review.findings().into_iter();
            let found = found.chain(review.new_findings.clone()).collect();
            let found = Findings::new(version, found, 0, |_| true);
            out.write_all(found.sarif(states)?.as_bytes())?;
        }
        _ => review_markdown::write(&mut out, &review, states, args.all)?,
    }
    out.flush()?;
    Ok(match session.exit(states) {
        ExitStatus::Success if review.changes.truncated => ExitStatus::Incomplete,
        ExitStatus::Success if review.has_losses() => ExitStatus::Findings,
        exit => exit,
    })
}

/// The two sets of manifests.
fn sets(args: &DiffArgs) -> Result<[ManifestSet; 2], CliError> {
    let of = |paths: Vec<PathBuf>, revision| ManifestSet { paths, revision };
    let Some(range) = &args.git else {
        return match args.paths.as_slice() {
            [before, after] => Ok([of(vec![before.clone()], None), of(vec![after.clone()], None)]),
            _ => Err(CliError::Usage(
                "two PATHs are required: the manifests before and after the change; or `--git BASE..HEAD`".to_owned(),
            )),
        };
    };
    let range = RevisionRange::parse(range)?;
    let paths = match args.paths.is_empty() {
        true => vec![PathBuf::from(".")],
        false => args.paths.clone(),
    };
    let before = Revision::read(&range.before, &paths)?;
    let after = match &range.after {
        Some(after) => Some(Revision::read(after, &paths)?),
        None => None,
    };
    // A path that is nowhere is a typo: nothing would be compared, and nothing lost.
    for (index, path) in paths.iter().enumerate() {
        let has_after = match &after {
            Some(after) => after.has(index),
            None => path.exists(),
        };
        if !before.has(index) && !has_after {
            let path = path.display();
            return Err(CliError::Usage(format!(
                "`{path}` has no manifests before and after the change: correct the path"
            )));
        }
    }
    let here = paths.iter().filter(|path| path.exists()).cloned().collect();
    Ok([of(paths.clone(), Some(before)), of(here, after)])
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
