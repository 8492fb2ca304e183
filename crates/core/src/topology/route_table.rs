//! The routes of a topology, by number and by key.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;

use super::RouteNode;
use crate::model::{ChunkedVec, ObjectKey, PagedTable};

/// The routes by number, and their numbers by key. A route that is gone keeps its place, and is not found by its key; if
/// it comes back, it gets another number. Clones share what does not change.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteTable {
    routes: ChunkedVec<Arc<RouteNode>>,
    /// The numbers by the hashes of their keys.
    numbers: PagedTable<u32>,
    hasher: DefaultHashBuilder,
}

impl RouteTable {
    /// No routes, with room for some.
    pub(crate) fn with_room(routes: usize) -> Self {
        Self {
            numbers: PagedTable::with_room(routes),
            ..Self::default()
        }
    }

    /// The number of a route that exists.
    pub(crate) fn number(&self, key: &ObjectKey) -> Option<usize> {
        let is_number = |&number: &u32| self.get(number as usize).is_some_and(|r| r.key == *key);
        let found = self.numbers.find(self.hasher.hash_one(key), is_number);
        found.map(|&number| number as usize)
    }

    /// The route with a number, which may not exist any more.
    pub(crate) fn get(&self, number: usize) -> Option<&Arc<RouteNode>> {
        self.routes.get(number)
    }

    /// The route with a key.
    pub(crate) fn with_key(&self, key: &ObjectKey) -> Option<&Arc<RouteNode>> {
        self.get(self.number(key)?)
    }

    /// The route with a number, to change all but its key.
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut RouteNode> {
        self.routes.get_mut(number).map(Arc::make_mut)
    }

    /// Replaces the route with a number by one with the same key.
    pub(super) fn set(&mut self, number: usize, route: Arc<RouteNode>) {
        self.routes.set(number, route);
    }

    /// Adds a route whose key no other has.
    pub(super) fn add(&mut self, route: Arc<RouteNode>) {
        // 4 billion routes do not fit into memory; the last number would be shared.
        let number = u32::try_from(self.routes.len()).unwrap_or(u32::MAX);
        let hash = self.hasher.hash_one(&route.key);
        self.routes.push(route);
        let hash_of = hash_by_number(&self.routes, &self.hasher);
        self.numbers.insert(number, hash, hash_of);
    }

    /// Frees the space that is kept for more routes.
    pub(super) fn shrink(&mut self) {
        let hash_of = hash_by_number(&self.routes, &self.hasher);
        self.numbers.settle(hash_of);
    }

    /// Removes a route.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        if let Some(removed) = self.number(key) {
            let hash = self.hasher.hash_one(key);
            let is_removed = |number: &u32| *number as usize == removed;
            self.numbers.replace(hash, is_removed, None);
        }
    }

    /// All places by number, also those of routes that do not exist any more.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<RouteNode>> {
        self.routes.iter()
    }

    /// The routes that exist, by number.
    pub(crate) fn existing(&self) -> impl Iterator<Item = (usize, &Arc<RouteNode>)> {
        let numbers = self.numbers.iter();
        let mut numbers: Vec<usize> = numbers.map(|&number| number as usize).collect();
        numbers.sort_unstable();
        let numbers = numbers.into_iter();
        numbers.filter_map(|number| Some((number, self.get(number)?)))
    }

    /// The number of places, some of them of routes that do not exist any more.
    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }

    /// The number of routes that exist, and of those that do not any more.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let existing = self.numbers.len();
        (existing, self.routes.len().saturating_sub(existing))
    }
}

/// The hash of a route's key by its number.
fn hash_by_number(
    routes: &ChunkedVec<Arc<RouteNode>>,
    hasher: &DefaultHashBuilder,
) -> impl Fn(&u32) -> u64 {
    move |number| {
        let route = routes.get(*number as usize);
        route.map_or(0, |route| hasher.hash_one(&route.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GroupKind;
    use crate::topology::NodeId;

    fn key(number: u32) -> ObjectKey {
        ObjectKey::new(
            GroupKind::parse_short("HTTPRoute"),
            "a",
            format!("r-{number}"),
        )
    }

    fn route(number: u32) -> Arc<RouteNode> {
        Arc::new(RouteNode {
            key: key(number),
            node: NodeId(number),
            rules: Box::default(),
            listeners: Default::default(),
            refused: Default::default(),
        })
    }

    #[test]
    fn a_route_that_comes_back_has_another_number() {
        let mut table = RouteTable::default();
        for number in 0..1_000 {
            table.add(route(number));
        }
        table.shrink();
        let before = table.clone();
        table.remove(&key(500));
        table.remove(&key(500));
        table.remove(&key(1_000));
        assert_eq!((table.number(&key(500)), table.counts()), (None, (999, 1)));
        assert!(table.get(500).is_some() && table.with_key(&key(500)).is_none());
        table.add(route(500));
        for number in (0..1_000).filter(|number| *number != 500) {
            assert_eq!(table.number(&key(number)), Some(number as usize));
        }
        assert_eq!(table.number(&key(500)), Some(1_000));
        assert_eq!((table.len(), table.counts()), (1_001, (1_000, 1)));
        let numbers = table.existing().map(|(number, _)| number);
        assert!(numbers.is_sorted() && table.existing().all(|(number, _)| number != 500));
        assert_eq!(table.existing().count(), 1_000);
        assert_eq!(before.number(&key(500)), Some(500));
        assert_eq!(before.iter().count(), 1_000);
    }
}
