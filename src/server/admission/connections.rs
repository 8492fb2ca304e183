//! The open connections: their number in all, by address and by client certificate, and which of
//! them gives way when there is no room for a new one.
//!
//! New connections are accepted at once instead of waiting for room, so that connections which send
//! nothing cannot lock out those which do.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::server::Limits;
use crate::server::admission::addresses::Addresses;
use crate::server::admission::bounds::{Bound, BoundCounters};
use crate::server::admission::concurrency::{BusyConnections, Permits};
use crate::server::admission::held_bytes::{ConnectionBytes, HeldBytes};
use crate::server::admission::turns::Turns;

/// Number of ticks of [`HeldBytes`] after which a connection that asks nothing is quiet.
const QUIET_TICKS: u32 = 2;
/// Time after which a connection that has asked nothing is quiet.
const QUIET_AFTER: Duration = Duration::from_secs(1);

/// The number of connections of one listener or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct ConnectionLimits {
    /// Maximum number of connections.
    pub total: usize,
    /// Maximum number of connections from one address, and with one client certificate.
    pub per_client: usize,
    /// How long a new connection may be silent before it gives way to others first: callers in the
    /// midst of their handshake must not lose their place to connections that ask nothing.
    pub arrival: Duration,
}

/// The open connections of listeners that share their limits.
#[derive(Debug)]
pub struct ConnectionTable {
    sizes: ConnectionLimits,
    limits: Limits,
    bytes: Arc<HeldBytes>,
    busy: Arc<BusyConnections>,
    bounds: Arc<BoundCounters>,
    table: Mutex<Table>,
    turns: Arc<Turns>,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientAddress {
    /// An IPv4 address, or the network of an IPv6 address: one host has a whole /64.
    Ip(IpAddr),
    /// A Unix socket. The mode of its file says who may connect, so it has no share.
    UnixSocket,
}

/// A connection, as those see it that may end it.
#[derive(Debug)]
pub(in crate::server) struct ConnectionEntry {
    id: u64,
    address: ClientAddress,
    /// When the connection was accepted.
    pub accepted: Instant,
    /// How far the connection has come: see [`Progress`].
    progress: AtomicU8,
    /// The tick of [`HeldBytes`] of its last request.
    called_at: AtomicU32,
    /// Why the connection must end: an [`EndReason`], or 0.
    reason: AtomicU8,
    end: Notify,
    /// Bytes that the server holds for the caller.
    pub bytes: Arc<ConnectionBytes>,
    /// One permit per request in progress, until its reply is written.
    pub requests: Arc<Permits>,
    /// One permit per stream of `WatchEffectivePolicies`.
    pub watches: Arc<Permits>,
    /// One permit per request for health and reflection.
    pub probes: Arc<Permits>,
}

/// The entry of a connection in the table; dropping it removes the connection.
#[derive(Debug)]
pub(in crate::server) struct ConnectionTicket {
    table: Arc<ConnectionTable>,
    pub entry: Arc<ConnectionEntry>,
    certificate: Option<Fingerprint>,
}

/// Why the server ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum EndReason {
    /// It gives way to a new connection.
    Evicted = 1,
    /// Its caller does not read a reply.
    Unread = 2,
    /// Its caller did not finish the handshake and the HTTP/2 preface in time.
    Silent = 3,
    /// Its client certificate has expired.
    CertificateExpired = 4,
    /// It has reached its maximum age.
    Age = 5,
}

/// How far a connection has come. The order is the one in which connections give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// Accepted: no HTTP/2 preface yet.
    Silent = 0,
    /// Ready for requests: none yet.
    Ready = 1,
    /// Has sent a request.
    Called = 2,
    /// Has requests or streams in progress. Never stored: see [`ConnectionEntry::rank`].
    Busy = 3,
}

type Fingerprint = [u8; 32];
/// Connections by number: the oldest has the lowest.
pub(super) type Entries = BTreeMap<u64, Arc<ConnectionEntry>>;

#[derive(Debug, Default)]
struct Table {
    next_id: u64,
    addresses: Addresses,
    certificates: BTreeMap<Fingerprint, usize>,
    /// Connections without an HTTP/2 preface.
    silent: Entries,
}

impl ClientAddress {
    /// The first one in order.
    pub const LEAST: Self = Self::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    /// Returns the address that connections from `ip` count for.
    pub fn of(ip: IpAddr) -> Self {
        Self::Ip(match ip.to_canonical() {
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) => {
                let network = u128::from(ip) & (u128::MAX << 64);
                IpAddr::V6(Ipv6Addr::from(network))
            }
        })
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V6(network)) => write!(f, "{network}/64"),
            Self::Ip(ip) => ip.fmt(f),
            Self::UnixSocket => f.write_str("unix"),
        }
    }
}

impl EndReason {
    fn of(number: u8) -> Option<Self> {
        [
            Self::Evicted,
            Self::Unread,
            Self::Silent,
            Self::CertificateExpired,
            Self::Age,
        ]
        .into_iter()
        .find(|reason| *reason as u8 == number)
    }
}

impl ConnectionEntry {
    fn new(
        (id, address): (u64, ClientAddress),
        limits: &Limits,
        bytes: &Arc<HeldBytes>,
        busy: &Arc<BusyConnections>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            address,
            accepted: Instant::now(),
            progress: AtomicU8::new(Progress::Silent as u8),
            called_at: AtomicU32::new(0),
            reason: AtomicU8::new(0),
            end: Notify::new(),
            bytes: ConnectionBytes::new(bytes),
            requests: Permits::of_connection(limits.requests_per_connection, busy),
            watches: Permits::new(limits.watches_per_connection),
            probes: Permits::new(limits.probes_per_connection),
        })
    }

    /// Creates an entry that is in no table.
    #[cfg(test)]
    pub fn detached(limits: &Limits) -> Arc<Self> {
        Self::busy(limits, &Arc::default())
    }

    /// Creates an entry that is in no table, and counts as busy somewhere.
    #[cfg(test)]
    pub fn busy(limits: &Limits, busy: &Arc<BusyConnections>) -> Arc<Self> {
        let of = (0, ClientAddress::UnixSocket);
        Self::new(of, limits, &HeldBytes::new(limits), busy)
    }

    /// Creates an entry with a number and an address that is in no table.
    #[cfg(test)]
    pub fn numbered(id: u64, address: ClientAddress, limits: &Limits) -> Arc<Self> {
        let held = HeldBytes::new(limits);
        Self::new((id, address), limits, &held, &Arc::default())
    }

    /// Returns its number. Later connections have higher ones.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns where the connection comes from.
    pub fn address(&self) -> ClientAddress {
        self.address
    }

    /// Reports whether the HTTP/2 preface is missing.
    pub fn is_silent(&self) -> bool {
        self.progress.load(Ordering::Relaxed) == Progress::Silent as u8
    }

    /// Reports whether the connection has sent a request.
    pub fn has_called(&self) -> bool {
        self.progress.load(Ordering::Relaxed) == Progress::Called as u8
    }

    /// Reports whether the connection has no request in progress and has sent none lately: for two ticks of [`HeldBytes`],
    /// or since it was accepted a second ago. Requests whose message has not arrived, probes and reflection are not in
    /// progress.
    pub fn is_quiet(&self) -> bool {
        let has_called_lately = if self.has_called() {
            let called_at = self.called_at.load(Ordering::Relaxed);
            self.bytes.tick().wrapping_sub(called_at) < QUIET_TICKS
        } else {
            // New ones do not wait behind those that never ask: they are accepted in turns.
            self.accepted.elapsed() < QUIET_AFTER
        };
        !has_called_lately && self.requests.in_use() + self.watches.in_use() == 0
    }

    /// Remembers that the HTTP/2 preface has arrived.
    pub(super) fn ready(&self) {
        // It fails if the connection has called.
        let _further = self.progress.compare_exchange(
            Progress::Silent as u8,
            Progress::Ready as u8,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Remembers that the connection has sent a request.
    pub fn called(&self) {
        let tick = self.bytes.tick();
        if self.called_at.load(Ordering::Relaxed) != tick {
            self.called_at.store(tick, Ordering::Relaxed);
        }
        if !self.has_called() {
            self.progress
                .store(Progress::Called as u8, Ordering::Relaxed);
        }
    }

    /// Completes when the table ends the connection.
    pub async fn ended(&self) -> EndReason {
        loop {
            if let Some(reason) = EndReason::of(self.reason.load(Ordering::Acquire)) {
                return reason;
            }
            self.end.notified().await;
        }
    }

    fn end(&self, reason: EndReason) {
        let first =
            self.reason
                .compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire);
        if first.is_ok() {
            self.end.notify_one();
        }
    }

    /// Returns the place in the order in which connections give way. Requests for health do not
    /// count: streams of them never end.
    pub(super) fn rank(&self, arrival: Duration) -> Progress {
        if self.requests.in_use() + self.watches.in_use() > 0 {
            return Progress::Busy;
        }
        match self.progress.load(Ordering::Relaxed) {
            0 if self.accepted.elapsed() >= arrival => Progress::Silent,
            0 => Progress::Ready,
            1 => Progress::Ready,
            _ => Progress::Called,
        }
    }
}

impl ConnectionTable {
    pub(in crate::server) fn new(
        sizes: ConnectionLimits,
        limits: &Limits,
        (bytes, busy): (&Arc<HeldBytes>, &Arc<BusyConnections>),
        bounds: &Arc<BoundCounters>,
    ) -> Arc<Self> {
        Arc::new(Self {
            sizes,
            limits: limits.clone(),
            bytes: Arc::clone(bytes),
            busy: Arc::clone(busy),
            bounds: Arc::clone(bounds),
            table: Mutex::default(),
            turns: Arc::default(),
        })
    }

    /// Returns the turns of the quiet connections.
    pub(in crate::server) fn turns(&self) -> Arc<Turns> {
        Arc::clone(&self.turns)
    }

    /// Returns the number of connections.
    pub fn count(&self) -> usize {
        self.lock().addresses.count()
    }

    /// Adds a connection. Another one gives way if there is no room. Returns `None` if none can.
    pub(in crate::server) fn admit(
        self: &Arc<Self>,
        address: ClientAddress,
    ) -> Option<ConnectionTicket> {
        let mut table = self.lock();
        match table.victim(address, self.sizes) {
            Ok(None) => {}
            Ok(Some(victim)) => {
                table.remove(&victim, None);
                victim.end(EndReason::Evicted);
                self.bounds
                    .record(Bound::ConnectionEvicted, &victim.address);
            }
            Err(bound) => {
                drop(table);
                self.bounds.record(bound, &address);
                return None;
            }
        }
        let of = (table.next_id, address);
        let entry = ConnectionEntry::new(of, &self.limits, &self.bytes, &self.busy);
        table.next_id += 1;
        table.addresses.insert(&entry);
        table.silent.insert(entry.id, Arc::clone(&entry));
        drop(table);
        Some(ConnectionTicket {
            table: Arc::clone(self),
            entry,
            certificate: None,
        })
    }

    /// Ends the oldest connection without an HTTP/2 preface, because the process has no file
    /// descriptors left.
    pub(in crate::server) fn relieve(&self) {
        let mut table = self.lock();
        if let Some((_, victim)) = table.silent.pop_first() {
            table.remove(&victim, None);
            victim.end(EndReason::Evicted);
            self.bounds
                .record(Bound::ConnectionEvicted, &victim.address);
        }
    }

    /// Ends the connections whose callers do not read a reply. `tick` is the time of [`HeldBytes`].
    pub(in crate::server) fn end_unread(&self, tick: u32) {
        let table = self.lock();
        let entries = table.addresses.iter();
        for entry in entries.filter(|entry| entry.bytes.has_unread(tick)) {
            entry.end(EndReason::Unread);
            self.bounds.record(Bound::ReplyUnread, &entry.address);
        }
    }

    /// Counts that a connection exceeded a bound.
    pub(in crate::server) fn record(&self, bound: Bound, entry: &ConnectionEntry) {
        self.bounds.record(bound, &entry.address);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns the connection that gives way to a new one from `address`, if one must.
    ///
    /// # Errors
    /// Returns the limit that is reached if no connection can give way.
    fn victim(
        &mut self,
        address: ClientAddress,
        sizes: ConnectionLimits,
    ) -> Result<Option<Arc<ConnectionEntry>>, Bound> {
        let arrival = sizes.arrival;
        if self.addresses.count_of(address) >= sizes.per_client
            && address != ClientAddress::UnixSocket
        {
            let victim = self.addresses.first_of(address, arrival);
            return victim.map(Some).ok_or(Bound::ConnectionsOfClient);
        }
        if self.addresses.count() < sizes.total {
            return Ok(None);
        }
        while let Some(oldest) = self.silent.first_entry() {
            match oldest.get().rank(arrival) {
                Progress::Silent => return Ok(Some(Arc::clone(oldest.get()))),
                Progress::Ready => break,
                // It has called with a request that is shorter than a preface.
                Progress::Called | Progress::Busy => drop(oldest.remove()),
            }
        }
        let victim = self.addresses.first_for(address, arrival);
        victim.map(Some).ok_or(Bound::Connections)
    }

    fn remove(&mut self, entry: &ConnectionEntry, certificate: Option<&Fingerprint>) {
        self.silent.remove(&entry.id);
        self.addresses.remove(entry);
        if let Some(fingerprint) = certificate
            && let Some(count) = self.certificates.get_mut(fingerprint)
        {
            *count -= 1;
            if *count == 0 {
                self.certificates.remove(fingerprint);
            }
        }
    }
}

impl ConnectionTicket {
    /// Returns the table of the connection.
    pub fn table(&self) -> &Arc<ConnectionTable> {
        &self.table
    }

    /// Counts the connection for its client certificate. Returns `false` if the certificate has its
    /// share of connections.
    pub fn identify(&mut self, certificate: &[u8]) -> bool {
        let fingerprint: Fingerprint = Sha256::digest(certificate).into();
        let mut table = self.table.lock();
        let count = table.certificates.entry(fingerprint).or_default();
        if *count >= self.table.sizes.per_client {
            drop(table);
            self.table
                .bounds
                .record(Bound::ConnectionsOfClient, &self.entry.address);
            return false;
        }
        *count += 1;
        self.certificate = Some(fingerprint);
        true
    }

    /// Remembers that the HTTP/2 preface has arrived.
    pub fn ready(&self) {
        self.entry.ready();
        let mut table = self.table.lock();
        table.silent.remove(&self.entry.id);
        table.addresses.ready(&self.entry);
    }

    /// Counts that the connection exceeded a bound.
    pub fn record(&self, bound: Bound) {
        self.table.record(bound, &self.entry);
    }
}

impl Drop for ConnectionTicket {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        table.remove(&self.entry, self.certificate.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(total: usize, per_client: usize) -> Arc<ConnectionTable> {
        arriving(total, per_client, Duration::ZERO)
    }

    fn arriving(total: usize, per_client: usize, arrival: Duration) -> Arc<ConnectionTable> {
        let limits = Limits::default();
        let held = (&HeldBytes::new(&limits), &Arc::default());
        let sizes = ConnectionLimits {
            total,
            per_client,
            arrival,
        };
        ConnectionTable::new(sizes, &limits, held, &Arc::default())
    }

    fn address(text: &str) -> ClientAddress {
        ClientAddress::of(text.parse().unwrap())
    }

    fn is_ended(ticket: &ConnectionTicket) -> bool {
        ticket.entry.reason.load(Ordering::Relaxed) != 0
    }

    #[test]
    fn silent_connections_give_way_first() {
        let table = table(3, 10);
        let [one, two] = ["10.0.0.1", "10.0.0.2"].map(address);
        let busy = table.admit(one).unwrap();
        busy.ready();
        busy.entry.called();
        let silent = [table.admit(two).unwrap(), table.admit(two).unwrap()];
        let new = table.admit(one).unwrap();
        assert!(is_ended(&silent[0]) && !is_ended(&silent[1]) && !is_ended(&busy));
        new.ready();
        assert_eq!(table.count(), 3);
        drop(silent);
        assert_eq!(table.count(), 2);
        drop((busy, new));
        let table = table.lock();
        assert!(table.addresses.iter().next().is_none() && table.silent.is_empty());
    }

    #[test]
    fn a_new_caller_does_not_give_way_before_its_preface() {
        for (total, per_client) in [(3, 10), (10, 3)] {
            let table = arriving(total, per_client, Duration::from_secs(60));
            let flood = |()| {
                let ticket = table.admit(address("10.0.0.1")).unwrap();
                ticket.ready();
                ticket
            };
            let idle = [(), (), ()].map(flood);
            let caller = table.admit(address("10.0.0.1")).unwrap();
            let more = [(), ()].map(flood);
            assert!(idle.iter().all(is_ended) && !is_ended(&caller) && !is_ended(&more[1]));
        }
    }

    #[test]
    fn the_address_with_most_connections_gives_way() {
        let table = table(4, 10);
        let ready = |text| {
            let ticket = table.admit(address(text)).unwrap();
            ticket.ready();
            ticket.entry.called();
            ticket
        };
        let other = ready("10.0.0.9");
        let greedy = ["10.0.0.1"; 3].map(ready);
        let permits = [&other, &greedy[0], &greedy[1], &greedy[2]]
            .map(|ticket| ticket.entry.requests.try_acquire().unwrap());
        // Its own requests are not broken off for one more connection of the same address.
        assert!(table.admit(address("10.0.0.1")).is_none());
        let new = ready("10.0.0.9");
        assert!(is_ended(&greedy[0]) && !is_ended(&greedy[1]) && !is_ended(&other));
        drop((permits, new));
        let again = ready("10.0.0.1");
        assert!(!is_ended(&greedy[1]) && !is_ended(&again));
    }

    #[test]
    fn an_idle_connection_of_any_address_gives_way() {
        let table = table(3, 10);
        let ready = |text| {
            let ticket = table.admit(address(text)).unwrap();
            ticket.ready();
            ticket.entry.called();
            ticket
        };
        let all = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(ready);
        let _watch = all[2].entry.watches.try_acquire().unwrap();
        let new = ready("10.0.0.4");
        assert!(is_ended(&all[0]) && !is_ended(&all[1]) && !is_ended(&all[2]));
        drop(all);
        drop(new);
        // The addresses with most are busy, and not for one with as many less one; the idle one has fewer.
        let busy = ["10.0.0.1", "10.0.0.1"].map(ready);
        let watches = busy.each_ref().map(|one| &one.entry.watches);
        let _watches = watches.map(|watches| watches.try_acquire().unwrap());
        let idle = ready("10.0.0.2");
        assert!(table.admit(address("10.0.0.1")).is_none() && !is_ended(&idle));
        let other = ready("10.0.0.3");
        assert!(is_ended(&busy[0]) && !is_ended(&idle));
        drop(other);
    }

    #[test]
    fn an_address_and_a_certificate_have_a_share() {
        let table = table(10, 2);
        let one = address("fd00::1:0:0:0:1");
        assert_eq!(one, address("fd00::1:0:0:0:ffff"));
        assert_ne!(one, address("fd00::2:0:0:0:1"));
        let tickets = [table.admit(one).unwrap(), table.admit(one).unwrap()];
        let third = table.admit(one).unwrap();
        assert!(is_ended(&tickets[0]) && !is_ended(&tickets[1]));
        for ticket in [&tickets[1], &third] {
            ticket.ready();
            ticket.entry.called();
        }
        let _permits = [&tickets[1], &third].map(|t| t.entry.watches.try_acquire().unwrap());
        assert!(table.admit(one).is_none());
        let unix = [ClientAddress::UnixSocket; 3].map(|address| table.admit(address).unwrap());
        assert!(!unix.iter().any(is_ended));

        let mut clients =
            ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|text| table.admit(address(text)).unwrap());
        let shares = clients.each_mut().map(|ticket| ticket.identify(b"same"));
        assert_eq!(shares, [true, true, false]);
        assert!(clients[2].identify(b"other"));
        drop((clients, unix, tickets, third));
        assert!(table.lock().certificates.is_empty());
    }

    #[tokio::test]
    async fn a_connection_that_does_not_read_is_ended() {
        let table = table(10, 10);
        let ticket = table.admit(address("10.0.0.1")).unwrap();
        let _unread = ticket.entry.bytes.hold(10).unwrap().must_progress();
        for _ in 0..5 {
            table.end_unread(table.bytes.advance());
        }
        assert_eq!(ticket.entry.ended().await, EndReason::Unread);
        assert!(table.bounds.counts().contains(&("reply_unread", 1)));
    }
}
