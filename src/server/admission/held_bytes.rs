//! The bytes of messages that the server holds for its callers: replies that are ready and not yet
//! written, and requests that have not arrived completely. They are counted for each connection and
//! for all of them. The bytes of a reply count until they are written to the socket, because HTTP/2
//! buffers what the caller does not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU32, AtomicUsize, Ordering};

use crate::server::Limits;

/// Number of bytes that a connection may hold although all connections together hold too many, so
/// that callers who do not read cannot shut out those who do.
const GUARANTEED: usize = 32 * 1024;
/// A part of the bytes of all connections, one in so many, is shared out evenly among those that hold some: a
/// connection with more than its share cannot take from it.
const SHARED_OUT: usize = 4;
/// Number of bytes that a caller must read of a reply, if it has as many, to have made progress.
const MIN_PROGRESS: usize = 64 * 1024;
/// Number of ticks without progress after which a reply counts as unread.
pub(in crate::server) const UNREAD_TICKS: u32 = 4;
/// Number of ticks that are told apart; more than `UNREAD_TICKS` and the two ticks that begin and
/// end in the middle.
const SLOTS: usize = 8;

/// The bytes of all connections.
#[derive(Debug)]
pub struct HeldBytes {
    held: AtomicUsize,
    /// Number of connections that hold bytes. Below zero for a moment if two threads change one connection.
    connections: AtomicIsize,
    limit: usize,
    per_connection: usize,
    /// A clock that advances a few times in the time that a caller has to read a reply. Requests
    /// read it instead of the clock of the system.
    tick: AtomicU32,
}

/// The bytes of one connection.
#[derive(Debug)]
pub(in crate::server) struct ConnectionBytes {
    all: Arc<HeldBytes>,
    held: AtomicUsize,
    /// Replies that are not written completely, by the tick of their last progress.
    unwritten: [AtomicU32; SLOTS],
}

/// Bytes that a connection holds; dropping it returns them.
#[derive(Debug)]
pub(in crate::server) struct Hold {
    account: Arc<ConnectionBytes>,
    bytes: usize,
    /// The tick of the last progress, if the caller must read the bytes in time.
    progress: Option<u32>,
    /// Number of bytes that were written since.
    written: usize,
}

/// The limit that a message exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum HeldLimit {
    /// The limit of the connection.
    Connection,
    /// The limit of all connections.
    Server,
}

impl HeldBytes {
    pub(in crate::server) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            held: AtomicUsize::new(0),
            connections: AtomicIsize::new(0),
            limit: limits.held_bytes,
            per_connection: limits.held_bytes_per_connection,
            tick: AtomicU32::new(0),
        })
    }

    /// Returns the number of bytes that all connections hold.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Advances the clock, and returns its time.
    pub(in crate::server) fn advance(&self) -> u32 {
        self.tick.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// The even share of a connection in the part that is shared out.
    fn share(&self) -> usize {
        let connections = self.connections.load(Ordering::Relaxed).max(1);
        self.limit / SHARED_OUT / connections.unsigned_abs()
    }

    fn tick(&self) -> u32 {
        self.tick.load(Ordering::Relaxed)
    }
}

impl ConnectionBytes {
    pub fn new(all: &Arc<HeldBytes>) -> Arc<Self> {
        Arc::new(Self {
            all: Arc::clone(all),
            held: AtomicUsize::new(0),
            unwritten: Default::default(),
        })
    }

    /// Returns the time of the clock of [`HeldBytes`].
    pub fn tick(&self) -> u32 {
        self.all.tick()
    }

    /// Returns the number of bytes that the connection holds.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Counts bytes if the limits permit it. A message that is larger than what is left is still
    /// permitted while less than half of the limit is in use, so that one large reply does not
    /// depend on small ones beside it.
    ///
    /// # Errors
    /// Returns the limit that is reached.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Result<Hold, HeldLimit> {
        let mut hold = self.hold_any(0);
        hold.add(bytes)?;
        Ok(hold)
    }

    /// Counts bytes without a limit.
    pub fn hold_any(self: &Arc<Self>, bytes: usize) -> Hold {
        self.count(bytes);
        Hold {
            account: Arc::clone(self),
            bytes,
            progress: None,
            written: 0,
        }
    }

    /// Counts bytes. Returns what the connection and all connections held before.
    fn count(&self, bytes: usize) -> (usize, usize) {
        // Relaxed is enough: the counters do not guard other memory.
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        if before == 0 && bytes > 0 {
            self.all.connections.fetch_add(1, Ordering::Relaxed);
        }
        (before, self.all.held.fetch_add(bytes, Ordering::Relaxed))
    }

    fn reserve(&self, bytes: usize) -> Result<(), HeldLimit> {
        let (before, total) = self.count(bytes);
        let (after, limit) = (before.saturating_add(bytes), self.all.per_connection);
        let all = total.saturating_add(bytes);
        let permitted = if all > self.all.limit {
            GUARANTEED
        } else if all > self.all.limit - self.all.limit / SHARED_OUT {
            self.all.share().max(GUARANTEED)
        } else {
            usize::MAX
        };
        let exceeded = if after > limit && before > limit / 2 {
            HeldLimit::Connection
        } else if after > permitted {
            HeldLimit::Server
        } else {
            return Ok(());
        };
        self.release(bytes);
        Err(exceeded)
    }

    fn release(&self, bytes: usize) {
        let before = self.held.fetch_sub(bytes, Ordering::Relaxed);
        if before == bytes && bytes > 0 {
            self.all.connections.fetch_sub(1, Ordering::Relaxed);
        }
        self.all.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Reports whether a reply made no progress in the last [`UNREAD_TICKS`] ticks before `tick`,
    /// the current time.
    pub fn has_unread(&self, tick: u32) -> bool {
        // The last progress may have been at the end of its tick, hence one more.
        let slot = self.slot(tick.wrapping_sub(UNREAD_TICKS + 1));
        slot.is_some_and(|slot| slot.load(Ordering::Relaxed) > 0)
    }

    fn slot(&self, tick: u32) -> Option<&AtomicU32> {
        self.unwritten.get(tick as usize % SLOTS)
    }

    fn begin(&self, tick: u32) {
        if let Some(slot) = self.slot(tick) {
            slot.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn end(&self, tick: u32) {
        if let Some(slot) = self.slot(tick) {
            slot.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Hold {
    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts more bytes if the limits permit it.
    ///
    /// # Errors
    /// Returns the limit that is reached.
    pub fn add(&mut self, bytes: usize) -> Result<(), HeldLimit> {
        self.account.reserve(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// How many bytes [`Self::add_within`] counts at most.
    pub fn max_per_connection(&self) -> usize {
        self.account.all.per_connection
    }

    /// Counts more bytes as [`Self::add`] does, but not more at once than a connection may hold.
    ///
    /// # Errors
    /// Returns the limit that is reached.
    pub fn add_within(&mut self, bytes: usize) -> Result<(), HeldLimit> {
        match bytes > self.max_per_connection() {
            true => Err(HeldLimit::Connection),
            false => self.add(bytes),
        }
    }

    /// Requires that the caller reads the bytes in time.
    pub fn must_progress(mut self) -> Self {
        let tick = self.account.all.tick();
        if self.progress.replace(tick).is_none() {
            self.account.begin(tick);
        }
        self
    }

    /// Returns bytes that were written. A few are no progress: a caller that reads a byte now and then does not keep
    /// the rest.
    pub fn written(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.account.release(bytes);
        self.written = self.written.saturating_add(bytes);
        if self.written < MIN_PROGRESS {
            return;
        }
        self.written = 0;
        let now = self.account.all.tick();
        if let Some(last) = self.progress.filter(|last| *last != now) {
            self.account.begin(now);
            self.account.end(last);
            self.progress = Some(now);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.account.release(self.bytes);
        if let Some(tick) = self.progress {
            self.account.end(tick);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(per_connection: usize, total: usize) -> Arc<HeldBytes> {
        HeldBytes::new(&Limits {
            held_bytes_per_connection: per_connection,
            held_bytes: total,
            ..Limits::default()
        })
    }

    #[test]
    fn the_bytes_of_a_connection_are_limited() {
        let all = bytes(100, 1_000_000);
        let one = ConnectionBytes::new(&all);
        // One large message does not depend on small ones beside it.
        let small = one.hold(50).unwrap();
        let large = one.hold(1_000).unwrap();
        assert_eq!(one.hold(1).unwrap_err(), HeldLimit::Connection);
        drop(large);
        let mut rest = one.hold(50).unwrap();
        assert_eq!(rest.add(1).unwrap_err(), HeldLimit::Connection);
        rest.written(20);
        assert_eq!((rest.bytes(), all.held()), (30, 80));
        assert_eq!(rest.add(1), Ok(()));
        let any = one.hold_any(500);
        drop((small, rest, any));
        assert_eq!(all.held(), 0);
    }

    #[test]
    fn callers_that_do_not_read_do_not_shut_out_others() {
        let all = bytes(1_000_000, 1_000_000);
        let (greedy, other) = (ConnectionBytes::new(&all), ConnectionBytes::new(&all));
        let unread = greedy.hold(750_000).unwrap();
        assert_eq!(greedy.hold(1).unwrap_err(), HeldLimit::Server);
        // The rest is shared out evenly among both.
        let first = other.hold(125_000).unwrap();
        assert_eq!(other.hold(1).unwrap_err(), HeldLimit::Server);
        drop(first);
        assert!(other.hold(125_000).is_ok());
        drop(unread);
        assert_eq!(all.connections.load(Ordering::Relaxed), 0);
        assert_eq!(all.held(), 0);
    }

    #[test]
    fn a_few_bytes_are_guaranteed_to_each_connection() {
        let all = bytes(1_000_000, 1_000_000);
        let crowd: Vec<_> = (0..100).map(|_| ConnectionBytes::new(&all)).collect();
        let held: Vec<Hold> = crowd.iter().map(|one| one.hold_any(10_000)).collect();
        let other = ConnectionBytes::new(&all);
        assert_eq!(other.hold(GUARANTEED + 1).unwrap_err(), HeldLimit::Server);
        let first = other.hold(GUARANTEED).unwrap();
        assert_eq!(other.hold(1).unwrap_err(), HeldLimit::Server);
        drop((first, held));
        assert_eq!(all.connections.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_reply_without_progress_is_found() {
        let all = bytes(1_000_000, 1_000_000);
        let connection = ConnectionBytes::new(&all);
        let (all_of_it, much) = (2 * MIN_PROGRESS, MIN_PROGRESS);
        let mut slow = connection.hold(all_of_it).unwrap().must_progress();
        let free = connection.hold(10).unwrap();
        let advance = |ticks: u32| (0..ticks).any(|_| connection.has_unread(all.advance()));
        assert!(!advance(UNREAD_TICKS));
        slow.written(much);
        assert!(!advance(UNREAD_TICKS - 1));
        // Single bytes are no progress.
        slow.written(1);
        assert!(!advance(1));
        assert!(advance(1));
        // It is found once more only if it is still there after all slots were used.
        drop(slow);
        assert!(!advance(20));
        drop(free);
    }
}
