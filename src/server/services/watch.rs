//! Streams of `WatchEffectivePolicies`. A stream sleeps until a publication touches its paths. Then
//! it sends the difference between what it has sent and the current snapshot. A caller that reads
//! slowly therefore gets fewer updates and always ends at the current state. Streams share what they
//! are sending, and the slowest ends if the streams of its caller hold too much.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::stream::unfold;
use http::HeaderMap;
use http_body::Frame;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use crate::api::v1;
use crate::background;
use crate::server::access::peer::{AccessError, Peer};
use crate::server::admission::concurrency::{ConcurrencyLimiter, Overload, RequestPermits};
use crate::server::services::listings::Listings;
use crate::server::services::status::status_of;
use crate::server::transport::body::FramedBody;
use crate::server::transport::request_counters::RpcService;
use crate::server::{Limits, ServiceContext};
use crate::subscription::{
    Exceeded, StreamDelivery, StreamState, StreamUpdate, Subscription, TooManyPaths,
};

/// Maximum number of distinct answers that are compared on the async worker. More would block it.
const MAX_INLINE_SLOTS: usize = 1_000;

/// A comparison on a blocking thread: returns the stream state that it was given, and the update.
type ComparisonTask = JoinHandle<(StreamState, Result<Option<StreamUpdate>, Status>)>;
/// The messages of a stream: an item each time that the next one is in its [`StreamDelivery`].
type Messages = Pin<Box<dyn Stream<Item = Result<(), Status>> + Send>>;

/// The body of the reply of a stream: its messages in the frames of gRPC, in pieces that all streams
/// which send the same message share.
struct WatchBody {
    messages: Messages,
    delivery: Arc<StreamDelivery>,
    is_done: bool,
}

/// Creates the streams, within the limits of the server.
#[derive(Clone, Debug)]
pub(in crate::server) struct WatchHandler {
    answers: ServiceContext,
    concurrency: Arc<ConcurrencyLimiter>,
    listings: Arc<Listings>,
    limits: Arc<Limits>,
    stop: CancellationToken,
}

/// One open stream.
struct WatchStream {
    watches: WatchHandler,
    publications: watch::Receiver<u64>,
    delivery: Arc<StreamDelivery>,
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
            listings: Listings::new(),
            limits: Arc::new(limits.clone()),
            stop,
        }
    }

    /// Opens a stream.
    pub async fn follow(
        &self,
        request: v1::WatchEffectivePoliciesRequest,
        peer: &Peer,
    ) -> Result<FramedBody, Status> {
        let subscriptions = &self.answers.subscriptions;
        let admitted = self.concurrency.admit_watch(peer);
        let admitted = admitted.map_err(|full| {
            Status::resource_exhausted(match full {
                Overload::Server => "too many streams: try again later",
                Overload::Caller | Overload::Probes => {
                    "too many streams on this connection: request several prefixes in one stream"
                }
            })
        })?;
        let subscription = Subscription::read(&request, &peer.scope(), subscriptions);
        let subscription = subscription.map_err(status_of)?;
        // The stream waits without its request.
        drop(request);
        let publications = subscription.group().subscribe();
        let delivery = Arc::new(StreamDelivery::new(
            subscriptions.ledger(),
            self.limits.watch_holdings(),
            Arc::clone(peer.caller()),
            StreamState::new(subscription),
        ));
        let mut stream = WatchStream {
            publications,
            delivery: Arc::clone(&delivery),
            seen: 0,
            last: Instant::now(),
            peer: peer.clone(),
            watches: self.clone(),
            _admitted: admitted,
        };
        // The first comparison runs before the reply, so that its error is the status of the call.
        let first = stream.compare(true).await;
        first.inspect_err(|status| delivery.end(reason(status)))?;
        let messages = unfold(Some(stream), |stream| async {
            let mut stream = stream?;
            match stream.next().await {
                Ok(()) => Some((Ok(()), Some(stream))),
                Err(status) => Some((Err(status), None)),
            }
        });
        Ok(FramedBody::new(WatchBody {
            messages: Box::pin(messages),
            delivery,
            is_done: false,
        }))
    }
}

impl WatchStream {
    /// Waits for the next message: a part of an update, or a heartbeat.
    async fn next(&mut self) -> Result<(), Status> {
        loop {
            if self.delivery.next_message().map_err(exceeded)? {
                self.last = Instant::now();
                return Ok(());
            }
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
        let stream_state = self.delivery.take_state().map_err(exceeded)?;
        let mut stream_state = stream_state.ok_or_else(broken)?;
        let update = match stream_state.paths_of(&snapshot) {
            Some(paths) if paths.slots() <= MAX_INLINE_SLOTS && !paths.is_step_in_progress() => {
                stream_state.update(&snapshot, &paths, self.seen, is_due)
            }
            _ => {
                let thread = self.compare_on_thread(stream_state, is_due).await?;
                let (back, update) = thread.await.map_err(|_| broken())?;
                stream_state = back;
                update?
            }
        };
        self.seen = seen;
        self.delivery
            .put_state(stream_state, update)
            .map_err(exceeded)
    }

    /// Compares on a blocking thread, and lists the paths again if they may have changed.
    async fn compare_on_thread(
        &self,
        mut stream_state: StreamState,
        is_due: bool,
    ) -> Result<ComparisonTask, Status> {
        let listing = self.watches.listings.begin(self.peer.caller()).await;
        let listing = listing.map_err(|_| stopping())?;
        let WatchHandler {
            answers, limits, ..
        } = self.watches.clone();
        let group = Arc::clone(stream_state.group());
        let (seen, scope) = (self.seen, self.peer.scope());
        Ok(background::spawn_blocking(move || {
            let _listing = listing;
            let update = match answers
                .subscriptions
                .list_paths(&group, limits.watch_paths.per_watch)
            {
                Err(error) => Err(too_many(error)),
                Ok(None) => Err(answers.not_ready(&*scope)),
                Ok(Some(now)) => Ok(stream_state.update(&now.snapshot, &now.paths, seen, is_due)),
            };
            (stream_state, update)
        }))
    }
}

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_done {
            return Poll::Ready(None);
        }
        let status = loop {
            match self.delivery.next_piece() {
                Ok(Some(piece)) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Ok(None) => {}
                Err(error) => break exceeded(error),
            }
            match ready!(self.messages.as_mut().poll_next(context)) {
                Some(Ok(())) => {}
                Some(Err(status)) => break status,
                None => break Status::internal("the stream failed: call again"),
            }
        };
        self.is_done = true;
        self.delivery.end(reason(&status));
        let mut trailers = HeaderMap::new();
        Poll::Ready(Some(match status.add_header(&mut trailers) {
            Ok(()) => Ok(Frame::trailers(trailers)),
            Err(error) => Err(error),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.is_done
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
    // The state of the stream owns the group. If the stream was ended with its state, the next comparison says so.
    drop(published);
    tokio::time::sleep_until(not_before).await;
}

fn stopping() -> Status {
    Status::unavailable("the server is shutting down: call again with the resume token")
}

fn too_many(error: TooManyPaths) -> Status {
    Status::resource_exhausted(error.to_string())
}

fn exceeded(error: Exceeded) -> Status {
    Status::resource_exhausted(error.to_string())
}

/// The value of the label `reason` for a stream that ends with a status.
fn reason(status: &Status) -> &'static str {
    match status.code() {
        Code::Unavailable => "unavailable",
        Code::Unauthenticated | Code::PermissionDenied => "access",
        Code::ResourceExhausted => "paths_of_stream",
        _ => "internal",
    }
}
