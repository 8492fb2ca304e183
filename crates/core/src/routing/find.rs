//! From a request to its rules, with the indexes that lead there.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hashbrown::HashMap;

use super::doors::Wanted;
use super::found::{Found, Rules};
use super::index::{Index, Serving};
use super::request::{Entrance, Request};
use super::search::Search;
use crate::model::{NodeKey, Str};
use crate::store::{Name, Store};
use crate::topology::Topology;

/// The indexes of a topology, each made when it is asked for.
#[derive(Debug, Default)]
pub struct Matcher {
    indexes: RwLock<Indexes>,
    /// Held by whoever makes an index: others wait for it instead of making it too.
    making: Mutex<()>,
}

#[derive(Clone, Debug, Default)]
struct Indexes {
    known: HashMap<Place, Arc<Index>>,
    /// From before some route changed: to be looked through before they count.
    before: HashMap<Place, (Arc<Index>, u32)>,
}

/// Routes of which an index is made in haste.
const FEW: usize = 100;
/// For how many changes of routes an index that nobody asks for is kept.
const KEPT: u32 = 64;

/// What has an index: a listener, or a Service with the port and the consumers whose routes count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Listener(NodeKey),
    Service(Name, Option<u16>, Option<Str>),
}

impl Matcher {
    /// The matcher of a store in which some routes are others. What was made of those that are the
    /// same is used again.
    #[must_use]
    pub fn next(&self) -> Self {
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        let aged = indexes.before.iter().filter(|(_, (_, age))| *age < KEPT);
        let aged = aged.map(|(place, (index, age))| (place.clone(), (Arc::clone(index), age + 1)));
        let mut before: HashMap<_, _> = aged.collect();
        let known = indexes.known.iter();
        before.extend(known.map(|(place, index)| (place.clone(), (Arc::clone(index), 0))));
        Self {
            indexes: RwLock::new(Indexes {
                known: HashMap::new(),
                before,
            }),
            making: Mutex::default(),
        }
    }

    /// The rules that a request takes. The first request at a place makes its index, which takes as
    /// long as there are routes; others go straight to their match. With `in_haste` a long index is
    /// not made: then the answer is none.
    pub fn find(
        &self,
        (topology, store): (&Topology, &Store),
        entrance: &Entrance,
        request: &Request,
        rules: Rules,
        in_haste: bool,
    ) -> Option<Found> {
        let search = Search {
            in_haste,
            gave_up: Cell::new(false),
            matcher: self,
            topology,
            store,
            request,
            rules,
        };
        let mut found = Found::default();
        match entrance {
            Entrance::Service {
                service,
                port,
                client,
            } => search.in_mesh(service, *port, client, &mut found),
            Entrance::Gateway {
                gateway,
                set,
                listener,
                port,
            } => {
                let wanted = Wanted {
                    set: set.as_ref(),
                    listener: listener.as_ref(),
                    port: *port,
                    protocol: request.protocol,
                };
                search.at_gateways(gateway.as_ref(), &wanted, &mut found);
            }
        }
        (!search.gave_up.get()).then_some(found)
    }

    /// The index of a place; none if it is not known, would take long, and there is haste.
    pub(super) fn index<'s>(
        &self,
        place: Place,
        hostname: &str,
        in_haste: bool,
        routes: impl FnOnce() -> Vec<Serving<'s>>,
    ) -> Option<Arc<Index>> {
        if let Some(known) = self.known(&place) {
            return Some(known);
        }
        let routes = routes();
        if in_haste && routes.len() > FEW {
            return None;
        }
        // Who is in haste makes a short one beside whoever makes another.
        let _making = match in_haste {
            true => self.making.try_lock().ok(),
            false => Some(self.making.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        if let Some(known) = self.known(&place) {
            return Some(known);
        }
        let read = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        let before = read.before.get(&place).map(|(index, _)| Arc::clone(index));
        drop(read);
        let same = before.filter(|before| before.is_of(hostname, &routes));
        let is_mesh = matches!(place, Place::Service(..));
        let index = same.unwrap_or_else(|| Arc::new(Index::of(hostname, routes, is_mesh)));
        let mut write = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        write.before.remove(&place);
        write.known.insert(place, Arc::clone(&index));
        Some(index)
    }

    fn known(&self, place: &Place) -> Option<Arc<Index>> {
        let read = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        read.known.get(place).map(Arc::clone)
    }
}
