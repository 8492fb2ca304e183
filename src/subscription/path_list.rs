//! The paths that a watch group follows, listed once for all its streams.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use hashbrown::HashMap;
use tokio::sync::watch;

use super::ledger::{Cost, Holding};
use super::request::bits;
use super::resume::EtagBits;
use super::stream_state::SharedSteps;
use super::watch_group::PathSelector;
use crate::api::etag;
use crate::snapshot::{PathAnswer, Snapshot};
use entail_core::engine::{StateId, Transitions};
use entail_core::model::{Level, PathName, PathPrefix, Root};
use entail_core::topology::{ListedPath, PathTrie, WalkControl};

/// The paths of a selector in one topology, sorted by name.
#[derive(Debug)]
pub struct PathList {
    /// Identifies the topology that the paths were listed from; does not keep it alive.
    trie: Weak<PathTrie>,
    transitions: Weak<Transitions>,
    entries: Vec<PathEntry>,
    /// The states of the paths, each once.
    slots: Vec<Slot>,
    /// The indices of entries, grouped by slot.
    entries_by_slot: Vec<u32>,
    /// The digests of the names in each block of [`BLOCK`] entries.
    name_digests: Vec<EtagBits>,
    client_roots: Vec<String>,
    /// The last publication that marked a slot.
    last_mark: AtomicU64,
    /// Wakes the streams of the group.
    publications: Arc<watch::Sender<u64>>,
    /// The steps that streams make to these paths.
    steps: Mutex<SharedSteps>,
    /// What the list costs those who hold it.
    holding: Holding,
}

/// Maximum numbers of listed paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLimits {
    /// For one watch group.
    pub per_watch: usize,
    /// For all streams of a caller. Lists that several of its streams hold count once.
    pub per_caller: usize,
    /// For all groups. Lists that are made at the same time may exceed it by up to `per_watch`
    /// each, until they are accounted for.
    pub total: usize,
}

/// A path of a [`PathList`].
#[derive(Debug, PartialEq, Eq)]
pub struct PathEntry {
    /// Its name.
    pub name: Box<str>,
    /// The index of each rule that the name contains by its rule name, from the root down.
    pub rule_indexes: Box<[u32]>,
    /// The slot of its answer.
    pub slot: u32,
}

/// Number of entries whose content has one digest: a changed answer costs the digests of the blocks with its paths.
pub(super) const BLOCK: usize = 256;

/// A state that one or more paths share.
#[derive(Debug)]
struct Slot {
    state: StateId,
    /// End of its range in `entries_by_slot`.
    end: u32,
    /// The last publication that changed its answer.
    changed: AtomicU64,
}

/// A selector matches more paths than are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPaths {
    /// Maximum number of paths.
    pub limit: usize,
}

impl PathList {
    /// Lists the paths of a snapshot.
    pub(super) fn list(
        snapshot: &Snapshot,
        selector: &PathSelector,
        limit: usize,
        publications: Arc<watch::Sender<u64>>,
    ) -> Result<Self, TooManyPaths> {
        let PathSelector { prefixes, levels } = selector;
        let mut lister = Lister::new(levels, limit, snapshot.trie());
        let step = |state, node| {
            let after = snapshot.transitions().after(state, node);
            after.map_err(|error| snapshot.fail(error)).ok()
        };
        let mut visit = |listed: &ListedPath<'_, StateId>| lister.visit(listed);
        match prefixes {
            None => snapshot.trie().list(None, 0, step, &mut visit),
            Some(prefixes) => {
                for prefix in prefixes {
                    if let Ok(path) = PathName::parse(prefix.as_str()) {
                        snapshot.trie().list(Some(&path), 0, step, &mut visit);
                    }
                }
            }
        }
        let Lister {
            mut entries,
            states,
            ..
        } = lister;
        if entries.len() > limit {
            return Err(TooManyPaths { limit });
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        entries.shrink_to_fit();
        let (slots, entries_by_slot) = by_slot(&entries, states);
        let names = entries.iter().map(|entry| entry.name.len()).sum::<usize>();
        let indexes = entries.iter().map(|entry| 4 * entry.rule_indexes.len());
        let cost = Cost {
            bytes: names
                + indexes.sum::<usize>()
                + (size_of::<PathEntry>() + 4) * entries.len()
                + size_of::<Slot>() * slots.len()
                + size_of::<EtagBits>() * entries.len().div_ceil(BLOCK),
            paths: entries.len(),
        };
        Ok(Self {
            trie: Arc::downgrade(snapshot.trie()),
            transitions: Arc::downgrade(snapshot.transitions()),
            name_digests: entries.chunks(BLOCK).map(name_digest).collect(),
            entries,
            slots,
            entries_by_slot,
            client_roots: client_roots(snapshot, prefixes.as_deref()),
            last_mark: AtomicU64::new(0),
            publications,
            steps: Mutex::default(),
            holding: Holding::new(cost),
        })
    }

    /// Whether the list is valid for a snapshot: it was listed from the same topology.
    pub fn is_of(&self, snapshot: &Snapshot) -> bool {
        self.trie.as_ptr() == Arc::as_ptr(snapshot.trie())
            && self.transitions.as_ptr() == Arc::as_ptr(snapshot.transitions())
    }

    /// The paths, sorted by name.
    pub fn entries(&self) -> &[PathEntry] {
        &self.entries
    }

    /// Names of the mesh roots with policies for their own clients, of the selected Services; sorted
    /// (specification 1.3).
    pub fn client_roots(&self) -> &[String] {
        &self.client_roots
    }

    /// Number of slots. Slots are numbered from 0.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The answer of a slot in a snapshot that the list [is of](Self::is_of).
    pub fn answer<'s>(&self, snapshot: &'s Snapshot, slot: u32) -> &'s Arc<PathAnswer> {
        let slot = self.slots.get(slot as usize);
        snapshot.answer_at(slot.map(|slot| slot.state))
    }

    /// The indices of the entries of a slot.
    pub fn entries_of(&self, slot: u32) -> &[u32] {
        let index = slot as usize;
        let end = |slot: &Slot| slot.end as usize;
        let before = index.checked_sub(1).and_then(|i| self.slots.get(i));
        let until = self.slots.get(index).map_or(0, end);
        let entries = self.entries_by_slot.get(before.map_or(0, end)..until);
        entries.unwrap_or_default()
    }

    /// Number of blocks of entries.
    pub(super) fn blocks(&self) -> usize {
        self.name_digests.len()
    }

    /// The digest of a block of entries with their answers, of which `etags` are the etags by slot. It depends on names
    /// and answers alone, so that it is the same on every replica.
    pub(super) fn content_digest(&self, block: usize, etags: &[EtagBits]) -> EtagBits {
        let names = self.name_digests.get(block).copied().unwrap_or_default();
        let entries = self.entries.iter().skip(block * BLOCK).take(BLOCK);
        let etags = entries.filter_map(|entry| etags.get(entry.slot as usize));
        digest(std::iter::once(&names).chain(etags))
    }

    /// The slots whose answers changed after a publication.
    pub fn changed_after(&self, publication: u64) -> impl Iterator<Item = u32> {
        let is_newer = move |slot: &Slot| slot.changed.load(Ordering::Acquire) > publication;
        let slots = (0..).zip(&self.slots);
        slots.filter_map(move |(number, slot)| is_newer(slot).then_some(number))
    }

    /// The slots with their states.
    pub(super) fn states(&self) -> impl Iterator<Item = (u32, StateId)> {
        (0..).zip(self.slots.iter().map(|slot| slot.state))
    }

    /// The steps that streams make to these paths.
    pub(super) fn steps(&self) -> MutexGuard<'_, SharedSteps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a stream computes a step to these paths: another one would wait for it.
    pub fn is_step_in_progress(&self) -> bool {
        matches!(self.steps.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// What the list costs those who hold it.
    pub(super) fn holding(&self) -> Holding {
        self.holding.clone()
    }

    /// Records that a publication changed the answer of a slot; returns whether it is the first mark
    /// of that publication in this list.
    pub(super) fn mark(&self, slot: u32, publication: u64) -> bool {
        if let Some(slot) = self.slots.get(slot as usize) {
            slot.changed.store(publication, Ordering::Release);
        }
        self.last_mark.swap(publication, Ordering::Relaxed) != publication
    }

    /// Records that all answers may have changed.
    pub(super) fn mark_all(&self, publication: u64) {
        for slot in &self.slots {
            slot.changed.store(publication, Ordering::Release);
        }
    }

    /// Wakes the streams of the group.
    pub(super) fn notify(&self, publication: u64) {
        self.publications.send_replace(publication);
    }
}

/// Collects the paths at some levels during a walk of the trie.
struct Lister<'l> {
    levels: &'l [Level],
    /// Nodes at this level or below have no selected nodes below them.
    deepest: Option<Level>,
    limit: usize,
    entries: Vec<PathEntry>,
    states: Vec<StateId>,
    slots: HashMap<StateId, u32>,
}

impl<'l> Lister<'l> {
    fn new(levels: &'l [Level], limit: usize, trie: &PathTrie) -> Self {
        let deepest = levels.iter().max().copied().map(|level| match level {
            // Routes are below rules that delegate to them.
            Level::Route | Level::RouteRule if trie.has_delegating_rules() => Level::Backend,
            level => level,
        });
        Self {
            levels,
            deepest,
            limit,
            entries: Vec::new(),
            states: Vec::new(),
            slots: HashMap::new(),
        }
    }

    fn visit(&mut self, listed: &ListedPath<'_, StateId>) -> WalkControl {
        let level = &listed.node.level;
        let control = match self.deepest.is_some_and(|deepest| *level >= deepest) {
            true => WalkControl::SkipChildren,
            false => WalkControl::Descend,
        };
        if !self.levels.is_empty() && !self.levels.contains(level) {
            return control;
        }
        let states = &mut self.states;
        let slot = *self.slots.entry(listed.state).or_insert_with(|| {
            states.push(listed.state);
            to_u32(states.len() - 1)
        });
        self.entries.push(PathEntry {
            name: listed.name.into(),
            rule_indexes: listed.rule_indexes.into(),
            slot,
        });
        if self.entries.len() > self.limit {
            WalkControl::Stop
        } else {
            control
        }
    }
}

/// The digest of the names of entries and of their rule indexes.
fn name_digest(entries: &[PathEntry]) -> EtagBits {
    let mut bytes = Vec::new();
    for entry in entries {
        // Names contain no zero, and the number of indexes ends them.
        bytes.extend_from_slice(entry.name.as_bytes());
        bytes.push(0);
        bytes.extend((entry.rule_indexes.len() as u64).to_be_bytes());
        let indexes = entry.rule_indexes.iter();
        bytes.extend(indexes.flat_map(|index| index.to_be_bytes()));
    }
    bits(&etag(&bytes))
}

/// The digest of a sequence of digests.
pub(super) fn digest<'d>(digests: impl Iterator<Item = &'d EtagBits>) -> EtagBits {
    let bytes: Vec<u8> = digests.flat_map(|digest| digest.to_be_bytes()).collect();
    bits(&etag(&bytes))
}

/// Converts a number of paths, which the limits keep far below 4 billion.
fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The mesh roots with policies for their own clients, of the Services in prefixes, or of all
/// Services.
fn client_roots(snapshot: &Snapshot, prefixes: Option<&[PathPrefix]>) -> Vec<String> {
    let mut client_roots = snapshot.trie().client_roots();
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
        let selected = prefixes.iter().map(|prefix| service(prefix.as_str()));
        let selected: Vec<_> = selected.flatten().collect();
        client_roots
            .retain(|root| service(root).is_some_and(|service| selected.contains(&service)));
    }
    client_roots
}

/// Creates the slots of states, and the indices of entries grouped by slot.
fn by_slot(entries: &[PathEntry], states: Vec<StateId>) -> (Vec<Slot>, Vec<u32>) {
    let mut grouped: Vec<u32> = (0..to_u32(entries.len())).collect();
    let slot_of = |entry: &u32| entries.get(*entry as usize).map(|entry| entry.slot);
    grouped.sort_by_key(slot_of);
    let mut slots = Vec::with_capacity(states.len());
    for (slot, state) in (0..).zip(states) {
        let end = grouped.partition_point(|entry| slot_of(entry) <= Some(slot));
        slots.push(Slot {
            state,
            end: to_u32(end),
            changed: AtomicU64::new(0),
        });
    }
    (slots, grouped)
}

impl std::fmt::Display for TooManyPaths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let limit = self.limit;
        write!(f, "more than {limit} paths: restrict prefixes or levels")
    }
}
