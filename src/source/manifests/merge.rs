//! Merges the objects of all files into one set, and computes what changed in it.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use entail_core::model::{Change, Object, ObjectKey, Str};

use super::defaults::{CrdSchemas, DefaultedObject};
use super::files::name_of;
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
    /// Whether this is an earlier version, which stands for what cannot be read now. What can be read comes first.
    pub is_kept: bool,
    /// The object with the defaults of its CRD, as of the last update.
    defaulted: Option<DefaultedObject>,
}

/// The objects that were published last.
#[derive(Debug, Default)]
pub(super) struct Published {
    objects: BTreeSet<ByKey>,
    /// The objects of each file.
    of_file: BTreeMap<PathBuf, Vec<Arc<Object>>>,
    /// The CRDs of all files.
    schemas: CrdSchemas,
    /// Whether no object is in two places, no earlier version stands beside a readable one, and all defaults were
    /// applied.
    is_clean: bool,
}

/// A file whose objects may have changed.
pub(super) struct ChangedFile {
    pub path: PathBuf,
    /// Its objects; `None` if it does not exist any more.
    pub items: Option<Vec<Item>>,
}

/// The objects that changed files had and have, without those that did not change but CRDs.
struct ChangedObjects {
    before: BTreeSet<ByKey>,
    now: BTreeSet<ByKey>,
}

/// An object that is found by its key.
#[derive(Clone, Debug)]
struct ByKey(Arc<Object>);

impl Borrow<ObjectKey> for ByKey {
    fn borrow(&self) -> &ObjectKey {
        &self.0.key
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl Item {
    pub fn new(read: ManifestObject) -> Self {
        Self {
            written: read.object.key.namespace.clone(),
            object: Arc::new(read.object),
            line: read.line,
            is_kept: false,
            defaulted: None,
        }
    }

    /// The same object as an earlier version.
    pub fn kept(self) -> Self {
        Self {
            is_kept: true,
            ..self
        }
    }

    /// The object of a document that begins on another line now, as it is read.
    pub fn moved(&self, before: u32, now: u32) -> Self {
        let line = self.line.saturating_sub(before).saturating_add(now);
        let mut moved = Self {
            line,
            is_kept: false,
            ..self.clone()
        };
        if before != now {
            let object = Arc::make_mut(&mut moved.object);
            let location = object.location.as_mut();
            location
                .into_iter()
                .for_each(|location| location.line = line);
        }
        moved
    }

    /// The object as of the last update.
    fn published(&self) -> Arc<Object> {
        let defaulted = self.defaulted.as_ref();
        let defaulted = defaulted.and_then(|defaulted| defaulted.result.as_ref().ok());
        Arc::clone(defaulted.map_or(&self.object, |completed| &completed.object))
    }

    /// The object with the defaults of its CRD, and the problem for which they are not applied.
    fn with_defaults(
        &mut self,
        schemas: &CrdSchemas,
        name: &str,
    ) -> (Arc<Object>, Option<Problem>) {
        self.defaulted = DefaultedObject::update(self.defaulted.take(), &self.object, schemas);
        let result = self.defaulted.as_ref().map(|defaulted| &defaulted.result);
        match result {
            None => (Arc::clone(&self.object), None),
            Some(Ok(completed)) => (Arc::clone(&completed.object), None),
            Some(Err(error)) => {
                let problem = self.problem(ProblemKind::Malformed, error, name);
                (Arc::clone(&self.object), Some(problem))
            }
        }
    }

    /// The fields of the object, as of the last update, that its CRD does not have. Unlike other problems it concerns no
    /// other object, so that it belongs to the file with this name.
    pub fn unknown_fields(&self, name: &str) -> Option<Problem> {
        let completed = self.defaulted.as_ref()?.result.as_ref().ok()?;
        let unknown = completed.unknown.as_ref()?;
        Some(self.problem(ProblemKind::UnknownField, unknown, name))
    }

    fn problem(&self, kind: ProblemKind, what: &dyn fmt::Display, name: &str) -> Problem {
        let key = &self.object.key;
        Problem {
            path: name.to_owned(),
            line: Some(self.line),
            message: format!("{key}: {what}"),
            kind,
            kept_last_good: false,
            about: Some(key.clone()),
        }
    }
}

impl Published {
    /// Merges the objects of all files, in their order. Returns the changes since the
    /// last call, and the problems: objects that are in two places, and objects whose defaults are too
    /// large.
    pub fn update(
        &mut self,
        scopes: &mut KindScopes,
        files: &mut [(&PathBuf, &mut Vec<Item>)],
    ) -> (Change, Vec<Problem>) {
        let of_files = |is_kept: bool| {
            let items = files.iter().flat_map(|(_, items)| items.iter());
            items.filter(move |item| item.is_kept == is_kept)
        };
        // Of two CRDs of a kind the last one counts: what can be read comes before an earlier version.
        let all = || of_files(true).chain(of_files(false));
        scopes.update_from_crds(all().map(|item| &*item.object));
        let schemas = CrdSchemas::of(all().map(|item| &item.object));
        let mut now = BTreeSet::new();
        let mut problems = Vec::new();
        let mut kept = Vec::new();
        self.of_file.clear();
        for (path, items) in files {
            let name = &name_of(path);
            let mut objects = Vec::with_capacity(items.len());
            for item in items.iter_mut() {
                scopes.reassign_namespace(&mut item.object, &item.written);
                let (object, problem) = item.with_defaults(&schemas, name);
                problems.extend(problem);
                objects.push(Arc::clone(&object));
                if item.is_kept {
                    kept.push(ByKey(object));
                    continue;
                }
                if let Some(earlier) = now.replace(ByKey(object)) {
                    problems.push(duplicate(name, item, &earlier.0));
                }
            }
            self.of_file.insert((*path).clone(), objects);
        }
        let mut is_hidden = false;
        // Of later files first, as of readable objects.
        for object in kept.into_iter().rev() {
            is_hidden |= !now.insert(object);
        }
        self.is_clean = problems.is_empty() && !is_hidden;
        self.schemas = schemas;
        self.schemas.forget_decoded();
        (self.replace(now), problems)
    }

    /// Replaces the objects of the files that changed, in time proportional to their size. Returns the changes; `None`
    /// if all files must be merged: because of CRDs, which concern other files, or because an object is in two places.
    pub fn update_files(
        &mut self,
        scopes: &KindScopes,
        files: &mut [ChangedFile],
    ) -> Option<Change> {
        let ChangedObjects { before, now } = self.changed_objects(scopes, files)?;
        self.schemas.forget_decoded();
        let is_elsewhere =
            |object: &ByKey| self.objects.contains(object) && !before.contains(object);
        let defines_kinds = |object: &ByKey| object.0.key.kind.defines_kinds();
        let mut concerned = before.iter().chain(&now);
        if concerned.any(defines_kinds) || now.iter().any(is_elsewhere) {
            return None;
        }
        for ChangedFile { path, items } in files {
            match items {
                None => self.of_file.remove(path),
                Some(items) => {
                    let objects = items.iter().map(Item::published).collect();
                    self.of_file.insert(path.clone(), objects)
                }
            };
        }
        let deletes: Vec<ObjectKey> = before.difference(&now).map(|o| o.0.key.clone()).collect();
        for key in &deletes {
            self.objects.remove(key);
        }
        let mut upserts = Vec::new();
        for object in now {
            let before = self.objects.replace(object.clone());
            if before.is_none_or(|old| !is_same(&old.0, &object.0)) {
                upserts.push(object.0);
            }
        }
        Some(Change {
            upserts,
            deletes,
            states: Vec::new(),
        })
    }

    /// The objects of files, but for those that they share with the last update and are no CRDs; `None` if there is a problem with them, or
    /// an object may be in two places.
    fn changed_objects(
        &self,
        scopes: &KindScopes,
        files: &mut [ChangedFile],
    ) -> Option<ChangedObjects> {
        if !self.is_clean {
            return None;
        }
        let known = files.iter().filter_map(|file| self.of_file.get(&file.path));
        let known: HashMap<_, _> = known.flatten().map(|o| (Arc::as_ptr(o), o)).collect();
        let mut now = BTreeSet::new();
        let mut shared = HashSet::new();
        for ChangedFile { path, items } in files {
            let name = &name_of(path);
            for item in items.iter_mut().flatten() {
                scopes.reassign_namespace(&mut item.object, &item.written);
                let (object, problem) = item.with_defaults(&self.schemas, name);
                let at = Arc::as_ptr(&object);
                // Of two CRDs of a kind, another one can count, though both are as they were.
                let is_shared = known.contains_key(&at) && !object.key.kind.defines_kinds();
                let is_first = match is_shared {
                    true => shared.insert(at),
                    false => now.insert(ByKey(object)),
                };
                if problem.is_some() || !is_first {
                    return None;
                }
            }
        }
        let before = known.into_iter().filter(|(at, _)| !shared.contains(at));
        let before = before
            .map(|(_, object)| ByKey(Arc::clone(object)))
            .collect();
        Some(ChangedObjects { before, now })
    }

    fn replace(&mut self, now: BTreeSet<ByKey>) -> Change {
        let before = std::mem::replace(&mut self.objects, now);
        let is_new = |object: &&ByKey| {
            let old = before.get(*object);
            old.is_none_or(|old| !is_same(&old.0, &object.0))
        };
        let upserts = self.objects.iter().filter(is_new);
        let gone = before.difference(&self.objects);
        Change {
            upserts: upserts.map(|object| Arc::clone(&object.0)).collect(),
            deletes: gone.map(|object| object.0.key.clone()).collect(),
            states: Vec::new(),
        }
    }
}

/// Returns whether two objects with the same key are equal, except for their lines: one more line at the top of a file
/// is not a change of all that is in it. All fields of an object are read from its body.
fn is_same(a: &Arc<Object>, b: &Arc<Object>) -> bool {
    Arc::ptr_eq(a, b) || (a.body == b.body && !b.is_moved_from(a))
}

fn duplicate(name: &str, item: &Item, earlier: &Object) -> Problem {
    let key = &item.object.key;
    let location = earlier.location.as_ref().map(ToString::to_string);
    let location = location.as_deref().unwrap_or("another file");
    Problem {
        path: name.to_owned(),
        line: Some(item.line),
        message: format!("{key} is also at {location}: this one is used, remove one of them"),
        kind: ProblemKind::Duplicate,
        kept_last_good: false,
        about: Some(key.clone()),
    }
}
