//! Lists and watches one kind.

use std::sync::Arc;
use std::time::Duration;

use kube::core::ApiResource;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Error, ResourceExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;

use super::listed_object::ListedObject;
use super::{Cluster, WatchFilter};
use crate::source::object::{InvalidObject, parse_object, too_deep, unreadable_object};
use entail_core::model::{GroupKind, Object, ObjectKey};

/// Objects per page, if the server does not stream lists.
const PAGE_SIZE: u32 = 500;

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
    /// The API server denies access to the kind.
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
    /// Whether only the target references of objects are kept.
    pub targets_only: bool,
    /// Number of the task.
    pub number: u64,
    pub tx: mpsc::Sender<WatchEvent>,
}

impl WatchEventSender {
    /// Sends an event; returns false if the receiver is gone.
    async fn send(&self, update: KindUpdate) -> bool {
        let event = WatchEvent {
            kind: self.kind.clone(),
            number: self.number,
            update,
        };
        self.tx.send(event).await.is_ok()
    }
}

/// Lists and watches a kind until the receiver of its events is gone.
pub(super) async fn watch_kind(cluster: Cluster, resource: ApiResource, sender: WatchEventSender) {
    let path = url_path(&resource);
    let api: Api<ListedObject> = Api::all_with(cluster.client.clone(), &resource);
    let paged = watcher::Config::default()
        .page_size(PAGE_SIZE)
        .any_semantic();
    let streaming = paged.clone().streaming_lists();
    let mut events = Box::pin(watch(api.clone(), streaming).backoff(ReconnectBackoff::default()));
    let mut is_streaming = true;
    let mut decoder = WatchDecoder {
        filter: Arc::clone(&cluster.filter),
        kind: sender.kind.clone(),
        targets_only: sender.targets_only,
        resource,
        listing: None,
        malformed: Vec::new(),
    };
    // After an error: the number of accepted watches at that time.
    let mut opened_at_error: Option<u64> = None;
    loop {
        let event = match opened_at_error {
            None => events.next().await,
            Some(opened) => tokio::select! {
                event = events.next() => event,
                () = cluster.calls.wait_for_watch(&path, opened) => {
                    opened_at_error = None;
                    // During a list, the end of the list marks the recovery.
                    if decoder.listing.is_none() && !sender.send(KindUpdate::Resumed).await {
                        return;
                    }
                    continue;
                }
            },
        };
        let updates = match event {
            None => return,
            Some(Ok(event)) => decoder.decode(event),
            // Not every API server streams lists: list in pages instead.
            Some(Err(error)) if is_streaming && rejects_streaming(&error) => {
                is_streaming = false;
                decoder.listing = None;
                events = Box::pin(
                    watch(api.clone(), paged.clone()).backoff(ReconnectBackoff::default()),
                );
                continue;
            }
            Some(Err(error)) => {
                opened_at_error = Some(cluster.calls.opened(&path));
                update_of_error(&error).into_iter().collect()
            }
        };
        for update in updates {
            if !sender.send(update).await {
                return;
            }
        }
    }
}

/// Converts the events of a watch to [`KindUpdate`]s.
struct WatchDecoder {
    filter: Arc<WatchFilter>,
    kind: GroupKind,
    /// Whether only the target references of objects are kept.
    targets_only: bool,
    resource: ApiResource,
    /// The objects of the current list so far.
    listing: Option<Vec<Arc<Object>>>,
    /// Malformed objects of the current list, which are reported after it.
    malformed: Vec<KindUpdate>,
}

impl WatchDecoder {
    /// Converts one event.
    fn decode(&mut self, event: Event<ListedObject>) -> Vec<KindUpdate> {
        let mut updates = Vec::new();
        match event {
            Event::Init => {
                self.listing = Some(Vec::new());
                self.malformed.clear();
                updates.push(KindUpdate::Listing);
            }
            Event::InitApply(object) => match (self.parse(object), &mut self.listing) {
                (Ok(Some(object)), Some(listing)) if self.filter.matches(&object) => {
                    listing.push(object);
                }
                (Ok(_), _) => {}
                (Err(message), _) => self.malformed.push(KindUpdate::Malformed(message)),
            },
            Event::InitDone => {
                updates.extend(self.listing.take().map(KindUpdate::Listed));
                updates.append(&mut self.malformed);
            }
            Event::Apply(object) => match self.parse(object) {
                // The object may have matched the filter before.
                Ok(Some(object)) if !self.filter.matches(&object) => {
                    updates.push(KindUpdate::Deleted(object.key.clone()));
                }
                Ok(object) => updates.extend(object.map(KindUpdate::Applied)),
                Err(message) => updates.push(KindUpdate::Malformed(message)),
            },
            Event::Delete(object) => updates.push(KindUpdate::Deleted(ObjectKey::new(
                self.kind.clone(),
                &*object.namespace().unwrap_or_default(),
                &*object.name_any(),
            ))),
        }
        updates
    }

    /// Parses an object and drops what is not needed of it.
    fn parse(&self, object: ListedObject) -> Result<Option<Arc<Object>>, String> {
        let object = parse(object, &self.resource)?;
        let reduced = object.map(|object| match self.targets_only {
            true => object.targets_only(),
            false => object,
        });
        Ok(reduced.map(Arc::new))
    }
}

/// The default backoff of kube, with jitter, divided by six: a server that is available again is
/// reconnected to within ten seconds.
#[derive(Default)]
struct ReconnectBackoff(DefaultBackoff);

impl Iterator for ReconnectBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next().map(|delay| delay / 6)
    }
}

impl Backoff for ReconnectBackoff {
    fn reset(&mut self) {
        self.0.reset();
    }
}

/// Reports whether the server does not support streaming lists: it rejects the parameters of the
/// request.
fn rejects_streaming(error: &watcher::Error) -> bool {
    let is_invalid = |code: u16| matches!(code, 400 | 422);
    match error {
        watcher::Error::WatchStartFailed(Error::Api(status)) => is_invalid(status.code),
        _ => false,
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

/// Converts an error of a watch; `None` if the watch recovers from it by itself.
fn update_of_error(error: &watcher::Error) -> Option<KindUpdate> {
    use watcher::Error::{
        InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed,
    };
    match error {
        InitialListFailed(Error::Api(status)) | WatchStartFailed(Error::Api(status))
            if status.is_forbidden() =>
        {
            Some(KindUpdate::Forbidden(status.message.clone()))
        }
        // The resource version has expired: a new list follows.
        WatchError(status) if status.code == 410 => None,
        WatchError(status) if status.code == 403 => {
            Some(KindUpdate::Forbidden(status.message.clone()))
        }
        WatchError(status) => Some(KindUpdate::Error(status.message.clone())),
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
            Some(KindUpdate::Error(error_chain(error)))
        }
        NoResourceVersion => Some(KindUpdate::Error(error.to_string())),
    }
}

/// Formats an error with its causes; a cause that its parent already includes is omitted.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = error.source();
    }
    text
}

/// Parses an object. Items of lists have no `apiVersion` and `kind`, so these are added first. One that cannot be read is
/// known by its name, if it has one.
fn parse(listed: ListedObject, resource: &ApiResource) -> Result<Option<Object>, String> {
    let is_cut = listed.is_cut;
    let name = listed.name_any();
    let mut value = listed.value;
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), resource.api_version.clone().into());
        fields.insert("kind".to_owned(), resource.kind.clone().into());
    }
    let message = |reason: &str| format!("cannot be read: {reason}");
    match parse_object(value, None) {
        Ok(object) => Ok(object.map(|object| match is_cut {
            true => Object {
                unreadable: Some(message(&format!("it is {}", too_deep())).into()),
                ..object
            },
            false => object,
        })),
        Err(InvalidObject {
            key: Some(key),
            message: reason,
        }) => Ok(Some(unreadable_object(
            key,
            &resource.api_version,
            &message(&reason),
        ))),
        Err(invalid) => Err(format!("{name}: {}", invalid.message)),
    }
}
