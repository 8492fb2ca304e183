//! Who follows which paths: a publication marks the slots whose answers it changed and wakes those
//! who follow them, and nobody else. What a publication costs follows the states that it changed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hashbrown::HashMap;
use tokio::sync::watch;

use super::rows::{PathLimits, PathList, TooManyPaths};
use super::snapshot_builder::AnswerDelta;
use super::{Snapshot, SnapshotCell};
use entail_core::engine::StateId;
use entail_core::model::{Level, PathPrefix};

/// Which paths are followed. All who follow the same ones share one view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathSelector {
    /// The paths that begin with one of these; all of them if there is no list.
    prefixes: Option<Vec<PathPrefix>>,
    /// Only paths that end at one of these; all if empty.
    levels: Vec<Level>,
}

/// The paths that some follow.
#[derive(Debug)]
pub struct WatchGroup {
    selector: PathSelector,
    /// As they were listed last.
    rows: Mutex<Option<Arc<PathList>>>,
    /// The last publication that changed something here.
    publications: Arc<watch::Sender<u64>>,
}

/// The paths of a view, and the snapshot that they are of.
#[derive(Debug)]
pub struct SnapshotPaths {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// The paths.
    pub rows: Arc<PathList>,
}

/// All views.
#[derive(Debug, Default)]
pub(super) struct WatchGroups {
    /// Counts publications.
    publication: u64,
    views: HashMap<PathSelector, Weak<WatchGroup>>,
    /// The rows of states, of the topology that is current.
    of_state: HashMap<StateId, Vec<(Weak<PathList>, u32)>>,
    /// How many entries were made there, and after how many those of nobody are taken out.
    entered: usize,
    sweep_at: usize,
}

/// Who is told of a publication.
pub(super) enum Recipients {
    /// Everybody: paths may be others, or what is known of kinds.
    All,
    /// Those who follow these, each once.
    Some(Vec<Arc<PathList>>),
}

/// Entries that may be of nobody before they are looked for.
const SWEEP_AFTER: usize = 4096;

impl PathSelector {
    /// Paths below prefixes, or all of them, that end at some levels; at all if there are none.
    /// Prefixes below others are left out, so that no path is listed twice.
    pub fn new(prefixes: Option<Vec<PathPrefix>>, mut levels: Vec<Level>) -> Self {
        let prefixes = prefixes.map(|mut prefixes| {
            prefixes.sort();
            prefixes.dedup();
            let all = prefixes.clone();
            let is_below = |prefix: &PathPrefix| {
                let mut others = all.iter().filter(|other| *other != prefix);
                others.any(|other| other.covers(prefix.as_str()))
            };
            prefixes.retain(|prefix| !is_below(prefix));
            prefixes
        });
        levels.sort();
        levels.dedup();
        Self { prefixes, levels }
    }
}

impl WatchGroup {
    /// Tells when something has changed: the number of the publication.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.publications.subscribe()
    }
}

impl SnapshotCell {
    /// The view of those who follow some paths.
    pub fn watch_group(&self, selector: PathSelector) -> Arc<WatchGroup> {
        let mut views = self.views();
        if let Some(known) = views.views.get(&selector).and_then(Weak::upgrade) {
            return known;
        }
        let view = Arc::new(WatchGroup {
            selector: selector.clone(),
            rows: Mutex::default(),
            publications: Arc::new(watch::Sender::new(0)),
        });
        views.views.retain(|_, view| view.strong_count() > 0);
        views.views.insert(selector, Arc::downgrade(&view));
        view
    }

    /// The paths of a view as they are in the current snapshot, which comes with them; `None` before
    /// the first. Lists them if the topology is another than last time, which takes as long as there
    /// are paths.
    ///
    /// # Errors
    /// There are more than `most`, or there is no room for as many.
    pub fn rows(
        &self,
        view: &WatchGroup,
        most: PathLimits,
    ) -> Result<Option<SnapshotPaths>, TooManyPaths> {
        let mut held = view.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(snapshot) = self.load() else {
            return Ok(None);
        };
        if let Some(rows) = held.as_ref().filter(|rows| rows.is_of(&snapshot)) {
            let rows = Arc::clone(rows);
            return Ok(Some(SnapshotPaths { snapshot, rows }));
        }
        let PathSelector { prefixes, levels } = &view.selector;
        let publications = Arc::clone(&view.publications);
        // Those that do not fit any more make room for these.
        *held = None;
        let most = (most, &self.path_quota);
        let rows = Arc::new(PathList::list(
            &snapshot,
            (prefixes.as_deref(), levels),
            most,
            publications,
        )?);
        self.enter(&rows, &snapshot);
        *held = Some(Arc::clone(&rows));
        Ok(Some(SnapshotPaths { snapshot, rows }))
    }

    /// Lets publications reach rows. What was published since their snapshot is made up for.
    fn enter(&self, rows: &Arc<PathList>, listed: &Snapshot) {
        let mut views = self.views();
        let Some(now) = self.load().filter(|now| rows.is_of(now)) else {
            // A publication that moved paths has told all views.
            return;
        };
        views.enter(rows);
        if now.version().generation != listed.version().generation {
            rows.mark_all(views.publication);
            rows.notify(views.publication);
        }
    }

    /// The paths that are listed for those who follow some; those of the same view count once.
    pub fn watched_paths(&self) -> usize {
        self.path_quota.paths()
    }

    pub(super) fn views(&self) -> MutexGuard<'_, WatchGroups> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchGroups {
    /// Marks what a snapshot that is about to be published changes; returns whom to tell.
    pub(super) fn mark(&mut self, old: Option<&Snapshot>, new: &Snapshot) -> Recipients {
        self.publication += 1;
        let Some(old) = old.filter(|old| new.has_paths_of(old)) else {
            self.of_state.clear();
            (self.entered, self.sweep_at) = (0, 0);
            return Recipients::All;
        };
        let (before, now) = (old.version(), new.version());
        let touched = match &new.answer_delta {
            AnswerDelta::States { since, states }
                if before.epoch == now.epoch && before.generation == *since =>
            {
                let rows = states.iter().flat_map(|state| self.of_state.get(state));
                self.mark_slots(rows.flatten())
            }
            // What lies between the two is not known.
            _ => self.mark_slots(self.of_state.values().flatten()),
        };
        if old.kinds() == new.kinds() {
            Recipients::Some(touched)
        } else {
            Recipients::All
        }
    }

    /// Marks slots; returns whose they are.
    fn mark_slots<'e>(
        &self,
        entries: impl Iterator<Item = &'e (Weak<PathList>, u32)>,
    ) -> Vec<Arc<PathList>> {
        let mut marked: Vec<Arc<PathList>> = Vec::new();
        for (rows, slot) in entries {
            let Some(rows) = rows.upgrade() else { continue };
            if rows.mark(*slot, self.publication) {
                marked.push(rows);
            }
        }
        marked
    }

    /// Wakes those whose paths a publication touched.
    pub(super) fn notify(&mut self, told: Recipients) {
        match told {
            Recipients::Some(touched) => touched
                .iter()
                .for_each(|rows| rows.notify(self.publication)),
            Recipients::All => self.views.retain(|_, view| {
                let view = view.upgrade();
                if let Some(view) = &view {
                    view.publications.send_replace(self.publication);
                }
                view.is_some()
            }),
        }
    }

    fn enter(&mut self, rows: &Arc<PathList>) {
        if self.entered > self.sweep_at + SWEEP_AFTER {
            self.of_state.retain(|_, all| {
                all.retain(|(rows, _)| rows.strong_count() > 0);
                !all.is_empty()
            });
            self.entered = self.of_state.values().map(Vec::len).sum();
            self.sweep_at = 2 * self.entered;
        }
        for (slot, state) in rows.states() {
            let of_state = self.of_state.entry(state).or_default();
            of_state.push((Arc::downgrade(rows), slot));
            self.entered += 1;
        }
    }
}
