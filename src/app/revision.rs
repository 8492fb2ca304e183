//! The manifests of a git revision, in a temporary folder.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::AppError;

/// The longest file that is read, in bytes: what manifests may have at most.
const MAX_FILE_BYTES: u64 = 2 << 30;

/// The manifests of a git revision. The folder is deleted when it is dropped.
#[derive(Debug)]
pub struct Revision {
    folder: TempDir,
    /// The name of the revision, for messages.
    name: String,
    /// The paths that were asked for, in the folder.
    roots: Vec<PathBuf>,
}

/// Two revisions to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionRange {
    /// The revision before the change.
    pub before: String,
    /// The revision after it; `None` for the files of the work tree.
    pub after: Option<String>,
}

/// A file of a revision: its object and its path.
type TreeFile = (String, PathBuf);

impl RevisionRange {
    /// Parses `BASE..HEAD`, `BASE...HEAD` (from where both parted), or `BASE` (the work tree is after it).
    ///
    /// # Errors
    /// A revision is empty, or git finds no revision where both parted.
    pub fn parse(text: &str) -> Result<Self, AppError> {
        let (before, after, is_since_fork) = match text.split_once("...") {
            Some((before, after)) => (before, Some(after), true),
            None => match text.split_once("..") {
                Some((before, after)) => (before, Some(after), false),
                None => (text, None, false),
            },
        };
        let after = after.map(|after| if after.is_empty() { "HEAD" } else { after });
        if before.is_empty() {
            return Err(usage(format!(
                "`{text}` names no revision: use `BASE..HEAD`"
            )));
        }
        let before = match after.filter(|_| is_since_fork) {
            Some(after) => first_line(&["merge-base", "--end-of-options", before, after])?,
            None => before.to_owned(),
        };
        Ok(Self {
            before,
            after: after.map(str::to_owned),
        })
    }
}

impl Revision {
    /// Writes the manifests of a revision below some paths, relative to the current folder, to a temporary folder.
    ///
    /// # Errors
    /// There is no such revision, it has none of the paths, or git fails.
    pub fn read(name: &str, paths: &[PathBuf]) -> Result<Self, AppError> {
        let commit = format!("{name}^{{commit}}");
        let commit = first_line(&[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &commit,
        ])
        .map_err(|_| usage(format!("git knows no revision `{name}` here")))?;
        let folder = TempDir::new().map_err(|error| failed("a temporary folder", &error))?;
        let files = tree(&commit, paths)?;
        write(folder.path(), &files)?;
        let roots = paths.iter().map(|path| folder.path().join(normal(path)));
        let roots: Vec<PathBuf> = roots.collect();
        for root in &roots {
            // A folder that a revision does not have has no manifests there.
            if !root.exists() {
                std::fs::create_dir_all(root)
                    .map_err(|error| failed("a temporary folder", &error))?;
            }
        }
        Ok(Self {
            folder,
            name: name.to_owned(),
            roots,
        })
    }

    /// The paths that were asked for, in the temporary folder.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// A message with the names of files in the revision instead of those in the temporary folder.
    pub fn named(&self, message: &str) -> String {
        let folder = format!("{}/", self.folder.path().display());
        message.replace(&folder, &format!("{}:", self.name))
    }
}

/// The YAML and JSON files of a commit below some paths.
fn tree(commit: &str, paths: &[PathBuf]) -> Result<Vec<TreeFile>, AppError> {
    let mut command = git(&["ls-tree", "-r", "-z", commit, "--"]);
    command.args(paths);
    let output = command.output().map_err(|error| failed("git", &error))?;
    if !output.status.success() {
        return Err(told(&output.stderr));
    }
    let mut files = Vec::new();
    for entry in output.stdout.split(|byte| *byte == 0) {
        let entry = String::from_utf8_lossy(entry);
        let Some((about, path)) = entry.split_once('\t') else {
            continue;
        };
        // Mode, type, object. Links and submodules are no files.
        let mut about = about.split(' ');
        let is_file = about.next().is_some_and(|mode| mode.starts_with("100"));
        let path = PathBuf::from(path);
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_manifest = matches!(extension, Some("yaml" | "yml" | "json"));
        if let Some(object) = about.nth(1).filter(|_| is_file && is_manifest) {
            files.push((object.to_owned(), path));
        }
    }
    Ok(files)
}

/// Writes files to a folder, by one process of git.
fn write(folder: &Path, files: &[TreeFile]) -> Result<(), AppError> {
    let mut process = git(&["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed("git", &error))?;
    let written = copy_objects(&mut process, folder, files);
    // Without its input, git ends.
    drop(process.stdin.take());
    let ended = process.wait();
    written?;
    ended.map(drop).map_err(|error| failed("git", &error))
}

fn copy_objects(process: &mut Child, folder: &Path, files: &[TreeFile]) -> Result<(), AppError> {
    let (Some(input), Some(output)) = (process.stdin.as_mut(), process.stdout.take()) else {
        return Err(AppError::Process("git has no input or output".to_owned()));
    };
    let mut output = BufReader::new(output);
    for (object, path) in files {
        let fail = |error: &std::io::Error| failed(&path.display().to_string(), error);
        writeln!(input, "{object}")
            .and_then(|()| input.flush())
            .map_err(|error| fail(&error))?;
        let mut header = String::new();
        output
            .read_line(&mut header)
            .map_err(|error| fail(&error))?;
        let size = header
            .trim_end()
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse::<u64>().ok());
        let Some(size) = size.filter(|size| *size <= MAX_FILE_BYTES) else {
            return Err(AppError::Input(vec![format!(
                "{}: git does not return it",
                path.display()
            )]));
        };
        let target = folder.join(normal(path));
        let parent = target.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|error| fail(&error))?;
        let mut file = std::fs::File::create(&target).map_err(|error| fail(&error))?;
        std::io::copy(&mut output.by_ref().take(size), &mut file).map_err(|error| fail(&error))?;
        // A line break follows each object.
        output.read_exact(&mut [0]).map_err(|error| fail(&error))?;
    }
    Ok(())
}

/// The parts of a path that are names: nothing is written outside of the temporary folder.
fn normal(path: &Path) -> PathBuf {
    let names = path
        .components()
        .filter(|part| matches!(part, Component::Normal(_)));
    names.collect()
}

fn git(args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(args);
    command
}

fn first_line(args: &[&str]) -> Result<String, AppError> {
    let output = git(args).output().map_err(|error| failed("git", &error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next().filter(|_| output.status.success()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(told(&output.stderr)),
    }
}

fn told(stderr: &[u8]) -> AppError {
    let text = String::from_utf8_lossy(stderr);
    AppError::Input(vec![format!("git: {}", text.trim())])
}

fn failed(what: &str, error: &std::io::Error) -> AppError {
    AppError::Input(vec![format!("{what}: {error}")])
}

fn usage(message: String) -> AppError {
    AppError::Usage(vec![message])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_git() {
        let range = |text: &str| RevisionRange::parse(text).unwrap();
        let of = |before: &str, after: Option<&str>| RevisionRange {
            before: before.to_owned(),
            after: after.map(str::to_owned),
        };
        assert_eq!(range("main..topic"), of("main", Some("topic")));
        assert_eq!(range("main.."), of("main", Some("HEAD")));
        assert_eq!(range("main"), of("main", None));
        assert!(RevisionRange::parse("..topic").is_err());
    }

    #[test]
    fn nothing_is_written_outside_of_the_folder() {
        assert_eq!(normal(Path::new("../a/./b.yaml")), Path::new("a/b.yaml"));
        assert_eq!(normal(Path::new("/a/b.yaml")), Path::new("a/b.yaml"));
        assert_eq!(normal(Path::new(".")), Path::new(""));
    }
}
