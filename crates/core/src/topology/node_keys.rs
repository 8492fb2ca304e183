//! The keys of all nodes, by number and by key.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::NodeId;
use crate::model::NodeKey;

/// The keys of all nodes. Each key is kept once.
#[derive(Debug, Default)]
pub(crate) struct NodeKeys {
    keys: Vec<NodeKey>,
    /// The numbers by the hashes of their keys.
    numbers: HashTable<NodeId>,
    hasher: DefaultHashBuilder,
}

impl NodeKeys {
    /// The number of a key.
    pub(crate) fn number(&self, key: &NodeKey) -> Option<NodeId> {
        let is_number = |id: &NodeId| self.get(id.index()) == Some(key);
        let found = self.numbers.find(self.hasher.hash_one(key), is_number);
        found.copied()
    }

    /// Returns the number of a key, which gets the next one if it has none.
    pub(crate) fn add(&mut self, key: NodeKey) -> NodeId {
        if let Some(existing) = self.number(&key) {
            return existing;
        }
        // 4 billion nodes do not fit into memory; the last number would be shared.
        let id = NodeId(u32::try_from(self.keys.len()).unwrap_or(u32::MAX));
        let hash = self.hasher.hash_one(&key);
        self.keys.push(key);
        let (keys, hasher) = (&self.keys, &self.hasher);
        let hash_of = |id: &NodeId| keys.get(id.index()).map_or(0, |key| hasher.hash_one(key));
        self.numbers.insert_unique(hash, id, hash_of);
        id
    }

    /// Frees the space that is kept for more nodes.
    pub(crate) fn shrink(&mut self) {
        self.keys.shrink_to_fit();
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
}
