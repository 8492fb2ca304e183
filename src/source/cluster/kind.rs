//! Following one kind.

use std::sync::Arc;

use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Error, ResourceExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;

use super::Cluster;
use crate::model::{GroupKind, Object, ObjectKey};
use crate::source::object::object;

/// Objects of a page, where the server streams no lists.
const PAGE: u32 = 500;

/// What a kind's watch says.
#[derive(Debug)]
pub(super) enum Said {
    /// All objects there are.
    Listed(Vec<Arc<Object>>),
    /// An object is new or different.
    Applied(Arc<Object>),
    /// An object is gone.
    Deleted(ObjectKey),
    /// It may not be read.
    Forbidden(String),
    /// It cannot be read now.
    Trouble(String),
    /// A watch was opened again.
    Resumed,
    /// An object that is none.
    Malformed(String),
}

/// Follows a kind until nobody listens any more.
pub(super) async fn follow(
    cluster: Cluster,
    kind: GroupKind,
    resource: ApiResource,
    tx: mpsc::Sender<(GroupKind, Said)>,
) {
    let path = url_path(&resource);
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &resource);
    let config = watcher::Config::default().page_size(PAGE).any_semantic();
    let mut events = std::pin::pin!(watch(api, config).default_backoff());
    let mut listing: Option<Vec<Arc<Object>>> = None;
    // Told after the list that they are missing from.
    let mut malformed = Vec::new();
    let mut troubled: Option<u64> = None;
    loop {
        let event = match troubled {
            None => events.next().await,
            Some(known) => tokio::select! {
                event = events.next() => event,
                () = cluster.calls.opened_after(&path, known) => {
                    troubled = None;
                    // A list that is due tells more.
                    if listing.is_none() && tx.send((kind.clone(), Said::Resumed)).await.is_err() {
                        return;
                    }
                    continue;
                }
            },
        };
        let Some(event) = event else { return };
        let mut said = Vec::new();
        match event {
            Ok(Event::Init) => listing = Some(Vec::new()),
            Ok(Event::InitApply(found)) => match (read(found, &resource), &mut listing) {
                (Ok(Some(object)), Some(listing)) => listing.push(object),
                (Ok(_), _) => {}
                (Err(message), _) => malformed.push(Said::Malformed(message)),
            },
            Ok(Event::InitDone) => {
                said.extend(listing.take().map(Said::Listed));
                said.append(&mut malformed);
            }
            Ok(Event::Apply(found)) => match read(found, &resource) {
                Ok(object) => said.extend(object.map(Said::Applied)),
                Err(message) => said.push(Said::Malformed(message)),
            },
            Ok(Event::Delete(found)) => said.push(Said::Deleted(ObjectKey::new(
                kind.clone(),
                &*found.namespace().unwrap_or_default(),
                &*found.name_any(),
            ))),
            Err(error) => {
                troubled = Some(cluster.calls.opened(&path));
                said.extend(trouble(&error));
            }
        }
        for said in said {
            if tx.send((kind.clone(), said)).await.is_err() {
                return;
            }
        }
    }
}

/// The path of a resource's URLs, over all namespaces.
fn url_path(resource: &ApiResource) -> String {
    let root = if resource.group.is_empty() {
        "/api"
    } else {
        "/apis"
    };
    format!("{root}/{}/{}", resource.api_version, resource.plural)
}

/// What an error says; nothing where the watch only has to be opened anew.
fn trouble(error: &watcher::Error) -> Option<Said> {
    use watcher::Error::{
        InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed,
    };
    match error {
        InitialListFailed(Error::Api(status)) | WatchStartFailed(Error::Api(status))
            if status.is_forbidden() =>
        {
            Some(Said::Forbidden(status.message.clone()))
        }
        // What was missed is too long ago: a list follows.
        WatchError(status) if status.code == 410 => None,
        WatchError(status) if status.code == 403 => Some(Said::Forbidden(status.message.clone())),
        WatchError(status) => Some(Said::Trouble(status.message.clone())),
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
            Some(Said::Trouble(chain(error)))
        }
        NoResourceVersion => Some(Said::Trouble(error.to_string())),
    }
}

/// An error with what is behind it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
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
    let read = object(value, None).map_err(|defect| told(&defect.message))?;
    Ok(read.map(Arc::new))
}
