//! The writes of a connection, in batches: replies that become ready together leave in one system call.
//!
//! HTTP/2 flushes after each frame with a payload, although other frames follow. Here a flush only leaves the bytes in
//! a buffer, and the task of the connection writes them when it has nothing more to do. The buffer is bounded: beyond
//! it, writing waits for the socket as usual.
//!
//! The reads are bounded, too: HTTP/2 would read and answer as long as there are bytes, and a caller that sends without
//! a pause would keep a worker from all others. A connection whose turns are full of something else than look-ups is served
//! at low priority.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Maximum number of bytes that wait for the task of their connection.
const MAX_WAITING: usize = 16 * 1024;
/// Capacity of the buffer that a connection keeps while nothing waits.
const MAX_KEPT: usize = 2 * 1024;
/// Number of bytes that a connection may read in one turn: more than two hundred look-ups.
const READ_PER_TURN: usize = 16 * 1024;
/// Number of look-ups with which a full turn is that of a busy data plane: on average, they may have 1 KiB each.
const LOOK_UPS_OF_FULL_TURN: usize = READ_PER_TURN / 1_024;
/// Number of full turns, less one for each other turn, after which a connection counts as sending without a pause: 1 MiB in
/// sequence.
const SUSTAINED_TURNS: usize = 64;
/// A connection pauses if it has no full turn for as long.
const PAUSE: Duration = Duration::from_secs(1);
/// Number of bytes that a read counts for at least, because TLS may have a record for each byte.
const LEAST_READ: usize = 256;
/// Maximum number of received bytes that are read when a connection is closed.
const MAX_DISCARDED: usize = 64 * 1024;

/// A connection whose flushed bytes wait until its task calls [`WaitingBytes::poll_write`], and whose reads end when they
/// have used up a turn.
#[derive(Debug)]
pub(in crate::server) struct BatchedConnection<C>(Arc<Mutex<Batch<C>>>);

/// The bytes of a [`BatchedConnection`] that have not been written.
#[derive(Debug)]
pub(in crate::server) struct WaitingBytes<C>(Arc<Mutex<Batch<C>>>);

/// Whether a [`BatchedConnection`] sends without a pause.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct SustainedReads(Arc<AtomicBool>);

#[derive(Debug)]
struct Batch<C> {
    connection: C,
    bytes: Vec<u8>,
    /// The number of `bytes` that are written.
    written: usize,
    /// The number of bytes that may still be read in this turn.
    readable: usize,
    /// The number of full turns, less one for each other turn, up to [`SUSTAINED_TURNS`].
    full_turns: usize,
    /// The last full turn while its reads are sustained.
    last_full: Option<Instant>,
    sustained: SustainedReads,
}

impl SustainedReads {
    /// Whether the connection sends without a pause. Changes only while the connection is used.
    pub fn are_sustained(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, are_sustained: bool) {
        self.0.store(are_sustained, Ordering::Relaxed);
    }
}

impl<C> BatchedConnection<C> {
    /// Wraps a connection. The other part must be asked to write after each use of this one.
    pub fn new(connection: C) -> (Self, WaitingBytes<C>) {
        let batch = Arc::new(Mutex::new(Batch {
            connection,
            bytes: Vec::new(),
            written: 0,
            readable: READ_PER_TURN,
            full_turns: 0,
            last_full: None,
            sustained: SustainedReads::default(),
        }));
        (Self(Arc::clone(&batch)), WaitingBytes(batch))
    }

    /// Whether the connection sends without a pause, for as long as it is used.
    pub fn sustained_reads(&self) -> SustainedReads {
        self.batch().sustained.clone()
    }

    fn batch(&self) -> MutexGuard<'_, Batch<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> WaitingBytes<C> {
    /// Whether the reads of the connection have used up its turn, so that others are next.
    pub fn is_turn_over(&self) -> bool {
        self.batch().readable == 0
    }

    fn batch(&self) -> MutexGuard<'_, Batch<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: AsyncWrite + Unpin> WaitingBytes<C> {
    /// Writes the bytes, and ends the turn of the connection, which had a number of look-ups. Pending if the socket does not
    /// take all of them.
    pub fn poll_write(&self, look_ups: usize, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut batch = self.batch();
        batch.end_turn(look_ups, Instant::now);
        match batch.bytes.is_empty() {
            true => Poll::Ready(Ok(())),
            false => batch.poll_empty(context),
        }
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> WaitingBytes<C> {
    /// Closes a connection that failed, without waiting: sends the bytes and the end of the connection, then reads and
    /// drops what has been received.
    ///
    /// If a socket is closed with unread bytes, the kernel resets the connection, and the peer can lose what was sent
    /// before, for example why the connection failed.
    pub fn close(&self) {
        let mut context = Context::from_waker(Waker::noop());
        let mut batch = self.batch();
        // The connection ends whether or not the socket takes the rest.
        if batch.poll_empty(&mut context).is_ready() {
            let _ended = Pin::new(&mut batch.connection).poll_shutdown(&mut context);
        }
        let mut bytes = [0; 4 * 1024];
        for _ in 0..MAX_DISCARDED / bytes.len() {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = Pin::new(&mut batch.connection).poll_read(&mut context, &mut buffer);
            if !matches!(read, Poll::Ready(Ok(()))) || buffer.filled().is_empty() {
                return;
            }
        }
    }
}

impl<C> Batch<C> {
    /// Begins another turn after one with a number of look-ups.
    fn end_turn(&mut self, look_ups: usize, now: impl Fn() -> Instant) {
        let is_full = self.readable == 0 && look_ups < LOOK_UPS_OF_FULL_TURN;
        self.readable = READ_PER_TURN;
        if !is_full && self.full_turns == 0 {
            return;
        }
        match &mut self.last_full {
            None => {
                self.full_turns = match is_full {
                    true => self.full_turns + 1,
                    false => self.full_turns.saturating_sub(1),
                };
                if self.full_turns == SUSTAINED_TURNS {
                    self.last_full = Some(now());
                    self.sustained.set(true);
                }
            }
            Some(last_full) if is_full => *last_full = now(),
            Some(last_full) if now().saturating_duration_since(*last_full) >= PAUSE => {
                (self.full_turns, self.last_full) = (0, None);
                self.sustained.set(false);
            }
            Some(_) => {}
        }
    }
}

impl<C: AsyncWrite + Unpin> Batch<C> {
    /// Writes all bytes that wait.
    fn poll_empty(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.bytes.get(self.written..)
            && !rest.is_empty()
        {
            match ready!(Pin::new(&mut self.connection).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        self.written = 0;
        self.bytes.clear();
        self.bytes.shrink_to(MAX_KEPT);
        // TLS has a buffer of its own.
        Pin::new(&mut self.connection).poll_flush(context)
    }

    /// Makes room for bytes, which is impossible for very many: then nothing waits.
    fn poll_room(&mut self, bytes: usize, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let has_room = |batch: &Self| batch.bytes.len() + bytes <= MAX_WAITING;
        if !has_room(self) {
            ready!(self.poll_empty(context))?;
        }
        Poll::Ready(Ok(has_room(self)))
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for BatchedConnection<C> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut batch = self.batch();
        if batch.readable == 0 {
            // The other tasks run first.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut batch.connection).poll_read(context, buffer);
        if read.is_ready() {
            let count = buffer.filled().len().saturating_sub(before);
            batch.readable = batch.readable.saturating_sub(count.max(LEAST_READ));
        }
        read
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for BatchedConnection<C> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut batch = self.batch();
        if !ready!(batch.poll_room(bytes.len(), context))? {
            return Pin::new(&mut batch.connection).poll_write(context, bytes);
        }
        batch.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut batch = self.batch();
        let count = slices.iter().map(|slice| slice.len()).sum();
        if !ready!(batch.poll_room(count, context))? {
            return Pin::new(&mut batch.connection).poll_write_vectored(context, slices);
        }
        for slice in slices {
            batch.bytes.extend_from_slice(slice);
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut batch = self.batch();
        ready!(batch.poll_empty(context))?;
        Pin::new(&mut batch.connection).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::{Wake, Waker};

    use super::*;

    /// Records whether a task was woken.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// A socket that records each write. `room` limits how many bytes the next ones take.
    #[derive(Debug, Default)]
    struct Socket {
        writes: Vec<Vec<u8>>,
        /// The number of bytes that each of the next writes takes; 0 if it must wait. Then everything.
        room: VecDeque<usize>,
        /// The number of bytes that each of the next reads returns. Then the reader must wait.
        received: VecDeque<usize>,
        is_shut_down: bool,
    }

    impl AsyncRead for Socket {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let Some(count) = self.received.pop_front() else {
                return Poll::Pending;
            };
            buffer.put_slice(&vec![b'r'; count]);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let room = self.room.pop_front().unwrap_or(bytes.len());
            if room == 0 {
                return Poll::Pending;
            }
            let count = room.min(bytes.len());
            self.writes.push(bytes[..count].to_vec());
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.is_shut_down = true;
            Poll::Ready(Ok(()))
        }
    }

    fn batched(room: &[usize]) -> (BatchedConnection<Socket>, WaitingBytes<Socket>) {
        BatchedConnection::new(Socket {
            room: room.iter().copied().collect(),
            ..Socket::default()
        })
    }

    /// Writes and flushes bytes as HTTP/2 does; returns whether they were taken.
    fn write(connection: &mut BatchedConnection<Socket>, bytes: &[u8]) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let written = Pin::new(&mut *connection).poll_write(&mut context, bytes);
        let flushed = Pin::new(connection).poll_flush(&mut context);
        assert!(matches!(flushed, Poll::Ready(Ok(()))));
        written.is_ready()
    }

    fn poll_write(waiting: &WaitingBytes<Socket>) -> bool {
        let written = waiting.poll_write(0, &mut Context::from_waker(Waker::noop()));
        written.is_ready()
    }

    fn writes(connection: &BatchedConnection<Socket>) -> Vec<Vec<u8>> {
        connection.batch().connection.writes.clone()
    }

    #[test]
    fn what_is_flushed_leaves_in_one_write() {
        let (mut connection, waiting) = batched(&[]);
        for bytes in [&b"head"[..], b"data", b"end"] {
            assert!(write(&mut connection, bytes));
        }
        let slices = [IoSlice::new(b"1"), IoSlice::new(b"23")];
        let mut context = Context::from_waker(Waker::noop());
        let written = Pin::new(&mut connection).poll_write_vectored(&mut context, &slices);
        assert!(matches!(written, Poll::Ready(Ok(3))));
        assert!(writes(&connection).is_empty());
        assert!(poll_write(&waiting) && poll_write(&waiting));
        assert_eq!(writes(&connection), [b"headdataend123"]);
    }

    #[test]
    fn no_more_than_the_bound_waits_and_the_order_stays() {
        let (mut connection, waiting) = batched(&[]);
        let large = vec![b'l'; MAX_WAITING + 1];
        assert!(write(&mut connection, b"first"));
        assert!(write(&mut connection, &large));
        assert!(write(&mut connection, &large[..MAX_WAITING]));
        assert!(write(&mut connection, b"last"));
        assert!(connection.batch().bytes.len() <= MAX_WAITING);
        assert!(poll_write(&waiting));
        let lengths: Vec<usize> = writes(&connection).iter().map(Vec::len).collect();
        assert_eq!(lengths, [5, MAX_WAITING + 1, MAX_WAITING, 4]);
        assert!(connection.batch().bytes.capacity() <= MAX_KEPT);
    }

    #[test]
    fn reads_are_sustained_after_many_full_turns_until_a_pause() {
        let (connection, _) = batched(&[]);
        let sustained = connection.sustained_reads();
        let (mut batch, begin) = (connection.batch(), Instant::now());
        let mut turn = |is_full: bool, look_ups: usize, after: Duration| {
            batch.readable = READ_PER_TURN - if is_full { READ_PER_TURN } else { 100 };
            batch.end_turn(look_ups, || begin + after);
            assert_eq!(batch.readable, READ_PER_TURN);
            sustained.are_sustained()
        };
        let start = Duration::ZERO;
        // Those of a busy data plane are full of look-ups.
        for number in 0..3 * SUSTAINED_TURNS {
            assert!(!turn(true, LOOK_UPS_OF_FULL_TURN, start), "{number}");
        }
        for number in 1..SUSTAINED_TURNS {
            assert!(!turn(true, 1, start), "{number}");
        }
        assert!(!turn(false, 1, start) && !turn(true, 0, start) && turn(true, 0, start));
        let just_before = PAUSE - Duration::from_millis(1);
        assert!(turn(false, 0, just_before) && turn(true, 0, just_before));
        assert!(turn(false, 0, PAUSE) && turn(false, 0, just_before * 2));
        assert!(!turn(false, 0, PAUSE * 2) && !turn(true, 0, PAUSE * 2));
    }

    #[test]
    fn a_socket_that_is_full_stops_the_writer() {
        let (mut connection, waiting) = batched(&[3, 0, 0, 2, 0]);
        let half = vec![b'x'; MAX_WAITING / 2];
        assert!(write(&mut connection, &half) && write(&mut connection, &half));
        assert!(!poll_write(&waiting));
        // The socket took three bytes; there is no room for more than was written.
        assert!(!write(&mut connection, b"more"));
        assert!(!poll_write(&waiting));
        assert!(poll_write(&waiting));
        let total: usize = writes(&connection).iter().map(Vec::len).sum();
        assert_eq!(total, MAX_WAITING);
    }

    #[test]
    fn a_turn_ends_when_its_bytes_are_read() {
        let (mut connection, waiting) = batched(&[]);
        let received = VecDeque::from([4_096; 10]);
        connection.batch().connection.received = received;
        let (waker, mut bytes) = (Arc::new(Woken::default()), [0; 8_192]);
        let mut read_all = || {
            let of_waker = Waker::from(Arc::clone(&waker));
            let mut context = Context::from_waker(&of_waker);
            let mut count = 0;
            loop {
                let mut buffer = ReadBuf::new(&mut bytes);
                let read = Pin::new(&mut connection).poll_read(&mut context, &mut buffer);
                if read.is_pending() {
                    let is_woken = waker.0.swap(false, Ordering::Relaxed);
                    assert!(poll_write(&waiting));
                    return (count, is_woken);
                }
                count += buffer.filled().len();
            }
        };
        // The task is woken only if its turn ended; otherwise by the socket.
        let turns = [read_all(), read_all(), read_all(), read_all()];
        let whole = (READ_PER_TURN, true);
        assert_eq!(turns, [whole, whole, (8_192, false), (0, false)]);
    }

    #[test]
    fn a_failed_connection_is_closed_without_unread_bytes() {
        let (mut connection, waiting) = batched(&[]);
        connection.batch().connection.received = VecDeque::from([3, 4_096, 1]);
        assert!(write(&mut connection, b"reason"));
        waiting.close();
        assert_eq!(writes(&connection), [b"reason"]);
        let is_shut_down = connection.batch().connection.is_shut_down;
        assert!(is_shut_down && connection.batch().connection.received.is_empty());
        // A caller that goes on sending does not keep the connection.
        connection.batch().connection.received = VecDeque::from([4_096; 100]);
        waiting.close();
        assert_eq!(connection.batch().connection.received.len(), 100 - 16);
    }

    #[test]
    fn a_failed_connection_whose_socket_is_full_is_closed() {
        let (mut connection, waiting) = batched(&[0]);
        connection.batch().connection.received = VecDeque::from([3]);
        assert!(write(&mut connection, b"reason"));
        waiting.close();
        let batch = connection.batch();
        assert!(batch.connection.received.is_empty() && !batch.connection.is_shut_down);
    }

    #[test]
    fn the_end_of_a_connection_follows_all_bytes() {
        let (mut connection, _waiting) = batched(&[0]);
        assert!(write(&mut connection, b"goodbye"));
        let mut context = Context::from_waker(Waker::noop());
        let ended = Pin::new(&mut connection).poll_shutdown(&mut context);
        assert!(ended.is_pending() && !connection.batch().connection.is_shut_down);
        let ended = Pin::new(&mut connection).poll_shutdown(&mut context);
        assert!(ended.is_ready() && connection.batch().connection.is_shut_down);
        assert_eq!(writes(&connection), [b"goodbye"]);
    }
}
