//! Receives the relevant events of the file system.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::files::EntryFilter;

/// Maximum number of paths that are remembered; beyond it, all files are listed.
const MAX_PATHS: usize = 4_096;

/// Watches directories instead of files, because the watch of a file ends when it is replaced.
pub(super) struct Watcher {
    inner: RecommendedWatcher,
    state: Arc<Mutex<WatchState>>,
}

#[derive(Debug, Default)]
struct WatchState {
    /// The directories, by the absolute paths that events name.
    folders: BTreeMap<PathBuf, WatchedFolder>,
    changed: ChangedPaths,
}

/// A directory that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WatchedFolder {
    /// The path by which the directory was listed; `None` if it has several.
    listed: Option<PathBuf>,
    filter: EntryFilter,
}

/// What changed according to events.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChangedPaths {
    /// Entries of listed directories, by the paths that listing gives them.
    Entries(BTreeSet<PathBuf>),
    /// Anything may have changed.
    Unknown,
}

/// The result of watching a set of directories; by default, nothing is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage {
    /// Some directory was not watched before, so earlier changes in it were not reported.
    pub is_wider: bool,
    /// All directories are watched.
    pub is_complete: bool,
}

impl Default for ChangedPaths {
    fn default() -> Self {
        Self::Entries(BTreeSet::new())
    }
}

impl Watcher {
    /// Creates a watcher that notifies the waker. It watches nothing yet.
    ///
    /// # Errors
    /// The system does not support watching, or its limit of watches is reached.
    pub fn new(waker: Arc<Notify>) -> notify::Result<Self> {
        let state = Arc::new(Mutex::new(WatchState::default()));
        let shared = Arc::clone(&state);
        let inner = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let is_relevant = match event {
                Ok(event) => state.take_event(&event),
                Err(_) => {
                    state.changed = ChangedPaths::Unknown;
                    true
                }
            };
            if is_relevant {
                waker.notify_one();
            }
        })?;
        Ok(Self { inner, state })
    }

    /// Returns what changed since the last call.
    pub fn take_changed(&self) -> ChangedPaths {
        std::mem::take(&mut self.lock().changed)
    }

    /// Watches exactly the given directories.
    pub fn follow(&mut self, folders: &BTreeMap<PathBuf, EntryFilter>) -> Coverage {
        let folders = by_absolute_path(folders);
        let watched: Vec<PathBuf> = self.lock().folders.keys().cloned().collect();
        for gone in watched.iter().filter(|path| !folders.contains_key(*path)) {
            self.lock().folders.remove(gone);
            // The directory may have been deleted, which ended its watch.
            let _ = self.inner.unwatch(gone);
        }
        let mut coverage = Coverage {
            is_wider: false,
            is_complete: true,
        };
        for (path, folder) in folders {
            // Insert before the first event can arrive. A directory that is already watched is
            // watched again, which renews the watch if another directory has taken its path.
            let before = self.lock().folders.insert(path.clone(), folder.clone());
            match self.inner.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => coverage.is_wider |= before.as_ref() != Some(&folder),
                Err(error) => {
                    self.lock().folders.remove(&path);
                    coverage.is_complete = false;
                    tracing::debug!(path = %path.display(), %error, "a directory cannot be watched");
                }
            }
        }
        coverage
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchState {
    /// Records an event. Returns whether it requires a scan. A directory that is replaced is no longer watched.
    fn take_event(&mut self, event: &Event) -> bool {
        if event.need_rescan() || event.paths.is_empty() {
            self.changed = ChangedPaths::Unknown;
            return true;
        }
        // Events of reading are ignored, because scans cause them.
        let is_access = matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write));
        if is_access {
            return false;
        }
        let replaces = matches!(
            event.kind,
            EventKind::Remove(_)
                | EventKind::Modify(ModifyKind::Name(_))
                | EventKind::Create(CreateKind::Folder)
        );
        let mut is_relevant = false;
        for path in &event.paths {
            let is_folder = self.folders.contains_key(path);
            if is_folder && replaces {
                self.folders.remove(path);
            }
            if is_folder {
                self.changed = ChangedPaths::Unknown;
            }
            is_relevant |= is_folder || self.take_entry(path);
        }
        is_relevant
    }

    /// Records an entry of a directory. Returns whether it is watched.
    fn take_entry(&mut self, path: &Path) -> bool {
        let folder = path.parent().and_then(|parent| self.folders.get(parent));
        match (folder, path.file_name()) {
            (Some(folder), Some(name)) => match &folder.filter {
                EntryFilter::Names(names) if !names.contains(name) => return false,
                EntryFilter::Names(_) => self.changed = ChangedPaths::Unknown,
                EntryFilter::All => match &folder.listed {
                    Some(listed) => {
                        let listed = listed.join(name);
                        self.changed.add(listed);
                    }
                    None => self.changed = ChangedPaths::Unknown,
                },
            },
            // Some systems report directories under other names than those that were given.
            _ => self.changed = ChangedPaths::Unknown,
        }
        true
    }
}

/// Returns the directories by the paths that events name, which are absolute. Paths that are equal then are one directory.
fn by_absolute_path(folders: &BTreeMap<PathBuf, EntryFilter>) -> BTreeMap<PathBuf, WatchedFolder> {
    let mut watched: BTreeMap<PathBuf, WatchedFolder> = BTreeMap::new();
    for (path, filter) in folders {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        match watched.entry(absolute) {
            Entry::Vacant(place) => {
                place.insert(WatchedFolder {
                    listed: Some(path.clone()),
                    filter: filter.clone(),
                });
            }
            Entry::Occupied(mut known) => known.get_mut().add(filter),
        }
    }
    watched
}

impl WatchedFolder {
    /// Adds what is watched of the directory by another path.
    fn add(&mut self, filter: &EntryFilter) {
        self.listed = None;
        match (&mut self.filter, filter) {
            (EntryFilter::Names(names), EntryFilter::Names(more)) => {
                names.extend(more.iter().cloned());
            }
            (filter, _) => *filter = EntryFilter::All,
        }
    }
}

impl ChangedPaths {
    fn add(&mut self, path: PathBuf) {
        if let Self::Entries(paths) = self {
            paths.insert(path);
            if paths.len() > MAX_PATHS {
                *self = Self::Unknown;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{DataChange, RemoveKind, RenameMode};

    use super::*;

    fn event(kind: EventKind, path: &str) -> Event {
        Event::new(kind).add_path(path.into())
    }

    fn watched() -> WatchState {
        let names = EntryFilter::Names(["f.yaml".into()].into());
        let folder = |listed: &str, filter| WatchedFolder {
            listed: Some(listed.into()),
            filter,
        };
        WatchState {
            folders: [
                ("/all".into(), folder("all", EntryFilter::All)),
                ("/some".into(), folder("some", names)),
            ]
            .into(),
            changed: ChangedPaths::default(),
        }
    }

    #[test]
    fn only_watched_entries_are_relevant() {
        let data = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        for (path, expected) in [
            ("/all/x", true),
            ("/some/f.yaml", true),
            ("/some/x", false),
            ("/some", true),
            ("/elsewhere/x", true),
        ] {
            assert_eq!(watched().take_event(&event(data, path)), expected, "{path}");
        }
    }

    #[test]
    fn events_of_reading_are_not_relevant() {
        let reading = [
            AccessKind::Open(AccessMode::Any),
            AccessKind::Close(AccessMode::Read),
        ];
        for kind in reading {
            assert!(!watched().take_event(&event(EventKind::Access(kind), "/all/x")));
        }
        let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
        assert!(watched().take_event(&event(written, "/all/x")));
    }

    #[test]
    fn a_replaced_directory_is_no_longer_watched() {
        for kind in [
            EventKind::Remove(RemoveKind::Folder),
            EventKind::Modify(ModifyKind::Name(RenameMode::From)),
        ] {
            let mut watched = watched();
            assert!(watched.take_event(&event(kind, "/all")));
            assert!(!watched.folders.contains_key(Path::new("/all")));
            assert_eq!(watched.changed, ChangedPaths::Unknown);
        }
    }

    #[test]
    fn entries_of_listed_directories_have_their_listed_paths() {
        let data = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let mut watched = watched();
        for path in ["/all/x", "/some/x", "/all/y", "/all/x"] {
            watched.take_event(&event(data, path));
        }
        let expected = BTreeSet::from(["all/x".into(), "all/y".into()]);
        assert_eq!(watched.changed, ChangedPaths::Entries(expected));
        // The listed path of a single file may be another one.
        watched.take_event(&event(data, "/some/f.yaml"));
        assert_eq!(watched.changed, ChangedPaths::Unknown);
        watched.take_event(&event(data, "/all/z"));
        assert_eq!(watched.changed, ChangedPaths::Unknown);
    }

    #[test]
    fn a_directory_with_several_paths_is_watched_for_all_of_them() {
        let names = |names: &[&str]| EntryFilter::Names(names.iter().map(Into::into).collect());
        let data = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let event_of = |name: &str| {
            let path = std::path::absolute(Path::new("a").join(name)).unwrap();
            Event::new(data).add_path(path)
        };
        for (first, second, relevant) in [
            (EntryFilter::All, names(&["f.yaml"]), ["f.yaml", "g.yaml"]),
            (names(&["f.yaml"]), EntryFilter::All, ["f.yaml", "g.yaml"]),
            (names(&["f.yaml"]), names(&["g.yaml"]), ["f.yaml", "g.yaml"]),
            (EntryFilter::All, EntryFilter::All, ["f.yaml", "g.yaml"]),
        ] {
            let folders = [("./a".into(), first), ("a".into(), second)].into();
            for name in relevant {
                let mut watched = WatchState {
                    folders: by_absolute_path(&folders),
                    changed: ChangedPaths::default(),
                };
                assert!(watched.take_event(&event_of(name)), "{folders:?} {name}");
                assert_eq!(watched.changed, ChangedPaths::Unknown, "{folders:?}");
            }
        }
    }

    #[test]
    fn too_many_paths_are_unknown() {
        let data = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let mut watched = watched();
        for number in 0..=MAX_PATHS {
            assert!(matches!(watched.changed, ChangedPaths::Entries(_)));
            watched.take_event(&event(data, &format!("/all/{number}")));
        }
        assert_eq!(watched.changed, ChangedPaths::Unknown);
    }
}
