//! Streams of `WatchEffectivePolicies`. A stream sleeps until a publication touches its paths. Then
//! it sends the difference between what it has sent and the current snapshot. A caller that reads
//! slowly therefore gets fewer updates, always ends at the current state, and costs no more memory.

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
use crate::server::access::peer::{AccessError, Peer};
use crate::server::admission::concurrency::{ConcurrencyLimiter, Overload, RequestPermits};
use crate::server::services::status::status_of;
use crate::server::transport::request_counters::RpcService;
use crate::server::{Limits, ServiceContext};
use crate::subscription::{StreamState, StreamUpdate, Subscription, TooManyPaths, WatchGroup};

/// Maximum number of watch groups whose paths are listed concurrently. Listing occupies a thread.
const MAX_LISTINGS: usize = 2;
/// Maximum number of distinct answers that are compared on the async worker. More would block it.
const MAX_INLINE_SLOTS: usize = 1_000;

type Message = Result<EncodedWatchEffectivePoliciesResponse, Status>;
/// A comparison on a blocking thread: returns the stream state that it was given, and the update.
type ComparisonTask = JoinHandle<(StreamState, Result<Option<StreamUpdate>, Status>)>;
/// The messages of a stream.
pub(in crate::server) type WatchMessages = Pin<Box<dyn Stream<Item = Message> + Send>>;

/// Creates the streams, within the limits of the server.
#[derive(Clone, Debug)]
pub(in crate::server) struct WatchHandler {
    answers: ServiceContext,
    concurrency: Arc<ConcurrencyLimiter>,
    listings: Arc<Semaphore>,
    limits: Arc<Limits>,
    stop: CancellationToken,
}

/// One open stream.
struct WatchStream {
    watches: WatchHandler,
    group: Arc<WatchGroup>,
    publications: watch::Receiver<u64>,
    /// Absent while a thread compares many paths.
    stream_state: Option<StreamState>,
    update: Option<StreamUpdate>,
    /// The last publication that was compared.
    seen: u64,
    /// When the last message was sent.
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

    /// Opens a stream.
    pub async fn follow(
        &self,
        request: &v1::WatchEffectivePoliciesRequest,
        peer: &Peer,
    ) -> Result<WatchMessages, Status> {
        let subscription = Subscription::read(request, &peer.scope()).map_err(status_of)?;
        let admitted = self.concurrency.admit_watch(peer);
        let admitted = admitted.map_err(|full| {
            Status::resource_exhausted(match full {
                Overload::Server => "too many streams: try again later",
                Overload::Caller => {
                    "too many streams on this connection: request several prefixes in one stream"
                }
            })
        })?;
        let group = self
            .answers
            .subscriptions
            .watch_group(subscription.selector.clone());
        let mut stream = WatchStream {
            publications: group.subscribe(),
            group,
            stream_state: Some(StreamState::new(subscription)),
            update: None,
            seen: 0,
            last: Instant::now(),
            peer: peer.clone(),
            watches: self.clone(),
            _admitted: admitted,
        };
        // The first comparison runs before the reply, so that its error is the status of the call.
        stream.compare(true).await?;
        let messages = unfold(Some(stream), |stream| async {
            let mut stream = stream?;
            match stream.next().await {
                Ok(message) => Some((Ok(message), Some(stream))),
                Err(status) => Some((Err(status), None)),
            }
        });
        Ok(Box::pin(messages))
    }
}

impl WatchStream {
    /// Waits for the next message: a part of an update, or a heartbeat.
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

    /// Compares what the stream has sent with the current snapshot and prepares the next update. If
    /// nothing changed, `is_due` decides whether an update without changes is sent.
    async fn compare(&mut self, is_due: bool) -> Result<(), Status> {
        // A CA that is no longer trusted also ends open streams.
        let authorized = self.peer.authorize(RpcService::Policies);
        authorized.map_err(AccessError::status)?;
        // Read before the snapshot is loaded: a publication in between is compared once more.
        let seen = *self.publications.borrow();
        let broken = || Status::internal("the stream failed: call again");
        let snapshot = self.watches.answers.subscriptions.snapshots().load();
        let snapshot =
            snapshot.ok_or_else(|| self.watches.answers.not_ready(&*self.peer.scope()))?;
        let mut stream_state = self.stream_state.take().ok_or_else(broken)?;
        let update = match stream_state.paths_of(&snapshot) {
            Some(paths) if paths.slots() <= MAX_INLINE_SLOTS => {
                stream_state.update(&snapshot, &paths, self.seen, is_due)
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

    /// Compares on a blocking thread, and lists the paths again if they may have changed.
    async fn compare_on_thread(
        &self,
        mut stream_state: StreamState,
        is_due: bool,
    ) -> Result<ComparisonTask, Status> {
        let permit = Arc::clone(&self.watches.listings).acquire_owned().await;
        let permit = permit.map_err(|_| stopping())?;
        let WatchHandler {
            answers, limits, ..
        } = self.watches.clone();
        let (group, seen, scope) = (Arc::clone(&self.group), self.seen, self.peer.scope());
        Ok(tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let update = match answers.subscriptions.list_paths(&group, limits.watch_paths) {
                Err(error) => Err(too_many(error)),
                Ok(None) => Err(answers.not_ready(&*scope)),
                Ok(Some(now)) => Ok(stream_state.update(&now.snapshot, &now.paths, seen, is_due)),
            };
            (stream_state, update)
        }))
    }
}

/// Waits for a publication after `seen` that touches the stream, and at least until `not_before`.
async fn wait_for_publication(
    publications: &mut watch::Receiver<u64>,
    seen: u64,
    not_before: Instant,
) {
    let published = publications
        .wait_for(|publication| *publication > seen)
        .await;
    // The stream owns the group, so the sender exists as long as the receiver.
    drop(published);
    tokio::time::sleep_until(not_before).await;
}

fn stopping() -> Status {
    Status::unavailable("the server is shutting down: call again with the resume token")
}

fn too_many(error: TooManyPaths) -> Status {
    Status::resource_exhausted(error.to_string())
}
