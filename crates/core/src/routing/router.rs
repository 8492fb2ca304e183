//! The request router and its cache of route indexes.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hashbrown::HashMap;

use super::dialect::{Dialect, HostnamePrecedence};
use super::index::{IndexRules, RouteIndex, RouteRef};
use super::patterns::{PatternCache, PatternStats};
use super::request::{EntryPoint, RequestParts};
use super::result::{RoutingOptions, RoutingResult};
use super::search::Search;
use super::why_not::{RuleMiss, RuleTarget};
use crate::model::{NodeKey, Str};
use crate::store::{NamespacedName, Store};
use crate::topology::{RootController, Topology};

/// Routes requests of one topology. The index of a listener or Service is built on first use.
#[derive(Debug, Default)]
pub struct RequestRouter {
    indexes: RwLock<RouteIndexes>,
    /// The regular expressions of all Routes, shared with earlier and later routers.
    patterns: Arc<PatternCache>,
    /// Held while an index is built, so that threads do not build the same index at once.
    building: Mutex<()>,
}

#[derive(Clone, Debug, Default)]
/// The cached indexes.
struct RouteIndexes {
    current: HashMap<IndexKey, Arc<RouteIndex>>,
    /// Indexes of earlier stores, with their age in changes. They must be compared with the routes
    /// before use.
    previous: HashMap<IndexKey, (Arc<RouteIndex>, u32)>,
}

/// Maximum number of routes of an index that is built with `fast_only`.
const SMALL_INDEX_ROUTES: usize = 100;
/// Number of route changes after which an unused index is dropped.
const MAX_INDEX_AGE: u32 = 64;

/// The key of an index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct IndexKey {
    pub owner: IndexOwner,
    /// The name of the dialect.
    pub dialect: &'static str,
    pub precedence: HostnamePrecedence,
}

/// A listener, or a Service with a port and the namespace of consumer routes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum IndexOwner {
    Listener(NodeKey),
    Service(NamespacedName, Option<u16>, Option<Str>),
}

impl RequestRouter {
    /// Returns the router for a store with changed routes. Indexes of unchanged routes are reused.
    #[must_use]
    pub fn successor(&self) -> Self {
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        let aged = indexes
            .previous
            .iter()
            .filter(|(_, (_, age))| *age < MAX_INDEX_AGE);
        let aged =
            aged.map(|(index_key, (index, age))| (index_key.clone(), (Arc::clone(index), age + 1)));
        let mut previous: HashMap<_, _> = aged.collect();
        let current = indexes.current.iter();
        previous
            .extend(current.map(|(index_key, index)| (index_key.clone(), (Arc::clone(index), 0))));
        Self {
            indexes: RwLock::new(RouteIndexes {
                current: HashMap::new(),
                previous,
            }),
            patterns: Arc::clone(&self.patterns),
            building: Mutex::default(),
        }
    }

    /// Counts of the regular expressions of Routes.
    pub fn pattern_stats(&self) -> PatternStats {
        self.patterns.stats()
    }

    pub(super) fn patterns(&self) -> &PatternCache {
        &self.patterns
    }

    /// Returns the rules that a request takes. `dialect_of` returns the dialect of a Gateway with its
    /// class.
    ///
    /// The first request at a listener or Service builds its index, in time linear in the number of
    /// routes; later requests go straight to their match. With `fast_only`, large indexes are not
    /// built, no regular expression is compiled, and the result is `None` if one of these is missing.
    pub fn find(
        &self,
        (topology, store): (&Topology, &Store),
        dialect_of: &dyn Fn(&RootController) -> &'static Dialect,
        entry_point: &EntryPoint,
        request: &RequestParts<'_>,
        options: RoutingOptions,
        fast_only: bool,
    ) -> Option<RoutingResult> {
        let search = Search {
            fast_only,
            index_missing: Cell::new(false),
            pattern_missing: Cell::new(false),
            router: self,
            topology,
            store,
            dialect_of,
            parts: request,
            options,
        };
        let mut result = RoutingResult::default();
        match entry_point {
            EntryPoint::Service {
                service,
                port,
                client,
            } => search.in_mesh(service, *port, client, &mut result),
            EntryPoint::Gateway {
                gateway,
                set,
                listener,
                port,
            } => {
                let filter = search.filter(set.as_ref(), listener.as_ref(), *port);
                search.at_gateways(gateway.as_ref(), &filter, &mut result);
            }
        }
        let is_missing = search.index_missing.get() || (fast_only && search.pattern_missing.get());
        (!is_missing).then_some(result)
    }

    /// Returns for each rule that a question is about, at each listener or Service that could send the request there, the
    /// first condition that fails. Builds the indexes of these listeners.
    pub fn why_not(
        &self,
        (topology, store): (&Topology, &Store),
        dialect_of: &dyn Fn(&RootController) -> &'static Dialect,
        entry_point: &EntryPoint,
        request: &RequestParts<'_>,
        options: RoutingOptions,
        target: &RuleTarget,
    ) -> Vec<RuleMiss> {
        let search = Search {
            fast_only: false,
            index_missing: Cell::new(false),
            pattern_missing: Cell::new(false),
            router: self,
            topology,
            store,
            dialect_of,
            parts: request,
            options,
        };
        search.why_not(entry_point, target)
    }

    /// Returns the index of a listener or Service. With `fast_only`, returns `None` if the index is
    /// large and not yet built.
    pub(super) fn index<'s>(
        &self,
        (owner, rules): (IndexOwner, IndexRules),
        hostname: &str,
        fast_only: bool,
        routes: impl FnOnce() -> Vec<RouteRef<'s>>,
    ) -> Option<Arc<RouteIndex>> {
        let is_mesh = matches!(owner, IndexOwner::Service(..));
        let index_key = IndexKey {
            owner,
            dialect: &rules.dialect.name,
            precedence: rules.precedence,
        };
        if let Some(current) = self.current(&index_key) {
            return Some(current);
        }
        let routes = routes();
        let size: usize = routes.iter().map(RouteRef::size).sum();
        if fast_only && size > SMALL_INDEX_ROUTES {
            return None;
        }
        // With `fast_only`, do not wait for another thread: building a small index twice is cheap.
        let _building = match fast_only {
            true => self.building.try_lock().ok(),
            false => Some(self.building.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        if let Some(current) = self.current(&index_key) {
            return Some(current);
        }
        let read = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        let previous = read
            .previous
            .get(&index_key)
            .map(|(index, _)| Arc::clone(index));
        drop(read);
        let unchanged = previous.filter(|previous| previous.is_of(hostname, &routes));
        let index = unchanged.unwrap_or_else(|| {
            Arc::new(RouteIndex::of(
                hostname,
                routes,
                is_mesh,
                rules,
                &self.patterns,
            ))
        });
        let mut write = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        write.previous.remove(&index_key);
        write.current.insert(index_key, Arc::clone(&index));
        Some(index)
    }

    fn current(&self, index_key: &IndexKey) -> Option<Arc<RouteIndex>> {
        let read = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        read.current.get(index_key).map(Arc::clone)
    }
}
