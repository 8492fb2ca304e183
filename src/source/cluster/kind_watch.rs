//! Lists and watches one kind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kube::api::{ListParams, WatchParams};
use kube::core::{ApiResource, Status, WatchEvent as ApiEvent};
use kube::{Api, Error, Resource};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::backoff::{RetryBackoff, random_up_to};
use super::connections::WatchConnection;
use super::denial::Denials;
use super::errors::{error_chain, status_message};
use super::listed_object::ListedObject;
use super::listed_state::{ListedState, ReadVersion, is_ahead, is_older};
use super::object_decoder::ObjectDecoder;
use super::server_health::PauseEnd;
use super::{Cluster, ObjectParts};
use entail_core::model::{GroupKind, Object, ObjectKey};

/// Objects per page, if the server does not stream lists.
const PAGE_SIZE: u32 = 500;
/// The first lists of the kinds of a process begin within this time.
const START_JITTER: Duration = Duration::from_millis(30);
/// A watch that ended after its time is opened again within this time.
const RENEWAL_JITTER: Duration = Duration::from_millis(100);
/// A watch that lives for this long is stable: if it ends then, it did not end early.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// After a failure, a watch counts as open if no error arrives within this time: an expired resource version is an event
/// of an accepted watch.
const SETTLE_TIME: Duration = Duration::from_millis(250);
/// The longest delay while a denial is not confirmed.
const MAX_DENIED_DELAY: Duration = Duration::from_secs(2);
/// The server ends a watch after this many seconds, and up to a quarter more.
const WATCH_SECONDS: u32 = 240;
/// Annotation of the bookmark that ends a streamed list.
const END_OF_LIST: &str = "k8s.io/initial-events-end";

/// An event of the watch of a kind.
#[derive(Debug)]
pub(super) enum KindUpdate {
    /// A new list has begun: events may have been missed.
    Listing,
    /// A complete list of all objects.
    Listed(Vec<Arc<Object>>),
    /// An object was created or changed.
    Applied(Arc<Object>),
    /// An object was deleted.
    Deleted(ObjectKey),
    /// The API server denies access to the kind, which is not confirmed: a starting server denies everything.
    Denied(String),
    /// The API server denies access to the kind, which is confirmed. The next read is a list.
    Forbidden(String),
    /// The kind cannot be read at the moment.
    Error(String),
    /// The watch was opened again after an error.
    Resumed,
    /// An object failed to parse.
    Malformed(String),
}

/// An event of a watch task.
#[derive(Debug)]
pub(super) struct WatchEvent {
    pub kind: GroupKind,
    /// Number of the task.
    pub number: u64,
    pub update: KindUpdate,
}

/// Sends the events of a watch task.
#[derive(Clone, Debug)]
pub(super) struct WatchEventSender {
    pub kind: GroupKind,
    /// The parts of objects that are kept.
    pub parts: ObjectParts,
    /// Number of the task.
    pub number: u64,
    pub tx: mpsc::Sender<WatchEvent>,
}

impl WatchEventSender {
    async fn send(&self, update: KindUpdate) -> Result<(), Interruption> {
        let event = WatchEvent {
            kind: self.kind.clone(),
            number: self.number,
            update,
        };
        let sent = self.tx.send(event).await;
        sent.map_err(|_| Interruption::ReceiverGone)
    }
}

/// Why a list or a watch ended.
#[derive(Debug, thiserror::Error)]
enum Interruption {
    /// The receiver of the events is gone.
    #[error("the receiver of the events is gone")]
    ReceiverGone,
    /// The watch ended after its time, or was silent for long: it is opened again at once.
    #[error("the watch is renewed")]
    Renewal,
    /// The server no longer has the events since the last one: a new list is needed.
    #[error("the version of the last event has expired")]
    Expired,
    /// A list cannot be as new as what was read before: the server lags behind another one, or its storage was restored.
    #[error("{0}")]
    TooOld(String),
    /// The server does not stream lists.
    #[error("the server does not stream lists")]
    NoStreaming,
    /// The server denies the verb.
    #[error("{0} is denied: {1}")]
    Denied(&'static str, String),
    /// The list or watch ended early, or failed.
    #[error("{0}")]
    Failed(String),
}

type Events = BoxStream<'static, kube::Result<ApiEvent<ListedObject>>>;

/// The state of the watch of a kind.
struct KindWatcher {
    cluster: Cluster,
    api: Api<ListedObject>,
    /// Counts for its connection.
    _connection: WatchConnection,
    path: String,
    sender: WatchEventSender,
    decoder: ObjectDecoder,
    backoff: RetryBackoff,
    denials: Denials,
    /// Whether lists are streamed.
    is_streaming: bool,
    /// Version of the last event; without it, the kind is listed.
    version: Option<String>,
    /// The version of the objects that the receiver has.
    read_version: ReadVersion,
    /// What the next list may show.
    listed_state: ListedState,
    /// Whether the objects of the kind are known.
    was_read: bool,
    /// Whether a failure was reported since the kind was last read.
    has_failed: bool,
}

/// What is known of a kind before it is watched.
#[derive(Clone, Debug)]
pub(super) struct KnownState {
    /// Whether the receiver of the events has objects of the kind, from a checkpoint or another watch.
    pub was_read: bool,
    /// The version of these objects; the watch keeps it up to date.
    pub version: ReadVersion,
}

/// Lists and watches a kind until the receiver of its events is gone.
pub(super) async fn watch_kind(
    cluster: Cluster,
    resource: ApiResource,
    sender: WatchEventSender,
    known: KnownState,
) {
    sleep(random_up_to(START_JITTER)).await;
    let connection = cluster.connections.acquire();
    let mut watcher = KindWatcher {
        api: Api::all_with(connection.client.clone(), &resource),
        _connection: connection,
        path: url_path(&resource),
        decoder: ObjectDecoder {
            filter: Arc::clone(&cluster.filter),
            kind: sender.kind.clone(),
            parts: sender.parts,
            resource,
            listing: BTreeMap::new(),
            malformed: Vec::new(),
        },
        sender,
        backoff: RetryBackoff::default(),
        denials: Denials::new(cluster.timeouts.forbidden_after),
        is_streaming: true,
        version: None,
        listed_state: known.version.listed_state(),
        read_version: known.version,
        was_read: known.was_read,
        has_failed: false,
        cluster,
    };
    loop {
        let read = match watcher.version.clone() {
            Some(version) => watcher.resume(&version).await,
            None if watcher.is_streaming => watcher.stream_list().await,
            None => watcher.list_pages().await,
        };
        let recovered = match read {
            Ok(()) => Ok(()),
            Err(interruption) => watcher.recover(interruption).await,
        };
        if recovered.is_err() {
            return;
        }
    }
}

impl KindWatcher {
    /// Opens a watch that begins with all objects, and follows it.
    async fn stream_list(&mut self) -> Result<(), Interruption> {
        let params = WatchParams::streaming_lists().timeout(watch_seconds());
        let mut events = match self.open(&params, self.listed_state.version()).await {
            // The server rejects the parameters: list in pages instead.
            Ok(Err(Error::Api(status))) if matches!(status.code, 400 | 422) => {
                return Err(Interruption::NoStreaming);
            }
            opened => opened?.map_err(|error| list_interruption(error, "watch"))?,
        };
        self.begin_list().await?;
        loop {
            let Ok(next) = timeout(self.cluster.timeouts.request, events.next()).await else {
                return Err(no_answer(self.cluster.timeouts.request));
            };
            match next {
                // The server sends what changes while it lists, too.
                Some(Ok(ApiEvent::Added(object) | ApiEvent::Modified(object))) => {
                    self.decoder.list(object);
                }
                Some(Ok(ApiEvent::Deleted(object))) => self.decoder.unlist(&object),
                Some(Ok(ApiEvent::Bookmark(bookmark))) => {
                    if bookmark.metadata.annotations.contains_key(END_OF_LIST) {
                        self.end_list(bookmark.metadata.resource_version).await?;
                        return self.follow(events).await;
                    }
                }
                Some(Ok(ApiEvent::Error(status))) => {
                    return Err(list_interruption(Error::Api(status), "watch"));
                }
                Some(Err(error)) => return Err(interruption(error, "watch")),
                None => return Err(Interruption::Failed("the list ended early".to_owned())),
            }
        }
    }

    /// Lists all objects in pages.
    async fn list_pages(&mut self) -> Result<(), Interruption> {
        self.begin_list().await?;
        let limit = self.cluster.timeouts.page();
        let mut params = ListParams {
            limit: Some(PAGE_SIZE),
            version_match: self.listed_state.version_match(),
            resource_version: Some(self.listed_state.version().to_owned()),
            ..ListParams::default()
        };
        loop {
            let Ok(page) = timeout(limit, self.api.list(&params)).await else {
                return Err(no_answer(limit));
            };
            let page = page.map_err(|error| list_interruption(error, "list"))?;
            page.items
                .into_iter()
                .for_each(|item| self.decoder.list(item));
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                let version = page.metadata.resource_version.unwrap_or_default();
                return self.end_list(version).await;
            }
        }
    }

    /// Opens the watch again after the last event, and follows it.
    async fn resume(&mut self, version: &str) -> Result<(), Interruption> {
        let params = WatchParams {
            bookmarks: true,
            timeout: Some(watch_seconds()),
            ..WatchParams::default()
        };
        let opened = self.open(&params, version).await;
        let events = opened?.map_err(|error| interruption(error, "watch"))?;
        self.denials.clear();
        self.follow(events).await
    }

    /// Opens a watch: waits for the headers of the reply.
    async fn open(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> Result<Result<Events, Error>, Interruption> {
        let limit = self.cluster.timeouts.request;
        match timeout(limit, self.api.watch(params, version)).await {
            Ok(opened) => Ok(opened.map(StreamExt::boxed)),
            Err(_) => Err(no_answer(limit)),
        }
    }

    /// Follows a watch until it ends.
    async fn follow(&mut self, events: Events) -> Result<(), Interruption> {
        let opened = Instant::now();
        let ended = self.follow_events(events).await;
        let is_stable = opened.elapsed() >= STABLE_AFTER;
        if is_stable {
            self.backoff.reset();
        }
        match ended {
            Ok(()) if is_stable => Err(Interruption::Renewal),
            Ok(()) => Err(Interruption::Failed(format!(
                "the watch ended within {} s",
                STABLE_AFTER.as_secs()
            ))),
            Err(interruption) => Err(interruption),
        }
    }

    /// Follows a watch; returns `Ok` if the server ends it.
    async fn follow_events(&mut self, mut events: Events) -> Result<(), Interruption> {
        let silence = self.cluster.timeouts.watch_silence();
        loop {
            let limit = if self.has_failed {
                SETTLE_TIME
            } else {
                silence
            };
            let event = match timeout(limit, events.next()).await {
                Err(_) if self.has_failed => {
                    self.resumed().await?;
                    continue;
                }
                Err(_) => return Err(self.after_silence().await),
                Ok(None) => return Ok(()),
                Ok(Some(event)) => event.map_err(|error| interruption(error, "watch"))?,
            };
            let update = match event {
                ApiEvent::Error(status) => return Err(denial_or_failure(&status, "watch")),
                ApiEvent::Bookmark(bookmark) => {
                    self.set_version(bookmark.metadata.resource_version);
                    None
                }
                ApiEvent::Added(object) | ApiEvent::Modified(object) => {
                    self.follow_version(&object)?;
                    self.decoder.applied(object)
                }
                ApiEvent::Deleted(object) => {
                    self.follow_version(&object)?;
                    Some(self.decoder.deleted(&object))
                }
            };
            if self.has_failed {
                self.resumed().await?;
            }
            if let Some(update) = update {
                self.sender.send(update).await?;
            }
        }
    }

    fn follow_version(&mut self, object: &ListedObject) -> Result<(), Interruption> {
        match object.meta().resource_version.clone() {
            Some(version) => {
                self.set_version(version);
                Ok(())
            }
            None => {
                self.version = None;
                let message = "an event has no resource version";
                Err(Interruption::Failed(message.to_owned()))
            }
        }
    }

    /// Records the version up to which the kind is read.
    fn set_version(&mut self, version: String) {
        self.read_version.set(&version);
        self.version = Some(version);
    }

    async fn begin_list(&mut self) -> Result<(), Interruption> {
        self.decoder.begin_list();
        self.sender.send(KindUpdate::Listing).await
    }

    async fn end_list(&mut self, version: String) -> Result<(), Interruption> {
        if version.is_empty() {
            let message = "the list has no resource version";
            return Err(Interruption::Failed(message.to_owned()));
        }
        if !self.listed_state.accepts(&version) {
            let known = self.listed_state.version();
            let message = format!("the list has version {version}, and {known} was read before");
            return Err(Interruption::TooOld(message));
        }
        self.set_version(version);
        self.was_read = true;
        self.has_failed = false;
        self.denials.clear();
        for update in self.decoder.end_list() {
            self.sender.send(update).await?;
        }
        Ok(())
    }

    async fn resumed(&mut self) -> Result<(), Interruption> {
        self.has_failed = false;
        self.sender.send(KindUpdate::Resumed).await
    }

    /// Reports an interruption, and waits until the next attempt is due. Returns an error if there shall be none.
    async fn recover(&mut self, interruption: Interruption) -> Result<(), Interruption> {
        tracing::debug!(kind = %self.sender.kind, reason = %interruption, "list or watch interrupted");
        let mut max_delay = Duration::MAX;
        match interruption {
            Interruption::ReceiverGone => return Err(Interruption::ReceiverGone),
            Interruption::NoStreaming => {
                self.is_streaming = false;
                return Ok(());
            }
            Interruption::Renewal => {
                sleep(random_up_to(RENEWAL_JITTER)).await;
                return Ok(());
            }
            Interruption::Expired => {
                self.forget_version();
                self.sender.send(KindUpdate::Listing).await?;
            }
            Interruption::TooOld(message) => {
                self.listed_state = ListedState::Newest;
                self.begin_recovery();
                self.sender.send(KindUpdate::Error(message)).await?;
            }
            Interruption::Denied(verb, message) => {
                self.begin_recovery();
                if !self.report_denial(verb, message).await? {
                    max_delay = MAX_DENIED_DELAY;
                }
            }
            Interruption::Failed(message) => {
                self.begin_recovery();
                self.sender.send(KindUpdate::Error(message)).await?;
            }
        }
        let delay = self.backoff.next_delay().min(max_delay);
        if self.cluster.health.pause(delay).await == PauseEnd::Recovered {
            self.backoff.reset();
        }
        Ok(())
    }

    /// Lists the kind next, and not an older state than is known.
    fn forget_version(&mut self) {
        if let Some(version) = self.version.take() {
            self.listed_state = ListedState::NotOlderThan(version);
        }
    }

    /// How to go on after a silence, by the newest version of the server: if its storage was restored from a backup, a watch
    /// that follows a version of before is accepted and remains silent until its count is as high again.
    async fn after_silence(&mut self) -> Interruption {
        let limit = self.cluster.timeouts.request;
        let params = ListParams::default().limit(1);
        let newest = match timeout(limit, self.api.list(&params)).await {
            Ok(Ok(list)) => list.metadata.resource_version.unwrap_or_default(),
            Ok(Err(error)) => return interruption(error, "list"),
            Err(_) => return no_answer(limit),
        };
        match self.version.take_if(|version| is_older(&newest, version)) {
            Some(version) => {
                tracing::warn!(kind = %self.sender.kind, version, newest, "the API server counts anew: listing again");
                self.listed_state = ListedState::Newest;
                Interruption::Expired
            }
            None => Interruption::Renewal,
        }
    }

    fn begin_recovery(&mut self) {
        self.has_failed = true;
        self.cluster.calls.record_failure(&self.path);
        self.cluster.health.suspect();
    }

    /// Reports a denial, and whether it is confirmed.
    async fn report_denial(
        &mut self,
        verb: &'static str,
        message: String,
    ) -> Result<bool, Interruption> {
        let denied = KindUpdate::Denied(message.clone());
        self.sender.send(denied).await?;
        let (health, resource) = (&self.cluster.health, &self.decoder.resource);
        let confirmed = self
            .denials
            .is_confirmed(health, resource, verb, self.was_read);
        let is_confirmed = confirmed.await;
        if is_confirmed {
            // The receiver drops objects of policies, so the kind is listed once it may be read again.
            self.forget_version();
            self.sender.send(KindUpdate::Forbidden(message)).await?;
        }
        Ok(is_confirmed)
    }
}

fn no_answer(limit: Duration) -> Interruption {
    Interruption::Failed(format!(
        "the API server did not answer within {} s",
        limit.as_secs_f32()
    ))
}

/// A time after which the server ends a watch. It differs between kinds, so that they are not all resumed at once.
fn watch_seconds() -> u32 {
    let extra = random_up_to(Duration::from_secs(u64::from(WATCH_SECONDS / 4)));
    WATCH_SECONDS.saturating_add(u32::try_from(extra.as_secs()).unwrap_or_default())
}

fn interruption(error: Error, verb: &'static str) -> Interruption {
    match error {
        Error::Api(status) => denial_or_failure(&status, verb),
        error => Interruption::Failed(error_chain(&error)),
    }
}

/// Like [`interruption`], of a request for a list.
fn list_interruption(error: Error, verb: &'static str) -> Interruption {
    match error {
        Error::Api(status) if is_ahead(&status) => Interruption::TooOld(status_message(&status)),
        error => interruption(error, verb),
    }
}

fn denial_or_failure(status: &Status, verb: &'static str) -> Interruption {
    match status.code {
        403 => Interruption::Denied(verb, status.message.clone()),
        410 => Interruption::Expired,
        _ => Interruption::Failed(status_message(status)),
    }
}

/// Returns the URL path of a resource over all namespaces.
pub(super) fn url_path(resource: &ApiResource) -> String {
    let root = if resource.group.is_empty() {
        "/api"
    } else {
        "/apis"
    };
    format!("{root}/{}/{}", resource.api_version, resource.plural)
}
