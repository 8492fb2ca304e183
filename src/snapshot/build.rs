//! Builds a snapshot of a world: every distinct answer is computed and encoded once.

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;

use super::index::PathIndex;
use super::{Body, Part, Snapshot, Version};
use crate::model::{PathName, SourceState};
use crate::resolve::{Frames, World};
use crate::topology::Trail;
use crate::wire::{batch_tail, effective_policy, etag, get_tail, policies_field, result_field, v1};

/// A snapshot in the making.
struct Builder<'w> {
    world: &'w World,
    index: PathIndex,
    parts: Vec<Part>,
    bodies: Vec<Body>,
    /// Frames whose answer is known: `None` where it says nothing.
    by_frames: Vec<HashMap<Frames, Option<u32>>>,
    by_bytes: HashMap<Bytes, u32>,
    by_parts: HashMap<Vec<u32>, u32>,
}

impl Snapshot {
    /// Computes and encodes every answer of a world.
    pub fn build(world: Arc<World>, version: Version) -> Self {
        let mut builder = Builder {
            world: &world,
            index: PathIndex::default(),
            parts: Vec::new(),
            bodies: Vec::new(),
            by_frames: world.kinds().iter().map(|_| HashMap::new()).collect(),
            by_bytes: HashMap::new(),
            by_parts: HashMap::new(),
        };
        world.topology().visit(&mut |name, trail| {
            // The names that the topology makes are names of paths.
            if let Ok(path) = PathName::parse(name) {
                let body = builder.body(trail);
                builder.index.put(&path, trail.rule, body);
            }
        });
        builder.index.shrink();
        let kinds = incomplete(&world);
        let Builder {
            index,
            parts,
            bodies,
            ..
        } = builder;
        Self {
            get_tail: shared(get_tail(version.message(), version.synced_at, &kinds)),
            batch_tail: shared(batch_tail(version.message(), version.synced_at, &kinds)),
            version,
            index,
            parts,
            bodies,
            kinds,
            world,
            statuses: std::sync::OnceLock::new(),
        }
    }
}

impl Builder<'_> {
    /// The body of a path.
    fn body(&mut self, trail: &Trail) -> u32 {
        let mut parts = Vec::new();
        for (number, kind) in self.world.kinds().iter().enumerate() {
            let Some(frames) = self.world.frames(kind, trail) else {
                continue;
            };
            let known = self.by_frames.get(number).and_then(|m| m.get(&frames));
            let part = match known {
                Some(part) => *part,
                None => {
                    let part = self.part(number, &frames);
                    if let Some(map) = self.by_frames.get_mut(number) {
                        map.insert(frames, part);
                    }
                    part
                }
            };
            parts.extend(part);
        }
        match self.by_parts.get(&parts) {
            Some(&body) => body,
            None => self.add_body(parts),
        }
    }

    /// The encoded answer of a kind; `None` if it says nothing.
    fn part(&mut self, number: usize, frames: &Frames) -> Option<u32> {
        let kind = self.world.kinds().get(number)?;
        let effective = self.world.answer(kind, frames);
        if effective.is_silent() {
            return None;
        }
        let group_kind = &kind.profile().policy;
        let message = effective_policy(group_kind, &effective);
        let bytes = Bytes::from(policies_field(&message));
        if let Some(&part) = self.by_bytes.get(&bytes) {
            return Some(part);
        }
        let part = u32::try_from(self.parts.len()).ok()?;
        self.by_bytes.insert(bytes.clone(), part);
        self.parts.push(Part {
            kind: group_kind.clone(),
            bytes,
        });
        Some(part)
    }

    fn add_body(&mut self, parts: Vec<u32>) -> u32 {
        let mut policies = Vec::new();
        for part in parts.iter().filter_map(|&p| self.parts.get(p as usize)) {
            policies.extend_from_slice(&part.bytes);
        }
        let tag = etag(&policies);
        let body = u32::try_from(self.bodies.len()).unwrap_or(u32::MAX);
        self.bodies.push(Body {
            result: shared(result_field(&policies, &tag)),
            etag: tag.into(),
            parts: parts.clone(),
        });
        self.by_parts.insert(parts, body);
        body
    }
}

/// Bytes that are counted from the start: those of a plain vector allocate their count when they
/// are cloned for the first time, which would be in a look-up.
fn shared(bytes: Vec<u8>) -> Bytes {
    let bytes = Bytes::from(bytes);
    drop(bytes.clone());
    bytes
}

/// The kinds of which not everything is known (SEMANTICS §2.5).
fn incomplete(world: &World) -> Vec<v1::KindState> {
    let known = world.kinds().iter().map(|kind| &kind.profile().policy);
    let mut kinds: Vec<v1::KindState> = known
        .chain(world.refused())
        .filter_map(|kind| {
            let state = match world.state(kind) {
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
