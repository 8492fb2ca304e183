//! Events of the file system, as far as they matter.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::files::EntryFilter;

/// Watches directories, not files: a file that is replaced takes its watch along.
pub(super) struct Watcher {
    inner: RecommendedWatcher,
    watched: Arc<Mutex<BTreeMap<PathBuf, EntryFilter>>>,
}

/// What watching a new set of directories came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coverage {
    /// Some directory is watched only from now on: what happened in it before is not known.
    pub is_wider: bool,
    /// All directories are watched.
    pub is_complete: bool,
}

impl Watcher {
    /// A watcher of nothing yet that wakes the waker.
    ///
    /// # Errors
    /// The system has no way to watch, or no more of it.
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

    /// Watches these directories and no others.
    pub fn follow(&mut self, folders: &BTreeMap<PathBuf, EntryFilter>) -> Coverage {
        // Events name absolute paths.
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let folders: BTreeMap<PathBuf, &EntryFilter> = folders
            .iter()
            .map(|(path, interest)| (absolute(path), interest))
            .collect();
        let known: Vec<PathBuf> = self.lock().keys().cloned().collect();
        for gone in known.iter().filter(|path| !folders.contains_key(*path)) {
            self.lock().remove(gone);
            // It may be gone altogether, and its watch with it.
            let _ = self.inner.unwatch(gone);
        }
        let mut coverage = Coverage {
            is_wider: false,
            is_complete: true,
        };
        for (path, interest) in folders {
            // Noted before the first event can come. What is watched already is watched again:
            // that costs little and renews the watch if another directory stands there now.
            let before = self.lock().insert(path.clone(), interest.clone());
            match self.inner.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => coverage.is_wider |= before.as_ref() != Some(interest),
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

/// Whether to look at the files again. A directory that is replaced is no longer watched.
fn is_relevant(event: &Event, watched: &mut BTreeMap<PathBuf, EntryFilter>) -> bool {
    if event.need_rescan() || event.paths.is_empty() {
        return true;
    }
    // Reading is an event, too: to follow it would be to follow oneself.
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
    let mut found = false;
    for path in &event.paths {
        let is_folder = watched.contains_key(path);
        if is_folder && replaces {
            watched.remove(path);
        }
        found |= is_folder || is_watched_entry(path, watched);
    }
    found
}

fn is_watched_entry(path: &Path, watched: &BTreeMap<PathBuf, EntryFilter>) -> bool {
    let interest = path.parent().and_then(|parent| watched.get(parent));
    match (interest, path.file_name()) {
        (Some(EntryFilter::Names(names)), Some(name)) => names.contains(name),
        // Some systems report directories by other names than they were given.
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
    fn only_what_was_asked_for_matters() {
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
    fn our_own_reading_does_not_matter() {
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
