//! A hash map whose clones share what does not change.

use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashMap;
use rpds::RedBlackTreeMapSync;

/// As many keys may differ from the shared map, and an eighth of its keys.
const MIN_CHANGES: usize = 512;

/// A hash map in two layers: a map that clones share, and the keys that differ from it, with `None` for those that are
/// gone. Without clones all changes go into the map itself.
#[derive(Clone, Debug)]
pub struct LayeredMap<K: Ord, V> {
    shared: Arc<HashMap<K, V>>,
    changes: RedBlackTreeMapSync<K, Option<V>>,
}

impl<K: Clone + Eq + Hash + Ord, V: Clone> LayeredMap<K, V> {
    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        match self.changes.get(key) {
            Some(changed) => changed.as_ref(),
            None => self.shared.get(key),
        }
    }

    /// Whether a key has a value.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// The value of a key, to change it.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        if self.is_alone() {
            return Arc::get_mut(&mut self.shared)?.get_mut(key);
        }
        if !self.changes.contains_key(key) {
            let shared = self.shared.get(key)?.clone();
            self.changes.insert_mut(key.clone(), Some(shared));
        }
        self.changes.get_mut(key)?.as_mut()
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: V) {
        if self.is_alone()
            && let Some(map) = Arc::get_mut(&mut self.shared)
        {
            map.insert(key, value);
        } else {
            self.changes.insert_mut(key, Some(value));
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &K) {
        if self.is_alone()
            && let Some(map) = Arc::get_mut(&mut self.shared)
        {
            map.remove(key);
        } else if self.shared.contains_key(key) {
            self.changes.insert_mut(key.clone(), None);
        } else {
            self.changes.remove_mut(key);
        }
    }

    /// Calls a function with the value of a key, or with a default value if it has none, and keeps what it leaves.
    pub fn update<T>(&mut self, key: K, update: impl FnOnce(&mut V) -> T) -> T
    where
        V: Default,
    {
        if let Some(value) = self.get_mut(&key) {
            return update(value);
        }
        let mut value = V::default();
        let result = update(&mut value);
        self.insert(key, value);
        result
    }

    /// Whether no clone shares the map, into which the changes are merged then. If there are many changes, they are
    /// merged into a map of its own.
    fn is_alone(&mut self) -> bool {
        let is_shared = Arc::get_mut(&mut self.shared).is_none();
        if is_shared && self.changes.size() < MIN_CHANGES + self.shared.len() / 8 {
            return false;
        }
        let map = Arc::make_mut(&mut self.shared);
        for (key, value) in &std::mem::take(&mut self.changes) {
            match value {
                Some(value) => map.insert(key.clone(), value.clone()),
                None => map.remove(key),
            };
        }
        true
    }
}

impl<K: Ord, V> Default for LayeredMap<K, V> {
    fn default() -> Self {
        Self {
            shared: Arc::default(),
            changes: RedBlackTreeMapSync::default(),
        }
    }
}

impl<K: Eq + Hash + Ord, V> From<HashMap<K, V>> for LayeredMap<K, V> {
    fn from(map: HashMap<K, V>) -> Self {
        Self {
            shared: Arc::new(map),
            changes: RedBlackTreeMapSync::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The keys of a map with their values.
    fn entries(map: &LayeredMap<u32, Vec<u32>>) -> BTreeMap<u32, Vec<u32>> {
        let keys = 0..5_000;
        keys.filter_map(|key| Some((key, map.get(&key)?.clone())))
            .collect()
    }

    fn push(map: &mut LayeredMap<u32, Vec<u32>>, key: u32, value: u32) {
        map.update(key, |values| values.push(value));
    }

    #[test]
    fn clones_do_not_see_the_changes_of_each_other() {
        let mut first = LayeredMap::default();
        for key in 0..100 {
            push(&mut first, key, key);
        }
        let before = entries(&first);
        let mut second = first.clone();
        push(&mut second, 1, 7);
        push(&mut second, 200, 8);
        second.remove(&2);
        second.remove(&201);
        assert_eq!(entries(&first), before);
        assert_eq!(second.get(&1), Some(&vec![1, 7]));
        assert_eq!(second.get(&200), Some(&vec![8]));
        assert!(!second.contains_key(&2) && second.contains_key(&3));
        assert_eq!(second.get_mut(&2), None);
        push(&mut second, 2, 9);
        assert_eq!(second.get(&2), Some(&vec![9]));
        // The first one changes while the second one shares the map.
        first.insert(3, vec![3, 3]);
        first.remove(&200);
        assert_eq!(second.get(&3), Some(&vec![3]));
        assert!(second.contains_key(&200));
        let expected = entries(&second);
        drop(first);
        // Alone, the changes are merged.
        second.remove(&201);
        assert_eq!(second.changes.size(), 0);
        assert_eq!(entries(&second), expected);
    }

    #[test]
    fn many_changes_are_merged_although_a_clone_shares_the_map() {
        let mut map = LayeredMap::from(HashMap::from([(0, vec![0])]));
        let clone = map.clone();
        for key in 1..=2_000 {
            push(&mut map, key, key);
        }
        assert!(map.changes.size() <= MIN_CHANGES);
        assert_eq!(entries(&map).len(), 2_001);
        assert_eq!(entries(&clone).len(), 1);
    }
}
