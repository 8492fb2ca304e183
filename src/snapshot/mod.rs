//! The immutable snapshot that look-ups are answered from, and the one cell that holds it.
//!
//! A snapshot holds every answer encoded, equal answers once. The world behind it, of the same
//! generation, is read when somebody asks for more than answers: look-ups never wait for it.

mod build;
mod cell;
mod chunks;
mod encode;
mod publisher;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

pub use cell::Snapshots;
pub use encode::Work;
pub use publisher::Publisher;

use crate::model::{GroupKind, PathName, PathReason, Str};
use crate::resolve::{Statuses, Ways, World};
use crate::topology::Plan;
use crate::wire::{EncodedGetEffectivePoliciesResponse, etag_of_all, v1};
use build::{Tails, shared};
use chunks::Chunks;
use encode::Encoder;
use publisher::Behind;

/// What a snapshot says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// Changes with every start of the server.
    pub epoch: Str,
    /// Grows by one with every published snapshot whose answers may differ from the last one's.
    pub generation: u64,
    /// When all sources were last known to be in step.
    pub synced_at: prost_types::Timestamp,
}

/// All answers of one generation.
#[derive(Debug)]
pub struct Snapshot {
    version: Version,
    plan: Arc<Plan>,
    ways: Arc<Ways>,
    /// The answer of each state.
    bodies: Chunks<Arc<Body>>,
    distinct: usize,
    paths: u64,
    tails: Tails,
    behind: Behind,
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
    /// The kinds' answers.
    parts: Vec<Arc<Part>>,
}

/// The answer of one kind: field `policies`, with its key and length.
#[derive(Debug, PartialEq)]
struct Part {
    kind: GroupKind,
    bytes: Bytes,
    etag: String,
}

impl Snapshot {
    /// The same answers, known to be in step at a later time.
    #[must_use]
    pub fn synced(&self, at: prost_types::Timestamp) -> Self {
        let version = Version {
            synced_at: at,
            ..self.version.clone()
        };
        Self {
            tails: self.tails.at(&version),
            version,
            plan: Arc::clone(&self.plan),
            ways: Arc::clone(&self.ways),
            bodies: self.bodies.clone(),
            distinct: self.distinct,
            paths: self.paths,
            behind: self.behind.clone(),
            statuses: self.statuses.clone(),
        }
    }

    /// The answer of a path. Allocates nothing: the name is parsed in place, and each of its steps
    /// is two probes, one for the place and one for the state.
    pub fn look_up(&self, path: &PathName<'_>) -> Option<&Body> {
        let mut state = Some(0);
        self.plan.walk(path, |place| {
            state = state.and_then(|state| self.ways.after(state, place));
        })?;
        self.bodies.get(state? as usize).map(|body| &**body)
    }

    /// The reply to a look-up of all kinds. Allocates nothing.
    pub fn reply(&self, body: &Body) -> EncodedGetEffectivePoliciesResponse {
        EncodedGetEffectivePoliciesResponse {
            result: body.result.clone(),
            tail: self.tails.get.clone(),
        }
    }

    /// The fields that every Get reply of this snapshot ends with.
    pub fn get_tail(&self) -> &Bytes {
        &self.tails.get
    }

    /// The fields that every Batch reply of this snapshot ends with.
    pub fn batch_tail(&self) -> &Bytes {
        &self.tails.batch
    }

    /// Field `policies` of the kinds that are wanted, one after the other, each with its key and
    /// length.
    pub fn policies<'s>(
        &self,
        body: &'s Body,
        wanted: &'s [GroupKind],
    ) -> impl Iterator<Item = &'s Bytes> {
        body.parts
            .iter()
            .filter(move |part| wanted.is_empty() || wanted.contains(&part.kind))
            .map(|part| &part.bytes)
    }

    /// The etag of the kinds that are wanted: of the reply that has them alone.
    pub fn etag(&self, body: &Body, wanted: &[GroupKind]) -> String {
        let parts = body.parts.iter();
        let chosen = parts.filter(|p| wanted.is_empty() || wanted.contains(&p.kind));
        etag_of_all(chosen.map(|part| &*part.etag))
    }

    /// The world that the answers were computed from. The first call may read it, which takes as
    /// long as reading everything from scratch.
    pub fn world(&self) -> &Arc<World> {
        self.behind.world()
    }

    /// The statuses of all policies, computed once.
    pub fn statuses(&self) -> Arc<Statuses> {
        let statuses = self
            .statuses
            .get_or_init(|| Arc::new(self.world().statuses()));
        Arc::clone(statuses)
    }

    /// What the snapshot says of itself.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The kinds of which not everything is known.
    pub fn kinds(&self) -> &[v1::KindState] {
        &self.tails.kinds
    }

    /// Whether a kind has a profile.
    pub fn knows(&self, kind: &GroupKind) -> bool {
        self.tails.known.contains(kind)
    }

    /// Why something is no path (SEMANTICS §1.4).
    pub fn why_not(&self, path: &PathName<'_>) -> PathReason {
        self.behind.why_not(path)
    }

    /// Addressable paths.
    pub fn paths(&self) -> u64 {
        self.paths
    }

    /// Distinct answers that they share.
    pub fn distinct_answers(&self) -> usize {
        self.distinct
    }
}

impl Body {
    /// Equal for equal answers, on every replica.
    pub fn etag(&self) -> &str {
        &self.etag
    }
}
