//! What the kinds' watches have said, put together: one change, and how much is known of each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::KnownObjects;
use super::kind_watch::KindUpdate;
use entail_core::model::{Change, GroupKind, KindState, Object, ObjectKey, SourceState};

/// The kinds that are followed, and what of them no step has told yet.
#[derive(Debug, Default)]
pub(super) struct ChangeCollector {
    kinds: BTreeMap<GroupKind, TrackedKind>,
    /// The last word on each object: what it is, or that it is gone.
    objects: BTreeMap<ObjectKey, Option<Arc<Object>>>,
    states: BTreeMap<GroupKind, SourceState>,
    /// Whether CRDs or profiles are among the objects: they decide what is wanted.
    decides: bool,
    /// The kinds that CRDs define, and whether the server says that it serves them.
    crds: BTreeMap<ObjectKey, (GroupKind, bool)>,
}

/// A kind that is wanted.
#[derive(Debug)]
struct TrackedKind {
    state: SourceState,
    /// The objects that it has.
    known: BTreeSet<ObjectKey>,
    /// What is wrong with it.
    problem: Option<String>,
    /// What is wrong with objects of it.
    malformed: Option<String>,
    /// What is known of it is from before the start.
    is_seed: bool,
    /// Its list is on its way: something may have been missed.
    is_listing: bool,
}

impl Default for TrackedKind {
    /// Nothing is known.
    fn default() -> Self {
        Self {
            state: SourceState::Unknown,
            known: BTreeSet::new(),
            problem: None,
            malformed: None,
            is_seed: false,
            is_listing: false,
        }
    }
}

impl ChangeCollector {
    /// What is known from before the start; it stays in use until the server says more.
    pub fn seed(&mut self, known: KnownObjects) {
        for (kind, known) in known {
            let seed = TrackedKind {
                state: SourceState::Stale,
                known,
                is_seed: true,
                ..TrackedKind::default()
            };
            self.kinds.insert(kind, seed);
        }
    }

    /// Whether what is known of a kind is from before the start.
    pub fn is_seed(&self, kind: &GroupKind) -> bool {
        self.kinds.get(kind).is_some_and(|kind| kind.is_seed)
    }

    /// The kinds that something is told of.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.kinds.keys()
    }

    /// A kind is wanted from now on, and no more is known of it than before the start.
    pub fn begin(&mut self, kind: &GroupKind) {
        if self.is_seed(kind) {
            return;
        }
        let new = TrackedKind::default();
        if let Some(before) = self.kinds.insert(kind.clone(), new) {
            self.forget(before);
        }
        self.states.insert(kind.clone(), SourceState::Unknown);
    }

    /// A kind is not served: it has no objects.
    pub fn mark_not_served(&mut self, kind: &GroupKind) {
        if let Some(before) = self.kinds.remove(kind) {
            self.forget(before);
        }
        self.begin(kind);
        self.set_state(kind, SourceState::Complete, None);
    }

    /// A kind is not wanted any more.
    pub fn end(&mut self, kind: &GroupKind) {
        if let Some(before) = self.kinds.remove(kind) {
            self.forget(before);
            // There is nothing of it to know.
            self.states.insert(kind.clone(), SourceState::Complete);
        }
    }

    fn forget(&mut self, kind: TrackedKind) {
        let gone = kind.known.into_iter();
        self.objects.extend(gone.map(|key| (key, None)));
    }

    /// Whether there is a CRD for a kind; `Some(true)` if the server says that it serves the kind.
    /// What the server lists as served has not everything yet while it starts.
    pub fn crd(&self, kind: &GroupKind) -> Option<bool> {
        let mut defined = self.crds.values();
        let found = defined.find(|(defined, _)| defined == kind);
        found.map(|(_, is_served)| *is_served)
    }

    /// Whether all CRDs are known.
    pub fn knows_crds(&self) -> bool {
        self.is_known(&GroupKind::crd())
    }

    fn record(&mut self, key: ObjectKey, object: Option<Arc<Object>>) {
        if key.kind.is_crd() {
            match object.as_deref().and_then(defined) {
                Some(defined) => self.crds.insert(key.clone(), defined),
                None => self.crds.remove(&key),
            };
        }
        self.objects.insert(key, object);
    }

    /// Takes what a kind's watch says.
    pub fn apply(&mut self, kind: &GroupKind, said: KindUpdate) {
        if !self.kinds.contains_key(kind) {
            return;
        }
        self.decides |= kind.defines_kinds();
        match said {
            KindUpdate::Listing => {
                if let Some(kind) = self.kinds.get_mut(kind) {
                    kind.is_listing = true;
                }
            }
            KindUpdate::Listed(objects) => self.list(kind, objects),
            KindUpdate::Applied(object) => self.put(kind, object),
            KindUpdate::Deleted(key) => {
                let kind = self.kinds.get_mut(kind);
                // What was never kept need not go.
                if kind.is_some_and(|kind| kind.known.remove(&key)) {
                    self.record(key, None);
                }
            }
            KindUpdate::Forbidden(message) => {
                self.set_state(kind, SourceState::Forbidden, Some(message));
            }
            KindUpdate::Error(message) => {
                // What was known stays in use; before the first list that is nothing.
                let state = match self.kinds.get(kind).map(|kind| kind.state) {
                    Some(SourceState::Complete | SourceState::Stale) => SourceState::Stale,
                    Some(state) => state,
                    None => return,
                };
                self.set_state(kind, state, Some(message));
            }
            KindUpdate::Resumed => {
                let state = self.kinds.get(kind).map(|kind| kind.state);
                if state.is_some_and(|state| state != SourceState::Unknown) {
                    self.set_state(kind, SourceState::Complete, None);
                }
            }
            KindUpdate::Malformed(message) => {
                if let Some(kind) = self.kinds.get_mut(kind) {
                    kind.malformed = Some(format!("an object is passed over: {message}"));
                }
            }
        }
    }

    /// A list is everything: what it does not have is gone.
    fn list(&mut self, kind: &GroupKind, objects: Vec<Arc<Object>>) {
        let Some(known) = self.kinds.get_mut(kind) else {
            return;
        };
        let listed = objects.iter().map(|object| object.key.clone()).collect();
        known.malformed = None;
        known.is_listing = false;
        let before = std::mem::replace(&mut known.known, listed);
        let gone: Vec<ObjectKey> = before.difference(&known.known).cloned().collect();
        for key in gone {
            self.record(key, None);
        }
        for object in objects {
            self.record(object.key.clone(), Some(object));
        }
        self.set_state(kind, SourceState::Complete, None);
    }

    fn put(&mut self, kind: &GroupKind, object: Arc<Object>) {
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.known.insert(object.key.clone());
        }
        self.record(object.key.clone(), Some(object));
    }

    fn set_state(&mut self, kind: &GroupKind, state: SourceState, problem: Option<String>) {
        let Some(known) = self.kinds.get_mut(kind) else {
            return;
        };
        known.problem = problem;
        known.is_seed &= state == SourceState::Stale;
        if known.state != state {
            known.state = state;
            self.states.insert(kind.clone(), state);
        }
    }

    /// Whether each kind is known or known to be out of reach.
    pub fn is_complete(&self) -> bool {
        let mut kinds = self.kinds.values();
        kinds.all(|kind| kind.state != SourceState::Unknown && !kind.is_seed)
    }

    /// Whether something that is known may be out of step.
    pub fn has_stale_kinds(&self) -> bool {
        let mut kinds = self.kinds.values();
        kinds.any(|kind| kind.state == SourceState::Stale || kind.is_listing)
    }

    /// Whether something is on its way that nothing is known of.
    pub fn is_loading(&self) -> bool {
        let mut kinds = self.kinds.values();
        kinds.any(|kind| kind.state == SourceState::Unknown && kind.problem.is_none())
    }

    /// What is known of a kind stays in use, and is not followed for now.
    pub fn mark_stale(&mut self, kind: &GroupKind) {
        let state = self.kinds.get(kind).map(|kind| kind.state);
        if state == Some(SourceState::Complete) {
            self.set_state(kind, SourceState::Stale, None);
        }
    }

    /// Whether all objects of a kind are known.
    pub fn is_known(&self, kind: &GroupKind) -> bool {
        let kind = self.kinds.get(kind);
        kind.is_some_and(|kind| kind.state == SourceState::Complete)
    }

    /// Whether there is anything to tell.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.states.is_empty()
    }

    /// Everything since the last time as one change, and whether it decides what is wanted.
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

    /// What is wrong now.
    pub fn problems(&self) -> Vec<(String, String)> {
        let kinds = self.kinds.iter();
        let told = kinds.flat_map(|(kind, known)| {
            let kept = match known.state {
                SourceState::Stale => " (what was known stays in use)",
                SourceState::Forbidden => {
                    ": grant `get`, `list` and `watch`; nothing is said of policies of this kind"
                }
                _ => "",
            };
            let problem = known.problem.iter().map(move |why| format!("{why}{kept}"));
            let told = problem.chain(known.malformed.clone());
            told.map(|message| (kind.to_string(), message))
        });
        told.collect()
    }
}

/// The kind that a CRD defines, and whether the server says that it serves it.
fn defined(crd: &Object) -> Option<(GroupKind, bool)> {
    let kind = crd.defined_kind()?;
    let conditions = crd.body.pointer("/status/conditions");
    let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    let is_served = conditions
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    Some((kind, is_served))
}

#[cfg(test)]
#[path = "change_collector_tests.rs"]
mod tests;
