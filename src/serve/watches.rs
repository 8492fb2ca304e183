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

use super::load::{Admitted, Full, Load};
use super::peer::{Peer, Refusal};
use super::status::status_of;
use super::tally::Asked;
use super::{Answers, Limits};
use crate::api::{EncodedWatchEffectivePoliciesResponse, v1};
use crate::insight::{Ledger, Subscription, Update};
use crate::snapshot::{TooManyPaths, View};

/// Views whose paths are listed at once; listing takes a thread.
const LISTINGS: usize = 2;
/// Distinct answers that are compared in place; more would hold up a worker.
const FEW_SLOTS: usize = 1_000;

type Message = Result<EncodedWatchEffectivePoliciesResponse, Status>;
/// What a thread found out, and the ledger that it was given.
type Compared = JoinHandle<(Ledger, Result<Option<Update>, Status>)>;
/// The messages of a stream.
pub(super) type Messages = Pin<Box<dyn Stream<Item = Message> + Send>>;

/// All streams that follow paths.
#[derive(Clone, Debug)]
pub(super) struct Watches {
    answers: Answers,
    load: Arc<Load>,
    listings: Arc<Semaphore>,
    limits: Arc<Limits>,
    stop: CancellationToken,
}

/// A stream.
struct Watching {
    watches: Watches,
    view: Arc<View>,
    told: watch::Receiver<u64>,
    /// Given away while a thread compares many paths.
    ledger: Option<Ledger>,
    update: Option<Update>,
    /// The last publication whose changes were told.
    seen: u64,
    /// When something was told last.
    last: Instant,
    peer: Peer,
    _admitted: Admitted,
}

impl Watches {
    pub fn new(
        answers: Answers,
        load: Arc<Load>,
        limits: &Limits,
        stop: CancellationToken,
    ) -> Self {
        Self {
            answers,
            load,
            listings: Arc::new(Semaphore::new(LISTINGS)),
            limits: Arc::new(limits.clone()),
            stop,
        }
    }

    /// Begins a stream.
    pub async fn follow(
        &self,
        request: &v1::WatchEffectivePoliciesRequest,
        peer: &Peer,
    ) -> Result<Messages, Status> {
        let subscription = Subscription::read(request, &peer.scope()).map_err(status_of)?;
        let admitted = self.load.admit_watch(peer);
        let admitted = admitted.map_err(|full| {
            Status::resource_exhausted(match full {
                Full::Server => "too many streams: try later",
                Full::Caller => {
                    "too many streams on this connection: follow several prefixes in one stream"
                }
            })
        })?;
        let view = self.answers.snapshots.view(subscription.followed.clone());
        let mut watching = Watching {
            told: view.told(),
            view,
            ledger: Some(Ledger::new(subscription)),
            update: None,
            seen: 0,
            last: Instant::now(),
            peer: peer.clone(),
            watches: self.clone(),
            _admitted: admitted,
        };
        // What is wrong with the request is its status, not that of a stream.
        watching.look(true).await?;
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

impl Watching {
    /// The next message, as soon as there is something to tell.
    async fn next(&mut self) -> Message {
        loop {
            if let Some(message) = self.update.as_mut().and_then(Update::next_message) {
                self.last = Instant::now();
                return Ok(message);
            }
            self.update = None;
            let Limits {
                watch_heartbeat,
                watch_pause,
                ..
            } = *self.watches.limits;
            tokio::select! {
                biased;
                () = self.watches.stop.cancelled() => return Err(stopping()),
                () = touched(&mut self.told, self.seen, self.last + watch_pause) => {
                    self.look(false).await?;
                }
                () = tokio::time::sleep_until(self.last + watch_heartbeat) => {
                    self.look(true).await?;
                }
            }
        }
    }

    /// Compares what the caller was told with the current snapshot. What has changed is told next;
    /// if nothing has, `is_due` says whether that is told.
    async fn look(&mut self, is_due: bool) -> Result<(), Status> {
        // A CA that is trusted no more counts for streams that have begun, too.
        let may = self.peer.may(Asked::Policies);
        may.map_err(Refusal::status)?;
        // Read before the snapshot is loaded: what is published meanwhile is looked at once more.
        let seen = *self.told.borrow();
        let broken = || Status::internal("the stream is broken: call again");
        let snapshot = self.watches.answers.snapshots.load();
        let snapshot =
            snapshot.ok_or_else(|| self.watches.answers.not_ready(&*self.peer.scope()))?;
        let mut ledger = self.ledger.take().ok_or_else(broken)?;
        let update = match ledger.rows_of(&snapshot) {
            Some(rows) if rows.slots() <= FEW_SLOTS => {
                ledger.update(&snapshot, &rows, self.seen, is_due)
            }
            _ => {
                let thread = self.listed(ledger, is_due).await?;
                let (back, update) = thread.await.map_err(|_| broken())?;
                ledger = back;
                update?
            }
        };
        self.ledger = Some(ledger);
        self.update = update;
        self.seen = seen;
        Ok(())
    }

    /// The same on a thread of its own, listing the paths anew if they may be others.
    async fn listed(&self, mut ledger: Ledger, is_due: bool) -> Result<Compared, Status> {
        let turn = Arc::clone(&self.watches.listings).acquire_owned().await;
        let turn = turn.map_err(|_| stopping())?;
        let Watches {
            answers, limits, ..
        } = self.watches.clone();
        let (view, seen, scope) = (Arc::clone(&self.view), self.seen, self.peer.scope());
        Ok(tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let update = match answers.snapshots.rows(&view, limits.watch_paths) {
                Err(error) => Err(too_many(error)),
                Ok(None) => Err(answers.not_ready(&*scope)),
                Ok(Some(now)) => Ok(ledger.update(&now.snapshot, &now.rows, seen, is_due)),
            };
            (ledger, update)
        }))
    }
}

/// Done once something was published that touches the stream, but not before a time.
async fn touched(told: &mut watch::Receiver<u64>, seen: u64, not_before: Instant) {
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
