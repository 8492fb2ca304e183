//! Merges the objects of all files into one set, and computes what changed in it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use entail_core::model::{Change, Object, ObjectKey, Str};

use super::defaults::{CrdSchemas, DefaultedObject};
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
    /// The object with the defaults of its CRD, as of the last update.
    defaulted: Option<DefaultedObject>,
}

/// The objects that were published last.
#[derive(Debug, Default)]
pub(super) struct Published {
    objects: BTreeMap<ObjectKey, Arc<Object>>,
    /// The keys of the objects of each file, by its name.
    keys: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// The CRDs of all files.
    schemas: CrdSchemas,
    /// Whether no object is in two places, and all defaults were applied.
    is_clean: bool,
}

impl Item {
    pub fn new(read: ManifestObject) -> Self {
        Self {
            written: read.object.key.namespace.clone(),
            object: Arc::new(read.object),
            line: read.line,
            defaulted: None,
        }
    }

    /// The object with the defaults of its CRD, and the problem for which they are not applied.
    fn with_defaults(
        &mut self,
        schemas: &CrdSchemas,
        name: &str,
    ) -> (Arc<Object>, Option<Problem>) {
        self.defaulted = DefaultedObject::update(self.defaulted.take(), &self.object, schemas);
        match &self.defaulted {
            None => (Arc::clone(&self.object), None),
            Some(DefaultedObject { result, .. }) => match result {
                Ok(object) => (Arc::clone(object), None),
                Err(error) => {
                    let key = &self.object.key;
                    let problem = Problem {
                        path: name.to_owned(),
                        line: Some(self.line),
                        message: format!("{key}: {error}"),
                        kind: ProblemKind::Malformed,
                        kept_last_good: false,
                        about: Some(key.clone()),
                    };
                    (Arc::clone(&self.object), Some(problem))
                }
            },
        }
    }
}

impl Published {
    /// Merges the objects of all files, given by name in their order. Returns the changes since the
    /// last call, and the problems: objects that are in two places, and objects whose defaults are too
    /// large.
    pub fn update(
        &mut self,
        scopes: &mut KindScopes,
        files: &mut [(String, &mut Vec<Item>)],
    ) -> (Change, Vec<Problem>) {
        let all = || files.iter().flat_map(|(_, items)| items.iter());
        scopes.update_from_crds(all().map(|item| &*item.object));
        let schemas = CrdSchemas::of(all().map(|item| &item.object));
        let mut now: BTreeMap<ObjectKey, Arc<Object>> = BTreeMap::new();
        let mut problems = Vec::new();
        self.keys.clear();
        self.is_clean = true;
        for (name, items) in files {
            let mut keys = BTreeSet::new();
            for item in items.iter_mut() {
                scopes.reassign_namespace(&mut item.object, &item.written);
                let (object, problem) = item.with_defaults(&schemas, name);
                problems.extend(problem);
                keys.insert(object.key.clone());
                match now.entry(object.key.clone()) {
                    Entry::Vacant(entry) => {
                        entry.insert(object);
                    }
                    Entry::Occupied(mut entry) => {
                        problems.push(duplicate(name, item, entry.get()));
                        entry.insert(object);
                    }
                }
            }
            // Files with names that are no text can look alike.
            self.is_clean &= self.keys.insert(name.clone(), keys).is_none();
        }
        self.is_clean &= problems.is_empty();
        self.schemas = schemas;
        self.schemas.forget_decoded();
        (self.replace(now), problems)
    }

    /// Replaces the objects of the only file that changed, in time proportional to its size. Returns the changes;
    /// `None` if all files must be merged: because of CRDs, which concern other files, or because an object is in
    /// two places.
    pub fn update_file(
        &mut self,
        scopes: &KindScopes,
        name: &str,
        items: &mut [Item],
    ) -> Option<Change> {
        let before = self.keys.get(name).filter(|_| self.is_clean)?;
        let mut now: BTreeMap<ObjectKey, Arc<Object>> = BTreeMap::new();
        for item in items {
            scopes.reassign_namespace(&mut item.object, &item.written);
            let (object, problem) = item.with_defaults(&self.schemas, name);
            let key = object.key.clone();
            let is_elsewhere = self.objects.contains_key(&key) && !before.contains(&key);
            let concerns_others = key.kind.defines_kinds() || is_elsewhere;
            if concerns_others || problem.is_some() || now.insert(key, object).is_some() {
                return None;
            }
        }
        self.schemas.forget_decoded();
        if before.iter().any(|key| key.kind.defines_kinds()) {
            return None;
        }
        let gone = before.iter().filter(|key| !now.contains_key(*key));
        let deletes: Vec<ObjectKey> = gone.cloned().collect();
        self.keys
            .insert(name.to_owned(), now.keys().cloned().collect());
        for key in &deletes {
            self.objects.remove(key);
        }
        let mut upserts = Vec::new();
        for (key, object) in now {
            let before = self.objects.insert(key, Arc::clone(&object));
            if before.is_none_or(|old| !is_same(&old, &object)) {
                upserts.push(object);
            }
        }
        Some(Change {
            upserts,
            deletes,
            states: Vec::new(),
        })
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
