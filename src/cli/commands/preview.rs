//! `entail preview`: what would change, before anyone applies it.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use super::args::CommonArgs;
use super::changes::ChangeReport;
use super::connect::read_values;
use super::report;
use super::session::Session;
use super::{CliError, ExitStatus, console};
use crate::api::v1;
use crate::app::files_of;

/// Most bytes of what is to be applied.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Tells what a change would do.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Nothing is applied. Exit code 1 tells that something gets lost: a value that is there now, or a
path.

Examples:
  entail preview --delete retrypolicy/baker/be-patient --manifests examples/bakery
  entail preview -f new-timeouts.yaml --manifests examples/bakery
  entail preview -f new-timeouts.yaml --server 127.0.0.1:50051 -o json
  kubectl kustomize overlays/prod | entail preview -f - --server 127.0.0.1:50051")]
pub struct PreviewArgs {
    /// Manifests that would be applied: files, directories, or `-` for standard input.
    #[arg(
        short = 'f',
        long = "filename",
        value_name = "FILE",
        num_args = 1..,
        required_unless_present = "deletes"
    )]
    pub files: Vec<PathBuf>,
    /// An object that would be deleted, `kind/namespace/name`. May be repeated.
    #[arg(long = "delete", id = "deletes", value_name = "OBJECT")]
    pub deletes: Vec<String>,
    /// Where answers come from and how they are printed.
    #[command(flatten)]
    pub read: CommonArgs,
}

/// Answers and prints.
pub(in crate::cli) fn run(args: PreviewArgs) -> Result<ExitStatus, CliError> {
    let stdin = Path::new("-");
    if args.files.iter().any(|file| file == stdin)
        && args.read.source.manifests.iter().any(|path| path == stdin)
    {
        return Err(CliError::Usage(
            "`-f -` and `--manifests -` both read standard input: write one of them to a file"
                .to_owned(),
        ));
    }
    let manifests = read(&args.files)?;
    let allow_partial = args.read.source.allow_partial;
    let ask = args.read.with_name(None);
    let mut session = Session::open(&ask)?;
    let reply = session.ask.preview_change(v1::PreviewChangeRequest {
        manifests,
        deletes: args.deletes,
    })?;
    for problem in &reply.problems {
        console::print_error(&format!("warning: {}: {}", problem.place, problem.message));
    }
    if !reply.problems.is_empty() && !allow_partial {
        session.is_partial = true;
    }
    let states = session.incomplete(&reply.kinds);
    let changes = ChangeReport::of(reply, &session.kinds);
    report::print(&changes, ask.output, &states)?;
    Ok(changes.exit(session.exit(&states)))
}

/// The text of all files as one of many documents.
fn read(files: &[PathBuf]) -> Result<String, CliError> {
    let mut text = String::new();
    for file in files {
        if file == Path::new("-") {
            append(&mut text, &limited(io::stdin().lock(), file)?);
            continue;
        }
        for file in files_of(file).map_err(|error| unreadable(file, &error))? {
            // A broken one would break them all: it is told with its own name and line.
            read_values(&file)?;
            let opened = fs::File::open(&file).map_err(|error| unreadable(&file, &error))?;
            append(&mut text, &limited(opened, &file)?);
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

/// The text of a reader that does not end too late.
fn limited(reader: impl Read, name: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let mut reader = reader.take(MOST_BYTES + 1);
    let read = reader.read_to_string(&mut text);
    let bytes = read.map_err(|error| unreadable(name, &error))?;
    if bytes as u64 > MOST_BYTES {
        return Err(CliError::Unreadable(format!(
            "{}: more than 64 MiB: give less at a time",
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
    fn files_become_documents_of_one_text() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b.json"), "{\"b\": 1}").unwrap();
        fs::write(folder.path().join("a.yaml"), "\u{feff}a: 1\n").unwrap();
        fs::write(folder.path().join("notes.txt"), "[").unwrap();
        let text = read(&[folder.path().to_owned()]).unwrap();
        assert_eq!(text, "a: 1\n\n---\n{\"b\": 1}");
        let broken = folder.path().join("c.yaml");
        fs::write(&broken, "a: 1\nb: [").unwrap();
        let error = read(&[broken]).unwrap_err();
        assert!(error.to_string().contains("c.yaml:2"), "{error}");
        assert_eq!(error.exit(), ExitStatus::Incomplete);
        let gone = read(&[folder.path().join("gone")]).unwrap_err();
        assert_eq!(gone.exit(), ExitStatus::Incomplete);
    }
}
