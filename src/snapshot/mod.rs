//! The immutable snapshot that look-ups are answered from, and the one cell that holds it.
//!
//! A snapshot holds every answer encoded, equal answers once. The world behind it, of the same
//! generation, is read when somebody asks for more than answers: look-ups never wait for it.

mod build;
mod cell;
mod encode;
mod publisher;
mod rows;
mod views;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

pub use cell::Snapshots;
pub use encode::Work;
pub use publisher::Publisher;
pub use rows::{MostPaths, Row, Rows, TooManyPaths};
pub use views::{Current, Followed, View};

use crate::api::{EncodedGetEffectivePoliciesResponse, etag_of_all, v1};
use build::{Tails, shared};
use encode::Encoder;
use entail_core::effective::{Statuses, World};
use entail_core::engine::Ways;
use entail_core::model::{Chunks, GroupKind, PathName, PathReason, Str};
use entail_core::routing::{Entrance, Found, Request, Rules};
use entail_core::store::Projection;
use entail_core::topology::Plan;
use publisher::{Behind, Touched};

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
    /// How they differ from those of the snapshot before.
    touched: Touched,
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
            plan: Arc::clone(&self.plan),
            ways: Arc::clone(&self.ways),
            bodies: self.bodies.clone(),
            touched: Touched::States {
                since: version.generation,
                states: Vec::new(),
            },
            distinct: self.distinct,
            paths: self.paths,
            behind: self.behind.clone(),
            statuses: self.statuses.clone(),
            version,
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

    /// The answer of the paths of a slot of [`Rows`] that fit.
    pub fn body_of(&self, rows: &Rows, slot: u32) -> Option<&Arc<Body>> {
        self.bodies.get(rows.state(slot)? as usize)
    }

    /// Whether the paths are those of another snapshot, and found the same way.
    fn has_paths_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.plan, &other.plan) && Arc::ptr_eq(&self.ways, &other.ways)
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

    /// Whether objects of a kind decide which paths there are, and what policies mean: all answers
    /// rest on them.
    pub fn is_of_paths(kind: &GroupKind) -> bool {
        Projection::is_of_paths(kind)
    }

    /// Whether a kind has a profile.
    pub fn knows(&self, kind: &GroupKind) -> bool {
        self.tails.known.contains(kind)
    }

    /// The rules that a request takes (Gateway API, precedence). The first request at a listener
    /// makes its index, which takes as long as there are routes: with `in_haste` that is not done,
    /// and the answer is none.
    pub fn resolve(
        &self,
        entrance: &Entrance,
        request: &Request,
        rules: Rules,
        in_haste: bool,
    ) -> Option<Found> {
        let behind = &self.behind;
        let world = (&*behind.topology, &behind.store);
        behind
            .matcher
            .find(world, entrance, request, rules, in_haste)
    }

    /// The names of the paths of all listeners that a Gateway has or admits; of all Gateways if none
    /// is named, and nothing if those are more than `most`.
    pub fn listener_paths(
        &self,
        gateway: Option<(&str, &str)>,
        most: usize,
    ) -> Option<Vec<String>> {
        self.behind.topology.listener_paths(gateway, most)
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

    /// The etag of the kinds that are wanted, all if none are named: of the reply that has them
    /// alone.
    pub fn etag_of(&self, wanted: &[GroupKind]) -> String {
        if wanted.is_empty() {
            return self.etag.to_string();
        }
        etag_of_all(self.wanted(wanted).map(|part| &*part.etag))
    }

    /// Field `policies` of the kinds that are wanted, one after the other, each with its key and
    /// length.
    pub fn policies<'b>(&'b self, wanted: &'b [GroupKind]) -> impl Iterator<Item = &'b Bytes> {
        self.wanted(wanted).map(|part| &part.bytes)
    }

    fn wanted<'b>(&'b self, wanted: &'b [GroupKind]) -> impl Iterator<Item = &'b Arc<Part>> {
        let parts = self.parts.iter();
        parts.filter(move |part| wanted.is_empty() || wanted.contains(&part.kind))
    }
}
