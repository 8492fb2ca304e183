//! A copy-on-write list of small values, and a copy-on-write hash table in such a list.

use std::sync::Arc;

/// Number of values that are copied when one of them changes. With the counts of its users, a page of values of 4, 8, 12
/// or 20 bytes is a little less than a size that allocators have; with 1 024 values, it would take a quarter more.
const PAGE: usize = 1_016;

/// A list of small values in shared pages. A clone costs one pointer a page; an access one indirection more than that
/// of a `Vec`.
#[derive(Clone, Debug)]
pub struct PagedVec<T> {
    /// Values past the end are defaults.
    pages: Vec<Arc<[T; PAGE]>>,
    length: usize,
}

impl<T: Copy + Default> PagedVec<T> {
    /// A list of the same value.
    pub fn filled(value: T, length: usize) -> Self {
        let pages = (0..length.div_ceil(PAGE)).map(|_| Arc::new([value; PAGE]));
        Self {
            pages: pages.collect(),
            length,
        }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The value at an index.
    pub fn get(&self, index: usize) -> Option<&T> {
        // Values past the end are never asked for, except by a defect, and are defaults then.
        (index < self.length).then_some(())?;
        self.slot(index)
    }

    /// The value at an index that is not past the end.
    fn slot(&self, index: usize) -> Option<&T> {
        self.pages.get(index / PAGE)?.get(index % PAGE)
    }

    /// Some values that are in one page, as those of [`PagedVec::push_run`] are.
    pub fn run(&self, first: usize, count: usize) -> Option<&[T]> {
        if count == 0 {
            return Some(&[]);
        }
        let start = first % PAGE;
        self.pages.get(first / PAGE)?.get(start..start + count)
    }

    /// Replaces the value at an index. Other copies of the list keep theirs. An index past the end has no effect.
    pub fn set(&mut self, index: usize, value: T) {
        let page = self.pages.get_mut(index / PAGE);
        let place = page.and_then(|page| Arc::make_mut(page).get_mut(index % PAGE));
        if let Some(place) = place {
            *place = value;
        }
    }

    /// Appends a value and returns its index.
    pub fn push(&mut self, value: T) -> usize {
        let index = self.length;
        if index / PAGE == self.pages.len() {
            self.pages.push(Arc::new([T::default(); PAGE]));
        }
        self.length += 1;
        self.set(index, value);
        index
    }

    /// Appends values, all in one page if they are not more than a page has, and returns the index of the first.
    pub fn push_run(&mut self, values: &[T]) -> usize {
        let left = PAGE - self.length % PAGE;
        if left < values.len() && left < PAGE {
            // The rest of the page stays unused.
            self.length += left;
        }
        let first = self.length;
        for &value in values {
            self.push(value);
        }
        first
    }

    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let all = self.pages.iter().flat_map(|page| page.iter());
        all.take(self.length)
    }
}

impl<T> Default for PagedVec<T> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            length: 0,
        }
    }
}

/// An entry of a [`PagedTable`], with two values that are never entries, so that a slot is not larger than an entry.
pub trait TableEntry: Copy + Default + PartialEq {
    /// No entry.
    const EMPTY: Self;
    /// An entry was removed; later ones may follow.
    const REMOVED: Self;
}

impl TableEntry for u32 {
    const EMPTY: Self = u32::MAX;
    const REMOVED: Self = u32::MAX - 1;
}

impl TableEntry for (u32, u32) {
    const EMPTY: Self = (u32::EMPTY, u32::EMPTY);
    const REMOVED: Self = (u32::REMOVED, u32::REMOVED);
}

impl TableEntry for (u32, u32, u32) {
    const EMPTY: Self = (u32::EMPTY, u32::EMPTY, u32::EMPTY);
    const REMOVED: Self = (u32::REMOVED, u32::REMOVED, u32::REMOVED);
}

/// Whether a slot has an entry.
fn is_full<T: TableEntry>(slot: &T) -> bool {
    *slot != T::EMPTY && *slot != T::REMOVED
}

/// A hash table of small entries that shares unchanged pages with its clones. Entries contain what their hash can be
/// computed from.
#[derive(Clone, Debug)]
pub struct PagedTable<T> {
    slots: PagedVec<T>,
    /// Slots that are not empty.
    used: usize,
    length: usize,
}

impl<T: TableEntry> PagedTable<T> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The entry with a hash for which `is` is true.
    pub fn find(&self, hash: u64, mut is: impl FnMut(&T) -> bool) -> Option<&T> {
        // As `probes`, in fewer instructions: look-ups come here for each step.
        let slots = self.slots.len();
        let mut at = first(hash, slots);
        for _ in 0..slots {
            let slot = self.slots.slot(at)?;
            if *slot == T::EMPTY {
                return None;
            }
            if *slot != T::REMOVED && is(slot) {
                return Some(slot);
            }
            at += 1;
            if at == slots {
                at = 0;
            }
        }
        None
    }

    /// Adds an entry with its hash. `hash_of` returns the hash of any entry.
    pub fn insert(&mut self, entry: T, hash: u64, hash_of: impl Fn(&T) -> u64) {
        // At most three quarters are used.
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.resize(self.length * 8 / 3 + 8, &hash_of);
        }
        let slots = &self.slots;
        let is_free = |at: &usize| !slots.get(*at).is_some_and(is_full);
        let place = probes(hash, slots.len()).find(is_free);
        let Some(place) = place else { return };
        self.used += usize::from(slots.get(place) == Some(&T::EMPTY));
        self.length += 1;
        self.slots.set(place, entry);
    }

    /// Replaces the entry with a hash for which `is` is true; by nothing to remove it. Returns whether there is one.
    pub fn replace(&mut self, hash: u64, is: impl Fn(&T) -> bool, by: Option<T>) -> bool {
        let slots = &self.slots;
        let mut place = None;
        for at in probes(hash, slots.len()) {
            match slots.get(at) {
                Some(slot) if is_full(slot) && is(slot) => place = Some(at),
                Some(slot) if *slot != T::EMPTY => continue,
                _ => {}
            }
            break;
        }
        let Some(place) = place else { return false };
        self.length -= usize::from(by.is_none());
        self.slots.set(place, by.unwrap_or(T::REMOVED));
        true
    }

    /// The entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter(|slot| is_full(*slot))
    }

    /// A table with room for some entries.
    pub fn with_room(entries: usize) -> Self {
        let mut table = Self::default();
        table.resize(settled(entries), &|_| 0);
        table
    }

    /// Leaves a little space for more entries, which are then added without moving all.
    pub fn settle(&mut self, hash_of: impl Fn(&T) -> u64) {
        let slots = settled(self.length);
        // Moving all takes longer than a little more room is worth.
        if self.used > self.length
            || !(slots..=slots + slots / 16 + PAGE).contains(&self.slots.len())
        {
            self.resize(slots, &hash_of);
        }
    }

    fn resize(&mut self, capacity: usize, hash_of: &impl Fn(&T) -> u64) {
        let before = std::mem::take(&mut self.slots);
        // The last page has all of its slots anyway; with more of them there are fewer collisions.
        let capacity = capacity.next_multiple_of(PAGE);
        self.slots = PagedVec::filled(T::EMPTY, capacity);
        self.used = self.length;
        for &entry in before.iter().filter(|slot| is_full(*slot)) {
            let slots = &self.slots;
            let is_empty = |at: &usize| slots.get(*at) == Some(&T::EMPTY);
            if let Some(place) = probes(hash_of(&entry), capacity).find(is_empty) {
                self.slots.set(place, entry);
            }
        }
    }
}

/// The number of slots for some entries.
fn settled(entries: usize) -> usize {
    entries + entries / 2 + 8
}

/// The slots of a hash, in the order in which they are tried.
fn probes(hash: u64, slots: usize) -> impl Iterator<Item = usize> {
    let first = first(hash, slots);
    (first..slots).chain(0..first)
}

/// The first slot of a hash, by its high bits.
fn first(hash: u64, slots: usize) -> usize {
    let first = (u128::from(hash) * slots as u128) >> 64;
    // Less than `slots`.
    usize::try_from(first).unwrap_or_default()
}

impl<T> Default for PagedTable<T> {
    fn default() -> Self {
        Self {
            slots: PagedVec::default(),
            used: 0,
            length: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl TableEntry for u64 {
        const EMPTY: Self = u64::MAX;
        const REMOVED: Self = u64::MAX - 1;
    }

    #[test]
    fn a_changed_copy_shares_the_unchanged_pages() {
        let mut first = PagedVec::default();
        for value in 0..5_000_u32 {
            assert_eq!(first.push(value), value as usize);
        }
        let mut second = first.clone();
        second.set(4_000, 7);
        second.set(50_000, 7);
        assert_eq!(
            (first.get(4_000), second.get(4_000)),
            (Some(&4_000), Some(&7))
        );
        second.push(9);
        assert_eq!((first.len(), second.len()), (5_000, 5_001));
        assert_eq!((first.get(5_000), second.get(5_000)), (None, Some(&9)));
        let pairs = first.pages.iter().zip(&second.pages);
        assert_eq!(pairs.filter(|(a, b)| !Arc::ptr_eq(a, b)).count(), 2);
        assert_eq!(second.iter().count(), 5_001);
        assert!(!second.is_empty() && PagedVec::<u32>::default().is_empty());
    }

    #[test]
    fn runs_are_in_one_page() {
        let mut list = PagedVec::default();
        for length in (1..=12).cycle().take(2_000) {
            let values: Vec<usize> = (0..length).collect();
            let first = list.push_run(&values);
            assert_eq!(list.run(first, length), Some(&*values));
        }
        assert_eq!(list.run(3, 0), Some(&[][..]));
    }

    #[test]
    fn numbers_of_which_one_is_the_largest_are_an_entry() {
        let hash = |entry: &(u32, u32)| u64::from(entry.1) << 40;
        let mut table = PagedTable::default();
        let entries = [(u32::MAX, 0), (u32::MAX - 1, 0), (0, u32::MAX)];
        for entry in entries {
            table.insert(entry, hash(&entry), hash);
        }
        for entry in entries {
            let found = table.find(hash(&entry), |other| *other == entry);
            assert_eq!(found, Some(&entry));
        }
        assert_eq!(table.iter().count(), entries.len());
    }

    #[test]
    fn a_table_finds_what_is_in_it_and_nothing_else() {
        let hash = |value: &u64| value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut table = PagedTable::default();
        let mut copies = Vec::new();
        for value in 0..4_000_u64 {
            table.insert(value, hash(&value), hash);
            if value % 1_000 == 500 {
                copies.push((value, table.clone()));
            }
            if value % 3 == 0 {
                assert!(table.replace(hash(&value), |other| *other == value, None));
                assert!(!table.replace(hash(&value), |other| *other == value, None));
            }
        }
        table.settle(hash);
        let find = |table: &PagedTable<u64>, value: u64| {
            table.find(hash(&value), |other| *other == value).is_some()
        };
        for value in 0..5_000 {
            assert_eq!(
                find(&table, value),
                value < 4_000 && value % 3 != 0,
                "{value}"
            );
        }
        for (last, copy) in copies {
            assert!(find(&copy, last) && !find(&copy, last + 1));
            assert_eq!(copy.iter().count(), copy.len());
        }
        assert!(!table.is_empty() && PagedTable::<u64>::default().is_empty());
        assert!(!find(&PagedTable::default(), 1));
    }
}
