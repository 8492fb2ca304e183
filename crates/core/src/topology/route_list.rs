//! The routes of listeners, in the order of paths.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use hashbrown::HashMap;

use super::{ListenerNode, Topology};
use crate::model::{ChunkedList, ObjectKey, Str};
use crate::store::{NamespacedName, ROUTE_KINDS};

/// The numbers of the routes of a listener, in the order of kind, namespace and name. That is the order of numbers where
/// no route came later.
pub(crate) type RouteList = Arc<ChunkedList<usize>>;

/// The place of a listener in the trie.
#[derive(Clone, Debug)]
pub(super) struct ListenerPlace {
    pub(super) gateway: NamespacedName,
    /// The index of its ListenerSet among the edges of the Gateway.
    pub(super) set: Option<usize>,
    /// Its index among the edges of the Gateway or ListenerSet.
    pub(super) index: usize,
}

impl Topology {
    /// The routes that are attached to a listener.
    pub(crate) fn routes_of(&self, listener: &ListenerNode) -> &ChunkedList<usize> {
        static NONE: LazyLock<ChunkedList<usize>> = LazyLock::new(ChunkedList::default);
        let list = self.route_lists.get(listener.list);
        list.map_or(&NONE, |list| &**list)
    }

    /// Whether a route is attached to a listener.
    pub(crate) fn is_attached(&self, route: usize, listener: &ListenerNode) -> bool {
        let route = self.routes.get(route);
        route.is_some_and(|route| route.listeners.contains(&listener.list))
    }

    /// Adds a route to the list of a listener; returns its index there.
    pub(super) fn add_to_list(&mut self, list: usize, route: usize) -> Option<usize> {
        let at = self.search_list(list, route)?.err()?;
        Arc::make_mut(self.route_lists.get_mut(list)?).insert(at, route);
        Some(at)
    }

    /// Removes a route from the list of a listener; returns its index there.
    pub(super) fn remove_from_list(&mut self, list: usize, route: usize) -> Option<usize> {
        let at = self.search_list(list, route)?.ok()?;
        Arc::make_mut(self.route_lists.get_mut(list)?).remove(at)?;
        Some(at)
    }

    /// The index of a route in the list of a listener, or where it belongs.
    pub(super) fn search_list(&self, list: usize, route: usize) -> Option<Result<usize, usize>> {
        let own = &self.routes.get(route)?.key;
        let order = |other: &usize| match *other == route {
            true => Ordering::Equal,
            false => {
                let other = self.routes.get(*other);
                other.map_or(Ordering::Less, |other| order(&other.key, own))
            }
        };
        let list = self.route_lists.get(list)?;
        // While a topology is built, nearly all routes come in order.
        let at_end = list
            .last()
            .is_some_and(|last| order(last) == Ordering::Less);
        Some(match at_end {
            true => Err(list.len()),
            false => list.search(order),
        })
    }

    /// Gives each listener the list of its routes: the one that it had before, or a new one.
    pub(super) fn assign_lists(&mut self, before: Option<&Topology>) {
        let mut gateways = std::mem::take(&mut *self.gateways);
        for (name, gateway) in &mut gateways {
            let known = before.and_then(|before| before.gateways.get(name));
            let own = known.map_or(&[][..], |known| &known.listeners);
            self.assign_lists_of(&mut gateway.listeners, own);
            let sets = known.map_or(&[][..], |known| &known.sets);
            let sets: HashMap<_, _> = sets.iter().map(|set| (&set.name, set)).collect();
            for set in &mut gateway.sets {
                let own = sets.get(&set.name);
                let own = own.map_or(&[][..], |known| &known.listeners);
                self.assign_lists_of(&mut set.listeners, own);
            }
        }
        *self.gateways = gateways;
    }

    /// Gives listeners of an object their lists. Each has another name.
    fn assign_lists_of(&mut self, listeners: &mut [ListenerNode], before: &[ListenerNode]) {
        let known = before.iter().map(|before| (&before.name, before.list));
        let known: HashMap<&Str, usize> = known.collect();
        for listener in listeners {
            let list = known.get(&listener.name).copied();
            listener.list = list.unwrap_or_else(|| {
                self.route_lists.push(RouteList::default());
                self.route_lists.len() - 1
            });
        }
    }

    /// Records the places of listeners in the trie.
    pub(super) fn place_listeners(&mut self) {
        let mut places: Vec<Option<ListenerPlace>> = vec![None; self.route_lists.len()];
        for (name, gateway) in &*self.gateways {
            let mut add = |listeners: &[ListenerNode], set| {
                for (index, listener) in listeners.iter().enumerate() {
                    if let Some(place) = places.get_mut(listener.list) {
                        let gateway = name.clone();
                        *place = Some(ListenerPlace {
                            gateway,
                            set,
                            index,
                        });
                    }
                }
            };
            add(&gateway.listeners, None);
            for (set, at) in gateway.admitted().zip(gateway.listeners.len()..) {
                add(&set.listeners, Some(at));
            }
        }
        *self.listener_places = places;
    }
}

/// The order of routes: as in `Store::routes`.
fn order(one: &ObjectKey, other: &ObjectKey) -> Ordering {
    // Declared kinds come after those of the Gateway API.
    let rank = |key: &ObjectKey| {
        let mut kinds = ROUTE_KINDS.iter();
        let kind = crate::store::route_kind(&key.kind);
        kind.and_then(|kind| kinds.position(|row| row.kind == kind.kind))
            .unwrap_or(ROUTE_KINDS.len())
    };
    rank(one).cmp(&rank(other)).then_with(|| one.cmp(other))
}
