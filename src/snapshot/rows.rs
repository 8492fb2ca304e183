//! The paths below some prefixes, listed once for all who follow them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use tokio::sync::watch;

use super::Snapshot;
use entail_core::engine::{StateId, Transitions};
use entail_core::model::{Level, PathName, PathPrefix, Root};
use entail_core::topology::{ListedPath, PathTrie, WalkControl};

/// Paths with their places in one topology, sorted by name.
#[derive(Debug)]
pub struct PathList {
    /// The topology that they were listed from, to be told from others; it may be gone already.
    trie: Weak<PathTrie>,
    transitions: Weak<Transitions>,
    rows: Vec<PathEntry>,
    /// The states of the paths, each once.
    slots: Vec<Slot>,
    /// The rows of each slot, one slot after the other.
    of_slots: Vec<u32>,
    /// Names of the mesh roots whose clients are set apart, of the Services that are followed.
    client_roots: Vec<String>,
    /// The last publication that touched one.
    touched: AtomicU64,
    /// Tells who follows them that something changed.
    publications: Arc<watch::Sender<u64>>,
    /// What they take of the room for all.
    _quota: PathQuota,
}

/// How many paths are listed in all; a part of it is given back with the paths that took it.
#[derive(Debug, Default)]
pub(super) struct PathQuota {
    all: Arc<AtomicUsize>,
    taken: usize,
}

/// How many paths may be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLimits {
    /// For one who follows them.
    pub per_watch: usize,
    /// In all.
    pub total: usize,
}

/// A path that is followed.
#[derive(Debug, PartialEq, Eq)]
pub struct PathEntry {
    /// Its name.
    pub name: Box<str>,
    /// The index of the rule that its name names by name.
    pub rule_index: Option<u32>,
    /// The slot of its answer.
    pub slot: u32,
}

/// A state that paths share.
#[derive(Debug)]
struct Slot {
    state: StateId,
    /// Where its rows end in the list.
    end: u32,
    /// The publication that changed its answer last.
    changed: AtomicU64,
}

/// More paths than may be followed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPaths {
    /// The most.
    pub most: usize,
}

impl PathList {
    /// Lists the paths of a snapshot.
    pub(super) fn list(
        snapshot: &Snapshot,
        (prefixes, levels): (Option<&[PathPrefix]>, &[Level]),
        (most, room): (PathLimits, &PathQuota),
        publications: Arc<watch::Sender<u64>>,
    ) -> Result<Self, TooManyPaths> {
        let PathLimits {
            per_watch: most, ..
        } = most_of(most, room);
        let deepest = levels.iter().max();
        let mut rows = Vec::new();
        let mut states: Vec<StateId> = Vec::new();
        let mut slots: HashMap<StateId, u32> = HashMap::new();
        let mut visit = |listed: &ListedPath<'_, StateId>| {
            // Nothing below the deepest level that is wanted has to be walked.
            let control = match deepest.is_some_and(|deepest| listed.node.level >= *deepest) {
                true => WalkControl::SkipChildren,
                false => WalkControl::Descend,
            };
            if !levels.is_empty() && !levels.contains(&listed.node.level) {
                return control;
            }
            let slot = *slots.entry(listed.state).or_insert_with(|| {
                states.push(listed.state);
                number(states.len() - 1)
            });
            rows.push(PathEntry {
                name: listed.name.into(),
                rule_index: listed.rule_index,
                slot,
            });
            if rows.len() > most {
                WalkControl::Stop
            } else {
                control
            }
        };
        let step = |state, place| {
            let after = snapshot.transitions.after(state, place);
            after.map_err(|error| snapshot.fail(error)).ok()
        };
        if prefixes.is_none() {
            snapshot.trie.list(None, 0, step, &mut visit);
        }
        for prefix in prefixes.unwrap_or_default() {
            if let Ok(path) = PathName::parse(prefix.as_str()) {
                snapshot.trie.list(Some(&path), 0, step, &mut visit);
            }
        }
        if rows.len() > most {
            return Err(TooManyPaths { most });
        }
        rows.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        rows.shrink_to_fit();
        let (slots, of_slots) = by_slot(&rows, states);
        let rows_taken = rows.len();
        Ok(Self {
            trie: Arc::downgrade(&snapshot.trie),
            transitions: Arc::downgrade(&snapshot.transitions),
            rows,
            slots,
            of_slots,
            client_roots: client_roots(snapshot, prefixes),
            touched: AtomicU64::new(0),
            _quota: room.take(rows_taken),
            publications,
        })
    }

    /// Whether they are the paths of a snapshot.
    pub fn is_of(&self, snapshot: &Snapshot) -> bool {
        self.trie.as_ptr() == Arc::as_ptr(&snapshot.trie)
            && self.transitions.as_ptr() == Arc::as_ptr(&snapshot.transitions)
    }

    /// The paths, sorted by name.
    pub fn rows(&self) -> &[PathEntry] {
        &self.rows
    }

    /// Names of the mesh roots whose clients are set apart, of the Services that are followed;
    /// sorted (specification 1.3).
    pub fn client_roots(&self) -> &[String] {
        &self.client_roots
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The places of a slot's paths among the rows.
    pub fn rows_of(&self, slot: u32) -> &[u32] {
        let index = slot as usize;
        let end = |slot: &Slot| slot.end as usize;
        let before = index.checked_sub(1).and_then(|i| self.slots.get(i));
        let until = self.slots.get(index).map_or(0, end);
        let rows = self.of_slots.get(before.map_or(0, end)..until);
        rows.unwrap_or_default()
    }

    /// The slots whose answers have changed after a publication.
    pub fn changed_after(&self, seen: u64) -> impl Iterator<Item = u32> {
        let is_new = move |slot: &&Slot| slot.changed.load(Ordering::Acquire) > seen;
        let slots = (0..).zip(&self.slots);
        slots.filter_map(move |(number, slot)| is_new(&slot).then_some(number))
    }

    pub(super) fn state(&self, slot: u32) -> Option<StateId> {
        self.slots.get(slot as usize).map(|slot| slot.state)
    }

    /// The states by slot.
    pub(super) fn states(&self) -> impl Iterator<Item = (u32, StateId)> {
        (0..).zip(self.slots.iter().map(|slot| slot.state))
    }

    /// Takes note that a slot's answer is another one since a publication; tells whether it is the
    /// first one of that publication.
    pub(super) fn mark(&self, slot: u32, publication: u64) -> bool {
        if let Some(slot) = self.slots.get(slot as usize) {
            slot.changed.store(publication, Ordering::Release);
        }
        self.touched.swap(publication, Ordering::Relaxed) != publication
    }

    /// Takes note that all answers may be others.
    pub(super) fn mark_all(&self, publication: u64) {
        for slot in &self.slots {
            slot.changed.store(publication, Ordering::Release);
        }
    }

    /// Wakes those who follow.
    pub(super) fn notify(&self, publication: u64) {
        self.publications.send_replace(publication);
    }
}

impl PathQuota {
    /// The paths that are listed.
    pub(super) fn paths(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// Takes room for some paths.
    fn take(&self, paths: usize) -> Self {
        self.all.fetch_add(paths, Ordering::Relaxed);
        Self {
            all: Arc::clone(&self.all),
            taken: paths,
        }
    }
}

impl Drop for PathQuota {
    fn drop(&mut self) {
        self.all.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

/// What is left for one of what all may have. Two that list at once may go beyond it by as much as
/// one may have.
fn most_of(most: PathLimits, room: &PathQuota) -> PathLimits {
    let left = most.total.saturating_sub(room.paths());
    PathLimits {
        per_watch: most.per_watch.min(left),
        ..most
    }
}

/// A number of rows: their count is bounded far below 4 billion.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The mesh roots whose clients are set apart, of the Services that prefixes name, or of all.
fn client_roots(snapshot: &Snapshot, prefixes: Option<&[PathPrefix]>) -> Vec<String> {
    let mut client_roots = snapshot.trie.clients_apart();
    let service = |name: &str| match PathName::parse(name) {
        Ok(PathName::Traffic(walk)) => match walk.root {
            Root::Mesh {
                namespace, name, ..
            } => Some((namespace.to_owned(), name.to_owned())),
            Root::Gateway { .. } => None,
        },
        _ => None,
    };
    if let Some(prefixes) = prefixes {
        let named = prefixes.iter().map(|prefix| service(prefix.as_str()));
        let named: Vec<_> = named.flatten().collect();
        client_roots.retain(|root| service(root).is_some_and(|service| named.contains(&service)));
    }
    client_roots
}

/// The slots of states, and the rows of each.
fn by_slot(rows: &[PathEntry], states: Vec<StateId>) -> (Vec<Slot>, Vec<u32>) {
    let mut of_slots: Vec<u32> = (0..number(rows.len())).collect();
    let slot_of = |row: &u32| rows.get(*row as usize).map(|row| row.slot);
    of_slots.sort_by_key(slot_of);
    let mut slots = Vec::with_capacity(states.len());
    for (slot, state) in (0..).zip(states) {
        let end = of_slots.partition_point(|row| slot_of(row) <= Some(slot));
        slots.push(Slot {
            state,
            end: number(end),
            changed: AtomicU64::new(0),
        });
    }
    (slots, of_slots)
}

impl std::fmt::Display for TooManyPaths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let most = self.most;
        write!(
            f,
            "more than {most} paths: name prefixes, or levels, that have fewer"
        )
    }
}
