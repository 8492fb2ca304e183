//! The keys of all nodes, by number and by key.

use std::hash::BuildHasher as _;

use hashbrown::DefaultHashBuilder;

use super::NodeId;
use crate::model::{ChunkedVec, NodeKey, PagedTable, PagedVec};

/// The keys of all nodes. Each key is kept once. A key that nothing uses any more is not found; if it comes back, it
/// gets another number.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeKeys {
    keys: ChunkedVec<NodeKey>,
    /// How often each key is used.
    uses: PagedVec<u32>,
    /// The numbers by the hashes of their keys.
    numbers: PagedTable<NodeId>,
    /// The number of keys that nothing uses any more.
    released: usize,
    hasher: DefaultHashBuilder,
}

impl NodeKeys {
    /// No keys, with room for some.
    pub(crate) fn with_room(keys: usize) -> Self {
        Self {
            numbers: PagedTable::with_room(keys),
            ..Self::default()
        }
    }

    /// The number of a key.
    pub(crate) fn number(&self, key: &NodeKey) -> Option<NodeId> {
        self.number_with_hash(self.hasher.hash_one(key), key)
    }

    fn number_with_hash(&self, hash: u64, key: &NodeKey) -> Option<NodeId> {
        let is_number = |id: &NodeId| self.get(id.index()) == Some(key);
        self.numbers.find(hash, is_number).copied()
    }

    /// Returns the number of a key, which gets the next one if it has none.
    pub(crate) fn add(&mut self, key: NodeKey) -> NodeId {
        let hash = self.hasher.hash_one(&key);
        if let Some(existing) = self.number_with_hash(hash, &key) {
            return existing;
        }
        // 4 billion nodes do not fit into memory; the last number would be shared.
        let id = NodeId(u32::try_from(self.keys.len()).unwrap_or(u32::MAX));
        self.keys.push(key);
        self.uses.push(0);
        let (keys, hasher) = (&self.keys, &self.hasher);
        let hash_of = |id: &NodeId| keys.get(id.index()).map_or(0, |key| hasher.hash_one(key));
        self.numbers.insert(id, hash, hash_of);
        id
    }

    /// Counts a use of a node. Returns whether it is the first.
    pub(crate) fn retain(&mut self, id: NodeId) -> bool {
        let uses = self.uses_of(id);
        self.uses.set(id.index(), uses.saturating_add(1));
        uses == 0
    }

    /// Counts a use less of a node. Without uses it has no number any more. Returns whether this was the last.
    pub(crate) fn release(&mut self, id: NodeId) -> bool {
        let uses = self.uses_of(id);
        // A count at its bound is not known any more.
        if uses == 0 || uses == u32::MAX {
            return false;
        }
        self.uses.set(id.index(), uses - 1);
        if uses > 1 {
            return false;
        }
        self.released += 1;
        if let Some(key) = self.keys.get(id.index()) {
            let hash = self.hasher.hash_one(key);
            self.numbers.replace(hash, |other| *other == id, None);
        }
        true
    }

    /// Whether something uses a node.
    pub(crate) fn is_used(&self, id: NodeId) -> bool {
        self.uses_of(id) > 0
    }

    fn uses_of(&self, id: NodeId) -> u32 {
        self.uses.get(id.index()).copied().unwrap_or_default()
    }

    /// The number of keys that nothing uses any more: each keeps its number.
    pub(crate) fn released(&self) -> usize {
        self.released
    }

    /// Frees the space that is kept for more nodes.
    pub(crate) fn shrink(&mut self) {
        let (keys, hasher) = (&self.keys, &self.hasher);
        let hash_of = |id: &NodeId| keys.get(id.index()).map_or(0, |key| hasher.hash_one(key));
        self.numbers.settle(hash_of);
    }

    /// The key with a number.
    pub(crate) fn get(&self, index: usize) -> Option<&NodeKey> {
        self.keys.get(index)
    }

    /// All keys by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &NodeKey> {
        self.keys.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_one_number_each() {
        let mut keys = NodeKeys::default();
        let name = |number: usize| NodeKey::namespace(format!("n-{number}"));
        for number in 0..1_000 {
            assert_eq!(keys.number(&name(number)), None);
            assert_eq!(keys.add(name(number)).index(), number);
        }
        keys.shrink();
        for number in 0..1_000 {
            let id = keys.add(name(number));
            assert_eq!(keys.number(&name(number)), Some(id));
            assert_eq!(keys.get(id.index()), Some(&name(number)));
        }
        assert_eq!((keys.len(), keys.iter().count()), (1_000, 1_000));
        assert!(!keys.is_empty());
    }

    #[test]
    fn a_key_without_uses_is_not_found() {
        let mut keys = NodeKeys::default();
        let (one, other) = (NodeKey::namespace("one"), NodeKey::namespace("other"));
        let (first, second) = (keys.add(one.clone()), keys.add(other.clone()));
        assert!(keys.retain(first) && !keys.retain(first) && keys.retain(second));
        let before = keys.clone();
        assert!(!keys.release(first) && keys.is_used(first));
        assert!(keys.release(first) && !keys.is_used(first) && !keys.release(first));
        assert_eq!(
            (keys.number(&one), keys.number(&other)),
            (None, Some(second))
        );
        assert_eq!(
            (before.number(&one), keys.get(0)),
            (Some(first), Some(&one))
        );
        let again = keys.add(one.clone());
        assert!(again != first && keys.retain(again));
        assert_eq!((keys.number(&one), keys.released()), (Some(again), 1));
    }
}
