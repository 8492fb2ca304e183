//! What a stream is sending. It is dropped when the stream ends, also if its caller never reads on:
//! the transport asks a stream for more only after it has written what it has.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;

use super::ledger::{Exceeded, HoldingLimits, StreamLedger};
use super::stream_state::StreamState;
use super::update::{StreamUpdate, WatchMessage};

/// An open stream of a caller.
#[derive(Debug)]
pub struct StreamDelivery {
    ledger: Arc<StreamLedger>,
    limits: HoldingLimits,
    caller: Arc<str>,
    stream: u64,
    slot: Arc<StreamSlot>,
    /// Why the stream ended, for the metric.
    end: OnceLock<&'static str>,
}

/// What a stream holds.
#[derive(Debug)]
pub(super) struct StreamSlot {
    held: Mutex<DeliveryState>,
    ended: OnceLock<Exceeded>,
    /// The number of the message that the caller has not read; `IDLE` if there is none.
    waiting_since: AtomicU64,
}

/// How far a stream has come, and what it sends.
#[derive(Debug, Default)]
struct DeliveryState {
    /// Absent while a thread compares.
    state: Option<StreamState>,
    update: Option<StreamUpdate>,
    /// The message that is being sent. Kept until the next one, so that other streams share it.
    message: Option<Arc<WatchMessage>>,
    /// Number of its pieces that were handed to the transport.
    pieces: usize,
}

const IDLE: u64 = u64::MAX;

impl StreamDelivery {
    /// Opens a stream. What it holds counts at once, although its first update may have to wait.
    pub fn new(
        ledger: &Arc<StreamLedger>,
        limits: HoldingLimits,
        caller: Arc<str>,
        state: StreamState,
    ) -> Self {
        let objects = state.holdings(None);
        let held = DeliveryState {
            state: Some(state),
            ..DeliveryState::default()
        };
        let slot = Arc::new(StreamSlot {
            held: Mutex::new(held),
            ended: OnceLock::new(),
            waiting_since: AtomicU64::new(IDLE),
        });
        let stream = ledger.open(&caller, Arc::downgrade(&slot));
        ledger.hold((&caller, stream), objects, &limits);
        Self {
            stream,
            ledger: Arc::clone(ledger),
            limits,
            caller,
            slot,
            end: OnceLock::new(),
        }
    }

    /// Takes the state of the stream, to compare it with a snapshot. `None` if it was taken.
    ///
    /// # Errors
    /// The stream was ended.
    pub fn take_state(&self) -> Result<Option<StreamState>, Exceeded> {
        Ok(self.held()?.state.take())
    }

    /// Returns the state of the stream, with the update that it now sends.
    ///
    /// # Errors
    /// The stream was ended, possibly because it exceeds a bound now.
    pub fn put_state(
        &self,
        state: StreamState,
        update: Option<StreamUpdate>,
    ) -> Result<(), Exceeded> {
        let objects = state.holdings(update.as_ref());
        let mut held = self.held()?;
        if update.is_some() {
            self.slot.wait(self.ledger.tick());
        }
        held.state = Some(state);
        held.update = update;
        drop(held);
        let stream = (&self.caller, self.stream);
        self.ledger.hold(stream, objects, &self.limits);
        self.held().map(drop)
    }

    /// Prepares the next message of the update, and returns whether there is one.
    ///
    /// # Errors
    /// The stream was ended.
    pub fn next_message(&self) -> Result<bool, Exceeded> {
        let mut held = self.held()?;
        let message = held.update.as_mut().and_then(StreamUpdate::next_message);
        held.pieces = 0;
        let had_update = held.update.is_some();
        held.message = message;
        if held.message.is_some() {
            self.slot.wait(self.ledger.tick());
            return Ok(true);
        }
        held.update = None;
        self.slot.wait(IDLE);
        let objects = held.state.as_ref().map(|state| state.holdings(None));
        drop(held);
        if had_update {
            let stream = (&self.caller, self.stream);
            self.ledger
                .hold(stream, objects.unwrap_or_default(), &self.limits);
        }
        Ok(false)
    }

    /// Returns the next piece of the message; `None` after the last.
    ///
    /// # Errors
    /// The stream was ended.
    pub fn next_piece(&self) -> Result<Option<Bytes>, Exceeded> {
        let mut held = self.held()?;
        let pieces = held.message.as_ref().map(|message| message.pieces());
        let piece = pieces.and_then(|pieces| pieces.get(held.pieces)).cloned();
        held.pieces += usize::from(piece.is_some());
        Ok(piece)
    }

    /// Records why the stream ends. Without a reason, its caller ended it.
    pub fn end(&self, reason: &'static str) {
        // The first reason counts.
        let _first = self.end.set(reason);
    }

    fn held(&self) -> Result<MutexGuard<'_, DeliveryState>, Exceeded> {
        let held = self.slot.held();
        match self.slot.ended.get() {
            Some(exceeded) => Err(*exceeded),
            None => Ok(held),
        }
    }
}

impl Drop for StreamDelivery {
    fn drop(&mut self) {
        self.ledger.close(&self.caller, self.stream);
        let exceeded = self.slot.ended.get().map(|exceeded| exceeded.name());
        let reason = exceeded.or_else(|| self.end.get().copied());
        self.ledger.count(reason.unwrap_or("client"));
    }
}

impl StreamSlot {
    /// Ends the stream: drops what it holds.
    pub(super) fn end(&self, exceeded: Exceeded) {
        let mut held = self.held();
        // A stream is ended once, because the ledger removes it.
        let _first = self.ended.set(exceeded);
        let dropped = std::mem::take(&mut *held);
        drop(held);
        drop(dropped);
    }

    /// Since which message the stream waits for its caller.
    pub(super) fn waiting_since(&self) -> Option<u64> {
        let since = self.waiting_since.load(Ordering::Relaxed);
        (since != IDLE).then_some(since)
    }

    fn wait(&self, since: u64) {
        self.waiting_since.store(since, Ordering::Relaxed);
    }

    fn held(&self) -> MutexGuard<'_, DeliveryState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
