//! Who follows which paths: a publication marks the slots whose answers it changed and wakes those
//! who follow them, and nobody else. What a publication costs follows the states that it changed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hashbrown::HashMap;
use tokio::sync::watch;

use super::publisher::Touched;
use super::rows::{MostPaths, Rows, TooManyPaths};
use super::{Snapshot, Snapshots};
use entail_core::engine::StateId;
use entail_core::model::{Level, PathPrefix};

/// Which paths are followed. All who follow the same ones share one view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Followed {
    /// The paths that begin with one of these; all of them if there is no list.
    prefixes: Option<Vec<PathPrefix>>,
    /// Only paths that end at one of these; all if empty.
    levels: Vec<Level>,
}

/// The paths that some follow.
#[derive(Debug)]
pub struct View {
    followed: Followed,
    /// As they were listed last.
    rows: Mutex<Option<Arc<Rows>>>,
    /// The last publication that changed something here.
    told: Arc<watch::Sender<u64>>,
}

/// The paths of a view, and the snapshot that they are of.
#[derive(Debug)]
pub struct Current {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// The paths.
    pub rows: Arc<Rows>,
}

/// All views.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// Counts publications.
    publication: u64,
    views: HashMap<Followed, Weak<View>>,
    /// The rows of states, of the topology that is current.
    of_state: HashMap<StateId, Vec<(Weak<Rows>, u32)>>,
    /// How many entries were made there, and after how many those of nobody are taken out.
    entered: usize,
    sweep_at: usize,
}

/// Who is told of a publication.
pub(super) enum Told {
    /// Everybody: paths may be others, or what is known of kinds.
    All,
    /// Those who follow these, each once.
    Some(Vec<Arc<Rows>>),
}

/// Entries that may be of nobody before they are looked for.
const SWEEP: usize = 4096;

impl Followed {
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

impl View {
    /// Tells when something has changed: the number of the publication.
    pub fn told(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }
}

impl Snapshots {
    /// The view of those who follow some paths.
    pub fn view(&self, followed: Followed) -> Arc<View> {
        let mut views = self.views();
        if let Some(known) = views.views.get(&followed).and_then(Weak::upgrade) {
            return known;
        }
        let view = Arc::new(View {
            followed: followed.clone(),
            rows: Mutex::default(),
            told: Arc::new(watch::Sender::new(0)),
        });
        views.views.retain(|_, view| view.strong_count() > 0);
        views.views.insert(followed, Arc::downgrade(&view));
        view
    }

    /// The paths of a view as they are in the current snapshot, which comes with them; `None` before
    /// the first. Lists them if the topology is another than last time, which takes as long as there
    /// are paths.
    ///
    /// # Errors
    /// There are more than `most`, or there is no room for as many.
    pub fn rows(&self, view: &View, most: MostPaths) -> Result<Option<Current>, TooManyPaths> {
        let mut held = view.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(snapshot) = self.load() else {
            return Ok(None);
        };
        if let Some(rows) = held.as_ref().filter(|rows| rows.fit(&snapshot)) {
            let rows = Arc::clone(rows);
            return Ok(Some(Current { snapshot, rows }));
        }
        let Followed { prefixes, levels } = &view.followed;
        let told = Arc::clone(&view.told);
        // Those that do not fit any more make room for these.
        *held = None;
        let most = (most, &self.room);
        let rows = Arc::new(Rows::list(
            &snapshot,
            (prefixes.as_deref(), levels),
            most,
            told,
        )?);
        self.enter(&rows, &snapshot);
        *held = Some(Arc::clone(&rows));
        Ok(Some(Current { snapshot, rows }))
    }

    /// Lets publications reach rows. What was published since their snapshot is made up for.
    fn enter(&self, rows: &Arc<Rows>, listed: &Snapshot) {
        let mut views = self.views();
        let Some(now) = self.load().filter(|now| rows.fit(now)) else {
            // A publication that moved paths has told all views.
            return;
        };
        views.enter(rows);
        if now.version().generation != listed.version().generation {
            rows.mark_all(views.publication);
            rows.tell(views.publication);
        }
    }

    /// The paths that are listed for those who follow some; those of the same view count once.
    pub fn watched_paths(&self) -> usize {
        self.room.paths()
    }

    pub(super) fn views(&self) -> MutexGuard<'_, Views> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Views {
    /// Marks what a snapshot that is about to be published changes; returns whom to tell.
    pub(super) fn mark(&mut self, old: Option<&Snapshot>, new: &Snapshot) -> Told {
        self.publication += 1;
        let Some(old) = old.filter(|old| new.has_paths_of(old)) else {
            self.of_state.clear();
            (self.entered, self.sweep_at) = (0, 0);
            return Told::All;
        };
        let (before, now) = (old.version(), new.version());
        let touched = match &new.touched {
            Touched::States { since, states }
                if before.epoch == now.epoch && before.generation == *since =>
            {
                let rows = states.iter().flat_map(|state| self.of_state.get(state));
                self.mark_slots(rows.flatten())
            }
            // What lies between the two is not known.
            _ => self.mark_slots(self.of_state.values().flatten()),
        };
        if old.kinds() == new.kinds() {
            Told::Some(touched)
        } else {
            Told::All
        }
    }

    /// Marks slots; returns whose they are.
    fn mark_slots<'e>(
        &self,
        entries: impl Iterator<Item = &'e (Weak<Rows>, u32)>,
    ) -> Vec<Arc<Rows>> {
        let mut marked: Vec<Arc<Rows>> = Vec::new();
        for (rows, slot) in entries {
            let Some(rows) = rows.upgrade() else { continue };
            if rows.mark(*slot, self.publication) {
                marked.push(rows);
            }
        }
        marked
    }

    /// Wakes those whose paths a publication touched.
    pub(super) fn tell(&mut self, told: Told) {
        match told {
            Told::Some(touched) => touched.iter().for_each(|rows| rows.tell(self.publication)),
            Told::All => self.views.retain(|_, view| {
                let view = view.upgrade();
                if let Some(view) = &view {
                    view.told.send_replace(self.publication);
                }
                view.is_some()
            }),
        }
    }

    fn enter(&mut self, rows: &Arc<Rows>) {
        if self.entered > self.sweep_at + SWEEP {
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
