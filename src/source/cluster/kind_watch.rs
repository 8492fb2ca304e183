//! Following one kind.

use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Error, ResourceExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;

use super::{Cluster, WatchFilter};
use crate::source::object::parse_object;
use entail_core::model::{GroupKind, Object, ObjectKey};

/// Objects of a page, where the server streams no lists.
const PAGE: u32 = 500;

/// What a kind's watch says.
#[derive(Debug)]
pub(super) enum KindUpdate {
    /// All objects will be said anew: something may have been missed.
    Listing,
    /// All objects there are.
    Listed(Vec<Arc<Object>>),
    /// An object is new or different.
    Applied(Arc<Object>),
    /// An object is gone.
    Deleted(ObjectKey),
    /// It may not be read.
    Forbidden(String),
    /// It cannot be read now.
    Error(String),
    /// A watch was opened again.
    Resumed,
    /// An object that is none.
    Malformed(String),
}

/// A word of a task that follows a kind.
#[derive(Debug)]
pub(super) struct WatchEvent {
    pub kind: GroupKind,
    /// The number of the task.
    pub number: u64,
    pub update: KindUpdate,
}

/// Where the words of a task go.
#[derive(Clone, Debug)]
pub(super) struct WatchEventSender {
    pub kind: GroupKind,
    pub number: u64,
    pub tx: mpsc::Sender<WatchEvent>,
}

impl WatchEventSender {
    /// Whether somebody still listens.
    async fn send(&self, said: KindUpdate) -> bool {
        let word = WatchEvent {
            kind: self.kind.clone(),
            number: self.number,
            update: said,
        };
        self.tx.send(word).await.is_ok()
    }
}

/// Follows a kind until nobody listens any more.
pub(super) async fn follow(cluster: Cluster, resource: ApiResource, sender: WatchEventSender) {
    let path = url_path(&resource);
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let pages = watcher::Config::default().page_size(PAGE).any_semantic();
    let streamed = pages.clone().streaming_lists();
    let mut events = Box::pin(watch(api.clone(), streamed).backoff(ReconnectBackoff::default()));
    let mut is_streamed = true;
    let mut decoder = WatchDecoder {
        filter: Arc::clone(&cluster.filter),
        kind: sender.kind.clone(),
        resource,
        listing: None,
        malformed: Vec::new(),
    };
    let mut troubled: Option<u64> = None;
    loop {
        let event = match troubled {
            None => events.next().await,
            Some(known) => tokio::select! {
                event = events.next() => event,
                () = cluster.calls.wait_for_watch(&path, known) => {
                    troubled = None;
                    // A list that is due tells more.
                    if decoder.listing.is_none() && !sender.send(KindUpdate::Resumed).await {
                        return;
                    }
                    continue;
                }
            },
        };
        let said = match event {
            None => return,
            Some(Ok(event)) => decoder.decode(event),
            // An older server: it lists in pages.
            Some(Err(error)) if is_streamed && refuses_streams(&error) => {
                is_streamed = false;
                decoder.listing = None;
                events = Box::pin(
                    watch(api.clone(), pages.clone()).backoff(ReconnectBackoff::default()),
                );
                continue;
            }
            Some(Err(error)) => {
                troubled = Some(cluster.calls.opened(&path));
                update_of_error(&error).into_iter().collect()
            }
        };
        for said in said {
            if !sender.send(said).await {
                return;
            }
        }
    }
}

/// What was heard of a kind and not told yet.
struct WatchDecoder {
    filter: Arc<WatchFilter>,
    kind: GroupKind,
    resource: ApiResource,
    listing: Option<Vec<Arc<Object>>>,
    /// Told after the list that they are missing from.
    malformed: Vec<KindUpdate>,
}

impl WatchDecoder {
    /// Takes an event; returns what it says.
    fn decode(&mut self, event: Event<DynamicObject>) -> Vec<KindUpdate> {
        let mut said = Vec::new();
        match event {
            Event::Init => {
                self.listing = Some(Vec::new());
                self.malformed.clear();
                said.push(KindUpdate::Listing);
            }
            Event::InitApply(found) => match (read(found, &self.resource), &mut self.listing) {
                (Ok(Some(object)), Some(listing)) if self.filter.matches(&object) => {
                    listing.push(object);
                }
                (Ok(_), _) => {}
                (Err(message), _) => self.malformed.push(KindUpdate::Malformed(message)),
            },
            Event::InitDone => {
                said.extend(self.listing.take().map(KindUpdate::Listed));
                said.append(&mut self.malformed);
            }
            Event::Apply(found) => match read(found, &self.resource) {
                // It may have been within the scope before.
                Ok(Some(object)) if !self.filter.matches(&object) => {
                    said.push(KindUpdate::Deleted(object.key.clone()));
                }
                Ok(object) => said.extend(object.map(KindUpdate::Applied)),
                Err(message) => said.push(KindUpdate::Malformed(message)),
            },
            Event::Delete(found) => said.push(KindUpdate::Deleted(ObjectKey::new(
                self.kind.clone(),
                &*found.namespace().unwrap_or_default(),
                &*found.name_any(),
            ))),
        }
        said
    }
}

/// How long to wait between attempts, with jitter: as everybody waits, in a sixth of the time. A
/// server that is back is found within ten seconds.
#[derive(Default)]
struct ReconnectBackoff(DefaultBackoff);

impl Iterator for ReconnectBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next().map(|pause| pause / 6)
    }
}

impl Backoff for ReconnectBackoff {
    fn reset(&mut self) {
        self.0.reset();
    }
}

/// Whether the server cannot send a list as the beginning of a watch: it calls the parameters that
/// ask for it invalid.
fn refuses_streams(error: &watcher::Error) -> bool {
    let is_invalid = |code: u16| matches!(code, 400 | 422);
    match error {
        watcher::Error::WatchStartFailed(Error::Api(status)) => is_invalid(status.code),
        _ => false,
    }
}

/// The path of a resource's URLs, over all namespaces.
pub(super) fn url_path(resource: &ApiResource) -> String {
    let root = if resource.group.is_empty() {
        "/api"
    } else {
        "/apis"
    };
    format!("{root}/{}/{}", resource.api_version, resource.plural)
}

/// What an error says; nothing where the watch only has to be opened anew.
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
        // What was missed is too long ago: a list follows.
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

/// An error with what is behind it.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let told = error.to_string();
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        next = error.source();
    }
    text
}

/// An object as manifests have it: what a list leaves out is put back.
fn read(found: DynamicObject, resource: &ApiResource) -> Result<Option<Arc<Object>>, String> {
    let name = found.name_any();
    let told = |message: &dyn std::fmt::Display| format!("{name}: {message}");
    let mut value = serde_json::to_value(found).map_err(|error| told(&error))?;
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), resource.api_version.clone().into());
        fields.insert("kind".to_owned(), resource.kind.clone().into());
    }
    let read = parse_object(value, None).map_err(|defect| told(&defect.message))?;
    Ok(read.map(Arc::new))
}
