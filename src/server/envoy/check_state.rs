//! What is found out about a request.

use std::sync::Arc;

use super::answer::EnvoyAnswer;
use super::settings::CheckFailure;
use crate::api::v1;
use crate::api::v1::kind_state::State;
use crate::insight::{AccessScope, incomplete_kinds};
use crate::snapshot::Snapshot;
use entail_core::model::GroupKind;

/// The path that is looked up for a request.
pub(in crate::server) struct PathChoice {
    pub path: String,
    /// Whether the request may take no other, on which the same holds.
    pub is_only: bool,
}

/// What is found out about a request.
#[derive(Default)]
pub(in crate::server) struct CheckState {
    pub path: Option<String>,
    /// Whether it is the only one that the request may take.
    pub is_only: bool,
    pub answer: Option<Arc<EnvoyAnswer>>,
    /// The chosen kinds of which not everything is known.
    pub incomplete: Vec<String>,
    /// What goes wrong, in the order in which it was found.
    pub failures: Vec<(CheckFailure, String)>,
}

impl PathChoice {
    pub fn only(path: String) -> Self {
        Self {
            path,
            is_only: true,
        }
    }
}

impl CheckState {
    /// Takes note of the chosen kinds of which not everything is known. One that the caller may not
    /// see is one of them: a rule that denies by it would never be true.
    pub fn take_kinds(&mut self, snapshot: &Snapshot, kinds: &[GroupKind], scope: &AccessScope) {
        let is_chosen = |kind: &v1::KindState| {
            // All answers rest on what paths are made of.
            kinds.is_empty()
                || kinds.iter().any(|chosen| chosen.to_string() == kind.kind)
                || Snapshot::affects_topology(&GroupKind::parse(&kind.kind))
        };
        // What is chosen and has no profile is not known, however old it is.
        let is_old = |kind: &v1::KindState| {
            let key = GroupKind::parse(&kind.kind);
            kind.state() == State::Stale && (snapshot.has_profile(&key) || !kinds.contains(&key))
        };
        let told = incomplete_kinds(snapshot, kinds, scope).into_iter();
        let (stale, incomplete): (Vec<_>, Vec<_>) = told.filter(is_chosen).partition(is_old);
        if let Some(first) = incomplete.first() {
            let message = format!("not everything is known of {}", first.kind);
            self.failures.push((CheckFailure::Incomplete, message));
        }
        if let Some(v1::KindState { kind, .. }) = stale.first() {
            let message = format!("{kind} is stale: what is known is the last good state");
            self.failures.push((CheckFailure::Stale, message));
        }
        let both = incomplete.into_iter().chain(stale);
        self.incomplete = both.map(|kind| kind.kind).collect();
    }
}
