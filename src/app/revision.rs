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
    /// The paths that were asked for, in the folder, and whether the revision has manifests there.
    roots: Vec<(PathBuf, bool)>,
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
    /// Writes the manifests of a revision below some paths, relative to the current folder, to a temporary folder. A path
    /// that the revision does not have is left out: see [`Revision::has`].
    ///
    /// # Errors
    /// There is no such revision, a path is outside of the repository, or git fails.
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
        let top = PathBuf::from(first_line(&["rev-parse", "--show-toplevel"])?);
        let folder = TempDir::new().map_err(|error| failed("a temporary folder", &error))?;
        let mut roots = Vec::with_capacity(paths.len());
        for path in paths {
            let path = in_repository(&top, path)?;
            let files = tree(&top, &commit, &path)?;
            write(folder.path(), &files)?;
            roots.push((folder.path().join(&path), !files.is_empty()));
        }
        Ok(Self {
            folder,
            name: name.to_owned(),
            roots,
        })
    }

    /// The paths that were asked for and that the revision has, in the temporary folder.
    pub fn roots(&self) -> Vec<PathBuf> {
        let roots = self.roots.iter().filter(|(_, exists)| *exists);
        let roots: Vec<PathBuf> = roots.map(|(root, _)| root.clone()).collect();
        match roots.is_empty() {
            true => vec![self.folder.path().to_owned()],
            false => roots,
        }
    }

    /// Whether the revision has manifests at the path with this index.
    pub fn has(&self, index: usize) -> bool {
        self.roots.get(index).is_some_and(|(_, exists)| *exists)
    }

    /// A message with the names of files in the revision instead of those in the temporary folder.
    pub fn named(&self, message: &str) -> String {
        let folder = format!("{}/", self.folder.path().display());
        message.replace(&folder, &format!("{}:", self.name))
    }
}

/// A path relative to the root of the repository.
fn in_repository(top: &Path, path: &Path) -> Result<PathBuf, AppError> {
    let name = path.display();
    let here = std::env::current_dir().and_then(std::fs::canonicalize);
    let here = here.map_err(|error| failed("the current folder", &error))?;
    let top = std::fs::canonicalize(top).map_err(|error| failed("the repository", &error))?;
    let inside = lexical(&here.join(path));
    let inside = inside.strip_prefix(&top);
    let inside = inside.map_err(|_| usage(format!("`{name}` is outside of the repository")))?;
    Ok(inside.to_owned())
}

/// A path without `.` and `..`, by its names alone: the path need not exist.
fn lexical(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                found.pop();
            }
            part => found.push(part),
        }
    }
    found
}

/// The YAML and JSON files of a commit below a path, or the file that the path is. Links are followed inside of the
/// repository.
fn tree(top: &Path, commit: &str, path: &Path) -> Result<Vec<TreeFile>, AppError> {
    let mut files = Vec::new();
    let mut links: Vec<TreeFile> = Vec::new();
    for (mode, object, found) in list(top, commit, path)? {
        match &*mode {
            "120000" => links.push((object, found)),
            _ if mode.starts_with("100") && (found == path || is_manifest(&found)) => {
                files.push((object, found));
            }
            // A submodule has no files here.
            _ => {}
        }
    }
    for (object, link) in links {
        let target = first_line_in(top, &["cat-file", "blob", &object])?;
        let target = lexical(&link.parent().unwrap_or(Path::new("")).join(target));
        for (mode, object, found) in list(top, commit, &target)? {
            let below = found.strip_prefix(&target).unwrap_or(Path::new(""));
            let named = match below.as_os_str().is_empty() {
                true => link.clone(),
                false => link.join(below),
            };
            if mode.starts_with("100") && (is_manifest(&found) || is_manifest(&named)) {
                files.push((object, named));
            } else if mode == "120000" && is_manifest(&found) {
                let (link, found) = (link.display(), found.display());
                let message =
                    format!("{link}: {found} is a link behind a link, which is not followed");
                return Err(AppError::Input(vec![message]));
            }
        }
    }
    Ok(files)
}

/// The entries of a commit at a path and below it: mode, object and path.
fn list(top: &Path, commit: &str, path: &Path) -> Result<Vec<(String, String, PathBuf)>, AppError> {
    let mut command = git(&["ls-tree", "-r", "-z", commit]);
    command.current_dir(top);
    if !path.as_os_str().is_empty() {
        command.arg("--").arg(path);
    }
    let output = command.output().map_err(|error| failed("git", &error))?;
    if !output.status.success() {
        return Err(told(&output.stderr));
    }
    let mut found = Vec::new();
    for entry in output.stdout.split(|byte| *byte == 0) {
        let entry = String::from_utf8_lossy(entry);
        let Some((about, path)) = entry.split_once('\t') else {
            continue;
        };
        // Mode, type, object.
        let mut about = about.split(' ');
        if let (Some(mode), Some(object)) = (about.next(), about.nth(1)) {
            found.push((mode.to_owned(), object.to_owned(), PathBuf::from(path)));
        }
    }
    Ok(found)
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
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
    first_line_in(Path::new("."), args)
}

fn first_line_in(folder: &Path, args: &[&str]) -> Result<String, AppError> {
    let output = git(args).current_dir(folder).output();
    let output = output.map_err(|error| failed("git", &error))?;
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
        assert_eq!(
            lexical(Path::new("/a/./b/../c.yaml")),
            Path::new("/a/c.yaml")
        );
    }
}
