//! Collects the events of all watches into one change, and tracks the state of each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::kind_watch::KindUpdate;
use entail_core::model::{Change, GroupKind, KindState, Object, ObjectKey, SourceState, Str};

/// The tracked kinds, and the changes that were not taken yet.
#[derive(Debug, Default)]
pub(super) struct ChangeCollector {
    kinds: BTreeMap<GroupKind, TrackedKind>,
    /// Changed objects; `None` for deleted ones.
    objects: BTreeMap<ObjectKey, Option<Arc<Object>>>,
    /// Changed states.
    states: BTreeMap<GroupKind, SourceState>,
    /// Whether CRDs or PolicyProfiles have changed, which can change the desired kinds.
    decides: bool,
    /// For each CRD, the kind that it defines and whether it is established.
    crds: BTreeMap<ObjectKey, (GroupKind, bool)>,
    digests: ObjectDigests,
}

/// Computes digests of objects with a secret key, so that nobody can make two objects with one digest.
#[derive(Debug, Default)]
struct ObjectDigests(RandomState);

impl ObjectDigests {
    /// The digest of everything of an object that is kept; `None` for an object that must be sent each
    /// time: the store keeps an XListenerSet only while there is no ListenerSet with its name.
    fn digest(&self, object: &Object) -> Option<u64> {
        if object.key.kind.clone().canonical() != object.key.kind {
            return None;
        }
        let mut hasher = self.0.build_hasher();
        object.body.hash(&mut hasher);
        object.unreadable.hash(&mut hasher);
        Some(hasher.finish())
    }
}

/// The most objects of a kind that problems name.
const MAX_NAMED: usize = 8;

/// A desired kind.
#[derive(Debug)]
struct TrackedKind {
    state: SourceState,
    /// The objects, each with the digest of what was collected last; `None` for those of a restored checkpoint.
    known: BTreeMap<ObjectKey, Option<u64>>,
    /// Why the kind cannot be read.
    problem: Option<String>,
    /// The last problem of an object without a valid name.
    malformed: Option<String>,
    /// Why objects, or parts of them, could not be read.
    unreadable: BTreeMap<ObjectKey, Str>,
    /// Whether the objects are those of a restored checkpoint, or of a watch that kept other parts of them.
    is_restored: bool,
    /// Whether a list is in progress: events may have been missed.
    is_listing: bool,
    /// Whether the kind is stale only because nothing has been heard of it for long.
    is_silent: bool,
    /// Whether the problem is a denial that is not confirmed.
    is_denied: bool,
    /// Since when the kind has been waited for.
    since: Instant,
    /// What the first read has been waiting for, if it takes long.
    waits_for: Option<&'static str>,
}

impl Default for TrackedKind {
    /// A kind that has not been read.
    fn default() -> Self {
        Self {
            state: SourceState::Unknown,
            known: BTreeMap::new(),
            problem: None,
            malformed: None,
            unreadable: BTreeMap::new(),
            is_restored: false,
            is_listing: false,
            is_silent: false,
            is_denied: false,
            since: Instant::now(),
            waits_for: None,
        }
    }
}

impl TrackedKind {
    /// Reports whether the kind has not been read since the start, although it may be readable.
    fn is_unread(&self) -> bool {
        self.state == SourceState::Unknown || self.is_restored
    }

    /// Why the kind is not known, or is out of sync.
    fn problem(&self) -> Option<String> {
        match (&self.problem, self.waits_for) {
            (Some(problem), _) => Some(problem.clone()),
            (None, Some(reason)) => Some(format!("not read for a long time: {reason}")),
            (None, None) => None,
        }
    }

    fn note_unreadable(&mut self, object: &Object) {
        match &object.unreadable {
            Some(reason) => self.unreadable.insert(object.key.clone(), reason.clone()),
            None => self.unreadable.remove(&object.key),
        };
    }

    /// The problems of objects that could not be read, the first by name.
    fn unreadable_objects(&self) -> impl Iterator<Item = String> {
        let named = self.unreadable.iter().take(MAX_NAMED);
        let named = named.map(|(key, reason)| format!("{}: {reason}", key.qualified_name()));
        let more = self.unreadable.len().saturating_sub(MAX_NAMED);
        let more = (more > 0).then(|| format!("{more} more objects cannot be read"));
        named.chain(more)
    }
}

impl ChangeCollector {
    /// Adds the objects of a restored checkpoint as stale; they stay in use until they are listed.
    pub fn seed(&mut self, known: BTreeMap<GroupKind, BTreeSet<ObjectKey>>) {
        for (kind, known) in known {
            let known = known.into_iter().map(|key| (key, None)).collect();
            let restored = TrackedKind {
                state: SourceState::Stale,
                known,
                is_restored: true,
                ..TrackedKind::default()
            };
            self.kinds.insert(kind, restored);
        }
    }

    /// Deletes the objects of a restored checkpoint that were not listed since, because it is of another cluster.
    pub fn discard_restored(&mut self) {
        let restored = self.kinds.iter().filter(|(_, kind)| kind.is_restored);
        let restored: Vec<GroupKind> = restored.map(|(kind, _)| kind.clone()).collect();
        restored.iter().for_each(|kind| self.start_anew(kind));
    }

    /// Reports whether the objects of a kind are those of a restored checkpoint.
    pub fn is_restored(&self, kind: &GroupKind) -> bool {
        self.kinds.get(kind).is_some_and(|kind| kind.is_restored)
    }

    /// The tracked kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.kinds.keys()
    }

    /// Starts to track a kind, as unknown unless it is restored.
    pub fn start(&mut self, kind: &GroupKind) {
        if !self.is_restored(kind) {
            self.start_anew(kind);
        }
    }

    /// Starts to track a kind as unknown, without the objects that it had.
    fn start_anew(&mut self, kind: &GroupKind) {
        let new = TrackedKind::default();
        if let Some(previous) = self.kinds.insert(kind.clone(), new) {
            self.delete_objects(previous);
        }
        self.states.insert(kind.clone(), SourceState::Unknown);
    }

    /// Tracks a kind that is not served: it has no objects, and its state is complete.
    pub fn mark_not_served(&mut self, kind: &GroupKind) {
        self.start_anew(kind);
        self.set_state(kind, SourceState::Complete, None);
    }

    /// Stops to track a kind and deletes its objects.
    pub fn remove(&mut self, kind: &GroupKind) {
        if let Some(previous) = self.kinds.remove(kind) {
            self.delete_objects(previous);
            // A kind without objects is complete.
            self.states.insert(kind.clone(), SourceState::Complete);
        }
    }

    fn delete_objects(&mut self, kind: TrackedKind) {
        let deleted = kind.known.into_keys();
        self.objects.extend(deleted.map(|key| (key, None)));
    }

    /// Reports whether the CRD of a kind is established; `None` if there is no CRD. While an API
    /// server starts, discovery does not yet return all established kinds.
    pub fn crd(&self, kind: &GroupKind) -> Option<bool> {
        let mut crds = self.crds.values();
        let crd = crds.find(|(defined, _)| defined == kind);
        crd.map(|(_, is_established)| *is_established)
    }

    /// Reports whether all CRDs have been read.
    pub fn knows_crds(&self) -> bool {
        self.is_complete_kind(&GroupKind::crd())
    }

    fn record(&mut self, key: ObjectKey, object: Option<Arc<Object>>) {
        if key.kind.is_crd() {
            match object.as_deref().and_then(crd_status) {
                Some(status) => self.crds.insert(key.clone(), status),
                None => self.crds.remove(&key),
            };
        }
        self.objects.insert(key, object);
    }

    /// Collects an event of a watch. Events of kinds that are not tracked are ignored.
    pub fn apply(&mut self, kind: &GroupKind, update: KindUpdate) {
        if !self.kinds.contains_key(kind) {
            return;
        }
        self.decides |= kind.defines_kinds();
        match update {
            KindUpdate::Listing => {
                if let Some(kind) = self.kinds.get_mut(kind) {
                    kind.is_listing = true;
                }
            }
            KindUpdate::Listed(objects) => self.list(kind, objects),
            KindUpdate::Applied(object) => self.put(kind, object),
            KindUpdate::Deleted(key) => {
                let mut kind = self.kinds.get_mut(kind);
                if let Some(kind) = &mut kind {
                    kind.unreadable.remove(&key);
                }
                // An object that was filtered out was never added.
                if kind.is_some_and(|kind| kind.known.remove(&key).is_some()) {
                    self.record(key, None);
                }
            }
            KindUpdate::Forbidden(message) => {
                self.set_state(kind, SourceState::Forbidden, Some(message));
            }
            KindUpdate::Denied(message) => {
                self.fail(kind, message);
                if let Some(kind) = self.kinds.get_mut(kind) {
                    kind.is_denied = kind.state != SourceState::Forbidden;
                }
            }
            KindUpdate::Error(message) => self.fail(kind, message),
            KindUpdate::Resumed => {
                let state = self.kinds.get(kind).map(|kind| kind.state);
                if state.is_some_and(|state| state != SourceState::Unknown) {
                    self.set_state(kind, SourceState::Complete, None);
                }
            }
            KindUpdate::Malformed(message) => {
                if let Some(kind) = self.kinds.get_mut(kind) {
                    kind.malformed = Some(format!("skipped an object: {message}"));
                }
            }
        }
    }

    /// Marks a kind as unreadable at the moment. After the first list, the last known objects stay in use.
    fn fail(&mut self, kind: &GroupKind, message: String) {
        let state = match self.kinds.get(kind).map(|kind| kind.state) {
            Some(SourceState::Complete | SourceState::Stale) => SourceState::Stale,
            Some(state) => state,
            None => return,
        };
        self.set_state(kind, state, Some(message));
    }

    /// Marks a complete kind as stale if nothing has been heard of it for long, and as complete when something is heard
    /// again.
    pub fn set_silent(&mut self, kind: &GroupKind, message: Option<String>) {
        let Some(tracked) = self.kinds.get(kind) else {
            return;
        };
        match (message, tracked.state, tracked.is_silent) {
            (Some(message), SourceState::Complete, _) => {
                self.set_state(kind, SourceState::Stale, Some(message));
                if let Some(tracked) = self.kinds.get_mut(kind) {
                    tracked.is_silent = true;
                }
            }
            (None, _, true) => self.set_state(kind, SourceState::Complete, None),
            _ => {}
        }
    }

    /// The kinds that have not been read since the start, and since when they have been waited for.
    pub fn unread(&self) -> impl Iterator<Item = (&GroupKind, Instant)> {
        let kinds = self.kinds.iter();
        let unread = kinds.filter(|(_, tracked)| tracked.is_unread());
        unread.map(|(kind, tracked)| (kind, tracked.since))
    }

    /// Sets what the first read of a kind has been waiting for.
    pub fn set_waits_for(&mut self, kind: &GroupKind, reason: &'static str) {
        if let Some(tracked) = self.kinds.get_mut(kind) {
            tracked.waits_for = Some(reason);
        }
    }

    /// Replaces all objects of a kind: those that are not in the list are deleted.
    fn list(&mut self, kind: &GroupKind, objects: Vec<Arc<Object>>) {
        let Some(tracked) = self.kinds.get_mut(kind) else {
            return;
        };
        let digests = &self.digests;
        let listed = objects
            .iter()
            .map(|object| (object.key.clone(), digests.digest(object)));
        let listed = listed.collect();
        tracked.malformed = None;
        tracked.unreadable.clear();
        objects
            .iter()
            .for_each(|object| tracked.note_unreadable(object));
        tracked.is_listing = false;
        let previous = std::mem::replace(&mut tracked.known, listed);
        let known = &tracked.known;
        let deleted = previous.keys().filter(|key| !known.contains_key(*key));
        let deleted: Vec<ObjectKey> = deleted.cloned().collect();
        let is_known = |object: &Arc<Object>| {
            let digest = known.get(&object.key).copied().flatten();
            digest.is_some() && previous.get(&object.key) == Some(&digest)
        };
        let changed: Vec<Arc<Object>> = objects.into_iter().filter(|o| !is_known(o)).collect();
        for key in deleted {
            self.record(key, None);
        }
        for object in changed {
            self.record(object.key.clone(), Some(object));
        }
        self.set_state(kind, SourceState::Complete, None);
    }

    /// Adds or replaces an object, unless nothing of it has changed that is kept.
    fn put(&mut self, kind: &GroupKind, object: Arc<Object>) {
        if let Some(kind) = self.kinds.get_mut(kind) {
            let digest = self.digests.digest(&object);
            kind.note_unreadable(&object);
            let previous = kind.known.insert(object.key.clone(), digest);
            if digest.is_some() && previous == Some(digest) {
                return;
            }
        }
        self.record(object.key.clone(), Some(object));
    }

    fn set_state(&mut self, kind: &GroupKind, state: SourceState, problem: Option<String>) {
        let Some(tracked) = self.kinds.get_mut(kind) else {
            return;
        };
        tracked.problem = problem;
        tracked.is_silent = false;
        tracked.is_denied = false;
        tracked.is_restored &= state == SourceState::Stale;
        if !tracked.is_unread() || state == SourceState::Complete {
            tracked.waits_for = None;
        }
        if tracked.state != state {
            tracked.state = state;
            self.states.insert(kind.clone(), state);
        }
    }

    /// Reports whether every kind has been read since the start, or must not be read.
    pub fn is_complete(&self) -> bool {
        let mut kinds = self.kinds.values();
        kinds.all(|kind| kind.state != SourceState::Unknown && !kind.is_restored)
    }

    /// Reports whether the objects of a kind may be out of sync.
    pub fn has_stale_kinds(&self) -> bool {
        let mut kinds = self.kinds.values();
        kinds.any(|kind| match kind.state {
            SourceState::Stale => true,
            // Its lists are denied, and replies contain that state.
            SourceState::Forbidden => false,
            SourceState::Unknown | SourceState::Complete => kind.is_listing,
        })
    }

    /// Reports whether the first read of a kind is in progress, without an error so far and not for long. A denial that
    /// is not confirmed is no error.
    pub fn is_loading(&self) -> bool {
        let mut kinds = self.kinds.values();
        kinds.any(|kind| {
            let has_failed = kind.problem.is_some() && !kind.is_denied;
            kind.state == SourceState::Unknown && !has_failed && kind.waits_for.is_none()
        })
    }

    /// Marks a complete kind as stale, because its watch was stopped.
    pub fn mark_stale(&mut self, kind: &GroupKind) {
        let state = self.kinds.get(kind).map(|kind| kind.state);
        if state == Some(SourceState::Complete) {
            self.set_state(kind, SourceState::Stale, None);
        }
    }

    /// Marks a kind as stale of whose objects other parts are needed: it counts as not read until it is listed.
    pub fn mark_outdated(&mut self, kind: &GroupKind) {
        self.mark_stale(kind);
        if let Some(tracked) = self.kinds.get_mut(kind) {
            tracked.is_restored |= tracked.state == SourceState::Stale;
            tracked.since = Instant::now();
        }
    }

    /// Reports whether objects of a kind are in use.
    pub fn was_read(&self, kind: &GroupKind) -> bool {
        let state = self.kinds.get(kind).map(|kind| kind.state);
        matches!(state, Some(SourceState::Complete | SourceState::Stale))
    }

    /// Reports whether a kind is tracked and complete.
    pub fn is_complete_kind(&self, kind: &GroupKind) -> bool {
        let kind = self.kinds.get(kind);
        kind.is_some_and(|kind| kind.state == SourceState::Complete)
    }

    /// Reports whether there are no changes to take.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.states.is_empty()
    }

    /// Takes the collected changes; also returns whether they can change the desired kinds.
    pub fn take_change(&mut self) -> (Change, bool) {
        let mut change = Change::default();
        for (key, object) in std::mem::take(&mut self.objects) {
            match object {
                Some(object) => change.upserts.push(object),
                None => change.deletes.push(key),
            }
        }
        let states = std::mem::take(&mut self.states).into_iter();
        change.states = states
            .map(|(kind, state)| KindState { kind, state })
            .collect();
        (change, std::mem::take(&mut self.decides))
    }

    /// Returns the current problems as pairs of kind and message.
    pub fn problems(&self) -> Vec<(String, String)> {
        let kinds = self.kinds.iter();
        let problems = kinds.flat_map(|(kind, tracked)| {
            let hint = match tracked.state {
                SourceState::Stale => " (the last known objects stay in use)",
                SourceState::Unknown if tracked.is_denied => {
                    "; it is FORBIDDEN once that is confirmed"
                }
                SourceState::Forbidden => {
                    ": grant `get`, `list` and `watch`; the state of this kind is FORBIDDEN"
                }
                _ => "",
            };
            let problem = tracked.problem().into_iter();
            let problem = problem.map(move |message| format!("{message}{hint}"));
            let messages = problem.chain(tracked.malformed.clone());
            let messages = messages.chain(tracked.unreadable_objects());
            messages.map(|message| (kind.to_string(), message))
        });
        problems.collect()
    }
}

/// Returns the kind that a CRD defines, and whether the CRD is established.
fn crd_status(crd: &Object) -> Option<(GroupKind, bool)> {
    let kind = crd.defined_kind()?;
    let conditions = crd.body.pointer("/status/conditions");
    let conditions = conditions.as_ref().and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let is_established = conditions
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    Some((kind, is_established))
}

#[cfg(test)]
#[path = "change_collector_tests.rs"]
mod tests;
