//! Converts what the API server sends of a kind to objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use kube::core::ApiResource;
use serde_json::Value;

use super::kind_watch::KindUpdate;
use super::listed_object::ListedObject;
use super::{ObjectParts, WatchFilter};
use crate::source::object::{InvalidObject, parse_object, unreadable_object};
use entail_core::model::{GroupKind, Object, ObjectKey};

/// Converts lists and events to [`KindUpdate`]s.
pub(super) struct ObjectDecoder {
    pub filter: Arc<WatchFilter>,
    pub kind: GroupKind,
    /// The parts of objects that are kept.
    pub parts: ObjectParts,
    pub resource: ApiResource,
    /// The objects of the current list so far.
    pub listing: BTreeMap<ObjectKey, Arc<Object>>,
    /// Malformed objects of the current list, which are reported after it.
    pub malformed: Vec<KindUpdate>,
}

impl ObjectDecoder {
    /// Begins a list.
    pub fn begin_list(&mut self) {
        self.listing.clear();
        self.malformed.clear();
    }

    /// Adds an object to the current list, or replaces it.
    pub fn list(&mut self, object: ListedObject) {
        match self.parse(object) {
            Ok(Some(object)) if self.filter.matches(&object) => {
                self.listing.insert(object.key.clone(), object);
            }
            // The object may have matched the filter before.
            Ok(Some(object)) => {
                self.listing.remove(&object.key);
            }
            Ok(None) => {}
            Err(message) => self.malformed.push(KindUpdate::Malformed(message)),
        }
    }

    /// Removes an object that was deleted while the list was sent.
    pub fn unlist(&mut self, object: &ListedObject) {
        let key = self.key_of(object);
        self.listing.remove(&key);
    }

    /// Ends the current list.
    pub fn end_list(&mut self) -> Vec<KindUpdate> {
        let listed = std::mem::take(&mut self.listing).into_values();
        let mut updates = vec![KindUpdate::Listed(listed.collect())];
        updates.append(&mut self.malformed);
        updates
    }

    /// Converts a created or changed object; `None` if nothing of it is kept.
    pub fn applied(&self, object: ListedObject) -> Option<KindUpdate> {
        match self.parse(object) {
            // The object may have matched the filter before.
            Ok(Some(object)) if !self.filter.matches(&object) => {
                Some(KindUpdate::Deleted(object.key.clone()))
            }
            Ok(object) => object.map(KindUpdate::Applied),
            Err(message) => Some(KindUpdate::Malformed(message)),
        }
    }

    /// Converts a deleted object.
    pub fn deleted(&self, object: &ListedObject) -> KindUpdate {
        KindUpdate::Deleted(self.key_of(object))
    }

    fn key_of(&self, object: &ListedObject) -> ObjectKey {
        ObjectKey::new(
            self.kind.clone(),
            &*object.namespace().unwrap_or_default(),
            &*object.name_any(),
        )
    }

    /// Parses an object and drops what is not needed of it.
    fn parse(&self, object: ListedObject) -> Result<Option<Arc<Object>>, String> {
        let object = parse(object, &self.resource)?;
        let reduced = object.map(|object| match self.parts {
            ObjectParts::Whole => object,
            ObjectParts::WithoutStatus => object.without_status(),
            ObjectParts::Targets => object.targets_only(),
        });
        let reduced = reduced.map(|object| self.filter.reduce(object));
        Ok(reduced.map(Arc::new))
    }
}

/// Parses an object. Items of lists have no `apiVersion` and `kind`, so these are added first. One that cannot be read is
/// known by its name, if it has one.
fn parse(listed: ListedObject, resource: &ApiResource) -> Result<Option<Object>, String> {
    let cut = listed.cut;
    let name = listed.name_any();
    let mut value = listed.value;
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), resource.api_version.clone().into());
        fields.insert("kind".to_owned(), resource.kind.clone().into());
    }
    let message = |reason: &str| format!("cannot be read: {reason}");
    match parse_object(value, None) {
        Ok(object) => Ok(object.map(|object| match cut {
            Some(cut) => Object {
                unreadable: Some(message(&format!("it is {}", cut.message())).into()),
                ..object
            },
            None => object,
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
