//! Statuses of policies (SEMANTICS §10) and the objects that they affect (§9.3), over all scopes.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::tally::{Contribution, Tally};
use super::{Frames, Kind, World};
use crate::attach::Attached;
use crate::model::{GroupKind, InForce, NodeKey, ObjectKey, Outcome, PolicyRef};
use crate::profile::{Ancestor, Class};
use crate::topology::{NodeId, Step, Trail};

/// The statuses of all policies.
#[derive(Debug, Default)]
pub struct Statuses {
    /// By kind, then by policy, in the order of [`World::kinds`] and [`Kind::policies`].
    pub kinds: Vec<Vec<PolicyStatus>>,
    /// The policies that affect a node, `(kind, policy)` as indexes.
    pub affected: BTreeMap<NodeId, BTreeSet<(usize, usize)>>,
}

/// The status of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyStatus {
    /// How far it is in force; `None` where it is not accepted or the kind has no such condition.
    pub in_force: Option<InForce>,
    /// The policies that hold what it lost, sorted.
    pub overridden_by: Vec<PolicyRef>,
    /// The ancestors that the profile names, sorted.
    pub ancestors: Vec<ObjectKey>,
    /// Scopes that it reaches.
    pub scopes: usize,
    /// Scopes in which it lost a unit.
    pub scopes_lost: usize,
    /// Units that it lost somewhere, sorted.
    pub lost_units: Vec<String>,
    /// Names of some scopes in which it lost.
    pub lost_in: Vec<String>,
}

/// Most scope names of a message.
const SCOPES_TOLD: usize = 3;

/// What is gathered of a kind while paths are walked.
struct Gathering<'w> {
    kind: &'w Kind,
    known: HashMap<Frames, Contribution>,
    tallies: Vec<Tally>,
    ancestors: HashMap<NodeId, BTreeSet<NodeId>>,
}

impl World {
    /// Computes the statuses of all policies.
    pub fn statuses(&self) -> Statuses {
        let mut gatherings: Vec<Gathering<'_>> = self
            .kinds
            .iter()
            .map(|kind| Gathering {
                kind,
                known: HashMap::new(),
                tallies: kind.policies.iter().map(|_| Tally::default()).collect(),
                ancestors: HashMap::new(),
            })
            .collect();
        let mut affected: BTreeMap<NodeId, BTreeSet<(usize, usize)>> = BTreeMap::new();
        self.topology.visit(&mut |name, trail| {
            for (number, gathering) in gatherings.iter_mut().enumerate() {
                if gathering.kind.policies.is_empty() {
                    continue;
                }
                let Some(steps) = self.steps(gathering.kind, trail) else {
                    continue;
                };
                gathering.note_ancestor(trail, &steps);
                if !self.is_scope(gathering.kind, trail) {
                    continue;
                }
                let Some(frames) = self.frames(gathering.kind, trail) else {
                    continue;
                };
                let kind = gathering.kind;
                let told = gathering.scope(self, name, frames);
                for (policy, nodes) in told {
                    self.affect(kind, &steps, nodes, |node| {
                        affected.entry(node).or_default().insert((number, *policy));
                    });
                }
            }
        });
        let kinds = gatherings.iter().map(|g| g.statuses(self)).collect();
        Statuses { kinds, affected }
    }

    /// The nodes that a policy affects on a path: those that it is attached to, and everything
    /// below them; for a section its object, too, in part (SEMANTICS §9.3).
    fn affect(&self, kind: &Kind, steps: &[Step], nodes: &[NodeId], mut f: impl FnMut(NodeId)) {
        let Some(first) = steps.iter().position(|s| nodes.contains(&s.node)) else {
            return;
        };
        let below = steps.iter().skip(first);
        for step in
            below.take_while(|s| kind.profile.class != Class::Direct || nodes.contains(&s.node))
        {
            f(step.node);
            let key = self.topology.key(step.node);
            let whole = key
                .section
                .is_some()
                .then(|| NodeKey::whole(key.object.clone()));
            if let Some(node) = whole.and_then(|key| self.topology.node(&key)) {
                f(node);
            }
        }
    }
}

impl Gathering<'_> {
    /// Every Gateway and mesh root on a path through a node.
    fn note_ancestor(&mut self, trail: &Trail, steps: &[Step]) {
        let Some(root) = trail.ancestor() else {
            return;
        };
        for step in steps {
            self.ancestors.entry(step.node).or_default().insert(root);
        }
    }

    /// Counts a scope. Returns who contributes there, with the nodes that they stand on.
    fn scope(&mut self, world: &World, name: &str, frames: Frames) -> &[(usize, Vec<NodeId>)] {
        let kind = self.kind;
        let contribution = self
            .known
            .entry(frames)
            .or_insert_with_key(|frames| world.contribution(kind, frames));
        for share in &contribution.shares {
            let Some(tally) = self.tallies.get_mut(share.policy) else {
                continue;
            };
            tally.scopes += 1;
            if share.lost.is_empty() {
                continue;
            }
            tally.scopes_lost += 1;
            if tally.lost_in.len() < SCOPES_TOLD {
                tally.lost_in.push(name.to_owned());
            }
        }
        if !contribution.counted {
            contribution.counted = true;
            for share in &contribution.shares {
                if let Some(tally) = self.tallies.get_mut(share.policy) {
                    tally.add(share);
                }
            }
        }
        &contribution.contributors
    }

    fn statuses(&self, world: &World) -> Vec<PolicyStatus> {
        (0..self.kind.policies.len())
            .map(|policy| self.status(world, policy))
            .collect()
    }

    fn status(&self, world: &World, policy: usize) -> PolicyStatus {
        let mut status = PolicyStatus {
            ancestors: self.ancestors_of(world, policy),
            ..PolicyStatus::default()
        };
        let kind = self.kind;
        let accepted = kind.outcome(policy).0 == Outcome::Accepted;
        let computed = kind.profile.class != Class::Listed;
        let Some(tally) = self.tallies.get(policy).filter(|_| accepted && computed) else {
            return status;
        };
        status.in_force = Some(tally.in_force());
        let by = tally
            .overridden_by
            .iter()
            .filter_map(|&p| kind.policies.get(p));
        status.overridden_by = by.map(|p| PolicyRef::of(&p.key)).collect();
        status.overridden_by.sort();
        status.scopes = tally.scopes;
        status.scopes_lost = tally.scopes_lost;
        status.lost_units = tally.lost_units.iter().map(ToString::to_string).collect();
        status.lost_in.clone_from(&tally.lost_in);
        status
    }

    fn ancestors_of(&self, world: &World, policy: usize) -> Vec<ObjectKey> {
        let attached = self.kind.attached.get(policy);
        let nodes = attached.into_iter().flat_map(Attached::nodes);
        let mut found: Vec<ObjectKey> = match self.kind.profile.status.ancestor {
            Ancestor::None => Vec::new(),
            Ancestor::Target => nodes
                .map(|(key, _)| key.object.clone())
                .filter(|object| object.kind != NodeKey::root().object.kind)
                .collect(),
            Ancestor::Gateway => nodes
                .filter_map(|(key, _)| world.topology.node(key))
                .filter_map(|node| self.ancestors.get(&node))
                .flatten()
                .map(|&root| world.topology.key(root).object.clone())
                .collect(),
        };
        found.sort();
        found.dedup();
        found
    }
}

impl Statuses {
    /// The status of a policy.
    pub fn of(&self, kind: usize, policy: usize) -> Option<&PolicyStatus> {
        self.kinds.get(kind)?.get(policy)
    }
}

impl World {
    /// The policies that affect an object or section, `(kind, policy)`, by the key that
    /// SEMANTICS §11.16 writes.
    pub fn affecting(&self, statuses: &Statuses, key: &str) -> Vec<(GroupKind, PolicyRef)> {
        let mut found = Vec::new();
        for (&node, policies) in &statuses.affected {
            if self.topology.describe(node) != key {
                continue;
            }
            for &(kind, policy) in policies {
                let Some(kind) = self.kinds.get(kind) else {
                    continue;
                };
                let Some(policy) = kind.policies.get(policy) else {
                    continue;
                };
                found.push((kind.profile.policy.clone(), PolicyRef::of(&policy.key)));
            }
        }
        found
    }
}
