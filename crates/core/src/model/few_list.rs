//! A list that nearly always has one entry.

use std::sync::Arc;

/// A list of numbers, of which one needs no memory of its own. Clones share longer ones.
#[derive(Clone, Debug, Default)]
pub enum FewList<T> {
    /// Nothing.
    #[default]
    None,
    /// One entry.
    One(T),
    /// Two or more entries, unless others were removed.
    Several(Arc<Vec<T>>),
}

impl<T: Copy + PartialEq> FewList<T> {
    /// The entries in the order in which they were added.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::None => &[],
            Self::One(entry) => std::slice::from_ref(entry),
            Self::Several(entries) => entries,
        }
    }

    /// Appends an entry. Other copies of the list do not change.
    pub fn push(&mut self, entry: T) {
        match self {
            Self::None => *self = Self::One(entry),
            Self::One(first) => *self = Self::Several(Arc::new(vec![*first, entry])),
            Self::Several(entries) => Arc::make_mut(entries).push(entry),
        }
    }

    /// Removes an entry once, if it is there. Other copies of the list do not change.
    pub fn remove(&mut self, entry: T) {
        let Some(place) = self.as_slice().iter().position(|other| *other == entry) else {
            return;
        };
        match self {
            Self::Several(entries) if entries.len() > 1 => {
                Arc::make_mut(entries).remove(place);
            }
            _ => *self = Self::None,
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_in_order_and_copies_as_they_are() {
        let mut list = FewList::default();
        let mut copies = vec![];
        for entry in [7, 8, 7, 9] {
            copies.push((list.clone(), list.as_slice().to_vec()));
            list.push(entry);
        }
        assert_eq!(list.as_slice(), [7, 8, 7, 9]);
        for (entry, left) in [(7, vec![8, 7, 9]), (1, vec![8, 7, 9]), (9, vec![8, 7])] {
            copies.push((list.clone(), list.as_slice().to_vec()));
            list.remove(entry);
            assert_eq!(list.as_slice(), left);
        }
        list.remove(8);
        list.remove(7);
        assert!(list.is_empty());
        list.push(3);
        list.remove(3);
        assert!(matches!(list, FewList::None));
        for (copy, entries) in copies {
            assert_eq!(copy.as_slice(), entries);
        }
    }
}
