//! Merges the objects of all files into one set, and computes what changed in it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use entail_core::model::{Change, Object, ObjectKey, Str};

use super::read::ManifestObject;
use super::scopes::KindScopes;
use super::{Problem, ProblemKind};

/// An object of a file.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The object, in the namespace that the scope of its kind requires.
    pub object: Arc<Object>,
    /// The namespace in the file. It is kept because the scope of the kind may change.
    pub written: Str,
    /// The line on which the object begins.
    pub line: u32,
}

/// The objects that were published last.
#[derive(Debug, Default)]
pub(super) struct Published {
    objects: BTreeMap<ObjectKey, Arc<Object>>,
}

impl Item {
    pub fn new(read: ManifestObject) -> Self {
        Self {
            written: read.object.key.namespace.clone(),
            object: Arc::new(read.object),
            line: read.line,
        }
    }
}

impl Published {
    /// Merges the objects of all files, given by name in their order. Returns the changes since the
    /// last call, and a problem for each object that is in two places.
    pub fn update(
        &mut self,
        scopes: &mut KindScopes,
        files: &mut [(String, &mut Vec<Item>)],
    ) -> (Change, Vec<Problem>) {
        let all = files.iter().flat_map(|(_, items)| items.iter());
        scopes.update_from_crds(all.map(|item| &*item.object));
        let mut now: BTreeMap<ObjectKey, Arc<Object>> = BTreeMap::new();
        let mut duplicates = Vec::new();
        for (name, items) in files {
            for item in items.iter_mut() {
                scopes.reassign_namespace(&mut item.object, &item.written);
                let object = Arc::clone(&item.object);
                match now.entry(object.key.clone()) {
                    Entry::Vacant(entry) => {
                        entry.insert(object);
                    }
                    Entry::Occupied(mut entry) => {
                        duplicates.push(duplicate(name, item, entry.get()));
                        entry.insert(object);
                    }
                }
            }
        }
        (self.replace(now), duplicates)
    }

    fn replace(&mut self, now: BTreeMap<ObjectKey, Arc<Object>>) -> Change {
        let before = std::mem::replace(&mut self.objects, now);
        let is_new = |(key, object): &(&ObjectKey, &Arc<Object>)| {
            before.get(key).is_none_or(|old| !is_same(old, object))
        };
        let upserts = self.objects.iter().filter(is_new);
        let upserts = upserts.map(|(_, object)| Arc::clone(object)).collect();
        let gone = before.keys().filter(|key| !self.objects.contains_key(key));
        Change {
            upserts,
            deletes: gone.cloned().collect(),
            states: Vec::new(),
        }
    }
}

/// Returns whether two objects with the same key are equal, except for their locations. All fields
/// of an object are read from its body.
fn is_same(a: &Arc<Object>, b: &Arc<Object>) -> bool {
    Arc::ptr_eq(a, b) || a.body == b.body
}

fn duplicate(name: &str, item: &Item, earlier: &Object) -> Problem {
    let key = &item.object.key;
    let location = earlier.location.as_deref().unwrap_or("another file");
    Problem {
        path: name.to_owned(),
        line: Some(item.line),
        message: format!("{key} is also at {location}: this one is used, remove one of them"),
        kind: ProblemKind::Duplicate,
        kept_last_good: false,
        about: Some(key.clone()),
    }
}
