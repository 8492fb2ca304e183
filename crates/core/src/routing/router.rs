//! From a request to its rules, with the indexes that lead there.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hashbrown::HashMap;

use super::index::{RouteIndex, RouteRef};
use super::listeners::ListenerFilter;
use super::request::{EntryPoint, Request};
use super::result::{RoutingOptions, RoutingResult};
use super::search::Search;
use crate::model::{NodeKey, Str};
use crate::store::{NamespacedName, Store};
use crate::topology::Topology;

/// The indexes of a topology, each made when it is asked for.
#[derive(Debug, Default)]
pub struct RequestRouter {
    indexes: RwLock<RouteIndexes>,
    /// Held by whoever makes an index: others wait for it instead of making it too.
    making: Mutex<()>,
}

#[derive(Clone, Debug, Default)]
struct RouteIndexes {
    known: HashMap<IndexKey, Arc<RouteIndex>>,
    /// From before some route changed: to be looked through before they count.
    before: HashMap<IndexKey, (Arc<RouteIndex>, u32)>,
}

/// Routes of which an index is made in haste.
const SMALL_INDEX_ROUTES: usize = 100;
/// For how many changes of routes an index that nobody asks for is kept.
const MAX_INDEX_AGE: u32 = 64;

/// What has an index: a listener, or a Service with the port and the consumers whose routes count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum IndexKey {
    Listener(NodeKey),
    Service(NamespacedName, Option<u16>, Option<Str>),
}

impl RequestRouter {
    /// The matcher of a store in which some routes are others. What was made of those that are the
    /// same is used again.
    #[must_use]
    pub fn successor(&self) -> Self {
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        let aged = indexes
            .before
            .iter()
            .filter(|(_, (_, age))| *age < MAX_INDEX_AGE);
        let aged =
            aged.map(|(index_key, (index, age))| (index_key.clone(), (Arc::clone(index), age + 1)));
        let mut before: HashMap<_, _> = aged.collect();
        let known = indexes.known.iter();
        before.extend(known.map(|(index_key, index)| (index_key.clone(), (Arc::clone(index), 0))));
        Self {
            indexes: RwLock::new(RouteIndexes {
                known: HashMap::new(),
                before,
            }),
            making: Mutex::default(),
        }
    }

    /// The rules that a request takes. The first request at a place makes its index, which takes as
    /// long as there are routes; others go straight to their match. With `fast_only` a long index is
    /// not made: then the answer is none.
    pub fn find(
        &self,
        (topology, store): (&Topology, &Store),
        entry_point: &EntryPoint,
        request: &Request,
        options: RoutingOptions,
        fast_only: bool,
    ) -> Option<RoutingResult> {
        let search = Search {
            fast_only,
            index_missing: Cell::new(false),
            router: self,
            topology,
            store,
            request,
            options,
        };
        let mut found = RoutingResult::default();
        match entry_point {
            EntryPoint::Service {
                service,
                port,
                client,
            } => search.in_mesh(service, *port, client, &mut found),
            EntryPoint::Gateway {
                gateway,
                set,
                listener,
                port,
            } => {
                let wanted = ListenerFilter {
                    set: set.as_ref(),
                    listener: listener.as_ref(),
                    port: *port,
                    protocol: request.protocol,
                };
                search.at_gateways(gateway.as_ref(), &wanted, &mut found);
            }
        }
        (!search.index_missing.get()).then_some(found)
    }

    /// The index of a place; none if it is not known, would take long, and there is haste.
    pub(super) fn index<'s>(
        &self,
        index_key: IndexKey,
        hostname: &str,
        fast_only: bool,
        routes: impl FnOnce() -> Vec<RouteRef<'s>>,
    ) -> Option<Arc<RouteIndex>> {
        if let Some(known) = self.known(&index_key) {
            return Some(known);
        }
        let routes = routes();
        if fast_only && routes.len() > SMALL_INDEX_ROUTES {
            return None;
        }
        // Who is in haste makes a short one beside whoever makes another.
        let _making = match fast_only {
            true => self.making.try_lock().ok(),
            false => Some(self.making.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        if let Some(known) = self.known(&index_key) {
            return Some(known);
        }
        let read = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        let before = read
            .before
            .get(&index_key)
            .map(|(index, _)| Arc::clone(index));
        drop(read);
        let same = before.filter(|before| before.is_of(hostname, &routes));
        let is_mesh = matches!(index_key, IndexKey::Service(..));
        let index = same.unwrap_or_else(|| Arc::new(RouteIndex::of(hostname, routes, is_mesh)));
        let mut write = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        write.before.remove(&index_key);
        write.known.insert(index_key, Arc::clone(&index));
        Some(index)
    }

    fn known(&self, index_key: &IndexKey) -> Option<Arc<RouteIndex>> {
        let read = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        read.known.get(index_key).map(Arc::clone)
    }
}
