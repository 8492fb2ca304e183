//! A copy-on-write list: a changed copy shares the unchanged chunks with the original.

use std::sync::Arc;

/// Number of entries that are copied when one of them changes.
const CHUNK: usize = 128;

/// A list in shared chunks. A clone costs one pointer a chunk.
#[derive(Clone, Debug)]
pub struct ChunkedVec<T> {
    chunks: Vec<Arc<Vec<T>>>,
    length: usize,
}

impl<T: Clone> ChunkedVec<T> {
    /// Creates a list of `entries`.
    pub fn new(entries: &[T]) -> Self {
        let chunks = entries.chunks(CHUNK);
        Self {
            chunks: chunks.map(|chunk| Arc::new(chunk.to_vec())).collect(),
            length: entries.len(),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Reports whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Appends an entry. Other copies of the list do not change.
    pub fn push(&mut self, entry: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => Arc::make_mut(last).push(entry),
            _ => self.chunks.push(Arc::new(vec![entry])),
        }
        self.length += 1;
    }

    /// Returns the entry at `index`.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    /// Returns the entry at `index`, to change it. Other copies of the list keep theirs.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(index / CHUNK)?;
        Arc::make_mut(chunk).get_mut(index % CHUNK)
    }

    /// Replaces the entry at `index`. Other copies of the list keep theirs. An index past the end has
    /// no effect.
    pub fn set(&mut self, index: usize, entry: T) {
        let chunk = self.chunks.get_mut(index / CHUNK);
        let slot = chunk.and_then(|chunk| Arc::make_mut(chunk).get_mut(index % CHUNK));
        if let Some(slot) = slot {
            *slot = entry;
        }
    }
}

impl<T> Default for ChunkedVec<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            length: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_copy_shares_the_unchanged_chunks() {
        let first = ChunkedVec::new(&(0..1_000).collect::<Vec<_>>());
        let mut second = first.clone();
        second.set(500, 7);
        second.set(5_000, 7);
        assert_eq!((first.get(500), second.get(500)), (Some(&500), Some(&7)));
        assert_eq!((second.get(999), second.get(1_000)), (Some(&999), None));
        let mut third = second.clone();
        third.push(9);
        assert_eq!(
            (second.len(), third.len(), third.get(1_000)),
            (1_000, 1_001, Some(&9))
        );
        assert_eq!(third.iter().count(), 1_001);
        let shared = |(a, b): (&Arc<_>, &Arc<_>)| Arc::ptr_eq(a, b);
        let pairs = first.chunks.iter().zip(&second.chunks);
        assert_eq!(pairs.filter(|pair| !shared(*pair)).count(), 1);
    }
}
