//! What a snapshot says of itself, encoded.

use bytes::Bytes;

use super::Version;
use crate::api::{get_tail, v1};
use entail_core::effective::World;
use entail_core::model::{GroupKind, SourceState};

/// The fields that every reply of a snapshot ends with.
#[derive(Debug)]
pub(super) struct ReplyTail {
    /// Fields `version`, `synced_at` and `kinds` of a Get reply, encoded.
    pub get: Bytes,
    /// The same where something was missing that cannot be: all kinds are unknown.
    pub failed: Bytes,
    /// The kinds of which not everything is known.
    pub kinds: Vec<v1::KindState>,
    /// The kinds that have a profile.
    pub known: Vec<GroupKind>,
}

impl ReplyTail {
    pub fn of(world: &World, version: &Version) -> Self {
        let kinds = world.kinds().iter();
        let known = kinds.map(|kind| kind.profile().policy.clone());
        Self::with(incomplete(world), known.collect(), version)
    }

    /// The same of another version.
    pub fn at(&self, version: &Version) -> Self {
        Self::with(self.kinds.clone(), self.known.clone(), version)
    }

    fn with(kinds: Vec<v1::KindState>, known: Vec<GroupKind>, version: &Version) -> Self {
        let tail =
            |kinds: &[_]| shared_bytes(get_tail(version.message(), version.synced_at, kinds));
        let unknown = known.iter().map(|kind| v1::KindState {
            kind: kind.to_string(),
            state: v1::kind_state::State::Unknown.into(),
        });
        let mut failed: Vec<v1::KindState> = unknown.collect();
        failed.sort_by(|a, b| a.kind.cmp(&b.kind));
        Self {
            get: tail(&kinds),
            failed: tail(&failed),
            kinds,
            known,
        }
    }
}

/// Bytes that are counted from the start: those of a plain vector allocate their count when they
/// are cloned for the first time, which would be in a look-up.
pub(super) fn shared_bytes(bytes: Vec<u8>) -> Bytes {
    let bytes = Bytes::from(bytes);
    drop(bytes.clone());
    bytes
}

/// The kinds of which not everything is known (specification 2.5).
fn incomplete(world: &World) -> Vec<v1::KindState> {
    let known = world.kinds().iter().map(|kind| &kind.profile().policy);
    let policies = known.chain(world.refused());
    let policies = policies.map(|kind| (kind, world.state(kind)));
    // Of what paths are made of no answer says anything; all rest on it.
    let others = world.store().states();
    let others = others.filter(|(kind, _)| world.kind(kind).is_none());
    let mut kinds: Vec<v1::KindState> = policies
        .chain(others)
        .filter_map(|(kind, state)| {
            let state = match state {
                SourceState::Complete => return None,
                SourceState::Stale => v1::kind_state::State::Stale,
                SourceState::Forbidden => v1::kind_state::State::Forbidden,
                SourceState::Unknown => v1::kind_state::State::Unknown,
            };
            Some(v1::KindState {
                kind: kind.to_string(),
                state: state.into(),
            })
        })
        .collect();
    kinds.sort_by(|a, b| a.kind.cmp(&b.kind));
    kinds.dedup_by(|a, b| a.kind == b.kind);
    kinds
}

impl Version {
    /// The message of the version.
    pub fn message(&self) -> v1::Version {
        v1::Version {
            epoch: self.epoch.to_string(),
            generation: self.generation,
        }
    }
}
