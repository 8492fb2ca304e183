//! The open connections by address, and which of them gives way to a new one.
//!
//! The search for it looks at few connections, however many there are: with thousands of them, callers who connect again
//! and again would otherwise keep a worker from all others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::server::admission::connections::{ClientAddress, ConnectionEntry, Entries, Progress};

/// Maximum number of connections that have called which a search looks at, of all addresses together. The next search goes
/// on where this one ended. Those that have not called are found at once.
const MAX_LOOKS: usize = 128;
/// Maximum number of addresses with equally many connections that a search looks at.
const MAX_ADDRESSES: usize = 32;

/// The open connections by address.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    count: usize,
    connections: BTreeMap<ClientAddress, OfAddress>,
    /// The addresses by the number of their connections.
    by_count: BTreeSet<(usize, ClientAddress)>,
    /// Where a search through many addresses begins.
    next: Option<(usize, ClientAddress)>,
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
        let of = self.connections.get_mut(&address)?;
        let found = of
            .oldest_uncalled(arrival)
            .or_else(|| of.next_called(MAX_LOOKS, Progress::Called, arrival));
        found.map(|(_, entry)| entry)
    }

    /// The connection that gives way to one from an address: of those from addresses with most connections, one that has
    /// not called, otherwise one without requests in progress. They are broken off only for an address with fewer.
    pub fn first_for(
        &mut self,
        address: ClientAddress,
        arrival: Duration,
    ) -> Option<Arc<ConnectionEntry>> {
        let own = self.count_of(address);
        let largest = self.by_count.last().map_or(0, |(count, _)| *count);
        let most = match largest > own + 1 {
            true => Progress::Busy,
            false => Progress::Called,
        };
        let addresses = self.addresses_with(largest);
        let share = MAX_LOOKS / addresses.len().max(1);
        let found = self
            .first_among(&addresses, |of| of.oldest_uncalled(arrival))
            .or_else(|| self.first_among(&addresses, |of| of.next_called(share, most, arrival)));
        found.map(|(_, entry)| entry)
    }

    /// Some of the addresses with so many connections, of which none has more. The next call goes on behind them.
    fn addresses_with(&mut self, count: usize) -> Vec<ClientAddress> {
        let begin = (count, ClientAddress::LEAST);
        let next = self.next.filter(|next| *next >= begin).unwrap_or(begin);
        let all = self.by_count.range(next..);
        let mut all = all.chain(self.by_count.range(begin..next));
        let found = all.by_ref().take(MAX_ADDRESSES);
        let found = found.map(|(_, address)| *address).collect();
        self.next = all.next().copied();
        found
    }

    /// The connection that gives way first among those that `find` returns for addresses.
    fn first_among(
        &mut self,
        addresses: &[ClientAddress],
        mut find: impl FnMut(&mut OfAddress) -> Option<Candidate>,
    ) -> Option<Candidate> {
        let found = addresses
            .iter()
            .filter_map(|address| find(self.connections.get_mut(address)?));
        found.min_by_key(|(rank, entry)| (*rank, entry.id()))
    }
}

impl OfAddress {
    fn len(&self) -> usize {
        self.silent.len() + self.ready.len() + self.called.len()
    }

    /// The oldest connection that has sent no request; one that is silent for too long first. Those that have are moved:
    /// each once, so that a search may look at all of them.
    fn oldest_uncalled(&mut self, arrival: Duration) -> Option<Candidate> {
        let called = &mut self.called;
        let lists = [&mut self.silent, &mut self.ready];
        let oldest = lists.map(|list| oldest_uncalled(list, called, arrival));
        let oldest = oldest.into_iter().flatten();
        oldest.min_by_key(|(rank, entry)| (*rank, entry.id()))
    }

    /// The next connection that has no request in progress, of so many; otherwise the next one, if its rank may give way.
    fn next_called(
        &mut self,
        looks: usize,
        most: Progress,
        arrival: Duration,
    ) -> Option<Candidate> {
        let in_turn = self.called.range(self.next..);
        let in_turn = in_turn.chain(self.called.range(..self.next));
        let mut busy = None;
        for (&id, entry) in in_turn.take(looks) {
            self.next = id + 1;
            let rank = entry.rank(arrival);
            if rank < Progress::Busy {
                return Some((rank, Arc::clone(entry)));
            }
            busy.get_or_insert(entry);
        }
        let busy = busy.filter(|_| most == Progress::Busy);
        busy.map(|entry| (Progress::Busy, Arc::clone(entry)))
    }
}

/// The oldest connection in a list that has sent no request. Older ones are moved to those that have called.
fn oldest_uncalled(
    list: &mut Entries,
    called: &mut Entries,
    arrival: Duration,
) -> Option<Candidate> {
    while let Some(first) = list.first_entry() {
        let rank = first.get().rank(arrival);
        if rank <= Progress::Ready {
            return Some((rank, Arc::clone(first.get())));
        }
        let (id, entry) = first.remove_entry();
        called.insert(id, entry);
    }
    None
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
        let mut found = (0..1_000 / MAX_ADDRESSES).map(|_| id(addresses.first_for(other, arrival)));
        assert!(found.any(|id| id == Some(700)));
        for entry in &connections {
            addresses.remove(entry);
            addresses.remove(entry);
        }
        assert_eq!(addresses.count(), 0);
        assert!(addresses.by_count.is_empty() && addresses.connections.is_empty());
    }

    #[test]
    fn of_several_addresses_one_that_has_not_called_gives_way_first() {
        let mut addresses = Addresses::default();
        let many = (1..=5).flat_map(|network| std::iter::repeat_n(network, 200));
        let connections = add(&mut addresses, many);
        let _permits = busy(&connections);
        let address = connections[999].address();
        let (other, arrival) = (ClientAddress::UnixSocket, Duration::ZERO);
        addresses.remove(&connections[999]);
        let idle = ConnectionEntry::numbered(1_000, address, &Limits::default());
        addresses.insert(&idle);
        assert_eq!(id(addresses.first_for(other, arrival)), Some(1_000));
        // One that calls before its preface is complete does not give way as a silent one.
        idle.called();
        let busy = idle.watches.try_acquire();
        assert!(id(addresses.first_for(other, arrival)).is_some_and(|id| id < 1_000));
        drop(busy);
        let mut found = (0..20).map(|_| id(addresses.first_for(other, arrival)));
        assert!(found.any(|id| id == Some(1_000)));
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
        ready.ready();
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
