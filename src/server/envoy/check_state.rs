//! The state of one `Check` call.

use std::sync::Arc;

use super::answer::EnvoyAnswer;
use super::settings::CheckFailure;
use crate::api::v1::kind_state::State;
use crate::api::{ALL_KINDS, v1};
use crate::insight::{AccessScope, incomplete_kinds};
use crate::snapshot::{PathAnswer, Snapshot};
use entail_core::model::GroupKind;

/// The path that was selected for a request.
pub(in crate::server) struct PathChoice {
    pub path: String,
    /// Whether this is the only path that the request can take. If not, all candidates have equal
    /// effective policies.
    pub is_only: bool,
}

/// The result of evaluating one request.
#[derive(Default)]
pub(in crate::server) struct CheckState {
    /// Name of the selected path.
    pub path: Option<String>,
    /// Whether the path is the only one that the request can take.
    pub is_only: bool,
    /// Metadata and headers of the path.
    pub answer: Option<Arc<EnvoyAnswer>>,
    /// The selected kinds whose state is not COMPLETE.
    pub incomplete: Vec<String>,
    /// Failures with their messages, in the order of detection.
    pub failures: Vec<(CheckFailure, String)>,
}

impl PathChoice {
    /// Selects the only path that the request can take.
    pub fn only(path: String) -> Self {
        Self {
            path,
            is_only: true,
        }
    }
}

impl CheckState {
    /// Records the selected kinds whose state is not COMPLETE as failures. A kind that the caller
    /// may not see counts as UNKNOWN, because a deny rule about it would never be true.
    pub fn check_kinds(&mut self, snapshot: &Snapshot, kinds: &[GroupKind], scope: &AccessScope) {
        let is_selected = |kind: &v1::KindState| {
            // All answers depend on the kinds that form the topology.
            kinds.is_empty()
                || kind.kind == ALL_KINDS
                || kinds
                    .iter()
                    .any(|selected| selected.names(&GroupKind::parse(&kind.kind)))
                || Snapshot::affects_topology(&GroupKind::parse(&kind.kind))
        };
        // A selected kind without a profile is incomplete even if its objects are only stale.
        let is_stale = |kind: &v1::KindState| {
            let key = GroupKind::parse(&kind.kind);
            kind.state() == State::Stale && (snapshot.has_profile(&key) || !kinds.contains(&key))
        };
        let states = incomplete_kinds(snapshot, kinds, scope).into_iter();
        let (stale, incomplete): (Vec<_>, Vec<_>) = states.filter(is_selected).partition(is_stale);
        if let Some(first) = incomplete.first() {
            let message = format!("the data of {} is incomplete", first.kind);
            self.failures.push((CheckFailure::Incomplete, message));
        }
        if let Some(v1::KindState { kind, .. }) = stale.first() {
            let message = match &**kind {
                ALL_KINDS => "some input cannot be read".to_owned(),
                kind => format!("the data of {kind} is stale: the source does not respond"),
            };
            self.failures.push((CheckFailure::Stale, message));
        }
        let both = incomplete.into_iter().chain(stale);
        self.incomplete = both.map(|kind| kind.kind).collect();
    }

    /// Records the selected kinds that are not fully known on the path as failures (specification 2.5).
    pub fn check_path(&mut self, answer: &PathAnswer, kinds: &[GroupKind]) {
        for (kind, unknown) in answer.unknown(kinds) {
            let kind = kind.to_string();
            if !self.incomplete.contains(&kind) {
                let message = format!("{kind} is not fully known: {}", unknown.message);
                self.failures.push((CheckFailure::Incomplete, message));
                self.incomplete.push(kind);
            }
        }
    }
}
