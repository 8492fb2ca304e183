//! Receives the relevant events of the file system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::files::EntryFilter;

/// Watches directories instead of files, because the watch of a file ends when it is replaced.
pub(super) struct Watcher {
    inner: RecommendedWatcher,
    watched: Arc<Mutex<BTreeMap<PathBuf, EntryFilter>>>,
}

/// The result of watching a set of directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coverage {
    /// Some directory was not watched before, so earlier changes in it were not reported.
    pub is_wider: bool,
    /// All directories are watched.
    pub is_complete: bool,
}

impl Watcher {
    /// Creates a watcher that notifies the waker. It watches nothing yet.
    ///
    /// # Errors
    /// The system does not support watching, or its limit of watches is reached.
    pub fn new(waker: Arc<Notify>) -> notify::Result<Self> {
        let watched = Arc::new(Mutex::new(BTreeMap::new()));
        let shared = Arc::clone(&watched);
        let inner = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let mut watched = shared.lock().unwrap_or_else(PoisonError::into_inner);
            if event.map_or(true, |event| is_relevant(&event, &mut watched)) {
                waker.notify_one();
            }
        })?;
        Ok(Self { inner, watched })
    }

    /// Watches exactly the given directories.
    pub fn follow(&mut self, folders: &BTreeMap<PathBuf, EntryFilter>) -> Coverage {
        // Events name absolute paths.
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let folders: BTreeMap<PathBuf, &EntryFilter> = folders
            .iter()
            .map(|(path, filter)| (absolute(path), filter))
            .collect();
        let watched: Vec<PathBuf> = self.lock().keys().cloned().collect();
        for gone in watched.iter().filter(|path| !folders.contains_key(*path)) {
            self.lock().remove(gone);
            // The directory may have been deleted, which ended its watch.
            let _ = self.inner.unwatch(gone);
        }
        let mut coverage = Coverage {
            is_wider: false,
            is_complete: true,
        };
        for (path, filter) in folders {
            // Insert before the first event can arrive. A directory that is already watched is
            // watched again, which renews the watch if another directory has taken its path.
            let before = self.lock().insert(path.clone(), filter.clone());
            match self.inner.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => coverage.is_wider |= before.as_ref() != Some(filter),
                Err(error) => {
                    self.lock().remove(&path);
                    coverage.is_complete = false;
                    tracing::debug!(path = %path.display(), %error, "a directory cannot be watched");
                }
            }
        }
        coverage
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, EntryFilter>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether an event requires a scan. A directory that is replaced is removed from `watched`.
fn is_relevant(event: &Event, watched: &mut BTreeMap<PathBuf, EntryFilter>) -> bool {
    if event.need_rescan() || event.paths.is_empty() {
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
        let is_folder = watched.contains_key(path);
        if is_folder && replaces {
            watched.remove(path);
        }
        is_relevant |= is_folder || is_watched_entry(path, watched);
    }
    is_relevant
}

fn is_watched_entry(path: &Path, watched: &BTreeMap<PathBuf, EntryFilter>) -> bool {
    let filter = path.parent().and_then(|parent| watched.get(parent));
    match (filter, path.file_name()) {
        (Some(EntryFilter::Names(names)), Some(name)) => names.contains(name),
        // Some systems report directories under other names than those that were given.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{DataChange, RemoveKind, RenameMode};

    use super::*;

    fn event(kind: EventKind, path: &str) -> Event {
        Event::new(kind).add_path(path.into())
    }

    fn watched() -> BTreeMap<PathBuf, EntryFilter> {
        let names = EntryFilter::Names(["f.yaml".into()].into());
        [("/all".into(), EntryFilter::All), ("/some".into(), names)].into()
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
            assert_eq!(
                is_relevant(&event(data, path), &mut watched()),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn events_of_reading_are_not_relevant() {
        let reading = [
            AccessKind::Open(AccessMode::Any),
            AccessKind::Close(AccessMode::Read),
        ];
        for kind in reading {
            assert!(!is_relevant(
                &event(EventKind::Access(kind), "/all/x"),
                &mut watched()
            ));
        }
        let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
        assert!(is_relevant(&event(written, "/all/x"), &mut watched()));
    }

    #[test]
    fn a_replaced_directory_is_no_longer_watched() {
        for kind in [
            EventKind::Remove(RemoveKind::Folder),
            EventKind::Modify(ModifyKind::Name(RenameMode::From)),
        ] {
            let mut watched = watched();
            assert!(is_relevant(&event(kind, "/all"), &mut watched));
            assert!(!watched.contains_key(Path::new("/all")));
        }
    }
}
