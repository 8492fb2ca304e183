//! A copy-on-write list that entries can be added to and removed from anywhere.

use std::cmp::Ordering;
use std::sync::Arc;

/// Maximum number of entries that are copied for a change.
const CHUNK: usize = 256;

/// The number of a chunk, and an index in it.
type Position = (usize, usize);

/// A list in shared chunks of different lengths. A clone costs one pointer a chunk, a change one chunk.
#[derive(Clone, Debug)]
pub struct ChunkedList<T> {
    /// No chunk is empty.
    chunks: Vec<Arc<Vec<T>>>,
    length: usize,
}

impl<T: Clone> ChunkedList<T> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The entries in order.
    pub fn iter(&self) -> ChunkedListIter<'_, T> {
        ChunkedListIter {
            chunks: self.chunks.iter(),
            chunk: [].iter(),
        }
    }

    /// The entry at an index.
    pub fn get(&self, index: usize) -> Option<&T> {
        let (chunk, at) = self.position(index)?;
        self.chunks.get(chunk)?.get(at)
    }

    /// The last entry.
    pub fn last(&self) -> Option<&T> {
        self.chunks.last()?.last()
    }

    /// Finds an entry in a sorted list, or the index at which it belongs. `order` compares an entry with it. Takes time in
    /// proportion to the number of chunks.
    ///
    /// # Errors
    /// There is no such entry.
    pub fn search(&self, order: impl FnMut(&T) -> Ordering) -> Result<usize, usize> {
        let index = |(chunk, at): Position| {
            let before = self.chunks.iter().take(chunk).map(|chunk| chunk.len());
            before.sum::<usize>() + at
        };
        self.search_position(order).map(index).map_err(index)
    }

    /// The entry of a sorted list that `order` calls equal.
    pub fn find(&self, order: impl FnMut(&T) -> Ordering) -> Option<&T> {
        let (chunk, at) = self.search_position(order).ok()?;
        self.chunks.get(chunk)?.get(at)
    }

    /// The entries of a sorted list from the first one that is not less.
    pub fn iter_from(&self, order: impl FnMut(&T) -> Ordering) -> ChunkedListIter<'_, T> {
        let (chunk, at) = self
            .search_position(order)
            .unwrap_or_else(|belongs| belongs);
        let mut chunks = self.chunks.get(chunk..).unwrap_or_default().iter();
        let first = chunks.next().and_then(|first| first.get(at..));
        ChunkedListIter {
            chunks,
            chunk: first.unwrap_or_default().iter(),
        }
    }

    /// Puts an entry at its place in a sorted list, instead of the one that `order` calls equal; returns that one.
    pub fn put(&mut self, order: impl FnMut(&T) -> Ordering, entry: T) -> Option<T> {
        match self.search_position(order) {
            Ok(position) => self.replace(position, entry),
            Err(position) => {
                self.insert_at(position, entry);
                None
            }
        }
    }

    /// Takes the entry that `order` calls equal out of a sorted list.
    pub fn take(&mut self, order: impl FnMut(&T) -> Ordering) -> Option<T> {
        let position = self.search_position(order).ok()?;
        self.remove_at(position)
    }

    /// Adds an entry at an index, or at the end.
    pub fn insert(&mut self, index: usize, entry: T) {
        let position = self.position(index).unwrap_or((self.chunks.len(), 0));
        self.insert_at(position, entry);
    }

    fn search_position(&self, mut order: impl FnMut(&T) -> Ordering) -> Result<Position, Position> {
        let mut is_before = |chunk: &Arc<Vec<T>>| {
            let last = chunk.last();
            last.is_some_and(|last| order(last) == Ordering::Less)
        };
        let number = self.chunks.partition_point(&mut is_before);
        let Some(chunk) = self.chunks.get(number) else {
            return Err((number, 0));
        };
        let found = chunk.binary_search_by(order);
        found.map(|at| (number, at)).map_err(|at| (number, at))
    }

    /// Adds an entry before a position. The one behind the last chunk is the end.
    fn insert_at(&mut self, (mut chunk, mut at): Position, entry: T) {
        self.length += 1;
        if chunk == self.chunks.len() {
            let Some(last) = self.chunks.last() else {
                self.chunks.push(Arc::new(vec![entry]));
                return;
            };
            (chunk, at) = (chunk - 1, last.len());
        }
        let full = self
            .chunks
            .get_mut(chunk)
            .filter(|chunk| chunk.len() >= CHUNK);
        if let Some(full) = full {
            // A list that only grows at its end has full chunks.
            let half = if at == CHUNK { CHUNK } else { CHUNK / 2 };
            let rest = Arc::make_mut(full).split_off(half);
            self.chunks.insert(chunk + 1, Arc::new(rest));
            if at >= half {
                (chunk, at) = (chunk + 1, at - half);
            }
        }
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            Arc::make_mut(chunk).insert(at, entry);
        }
    }

    /// Appends an entry.
    pub fn push(&mut self, entry: T) {
        self.insert(self.length, entry);
    }

    /// Removes the entry at an index.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        self.remove_at(self.position(index)?)
    }

    /// Replaces the entry at an index, and returns the one before.
    pub fn set(&mut self, index: usize, entry: T) -> Option<T> {
        self.replace(self.position(index)?, entry)
    }

    fn remove_at(&mut self, (number, at): Position) -> Option<T> {
        let chunk = Arc::make_mut(self.chunks.get_mut(number)?);
        let entry = chunk.remove(at);
        if chunk.is_empty() {
            self.chunks.remove(number);
        }
        self.length -= 1;
        Some(entry)
    }

    fn replace(&mut self, (chunk, at): Position, entry: T) -> Option<T> {
        let place = Arc::make_mut(self.chunks.get_mut(chunk)?).get_mut(at)?;
        Some(std::mem::replace(place, entry))
    }

    /// The position of an index, if there is an entry.
    fn position(&self, index: usize) -> Option<Position> {
        let mut at = index;
        for (number, chunk) in self.chunks.iter().enumerate() {
            if at < chunk.len() {
                return Some((number, at));
            }
            at -= chunk.len();
        }
        None
    }
}

/// The entries of a [`ChunkedList`] in order.
#[derive(Clone, Debug)]
pub struct ChunkedListIter<'l, T> {
    chunks: std::slice::Iter<'l, Arc<Vec<T>>>,
    chunk: std::slice::Iter<'l, T>,
}

impl<'l, T> Iterator for ChunkedListIter<'l, T> {
    type Item = &'l T;

    fn next(&mut self) -> Option<&'l T> {
        loop {
            if let Some(next) = self.chunk.next() {
                return Some(next);
            }
            self.chunk = self.chunks.next()?.iter();
        }
    }
}

impl<T> Default for ChunkedList<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            length: 0,
        }
    }
}

impl<T: Clone> FromIterator<T> for ChunkedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut list = Self::default();
        entries.into_iter().for_each(|entry| list.push(entry));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_changes_as_a_vec_does() {
        let mut list: ChunkedList<u64> = ChunkedList::default();
        let mut expected: Vec<u64> = Vec::new();
        let mut random = 1_u64;
        for step in 0..6_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let value = random >> 40;
            let at = (random >> 33) as usize % (expected.len() + 1);
            let (before, unchanged) = (list.clone(), expected.clone());
            match step % 4 {
                3 if at < expected.len() => assert_eq!(list.remove(at), Some(expected.remove(at))),
                2 if at < expected.len() => {
                    let old = std::mem::replace(&mut expected[at], value);
                    assert_eq!(list.set(at, value), Some(old));
                }
                _ => {
                    list.insert(at, value);
                    expected.insert(at, value);
                }
            }
            assert_eq!(list.get(at), expected.get(at));
            assert!(before.iter().eq(&unchanged));
        }
        assert!(list.iter().eq(&expected));
        assert_eq!(
            (list.len(), list.get(expected.len())),
            (expected.len(), None)
        );
        assert!(
            list.chunks.len() > 4
                && list
                    .chunks
                    .iter()
                    .all(|c| c.len() <= CHUNK && !c.is_empty())
        );
        while !list.is_empty() {
            list.remove(list.len() / 2);
        }
        assert!(list.chunks.is_empty());
    }

    #[test]
    fn entries_of_a_sorted_list_are_found() {
        let list: ChunkedList<u32> = (0..2_000).map(|number| number * 2).collect();
        assert!(
            list.chunks
                .iter()
                .rev()
                .skip(1)
                .all(|chunk| chunk.len() == CHUNK)
        );
        for wanted in 0..4_001 {
            let at = list.search(|entry| entry.cmp(&wanted));
            let expected = wanted as usize / 2;
            match wanted % 2 == 0 && wanted < 4_000 {
                true => assert_eq!(at, Ok(expected)),
                false => assert_eq!(at, Err((wanted as usize).div_ceil(2))),
            }
        }
    }

    #[test]
    fn a_sorted_list_changes_as_a_map_does() {
        let mut list: ChunkedList<(u64, u64)> = ChunkedList::default();
        let mut expected = std::collections::BTreeMap::new();
        let mut random = 1_u64;
        for step in 0..8_000_u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let key = random >> 54;
            let order = |entry: &(u64, u64)| entry.0.cmp(&key);
            let (before, unchanged) = (list.clone(), expected.clone());
            let old = match step % 3 {
                2 => list.take(order).map(|(_, value)| value),
                _ => list.put(order, (key, step)).map(|(_, value)| value),
            };
            match step % 3 {
                2 => assert_eq!(old, expected.remove(&key)),
                _ => assert_eq!(old, expected.insert(key, step)),
            }
            assert_eq!(list.find(order).map(|(_, value)| value), expected.get(&key));
            let from = list.iter_from(order).map(|(key, _)| key);
            assert!(from.eq(expected.range(key..).map(|(key, _)| key)));
            assert!(before.iter().map(|(key, _)| key).eq(unchanged.keys()));
            assert_eq!(list.len(), expected.len());
        }
        assert!(list.chunks.len() > 2);
    }
}
