//! Lists the manifest files below the configured paths, and the directories to watch.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::content::FileFingerprint;
use super::{Problem, ProblemKind};

/// The number of links that are followed to a target, as by Linux.
const MAX_LINKS: usize = 40;
/// The path of standard input.
pub(super) const STDIN: &str = "-";

/// A listed file, and how to read it.
#[derive(Debug)]
pub(super) struct FileEntry {
    pub path: PathBuf,
    pub mode: ReadMode,
}

/// How to read a listed file.
#[derive(Debug)]
pub(super) enum ReadMode {
    /// A regular file, with its current fingerprint.
    File(FileFingerprint),
    /// Standard input or a pipe, which can be read only once.
    Stream,
    /// The file cannot be accessed at present; its last version stays in use.
    KeepLast,
}

/// The entries of a directory whose changes are relevant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryFilter {
    All,
    Names(BTreeSet<OsString>),
}

/// The result of listing files.
#[derive(Debug, Default)]
pub(super) struct FileListing {
    /// The files: roots in their given order, and files of a root in byte order of their paths.
    pub files: Vec<FileEntry>,
    /// Paths that could not be accessed.
    pub problems: Vec<Problem>,
    /// The directories to watch.
    pub folders: BTreeMap<PathBuf, EntryFilter>,
    /// Whether all roots are directories without symbolic links, so that events name each file that changes by the path
    /// that it has here.
    pub is_plain: bool,
}

/// The result of looking at a path of an event of the file system.
pub(super) enum EventPath {
    /// A file that was listed, which still is a regular file.
    File(FileEntry),
    /// Nothing that is read.
    Irrelevant,
}

struct DirectoryWalk<'k> {
    known: &'k dyn Fn(&Path) -> Vec<PathBuf>,
    listing: FileListing,
    seen_files: BTreeSet<PathBuf>,
    /// The canonical paths of directories. Each is read once, so symbolic links cannot form cycles.
    seen_folders: BTreeSet<PathBuf>,
    files: Vec<FileEntry>,
}

/// Returns the name of a file in messages.
pub(super) fn name_of(path: &Path) -> String {
    if path == Path::new(STDIN) {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Lists the files at and below the roots. `known` returns the files that were listed before at or
/// below a path; they are kept if the path cannot be accessed.
pub(super) fn list(roots: &[PathBuf], known: &dyn Fn(&Path) -> Vec<PathBuf>) -> FileListing {
    let mut walk = DirectoryWalk {
        known,
        listing: FileListing {
            is_plain: true,
            ..FileListing::default()
        },
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

/// Looks at a path in a directory of manifests; returns `None` if all files must be listed. `is_listed`: whether a
/// listing found a file at the path.
pub(super) fn at_event(path: &Path, is_listed: bool) -> Option<EventPath> {
    let name = path.file_name()?.as_encoded_bytes();
    let is_manifest = !name.starts_with(b".") && is_manifest(path);
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() && is_listed && !is_hard_linked(&metadata) => {
            Some(EventPath::File(FileEntry {
                path: path.to_owned(),
                mode: ReadMode::File(FileFingerprint::of(&metadata)),
            }))
        }
        // Such as the file that a writer renames afterwards.
        Ok(metadata)
            if metadata.is_file() && !is_listed && !is_manifest && !is_hard_linked(&metadata) =>
        {
            Some(EventPath::Irrelevant)
        }
        // A directory that had files is watched itself, and an event of it lists all.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_listed => {
            Some(EventPath::Irrelevant)
        }
        _ => None,
    }
}

/// Whether the file has several names: events report an edit by the one that was used.
#[cfg(unix)]
fn is_hard_linked(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.nlink() > 1
}

#[cfg(not(unix))]
fn is_hard_linked(_: &fs::Metadata) -> bool {
    false
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
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
            self.listing.is_plain = false;
            return self.add(root, ReadMode::Stream);
        }
        self.watch_root(root);
        let metadata = match fs::metadata(root) {
            Ok(metadata) => metadata,
            Err(error) => {
                // The objects of a deleted file are deleted. A missing directory, and a link without its target, is a
                // failure of the source, such as a file system that is not mounted: its files are kept.
                let mut kept = (self.known)(root);
                if error.kind() == io::ErrorKind::NotFound && !is_link(root) {
                    kept.retain(|path| path != root);
                }
                return self.unreadable(root, &error, kept);
            }
        };
        self.listing.is_plain &= metadata.is_dir();
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

    /// Lists a directory and all directories below it.
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
                    // The order determines the name by which a linked directory is read.
                    entries.sort_by_key(fs::DirEntry::file_name);
                    for entry in entries.iter().rev() {
                        self.entry(entry, &mut folders);
                    }
                }
                Err(error) => self.lost_folder(root, &folder, &error),
            }
        }
    }

    /// Reports a directory that cannot be read, unless it was deleted after it was listed.
    fn lost_folder(&mut self, root: &Path, folder: &Path, error: &io::Error) {
        if folder == root || error.kind() != io::ErrorKind::NotFound {
            let kept = (self.known)(folder);
            self.unreadable(folder, error, kept);
        }
    }

    fn entry(&mut self, entry: &fs::DirEntry, folders: &mut Vec<PathBuf>) {
        // Hidden entries are skipped. Among them is `..data` of a mounted ConfigMap, whose files are
        // reached through the links beside it.
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            return;
        }
        let path = entry.path();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        self.listing.is_plain &= !is_link;
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                if is_link {
                    self.watch_target(&path);
                }
                folders.push(path);
            }
            Ok(metadata) if metadata.is_file() && is_manifest(&path) => {
                if is_link {
                    self.watch_target(&path);
                }
                self.add(&path, ReadMode::File(FileFingerprint::of(&metadata)));
            }
            Ok(_) => {}
            // Deleted after it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_link => {}
            Err(error) => {
                // What was read by a link without its target stays in use until the link is deleted: whoever replaces
                // the target may be about to. A link without an extension may have been one to a directory.
                let kept = (self.known)(&path);
                let may_be_folder = is_link && path.extension().is_none();
                if is_manifest(&path) || may_be_folder || !kept.is_empty() {
                    self.unreadable(&path, &error, kept);
                }
            }
        }
    }

    /// Watches the parent directory of a root, because the root itself may be created, deleted or
    /// replaced.
    fn watch_root(&mut self, root: &Path) {
        let (Some(name), Some(parent)) = (root.file_name(), root.parent()) else {
            return;
        };
        let parent = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        if is_link(root) {
            // Any link on the way to the target may be replaced, such as `..data`.
            self.listing.is_plain = false;
            self.listing
                .folders
                .insert(parent.to_owned(), EntryFilter::All);
            self.watch_target(root);
        } else {
            self.watch_name(parent, name);
        }
    }

    /// Watches what a link leads to, and each link on the way: any of them may be replaced.
    fn watch_target(&mut self, link: &Path) {
        let mut at = link.to_owned();
        for _ in 0..MAX_LINKS {
            let Ok(target) = fs::read_link(&at) else {
                break;
            };
            let folder = at.parent().unwrap_or(Path::new("."));
            at = folder.join(target);
            let real = at.parent().and_then(|parent| fs::canonicalize(parent).ok());
            if let (Some(name), Some(parent)) = (at.file_name(), real) {
                self.watch_name(&parent, name);
            }
        }
        if let Ok(target) = fs::canonicalize(link)
            && let (Some(name), Some(parent)) = (target.file_name(), target.parent())
        {
            self.watch_name(parent, name);
        }
    }

    fn watch_name(&mut self, folder: &Path, name: &OsStr) {
        let filter = self.listing.folders.entry(folder.to_owned());
        if let EntryFilter::Names(names) =
            filter.or_insert_with(|| EntryFilter::Names(BTreeSet::new()))
        {
            names.insert(name.to_owned());
        }
    }
}
