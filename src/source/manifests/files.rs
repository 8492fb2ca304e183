//! Which files there are.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::content::FileFingerprint;
use super::{Problem, ProblemKind};

/// The path that stands for standard input.
pub(super) const STDIN: &str = "-";

/// A file to read, or to leave as it is.
#[derive(Debug)]
pub(super) struct FileEntry {
    pub path: PathBuf,
    pub mode: ReadMode,
}

#[derive(Debug)]
pub(super) enum ReadMode {
    /// A regular file in this state.
    File(FileFingerprint),
    /// Standard input or a pipe: it can be read once.
    Stream,
    /// It cannot be seen now; what was known of it stays.
    KeepLast,
}

/// Which entries of a directory matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryFilter {
    All,
    Names(BTreeSet<OsString>),
}

/// What there is.
#[derive(Debug, Default)]
pub(super) struct FileListing {
    /// The files, by root as given and in byte order of their paths.
    pub files: Vec<FileEntry>,
    /// What could not be looked at.
    pub problems: Vec<Problem>,
    /// The directories in which changes matter.
    pub folders: BTreeMap<PathBuf, EntryFilter>,
}

struct DirectoryWalk<'k> {
    known: &'k dyn Fn(&Path) -> Vec<PathBuf>,
    listing: FileListing,
    seen_files: BTreeSet<PathBuf>,
    /// Directories by their real paths: each is read once, so that links cannot lead in circles.
    seen_folders: BTreeSet<PathBuf>,
    files: Vec<FileEntry>,
}

/// What messages call a file.
pub(super) fn name_of(path: &Path) -> String {
    if path == Path::new(STDIN) {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Looks at the roots. `known` gives the files known at or under a path, which stay as they are
/// where the path cannot be looked at.
pub(super) fn list(roots: &[PathBuf], known: &dyn Fn(&Path) -> Vec<PathBuf>) -> FileListing {
    let mut walk = DirectoryWalk {
        known,
        listing: FileListing::default(),
        seen_files: BTreeSet::new(),
        seen_folders: BTreeSet::new(),
        files: Vec::new(),
    };
    for root in roots {
        walk.root(root);
        let mut files = std::mem::take(&mut walk.files);
        files.sort_by(|a, b| bytes(&a.path).cmp(bytes(&b.path)));
        walk.listing.files.append(&mut files);
    }
    walk.listing
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
}

impl DirectoryWalk<'_> {
    fn root(&mut self, root: &Path) {
        if root == Path::new(STDIN) {
            return self.add(root, ReadMode::Stream);
        }
        self.watch_root(root);
        let metadata = match fs::metadata(root) {
            Ok(metadata) => metadata,
            Err(error) => {
                // A file that is gone takes its objects along. That a whole directory is gone
                // is a failure of the source, like a file system that is not mounted.
                let mut kept = (self.known)(root);
                if error.kind() == io::ErrorKind::NotFound {
                    kept.retain(|path| path != root);
                }
                return self.unreadable(root, &error, kept);
            }
        };
        if metadata.is_dir() {
            self.folder(root);
        } else if metadata.is_file() {
            self.add(root, ReadMode::File(FileFingerprint::of(&metadata)));
        } else {
            self.add(root, ReadMode::Stream);
        }
    }

    fn add(&mut self, path: &Path, mode: ReadMode) {
        if self.seen_files.insert(path.to_owned()) {
            self.files.push(FileEntry {
                path: path.to_owned(),
                mode,
            });
        }
    }

    fn unreadable(&mut self, path: &Path, error: &io::Error, kept: Vec<PathBuf>) {
        self.listing.problems.push(Problem {
            path: name_of(path),
            line: None,
            message: format!("cannot be read: {error}: correct the path or its permissions"),
            kind: ProblemKind::Unreadable,
            kept_last_good: !kept.is_empty(),
            about: None,
        });
        for path in kept {
            self.add(&path, ReadMode::KeepLast);
        }
    }

    /// Reads a directory and all below it.
    fn folder(&mut self, root: &Path) {
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            let real = match fs::canonicalize(&folder) {
                Ok(real) => real,
                Err(error) => {
                    self.lost_folder(root, &folder, &error);
                    continue;
                }
            };
            if !self.seen_folders.insert(real) {
                continue;
            }
            self.listing
                .folders
                .insert(folder.clone(), EntryFilter::All);
            let entries = fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            match entries {
                Ok(mut entries) => {
                    // In a fixed order, for it decides by which name a linked directory is read.
                    entries.sort_by_key(fs::DirEntry::file_name);
                    for entry in entries.iter().rev() {
                        self.entry(entry, &mut folders);
                    }
                }
                Err(error) => self.lost_folder(root, &folder, &error),
            }
        }
    }

    /// A directory that cannot be read, unless it was deleted just after it was listed.
    fn lost_folder(&mut self, root: &Path, folder: &Path, error: &io::Error) {
        if folder == root || error.kind() != io::ErrorKind::NotFound {
            let kept = (self.known)(folder);
            self.unreadable(folder, error, kept);
        }
    }

    fn entry(&mut self, entry: &fs::DirEntry, folders: &mut Vec<PathBuf>) {
        // Hidden entries, among them `..data` of a mounted ConfigMap: its files are reached by
        // their links beside it.
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            return;
        }
        let path = entry.path();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => folders.push(path),
            Ok(metadata) if metadata.is_file() && is_manifest(&path) => {
                if is_link {
                    self.watch_target(&path);
                }
                self.add(&path, ReadMode::File(FileFingerprint::of(&metadata)));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if is_link && is_manifest(&path) {
                    self.unreadable(&path, &error, Vec::new());
                }
            }
            Err(error) => {
                let kept = (self.known)(&path);
                if is_manifest(&path) || !kept.is_empty() {
                    self.unreadable(&path, &error, kept);
                }
            }
        }
    }

    /// A root itself may come, go and be swapped: that shows in the directory above it.
    fn watch_root(&mut self, root: &Path) {
        let (Some(name), Some(parent)) = (root.file_name(), root.parent()) else {
            return;
        };
        let parent = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        if fs::symlink_metadata(root).is_ok_and(|metadata| metadata.is_symlink()) {
            // Any link on the way may be swapped, such as `..data`.
            self.listing
                .folders
                .insert(parent.to_owned(), EntryFilter::All);
            self.watch_target(root);
        } else {
            self.watch_name(parent, name);
        }
    }

    fn watch_target(&mut self, link: &Path) {
        if let Ok(target) = fs::canonicalize(link)
            && let (Some(name), Some(parent)) = (target.file_name(), target.parent())
        {
            self.watch_name(parent, name);
        }
    }

    fn watch_name(&mut self, folder: &Path, name: &OsStr) {
        let interest = self.listing.folders.entry(folder.to_owned());
        if let EntryFilter::Names(names) =
            interest.or_insert_with(|| EntryFilter::Names(BTreeSet::new()))
        {
            names.insert(name.to_owned());
        }
    }
}
