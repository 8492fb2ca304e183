//! Lists that are indexed by ids of one type.

use std::fmt;
use std::marker::PhantomData;

use super::{InternalError, OrInternal};

/// An id: the index of an entry in its list.
pub trait Id: Copy {
    /// What the entries are called in internal errors.
    const ENTRY: &'static str;

    /// The id of the entry at a index.
    fn at(index: u32) -> Self;

    /// The index of the entry.
    fn index(self) -> usize;
}

/// A list whose entries are found by the ids that it gives out. An id without an entry is an
/// internal error.
pub struct IndexVec<I, T> {
    entries: Vec<T>,
    id: PhantomData<fn(I)>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// An empty list with room for entries.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: Vec::with_capacity(capacity),
            id: PhantomData,
        }
    }

    /// A list with the same entry for some ids.
    pub fn filled(entry: T, length: usize) -> Self
    where
        T: Clone,
    {
        vec![entry; length].into()
    }

    /// The entry of an id.
    ///
    /// # Errors
    /// The list gave out no such id.
    pub fn get(&self, id: I) -> Result<&T, InternalError> {
        self.entries.get(id.index()).or_internal(I::ENTRY)
    }

    /// The entry of an id, to change it.
    ///
    /// # Errors
    /// The list gave out no such id.
    pub fn get_mut(&mut self, id: I) -> Result<&mut T, InternalError> {
        self.entries.get_mut(id.index()).or_internal(I::ENTRY)
    }

    /// Adds an entry; returns its id.
    pub fn push(&mut self, entry: T) -> I {
        // More than 4 billion entries do not fit into memory; the last id would be shared.
        let index = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push(entry);
        I::at(index)
    }

    /// The entries in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.entries.iter()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns unused memory.
    pub fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
    }
}

impl<I, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(entries: Vec<T>) -> Self {
        Self {
            entries,
            id: PhantomData,
        }
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T: Clone> Clone for IndexVec<I, T> {
    fn clone(&self) -> Self {
        self.entries.clone().into()
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Number(u32);

    impl Id for Number {
        const ENTRY: &'static str = "a number";

        fn at(index: u32) -> Self {
            Self(index)
        }

        fn index(self) -> usize {
            self.0 as usize
        }
    }

    #[test]
    fn ids_find_their_entries() {
        let mut list: IndexVec<Number, &str> = IndexVec::default();
        let (one, two) = (list.push("one"), list.push("two"));
        assert_eq!((list.get(one), list.get(two)), (Ok(&"one"), Ok(&"two")));
        assert_eq!(list.len(), 2);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "a number is missing"))]
    fn an_id_without_an_entry_is_an_internal_error() {
        let list: IndexVec<Number, &str> = IndexVec::default();
        let before = InternalError::count();
        assert!(list.get(Number(7)).is_err());
        assert!(InternalError::count() > before);
    }
}
