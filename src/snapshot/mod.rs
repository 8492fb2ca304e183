//! The immutable snapshot that look-ups are answered from, and the one cell that holds it.
//!
//! A snapshot holds every answer encoded, equal answers once, and the world that they were
//! computed from, of one generation: a reply never mixes two versions.

mod build;
mod cell;
mod index;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

pub use cell::Snapshots;

use crate::model::{GroupKind, PathName, Str};
use crate::resolve::{Statuses, World};
use crate::wire::{EncodedGetEffectivePoliciesResponse, v1};
use index::PathIndex;

/// What a snapshot says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// Changes with every start of the server.
    pub epoch: Str,
    /// Grows by one with every published snapshot.
    pub generation: u64,
    /// When all sources were last known to be in step.
    pub synced_at: prost_types::Timestamp,
}

/// All answers of one generation.
#[derive(Debug)]
pub struct Snapshot {
    version: Version,
    world: Arc<World>,
    index: PathIndex,
    bodies: Vec<Body>,
    parts: Vec<Part>,
    /// Fields `version`, `synced_at` and `kinds` of a Get reply, encoded.
    get_tail: Bytes,
    /// The same for a Batch reply.
    batch_tail: Bytes,
    kinds: Vec<v1::KindState>,
    /// Computed when somebody asks: look-ups do not need them.
    statuses: OnceLock<Arc<Statuses>>,
}

/// The answer of a path: all kinds.
#[derive(Debug)]
pub struct Body {
    /// Field `result` of a Get reply: `PathPolicies` with its key and length.
    result: Bytes,
    /// Its etag.
    etag: Str,
    /// The kinds' answers, indexes of parts.
    parts: Vec<u32>,
}

/// The answer of one kind: field `policies`, with its key and length.
#[derive(Debug)]
struct Part {
    kind: GroupKind,
    bytes: Bytes,
}

impl Snapshot {
    /// The answer of a path. Allocates nothing: the name is parsed in place and each of its steps
    /// is one probe.
    pub fn look_up(&self, path: &PathName<'_>) -> Option<&Body> {
        let body = self.index.find(path)?;
        self.bodies.get(body as usize)
    }

    /// The reply to a look-up of all kinds. Allocates nothing.
    pub fn reply(&self, body: &Body) -> EncodedGetEffectivePoliciesResponse {
        EncodedGetEffectivePoliciesResponse {
            result: body.result.clone(),
            tail: self.get_tail.clone(),
        }
    }

    /// The fields that every Get reply of this snapshot ends with.
    pub fn get_tail(&self) -> &Bytes {
        &self.get_tail
    }

    /// The fields that every Batch reply of this snapshot ends with.
    pub fn batch_tail(&self) -> &Bytes {
        &self.batch_tail
    }

    /// Field `policies` of the kinds that are wanted, one after the other, each with its key and
    /// length.
    pub fn policies<'s>(
        &'s self,
        body: &'s Body,
        wanted: &'s [GroupKind],
    ) -> impl Iterator<Item = &'s Bytes> {
        body.parts
            .iter()
            .filter_map(|&part| self.parts.get(part as usize))
            .filter(move |part| wanted.is_empty() || wanted.contains(&part.kind))
            .map(|part| &part.bytes)
    }

    /// The world that the answers were computed from.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// The statuses of all policies, computed once.
    pub fn statuses(&self) -> Arc<Statuses> {
        let statuses = self
            .statuses
            .get_or_init(|| Arc::new(self.world.statuses()));
        Arc::clone(statuses)
    }

    /// What the snapshot says of itself.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The kinds of which not everything is known.
    pub fn kinds(&self) -> &[v1::KindState] {
        &self.kinds
    }

    /// Addressable paths.
    pub fn paths(&self) -> usize {
        self.index.len()
    }

    /// Distinct answers that they share.
    pub fn distinct_answers(&self) -> usize {
        self.bodies.len()
    }
}

impl Body {
    /// Equal for equal answers, on every replica.
    pub fn etag(&self) -> &str {
        &self.etag
    }
}
