//! Streams of those who follow paths. A stream does nothing until its paths are touched; then it
//! tells how what its caller was told differs from the snapshot that is current at that time. So
//! who reads slowly is told less often, never less in the end, and costs no more memory.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::unfold;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::api::{EncodedWatchEffectivePoliciesResponse, v1};
use crate::insight::{StreamState, StreamUpdate, Subscription};
use crate::server::access::peer::{AccessError, Peer};
use crate::server::admission::concurrency::{ConcurrencyLimiter, Overload, RequestPermits};
use crate::server::services::status::status_of;
use crate::server::transport::request_counters::RpcService;
use crate::server::{Limits, ServiceContext};
use crate::snapshot::{TooManyPaths, WatchGroup};

/// Views whose paths are listed at once; listing takes a thread.
const MAX_LISTINGS: usize = 2;
/// Distinct answers that are compared in place; more would hold up a worker.
const MAX_INLINE_SLOTS: usize = 1_000;

type Message = Result<EncodedWatchEffectivePoliciesResponse, Status>;
/// What a thread found out, and the ledger that it was given.
type ComparisonTask = JoinHandle<(StreamState, Result<Option<StreamUpdate>, Status>)>;
/// The messages of a stream.
pub(in crate::server) type WatchMessages = Pin<Box<dyn Stream<Item = Message> + Send>>;

/// All streams that follow paths.
#[derive(Clone, Debug)]
pub(in crate::server) struct WatchHandler {
    answers: ServiceContext,
    concurrency: Arc<ConcurrencyLimiter>,
    listings: Arc<Semaphore>,
    limits: Arc<Limits>,
    stop: CancellationToken,
}

/// A stream.
struct WatchStream {
    watches: WatchHandler,
    view: Arc<WatchGroup>,
    publications: watch::Receiver<u64>,
    /// Given away while a thread compares many paths.
    stream_state: Option<StreamState>,
    update: Option<StreamUpdate>,
    /// The last publication whose changes were told.
    seen: u64,
    /// When something was told last.
    last: Instant,
    peer: Peer,
    _admitted: RequestPermits,
}

impl WatchHandler {
    pub fn new(
        answers: ServiceContext,
        concurrency: Arc<ConcurrencyLimiter>,
        limits: &Limits,
        stop: CancellationToken,
    ) -> Self {
        Self {
            answers,
            concurrency,
            listings: Arc::new(Semaphore::new(MAX_LISTINGS)),
            limits: Arc::new(limits.clone()),
            stop,
        }
    }

    /// Begins a stream.
    pub async fn follow(
        &self,
        request: &v1::WatchEffectivePoliciesRequest,
        peer: &Peer,
    ) -> Result<WatchMessages, Status> {
        let subscription = Subscription::read(request, &peer.scope()).map_err(status_of)?;
        let admitted = self.concurrency.admit_watch(peer);
        let admitted = admitted.map_err(|full| {
            Status::resource_exhausted(match full {
                Overload::Server => "too many streams: try later",
                Overload::Caller => {
                    "too many streams on this connection: follow several prefixes in one stream"
                }
            })
        })?;
        let view = self
            .answers
            .snapshots
            .watch_group(subscription.selector.clone());
        let mut watching = WatchStream {
            publications: view.subscribe(),
            view,
            stream_state: Some(StreamState::new(subscription)),
            update: None,
            seen: 0,
            last: Instant::now(),
            peer: peer.clone(),
            watches: self.clone(),
            _admitted: admitted,
        };
        // What is wrong with the request is its status, not that of a stream.
        watching.compare(true).await?;
        let messages = unfold(Some(watching), |watching| async {
            let mut watching = watching?;
            match watching.next().await {
                Ok(message) => Some((Ok(message), Some(watching))),
                Err(status) => Some((Err(status), None)),
            }
        });
        Ok(Box::pin(messages))
    }
}

impl WatchStream {
    /// The next message, as soon as there is something to tell.
    async fn next(&mut self) -> Message {
        loop {
            if let Some(message) = self.update.as_mut().and_then(StreamUpdate::next_message) {
                self.last = Instant::now();
                return Ok(message);
            }
            self.update = None;
            let Limits {
                watch_heartbeat,
                watch_interval,
                ..
            } = *self.watches.limits;
            tokio::select! {
                biased;
                () = self.watches.stop.cancelled() => return Err(stopping()),
                () = wait_for_publication(&mut self.publications, self.seen, self.last + watch_interval) => {
                    self.compare(false).await?;
                }
                () = tokio::time::sleep_until(self.last + watch_heartbeat) => {
                    self.compare(true).await?;
                }
            }
        }
    }

    /// Compares what the caller was told with the current snapshot. What has changed is told next;
    /// if nothing has, `is_due` says whether that is told.
    async fn compare(&mut self, is_due: bool) -> Result<(), Status> {
        // A CA that is trusted no more counts for streams that have begun, too.
        let may = self.peer.authorize(RpcService::Policies);
        may.map_err(AccessError::status)?;
        // Read before the snapshot is loaded: what is published meanwhile is looked at once more.
        let seen = *self.publications.borrow();
        let broken = || Status::internal("the stream is broken: call again");
        let snapshot = self.watches.answers.snapshots.load();
        let snapshot =
            snapshot.ok_or_else(|| self.watches.answers.not_ready(&*self.peer.scope()))?;
        let mut stream_state = self.stream_state.take().ok_or_else(broken)?;
        let update = match stream_state.rows_of(&snapshot) {
            Some(rows) if rows.slots() <= MAX_INLINE_SLOTS => {
                stream_state.update(&snapshot, &rows, self.seen, is_due)
            }
            _ => {
                let thread = self.compare_on_thread(stream_state, is_due).await?;
                let (back, update) = thread.await.map_err(|_| broken())?;
                stream_state = back;
                update?
            }
        };
        self.stream_state = Some(stream_state);
        self.update = update;
        self.seen = seen;
        Ok(())
    }

    /// The same on a thread of its own, listing the paths anew if they may be others.
    async fn compare_on_thread(
        &self,
        mut stream_state: StreamState,
        is_due: bool,
    ) -> Result<ComparisonTask, Status> {
        let turn = Arc::clone(&self.watches.listings).acquire_owned().await;
        let turn = turn.map_err(|_| stopping())?;
        let WatchHandler {
            answers, limits, ..
        } = self.watches.clone();
        let (view, seen, scope) = (Arc::clone(&self.view), self.seen, self.peer.scope());
        Ok(tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let update = match answers.snapshots.rows(&view, limits.watch_paths) {
                Err(error) => Err(too_many(error)),
                Ok(None) => Err(answers.not_ready(&*scope)),
                Ok(Some(now)) => Ok(stream_state.update(&now.snapshot, &now.rows, seen, is_due)),
            };
            (stream_state, update)
        }))
    }
}

/// Done once something was published that touches the stream, but not before a time.
async fn wait_for_publication(told: &mut watch::Receiver<u64>, seen: u64, not_before: Instant) {
    let published = told.wait_for(|publication| *publication > seen).await;
    // The view outlives the stream: there always is somebody who tells.
    drop(published);
    tokio::time::sleep_until(not_before).await;
}

fn stopping() -> Status {
    Status::unavailable("the server stops: call again, with the resume token")
}

fn too_many(error: TooManyPaths) -> Status {
    Status::resource_exhausted(error.to_string())
}
