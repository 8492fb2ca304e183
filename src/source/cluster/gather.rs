//! What the kinds' watches have said, put together: one change, and how much is known of each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::kind::Said;
use crate::model::{Change, GroupKind, KindState, Object, ObjectKey, SourceState, groups};

/// The kinds that are followed, and what of them no step has told yet.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    kinds: BTreeMap<GroupKind, Kind>,
    /// The last word on each object: what it is, or that it is gone.
    objects: BTreeMap<ObjectKey, Option<Arc<Object>>>,
    states: BTreeMap<GroupKind, SourceState>,
    /// Whether CRDs or profiles are among the objects: they decide what is wanted.
    decides: bool,
}

/// A kind that is wanted.
#[derive(Debug)]
struct Kind {
    state: SourceState,
    /// The objects that it has.
    known: BTreeSet<ObjectKey>,
    /// What is wrong with it.
    problem: Option<String>,
    /// What is wrong with objects of it.
    malformed: Option<String>,
}

impl Gathered {
    /// A kind is wanted from now on, and nothing is known of it.
    pub fn begin(&mut self, kind: &GroupKind) {
        let new = Kind {
            state: SourceState::Unknown,
            known: BTreeSet::new(),
            problem: None,
            malformed: None,
        };
        if let Some(before) = self.kinds.insert(kind.clone(), new) {
            self.forget(before);
        }
        self.states.insert(kind.clone(), SourceState::Unknown);
    }

    /// A kind is not served: it has no objects.
    pub fn absent(&mut self, kind: &GroupKind) {
        self.begin(kind);
        self.settle(kind, SourceState::Complete, None);
    }

    /// A kind is not wanted any more.
    pub fn end(&mut self, kind: &GroupKind) {
        if let Some(before) = self.kinds.remove(kind) {
            self.forget(before);
            // There is nothing of it to know.
            self.states.insert(kind.clone(), SourceState::Complete);
        }
    }

    fn forget(&mut self, kind: Kind) {
        let gone = kind.known.into_iter();
        self.objects.extend(gone.map(|key| (key, None)));
    }

    /// Takes what a kind's watch says.
    pub fn take(&mut self, kind: &GroupKind, said: Said) {
        if !self.kinds.contains_key(kind) {
            return;
        }
        self.decides |= kind.is(groups::APIEXTENSIONS, "CustomResourceDefinition")
            || kind.is(groups::ENTAIL, "PolicyProfile");
        match said {
            Said::Listed(objects) => self.list(kind, objects),
            Said::Applied(object) => self.put(kind, object),
            Said::Deleted(key) => {
                if let Some(kind) = self.kinds.get_mut(kind) {
                    kind.known.remove(&key);
                }
                self.objects.insert(key, None);
            }
            Said::Forbidden(message) => {
                self.settle(kind, SourceState::Forbidden, Some(message));
            }
            Said::Trouble(message) => {
                // What was known stays in use; before the first list that is nothing.
                let state = match self.kinds.get(kind).map(|kind| kind.state) {
                    Some(SourceState::Complete | SourceState::Stale) => SourceState::Stale,
                    Some(state) => state,
                    None => return,
                };
                self.settle(kind, state, Some(message));
            }
            Said::Resumed => {
                let state = self.kinds.get(kind).map(|kind| kind.state);
                if state.is_some_and(|state| state != SourceState::Unknown) {
                    self.settle(kind, SourceState::Complete, None);
                }
            }
            Said::Malformed(message) => {
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
        let before = std::mem::replace(&mut known.known, listed);
        let gone = before.difference(&known.known);
        self.objects.extend(gone.map(|key| (key.clone(), None)));
        for object in objects {
            self.objects.insert(object.key.clone(), Some(object));
        }
        self.settle(kind, SourceState::Complete, None);
    }

    fn put(&mut self, kind: &GroupKind, object: Arc<Object>) {
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.known.insert(object.key.clone());
        }
        self.objects.insert(object.key.clone(), Some(object));
    }

    fn settle(&mut self, kind: &GroupKind, state: SourceState, problem: Option<String>) {
        let Some(known) = self.kinds.get_mut(kind) else {
            return;
        };
        known.problem = problem;
        if known.state != state {
            known.state = state;
            self.states.insert(kind.clone(), state);
        }
    }

    /// Whether each kind is known or known to be out of reach.
    pub fn is_settled(&self) -> bool {
        let mut kinds = self.kinds.values();
        kinds.all(|kind| kind.state != SourceState::Unknown)
    }

    /// Whether there is anything to tell.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.states.is_empty()
    }

    /// Everything since the last time as one change, and whether it decides what is wanted.
    pub fn change(&mut self) -> (Change, bool) {
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

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
