//! `entail preview`: the effect of a change on effective policies, before it is applied.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use super::args::CommonArgs;
use super::changes::ChangeReport;
use super::connect::read_values;
use super::document::Document;
use super::names::NameArgs;
use super::report::{self, Report};
use super::session::Session;
use super::{CliError, ExitStatus, QueryArgs, console};
use crate::api::v1;
use crate::app::files_of;

/// Maximum size of a manifest file, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Arguments of `entail preview`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Nothing is applied. Exit code 1: a value or a path would be lost.

Examples:
  entail preview --delete retrypolicy/baker/be-patient --manifests examples/bakery
  entail preview -f new-timeouts.yaml --manifests examples/bakery
  entail preview -f new-timeouts.yaml --server 127.0.0.1:50051 -o json
  kubectl kustomize overlays/prod | entail preview -f - --server 127.0.0.1:50051")]
pub struct PreviewArgs {
    /// Manifests to apply: files, directories, or `-` for standard input.
    #[arg(
        short = 'f',
        long = "filename",
        value_name = "FILE",
        num_args = 1..,
        required_unless_present = "deletes"
    )]
    pub files: Vec<PathBuf>,
    /// Object to delete, `kind/namespace/name`. May be repeated.
    #[arg(long = "delete", id = "deletes", value_name = "OBJECT")]
    pub deletes: Vec<String>,
    /// List everything, and not only the first entries.
    #[arg(long)]
    pub all: bool,
    /// The source, the kinds, and the output format.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Runs the command.
pub(in crate::cli) fn run(args: PreviewArgs) -> Result<ExitStatus, CliError> {
    let stdin = Path::new("-");
    if args.files.iter().any(|file| file == stdin)
        && args
            .common
            .source
            .manifests
            .iter()
            .any(|path| path == stdin)
    {
        return Err(CliError::Usage(
            "`-f -` and `--manifests -` both read standard input: write one of them to a file"
                .to_owned(),
        ));
    }
    let change = v1::PreviewChangeRequest {
        manifests: read_manifests(&args.files)?,
        deletes: args.deletes,
    };
    if change.manifests.trim().is_empty() && change.deletes.is_empty() {
        return Err(CliError::Unreadable(
            "`-f` has no manifests, so nothing would change: check the command that writes them"
                .to_owned(),
        ));
    }
    let allow_partial = args.common.source.allow_partial;
    let query = args.common.with_name(NameArgs::default());
    let mut session = Session::open(&query)?;
    let (changes, states) = effect(&mut session, change)?;
    let problems = changes.problems();
    for problem in problems {
        console::print_error(&format!(
            "warning: {}: {}",
            problem.location, problem.message
        ));
    }
    changes.print_warnings();
    if !problems.is_empty() && !allow_partial {
        session.is_partial = true;
    }
    let style = console::style().listing_all(args.all);
    report::print_styled(&changes, query.output, &states, style)?;
    Ok(changes.exit(session.exit(&states)))
}

/// The document that `-o json` prints of a change.
///
/// # Errors
/// The source or the manifests cannot be read.
pub(in crate::cli) fn document(
    query: &QueryArgs,
    change: v1::PreviewChangeRequest,
) -> Result<Document, CliError> {
    let mut session = Session::open(query)?;
    let (changes, states) = effect(&mut session, change)?;
    Ok(changes.document(&states))
}

/// The effect of a change, and the kinds that are not completely known.
fn effect(
    session: &mut Session,
    change: v1::PreviewChangeRequest,
) -> Result<(ChangeReport, Vec<v1::KindState>), CliError> {
    let reply = session.backend.preview_change(change);
    let reply = reply.map_err(|error| session.failure(error))?;
    let states = session.incomplete(&reply.kinds);
    Ok((ChangeReport::of(reply, &session.kinds), states))
}

/// Reads all files into one text of several YAML documents.
pub(super) fn read_manifests(files: &[PathBuf]) -> Result<String, CliError> {
    let mut text = String::new();
    for file in files {
        if file == Path::new("-") {
            append(&mut text, &read_limited(io::stdin().lock(), file)?);
            continue;
        }
        for file in files_of(file).map_err(|error| unreadable(file, &error))? {
            // Parse each file first: an error then names its file and line.
            read_values(&file)?;
            let opened = fs::File::open(&file).map_err(|error| unreadable(&file, &error))?;
            append(&mut text, &read_limited(opened, &file)?);
        }
    }
    Ok(text)
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push_str("\n---\n");
    }
    text.push_str(more.trim_start_matches('\u{feff}'));
}

/// Reads a text of at most [`MAX_BYTES`].
fn read_limited(reader: impl Read, name: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let mut reader = reader.take(MAX_BYTES + 1);
    let read = reader.read_to_string(&mut text);
    let bytes = read.map_err(|error| unreadable(name, &error))?;
    if bytes as u64 > MAX_BYTES {
        return Err(CliError::Unreadable(format!(
            "{}: more than 64 MiB: apply fewer manifests at once",
            name.display()
        )));
    }
    Ok(text)
}

fn unreadable(file: &Path, error: &io::Error) -> CliError {
    CliError::Unreadable(format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_documents_of_one_text_and_errors_name_their_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b.json"), "{\"b\": 1}").unwrap();
        fs::write(folder.path().join("a.yaml"), "\u{feff}a: 1\n").unwrap();
        fs::write(folder.path().join("notes.txt"), "[").unwrap();
        let text = read_manifests(&[folder.path().to_owned()]).unwrap();
        assert_eq!(text, "a: 1\n\n---\n{\"b\": 1}");
        let broken = folder.path().join("c.yaml");
        fs::write(&broken, "a: 1\nb: [").unwrap();
        let error = read_manifests(&[broken]).unwrap_err();
        assert!(error.to_string().contains("c.yaml:2"), "{error}");
        assert_eq!(error.exit(), ExitStatus::Incomplete);
        let gone = read_manifests(&[folder.path().join("gone")]).unwrap_err();
        assert_eq!(gone.exit(), ExitStatus::Incomplete);
    }
}
