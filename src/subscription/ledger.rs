//! What watch streams hold in memory, by caller, and which stream ends when that exceeds a bound.
//!
//! Objects that several streams share count once for each caller that holds them, and once in all.
//! If a caller exceeds its share, the slowest of its streams ends. If all callers together exceed
//! the total, the slowest stream of the caller that holds most ends: no caller can use up the room
//! of others, or end their streams.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hashbrown::HashMap;

use super::delivery::StreamSlot;
use super::path_list::PathLimits;

/// Maximum memory that streams hold, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLimits {
    /// For all streams of a caller.
    pub per_caller: usize,
    /// For all streams.
    pub total: usize,
}

/// The bounds of what streams hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldingLimits {
    /// Listed paths.
    pub paths: PathLimits,
    /// Memory.
    pub bytes: ByteLimits,
}

/// The size of an object, or of all that a caller holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Approximate memory, in bytes.
    pub bytes: usize,
    /// Listed paths.
    pub paths: usize,
}

/// An object that streams hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Holding {
    /// 0 for an object that costs nothing.
    id: u64,
    cost: Cost,
}

/// A bound that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// The memory of one caller, in bytes.
    BytesOfCaller(usize),
    /// The memory of all callers, in bytes.
    Bytes(usize),
    /// The paths of one caller.
    PathsOfCaller(usize),
    /// The paths of all callers.
    Paths(usize),
}

/// What all streams hold.
#[derive(Debug, Default)]
pub struct StreamLedger {
    books: Mutex<Books>,
    /// Counts messages: a stream with a lower number has waited longer for its caller.
    clock: AtomicU64,
    next_stream: AtomicU64,
    ended: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Debug, Default)]
struct Books {
    total: Cost,
    /// The number of callers that hold an object.
    objects: HashMap<u64, usize>,
    accounts: HashMap<Arc<str>, Account>,
}

/// What one caller holds.
#[derive(Debug, Default)]
struct Account {
    total: Cost,
    /// The number of streams that hold an object.
    objects: HashMap<u64, usize>,
    streams: BTreeMap<u64, Entry>,
}

/// What one stream holds.
#[derive(Debug)]
struct Entry {
    slot: Weak<StreamSlot>,
    held: Vec<Holding>,
}

/// The part of a [`Cost`] that a bound is about.
type Dimension = fn(&Cost) -> usize;

/// Source of the numbers of objects.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Holding {
    pub fn new(cost: Cost) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self { id, cost }
    }

    /// Identifies the object.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.cost.bytes
    }
}

impl Exceeded {
    /// The value of the label `reason` of the metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::BytesOfCaller(_) => "bytes_of_client",
            Self::Bytes(_) => "bytes",
            Self::PathsOfCaller(_) => "paths_of_client",
            Self::Paths(_) => "paths",
        }
    }

    fn dimension(self) -> Dimension {
        match self {
            Self::BytesOfCaller(_) | Self::Bytes(_) => |cost| cost.bytes,
            Self::PathsOfCaller(_) | Self::Paths(_) => |cost| cost.paths,
        }
    }

    fn is_of_caller(self) -> bool {
        matches!(self, Self::BytesOfCaller(_) | Self::PathsOfCaller(_))
    }
}

impl std::fmt::Display for Exceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const RETRY: &str = "read faster or restrict prefixes, levels or kinds, and call again with \
                             the last resume token";
        match self {
            Self::BytesOfCaller(limit) => write!(
                f,
                "the streams of this client hold more than {limit} bytes, and this one is the \
                 slowest: {RETRY}"
            ),
            Self::Bytes(limit) => write!(
                f,
                "all streams hold more than {limit} bytes, and this one is the slowest of the \
                 client that holds most: {RETRY}"
            ),
            Self::PathsOfCaller(limit) => write!(
                f,
                "the streams of this client follow more than {limit} paths: {RETRY}"
            ),
            Self::Paths(limit) => write!(
                f,
                "all streams follow more than {limit} paths, and this client follows most: {RETRY}"
            ),
        }
    }
}

impl StreamLedger {
    /// What all streams hold.
    pub fn total(&self) -> Cost {
        self.books().total
    }

    /// Number of streams that ended, by reason.
    pub fn ended(&self) -> Vec<(&'static str, u64)> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended
            .iter()
            .map(|(reason, count)| (*reason, *count))
            .collect()
    }

    /// Counts a stream that ended.
    pub(super) fn count(&self, reason: &'static str) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        *ended.entry(reason).or_default() += 1;
    }

    /// The next number of a message.
    pub(super) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a stream that holds nothing. Returns its number.
    pub(super) fn open(&self, caller: &Arc<str>, slot: Weak<StreamSlot>) -> u64 {
        let stream = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let held = Vec::new();
        let mut books = self.books();
        let account = books.accounts.entry(Arc::clone(caller)).or_default();
        account.streams.insert(stream, Entry { slot, held });
        stream
    }

    /// Records what a stream holds now. If that exceeds a bound, ends streams until it does not;
    /// possibly the stream itself.
    pub(super) fn hold(
        &self,
        (caller, stream): (&Arc<str>, u64),
        held: Vec<Holding>,
        limits: &HoldingLimits,
    ) {
        let mut ended = Vec::new();
        let mut books = self.books();
        books.replace(caller, stream, held);
        while let Some(exceeded) = books.exceeded(caller, stream, limits) {
            let (owner, slowest) = books.slowest((caller, stream), exceeded);
            ended.extend(books.close(&owner, slowest).map(|slot| (slot, exceeded)));
        }
        drop(books);
        for (slot, exceeded) in ended {
            slot.end(exceeded);
        }
    }

    /// Removes a stream.
    pub(super) fn close(&self, caller: &Arc<str>, stream: u64) {
        self.books().close(caller, stream);
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn replace(&mut self, caller: &Arc<str>, stream: u64, mut held: Vec<Holding>) {
        held.retain(|object| object.id != 0);
        held.sort_by_key(|object| object.id);
        held.dedup_by_key(|object| object.id);
        let Some(account) = self.accounts.get_mut(caller) else {
            return;
        };
        let Some(entry) = account.streams.get_mut(&stream) else {
            return;
        };
        let before = std::mem::replace(&mut entry.held, held.clone());
        for object in &held {
            if add(&mut account.objects, object.id) {
                account.total.add(&object.cost);
                if add(&mut self.objects, object.id) {
                    self.total.add(&object.cost);
                }
            }
        }
        for object in &before {
            if remove(&mut account.objects, object.id) {
                account.total.remove(&object.cost);
                if remove(&mut self.objects, object.id) {
                    self.total.remove(&object.cost);
                }
            }
        }
    }

    /// Removes a stream, and its caller after its last stream.
    fn close(&mut self, caller: &Arc<str>, stream: u64) -> Option<Arc<StreamSlot>> {
        self.replace(caller, stream, Vec::new());
        let account = self.accounts.get_mut(caller)?;
        let entry = account.streams.remove(&stream);
        if account.streams.is_empty() {
            self.accounts.remove(caller);
        }
        entry?.slot.upgrade()
    }

    /// The bound that is exceeded, as long as the stream is open.
    fn exceeded(&self, caller: &Arc<str>, stream: u64, limits: &HoldingLimits) -> Option<Exceeded> {
        let account = self.accounts.get(caller)?;
        account.streams.get(&stream)?;
        let HoldingLimits { paths, bytes } = limits;
        let bounds = [
            (
                account.total.bytes,
                Exceeded::BytesOfCaller(bytes.per_caller),
                bytes.per_caller,
            ),
            (
                account.total.paths,
                Exceeded::PathsOfCaller(paths.per_caller),
                paths.per_caller,
            ),
            (self.total.bytes, Exceeded::Bytes(bytes.total), bytes.total),
            (self.total.paths, Exceeded::Paths(paths.total), paths.total),
        ];
        let mut over = bounds.iter().filter(|(held, _, limit)| held > limit);
        over.next().map(|(_, exceeded, _)| *exceeded)
    }

    /// The stream to end because a bound is exceeded after `stream` took more: of the same caller,
    /// or of the one that holds most if the bound is that of all.
    fn slowest(&self, (caller, stream): (&Arc<str>, u64), exceeded: Exceeded) -> (Arc<str>, u64) {
        let size = exceeded.dimension();
        let own = self.accounts.get(caller);
        let own_size = own.map_or(0, |account| size(&account.total));
        #[allow(
            clippy::iter_over_hash_type,
            reason = "the maximum does not depend on the order"
        )]
        let largest = self
            .accounts
            .iter()
            .filter(|(_, account)| !exceeded.is_of_caller() && size(&account.total) > own_size)
            .max_by_key(|(name, account)| (size(&account.total), Arc::clone(name)));
        if let Some((name, account)) = largest {
            let slowest = account.slowest_waiting(|object| size(&object.cost) > 0);
            let newest = || account.streams.keys().next_back().copied();
            if let Some(found) = slowest.or_else(newest) {
                return (Arc::clone(name), found);
            }
        }
        let held = own.and_then(|account| account.streams.get(&stream));
        let held = held.map(|entry| &*entry.held).unwrap_or_default();
        // A stream that holds the same as this one makes no room.
        let frees = |object: &Holding| {
            size(&object.cost) > 0 && !held.iter().any(|own| own.id == object.id)
        };
        let slowest = own.and_then(|account| account.slowest_waiting(frees));
        (Arc::clone(caller), slowest.unwrap_or(stream))
    }
}

impl Account {
    /// The stream that has waited longest for its caller, of those that hold some object.
    fn slowest_waiting(&self, holds: impl Fn(&Holding) -> bool) -> Option<u64> {
        let waiting = self.streams.iter().filter_map(|(stream, entry)| {
            let since = entry.slot.upgrade()?.waiting_since()?;
            entry.held.iter().any(&holds).then_some((since, *stream))
        });
        waiting.min().map(|(_, stream)| stream)
    }
}

impl Cost {
    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.paths += other.paths;
    }

    fn remove(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.paths = self.paths.saturating_sub(other.paths);
    }
}

/// Adds one use; returns whether it is the first.
fn add(uses: &mut HashMap<u64, usize>, id: u64) -> bool {
    let count = uses.entry(id).or_default();
    *count += 1;
    *count == 1
}

/// Removes one use; returns whether it was the last.
fn remove(uses: &mut HashMap<u64, usize>, id: u64) -> bool {
    let Some(count) = uses.get_mut(&id) else {
        return false;
    };
    *count -= 1;
    let is_last = *count == 0;
    if is_last {
        uses.remove(&id);
    }
    is_last
}
