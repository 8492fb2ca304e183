//! Groups of streams that follow the same paths.
//!
//! A publication marks the slots whose answers changed and wakes the groups with marked slots. Its
//! cost grows with the states whose answers changed, and not with the number of streams or paths.

use std::sync::{Arc, Mutex, Weak};

use hashbrown::HashMap;
use tokio::sync::watch;

use super::ledger::{Cost, Holding};
use super::path_list::PathList;
use crate::snapshot::{AnswerDelta, Snapshot};
use entail_core::engine::StateId;
use entail_core::model::{Level, PathPrefix};

/// The paths that a stream follows. Streams with equal selectors share a [`WatchGroup`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathSelector {
    /// Selects paths below one of these prefixes; `None` selects all paths.
    pub(super) prefixes: Option<Vec<PathPrefix>>,
    /// Selects paths that end at one of these levels; empty for all levels.
    pub(super) levels: Vec<Level>,
}

/// All streams with the same selector.
#[derive(Debug)]
pub struct WatchGroup {
    pub(super) selector: Arc<PathSelector>,
    /// The selector, as a thing that streams hold.
    pub(super) holding: Holding,
    /// The paths of the last topology that was listed.
    pub(super) paths: Mutex<Option<Arc<PathList>>>,
    /// The number of the last publication that affected the group.
    pub(super) publications: Arc<watch::Sender<u64>>,
}

/// All groups, and the slots of each state.
#[derive(Debug, Default)]
pub(super) struct WatchGroups {
    /// Number of publications.
    publication: u64,
    by_selector: HashMap<Arc<PathSelector>, Weak<WatchGroup>>,
    /// The lists and slots of each state of the current topology.
    by_state: HashMap<StateId, Vec<(Weak<PathList>, u32)>>,
    /// Number of entries in `by_state`.
    entries: usize,
    /// Number of entries that remained after the last sweep, doubled.
    sweep_at: usize,
}

/// The groups that a publication wakes.
pub(super) enum Recipients {
    /// All groups: the paths or the states of kinds may have changed.
    All,
    /// The groups of these lists.
    Lists(Vec<Arc<PathList>>),
}

/// Number of added entries after which entries of dropped lists are removed.
const SWEEP_AFTER: usize = 4096;

impl PathSelector {
    /// Selects paths below `prefixes` (`None` for all paths) that end at one of `levels` (empty for
    /// all levels). A prefix below another one is dropped, so that no path is listed twice.
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

    /// The memory of the selector.
    fn cost(&self) -> Cost {
        let prefixes = self.prefixes.iter().flatten();
        let prefixes = prefixes.map(|prefix| size_of::<PathPrefix>() + prefix.as_str().len());
        Cost {
            bytes: prefixes.sum::<usize>() + self.levels.len() * size_of::<Level>(),
            paths: 0,
        }
    }
}

impl WatchGroup {
    /// Returns a receiver for the number of the last publication that affected the group.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.publications.subscribe()
    }
}

impl WatchGroups {
    /// Returns the group of a selector; creates it if there is none.
    pub(super) fn group(&mut self, selector: PathSelector) -> Arc<WatchGroup> {
        if let Some(group) = self.by_selector.get(&selector).and_then(Weak::upgrade) {
            return group;
        }
        let selector = Arc::new(selector);
        let group = Arc::new(WatchGroup {
            holding: Holding::new(selector.cost()),
            selector: Arc::clone(&selector),
            paths: Mutex::default(),
            publications: Arc::new(watch::Sender::new(0)),
        });
        self.by_selector.retain(|_, group| group.strong_count() > 0);
        self.by_selector.insert(selector, Arc::downgrade(&group));
        group
    }

    /// Marks the slots that a new snapshot changes; returns the groups to wake after the snapshot is
    /// published.
    pub(super) fn mark(&mut self, old: Option<&Snapshot>, new: &Snapshot) -> Recipients {
        self.publication += 1;
        let Some(old) = old.filter(|old| new.has_paths_of(old)) else {
            self.by_state.clear();
            (self.entries, self.sweep_at) = (0, 0);
            return Recipients::All;
        };
        let (before, after) = (old.version(), new.version());
        let marked = match new.answer_delta() {
            AnswerDelta::States { since, states }
                if before.epoch == after.epoch && before.generation == *since =>
            {
                let slots = states.iter().flat_map(|state| self.by_state.get(state));
                self.mark_slots(slots.flatten())
            }
            // The delta is relative to another snapshot than the published one.
            _ => self.mark_slots(self.by_state.values().flatten()),
        };
        if old.kinds() == new.kinds() {
            Recipients::Lists(marked)
        } else {
            Recipients::All
        }
    }

    /// Marks slots; returns their lists, each once.
    fn mark_slots<'e>(
        &self,
        slots: impl Iterator<Item = &'e (Weak<PathList>, u32)>,
    ) -> Vec<Arc<PathList>> {
        let mut marked: Vec<Arc<PathList>> = Vec::new();
        for (paths, slot) in slots {
            let Some(paths) = paths.upgrade() else {
                continue;
            };
            if paths.mark(*slot, self.publication) {
                marked.push(paths);
            }
        }
        marked
    }

    /// Marks all slots of a list and wakes its group.
    pub(super) fn mark_all(&self, paths: &PathList) {
        paths.mark_all(self.publication);
        paths.notify(self.publication);
    }

    /// Wakes the streams of the recipients.
    pub(super) fn notify(&mut self, recipients: Recipients) {
        match recipients {
            Recipients::Lists(lists) => lists
                .iter()
                .for_each(|paths| paths.notify(self.publication)),
            Recipients::All => self.by_selector.retain(|_, group| {
                let group = group.upgrade();
                if let Some(group) = &group {
                    group.publications.send_replace(self.publication);
                }
                group.is_some()
            }),
        }
    }

    /// Adds the slots of a list of the current topology.
    pub(super) fn register(&mut self, paths: &Arc<PathList>) {
        if self.entries > self.sweep_at + SWEEP_AFTER {
            self.by_state.retain(|_, slots| {
                slots.retain(|(paths, _)| paths.strong_count() > 0);
                !slots.is_empty()
            });
            self.entries = self.by_state.values().map(Vec::len).sum();
            self.sweep_at = 2 * self.entries;
        }
        for (slot, state) in paths.states() {
            let slots = self.by_state.entry(state).or_default();
            slots.push((Arc::downgrade(paths), slot));
            self.entries += 1;
        }
    }
}
