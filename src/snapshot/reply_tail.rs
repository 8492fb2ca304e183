//! The encoded last fields of every reply of a snapshot.

use std::sync::OnceLock;

use bytes::Bytes;

use super::Version;
use crate::api::{ALL_KINDS, StateReason, get_tail, v1};
use entail_core::effective::World;

/// The last fields of every reply of a snapshot.
#[derive(Debug)]
pub(super) struct ReplyTail {
    /// The encoded fields `version`, `synced_at` and `kinds` of a Get reply.
    pub get: Bytes,
    /// The same fields after an internal error, which is rare.
    failed: OnceLock<Bytes>,
    /// The kinds whose state is not complete.
    pub kinds: Vec<v1::KindState>,
}

impl ReplyTail {
    pub fn of(world: &World, version: &Version) -> Self {
        Self::with(incomplete(world), version)
    }

    /// Returns the tail with another version.
    pub fn at(&self, version: &Version) -> Self {
        Self::with(self.kinds.clone(), version)
    }

    fn with(kinds: Vec<v1::KindState>, version: &Version) -> Self {
        Self {
            get: encoded(&kinds, version),
            failed: OnceLock::new(),
            kinds,
        }
    }

    /// The fields of a Get reply after an internal error: all kinds of the world are UNKNOWN.
    pub fn failed(&self, world: &World, version: &Version) -> &Bytes {
        self.failed.get_or_init(|| {
            let kinds = world.profiled_kinds();
            let names = kinds.map(|kind| kind.profile().policy.to_string());
            let unknown = names.map(|name| StateReason::InternalError.kind_state(name));
            let mut unknown: Vec<v1::KindState> = unknown.collect();
            unknown.sort_by(|a, b| a.kind.cmp(&b.kind));
            encoded(&unknown, version)
        })
    }
}

fn encoded(kinds: &[v1::KindState], version: &Version) -> Bytes {
    shared_bytes(get_tail(version.message(), version.synced_at, kinds))
}

/// Converts a vector to shared bytes. The first clone allocates the reference count, so it is made
/// here and not in a look-up.
pub(super) fn shared_bytes(bytes: Vec<u8>) -> Bytes {
    let bytes = Bytes::from(bytes);
    drop(bytes.clone());
    bytes
}

/// The kinds whose state is not complete (specification 2.5).
fn incomplete(world: &World) -> Vec<v1::KindState> {
    let known = world.profiled_kinds().map(|kind| {
        let policy = &kind.profile().policy;
        let state = world.store().state(kind.profile().resource());
        let state = state.and_then(StateReason::of);
        let fault = kind.fault().map(|_| StateReason::InternalError);
        (policy, fault.or(state))
    });
    let dependent = world.profiled_kinds().filter_map(|kind| {
        let own = world.store().state(kind.profile().resource());
        let (state, other) = world.dependency_state(kind)?;
        let is_worse = kind.fault().is_none() && Some(state) > own;
        let reason = StateReason::of(state).filter(|_| is_worse)?;
        Some(reason.of_dependent(kind.profile().policy.to_string(), other))
    });
    let refused = world.refused().iter();
    let refused = refused.map(|kind| (kind, Some(StateReason::ProfileRefused)));
    // Kinds of the topology: they have no policies, but all answers depend on them.
    let others = world.store().states();
    let others =
        others.filter(|(kind, _)| !kind.is_assertion() && world.kinds_of(kind).next().is_none());
    let others = others.map(|(kind, state)| (kind, StateReason::of(state)));
    let all = world.store().lacks_input();
    let all = all.then(|| StateReason::InputUnreadable.kind_state(ALL_KINDS.to_owned()));
    let own = refused.chain(known).chain(others);
    let own = own.filter_map(|(kind, reason)| Some(reason?.kind_state(kind.to_string())));
    // The first of a kind stays.
    let mut kinds: Vec<v1::KindState> = dependent.chain(own).chain(all).collect();
    kinds.sort_by(|a, b| a.kind.cmp(&b.kind));
    kinds.dedup_by(|a, b| a.kind == b.kind);
    kinds
}

impl Version {
    /// Converts the version to its message.
    pub fn message(&self) -> v1::Version {
        v1::Version {
            epoch: self.epoch.to_string(),
            generation: self.generation,
        }
    }
}
