//! The open connections by address, and which of them gives way to a new one.
//!
//! The search for it looks at few connections, however many there are: with thousands of them, callers who connect again
//! and again would otherwise keep a worker from all others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::server::admission::connections::{ClientAddress, ConnectionEntry, Entries, Progress};

/// Maximum number of connections and addresses that are looked at to find the one that gives way. The next search goes on
/// where this one ended.
const MAX_LOOKS: usize = 128;

/// The open connections by address.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    count: usize,
    connections: BTreeMap<ClientAddress, OfAddress>,
    /// The addresses by the number of their connections.
    by_count: BTreeSet<(usize, ClientAddress)>,
    /// The address that a search through many begins with.
    next: Option<ClientAddress>,
}

/// The connections of an address.
#[derive(Debug, Default)]
struct OfAddress {
    /// Those without an HTTP/2 preface.
    silent: Entries,
    /// Those with a preface that have sent no request when they were last looked at.
    ready: Entries,
    /// Those that have sent requests.
    called: Entries,
    /// The number of the connection in `called` that a search begins with.
    next: u64,
}

/// A search for the connection that gives way.
struct Search {
    /// How long a connection may be silent.
    arrival: Duration,
    /// The highest rank that gives way.
    most: Progress,
    /// How many more connections may be looked at.
    looks: usize,
}

/// A connection that may give way, and its rank.
type Candidate = (Progress, Arc<ConnectionEntry>);

impl Addresses {
    /// The number of connections.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of connections from an address.
    pub fn count_of(&self, address: ClientAddress) -> usize {
        self.connections.get(&address).map_or(0, OfAddress::len)
    }

    /// All connections.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ConnectionEntry>> {
        let entries = self.connections.values();
        entries
            .flat_map(|of| [&of.silent, &of.ready, &of.called].map(BTreeMap::values))
            .flatten()
    }

    /// Adds a connection without a preface.
    pub fn insert(&mut self, entry: &Arc<ConnectionEntry>) {
        let address = entry.address();
        let of = self.connections.entry(address).or_default();
        self.by_count.remove(&(of.len(), address));
        of.silent.insert(entry.id(), Arc::clone(entry));
        self.by_count.insert((of.len(), address));
        self.count += 1;
    }

    /// Remembers that the preface of a connection has arrived.
    pub fn ready(&mut self, entry: &ConnectionEntry) {
        if let Some(of) = self.connections.get_mut(&entry.address())
            && let Some(silent) = of.silent.remove(&entry.id())
        {
            of.ready.insert(entry.id(), silent);
        }
    }

    /// Removes a connection, if it is there.
    pub fn remove(&mut self, entry: &ConnectionEntry) {
        let (id, address) = (entry.id(), entry.address());
        let Some(of) = self.connections.get_mut(&address) else {
            return;
        };
        let before = of.len();
        let lists = [&mut of.silent, &mut of.ready, &mut of.called];
        if !lists.into_iter().any(|list| list.remove(&id).is_some()) {
            return;
        }
        self.count -= 1;
        self.by_count.remove(&(before, address));
        match of.len() {
            0 => drop(self.connections.remove(&address)),
            left => drop(self.by_count.insert((left, address))),
        }
    }

    /// The connection of an address that gives way to another of this address: one without requests in progress.
    pub fn first_of(
        &mut self,
        address: ClientAddress,
        arrival: Duration,
    ) -> Option<Arc<ConnectionEntry>> {
        let mut search = Search::new(arrival, Progress::Called);
        let of = self.connections.get_mut(&address)?;
        of.first_to_go(&mut search).map(|(_, entry)| entry)
    }

    /// The connection that gives way to one from an address.
    pub fn first_for(
        &mut self,
        address: ClientAddress,
        arrival: Duration,
    ) -> Option<Arc<ConnectionEntry>> {
        let own = self.count_of(address);
        let largest = self.by_count.last().map_or(0, |(count, _)| *count);
        // Requests in progress are broken off only for an address with fewer connections.
        let most = match largest > own + 1 {
            true => Progress::Busy,
            false => Progress::Called,
        };
        let of_largest = self.first_among(largest, Search::new(arrival, most));
        // Where these have too few for that, idle connections of all addresses with more than the new one's give way.
        let found = of_largest
            .or_else(|| self.first_among(own + 1, Search::new(arrival, Progress::Called)));
        found.map(|(_, entry)| entry)
    }

    /// The connection that gives way first among those of addresses with so many or more.
    fn first_among(&mut self, least: usize, mut search: Search) -> Option<Candidate> {
        let begin = (least, ClientAddress::LEAST);
        let next = self.next.map(|address| (self.count_of(address), address));
        let next = next.filter(|next| *next >= begin).unwrap_or(begin);
        let addresses = self.by_count.range(next..);
        let addresses = addresses.chain(self.by_count.range(begin..next));
        let mut found: Option<Candidate> = None;
        for (_, address) in addresses {
            if !search.may_look() {
                self.next = Some(*address);
                break;
            }
            let of = self.connections.get_mut(address);
            let Some((rank, entry)) = of.and_then(|of| of.first_to_go(&mut search)) else {
                continue;
            };
            let order = (rank, entry.id());
            if found
                .as_ref()
                .is_none_or(|(rank, first)| order < (*rank, first.id()))
            {
                found = Some((rank, entry));
            }
        }
        found
    }
}

impl OfAddress {
    fn len(&self) -> usize {
        self.silent.len() + self.ready.len() + self.called.len()
    }

    /// The connection that gives way first: the oldest that has sent no request; otherwise the next one that has none in
    /// progress; otherwise the next one.
    fn first_to_go(&mut self, search: &mut Search) -> Option<Candidate> {
        // Each connection is moved once.
        while let Some(first) = self.ready.first_entry()
            && first.get().rank(search.arrival) > Progress::Ready
        {
            let (id, entry) = first.remove_entry();
            self.called.insert(id, entry);
        }
        let first = [&self.silent, &self.ready].map(|list| list.first_key_value());
        let first = first
            .into_iter()
            .flatten()
            .map(|(_, entry)| (entry.rank(search.arrival), entry));
        if let Some((rank, entry)) = first.min_by_key(|(rank, entry)| (*rank, entry.id())) {
            return Some((rank, Arc::clone(entry)));
        }
        let in_turn = self.called.range(self.next..);
        let in_turn = in_turn.chain(self.called.range(..self.next));
        let mut busy = None;
        for (&id, entry) in in_turn {
            if !search.may_look() {
                break;
            }
            self.next = id + 1;
            match entry.rank(search.arrival) {
                Progress::Busy if search.most < Progress::Busy => {}
                Progress::Busy => {
                    busy.get_or_insert(entry);
                }
                rank => return Some((rank, Arc::clone(entry))),
            }
        }
        busy.map(|entry| (Progress::Busy, Arc::clone(entry)))
    }
}

impl Search {
    fn new(arrival: Duration, most: Progress) -> Self {
        Self {
            arrival,
            most,
            looks: MAX_LOOKS,
        }
    }

    /// Counts one more look, if there may be one.
    fn may_look(&mut self) -> bool {
        let left = self.looks.checked_sub(1);
        self.looks = left.unwrap_or_default();
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;
    use crate::server::Limits;
    use crate::server::admission::concurrency::Permit;

    /// Adds connections that have called, one from each address.
    fn add(
        addresses: &mut Addresses,
        from: impl Iterator<Item = u64>,
    ) -> Vec<Arc<ConnectionEntry>> {
        let limits = Limits::default();
        let one = |(id, network): (u64, u64)| {
            let ip = Ipv6Addr::from(u128::from(network) << 64);
            let entry = ConnectionEntry::numbered(id, ClientAddress::of(ip.into()), &limits);
            addresses.insert(&entry);
            addresses.ready(&entry);
            entry.called();
            entry
        };
        (0..).zip(from).map(one).collect()
    }

    fn busy(connections: &[Arc<ConnectionEntry>]) -> Vec<Permit> {
        let permits = connections.iter().map(|entry| entry.watches.try_acquire());
        permits.map(Option::unwrap).collect()
    }

    fn id(found: Option<Arc<ConnectionEntry>>) -> Option<u64> {
        found.map(|entry| entry.id())
    }

    #[test]
    fn a_search_looks_at_few_connections_and_goes_on_with_the_next() {
        let mut addresses = Addresses::default();
        let connections = add(&mut addresses, std::iter::repeat_n(1, 1_000));
        let (address, arrival) = (connections[0].address(), Duration::ZERO);
        let mut permits = busy(&connections);
        permits.remove(500);
        let searches: Vec<_> = (0..8)
            .map(|_| id(addresses.first_of(address, arrival)))
            .collect();
        let nothing = [None; 3];
        assert_eq!(searches[..3], nothing);
        assert_eq!(searches[3], Some(500));
        assert_eq!(searches[4..7], nothing);
        // For another address, requests in progress are broken off: from where the last search ended.
        let other = ClientAddress::UnixSocket;
        let next = id(addresses.first_for(other, arrival));
        assert!(next.is_some_and(|next| next < 1_000), "{next:?}");
        assert_eq!(addresses.count_of(other), 0);
    }

    #[test]
    fn a_search_looks_at_few_addresses_and_goes_on_with_the_next() {
        let mut addresses = Addresses::default();
        let connections = add(&mut addresses, 1..=1_000);
        let (other, arrival) = (ClientAddress::UnixSocket, Duration::ZERO);
        let mut permits = busy(&connections);
        assert_eq!(id(addresses.first_for(other, arrival)), None);
        permits.remove(700);
        let mut found = (0..20).map(|_| id(addresses.first_for(other, arrival)));
        assert!(found.any(|id| id == Some(700)));
        for entry in &connections {
            addresses.remove(entry);
            addresses.remove(entry);
        }
        assert_eq!(addresses.count(), 0);
        assert!(addresses.by_count.is_empty() && addresses.connections.is_empty());
    }

    #[test]
    fn those_that_have_sent_no_request_give_way_first() {
        let mut addresses = Addresses::default();
        let connections = add(&mut addresses, std::iter::repeat_n(1, 300));
        let address = connections[0].address();
        let limits = Limits::default();
        let new = ConnectionEntry::numbered(300, address, &limits);
        addresses.insert(&new);
        let first = |addresses: &mut Addresses, arrival| {
            let found = addresses.first_of(address, arrival).unwrap();
            addresses.remove(&found);
            found.id()
        };
        // One that is silent for a short time, and one that is ready: the older one.
        let ready = ConnectionEntry::numbered(301, address, &limits);
        assert!(ready.ready());
        addresses.insert(&ready);
        addresses.ready(&ready);
        let long = Duration::from_secs(60);
        assert_eq!(first(&mut addresses, long), 300);
        assert_eq!(first(&mut addresses, long), 301);
        assert_eq!(first(&mut addresses, long), 0);
        let silent = ConnectionEntry::numbered(302, address, &limits);
        addresses.insert(&ready);
        addresses.ready(&ready);
        addresses.insert(&silent);
        assert_eq!(first(&mut addresses, Duration::ZERO), 302);
        assert_eq!(first(&mut addresses, Duration::ZERO), 301);
        assert_eq!(first(&mut addresses, Duration::ZERO), 1);
    }
}
