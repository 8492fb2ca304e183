//! Statuses of policies (specification 10) and the objects that they affect (specification 9.3), over all scopes.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::enforcement::{Contribution, EnforcementSummary};
use super::{AttachmentChain, PolicyKind, World};
use crate::attach::PolicyAttachment;
use crate::model::{Enforcement, GroupKind, NodeKey, ObjectKey, Outcome, PolicyRef};
use crate::profile::{Ancestor, PolicyClass};
use crate::topology::{NodeId, PathStep, ResolvedPath};

/// The statuses of all policies.
#[derive(Debug, Default)]
pub struct Statuses {
    /// By kind, then by policy, in the order of [`World::kinds`] and [`PolicyKind::policies`].
    pub kinds: Vec<Vec<PolicyStatus>>,
    /// The policies that affect a node, `(kind, policy)` as indexes.
    pub affected: BTreeMap<NodeId, BTreeSet<(usize, usize)>>,
}

/// The status of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyStatus {
    /// How far it is in force; `None` where it is not accepted or the kind has no such condition.
    pub in_force: Option<Enforcement>,
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
const MAX_SCOPE_NAMES: usize = 3;

/// What is gathered of a kind while paths are walked.
struct StatusCollector<'w> {
    kind: &'w PolicyKind,
    known: HashMap<AttachmentChain, Contribution>,
    summaries: Vec<EnforcementSummary>,
    ancestors: HashMap<NodeId, BTreeSet<NodeId>>,
}

impl World {
    /// Computes the statuses of all policies.
    pub fn statuses(&self) -> Statuses {
        let mut collectors: Vec<StatusCollector<'_>> = self
            .kinds
            .iter()
            .map(|kind| StatusCollector {
                kind,
                known: HashMap::new(),
                summaries: kind
                    .policies
                    .iter()
                    .map(|_| EnforcementSummary::default())
                    .collect(),
                ancestors: HashMap::new(),
            })
            .collect();
        let mut affected: BTreeMap<NodeId, BTreeSet<(usize, usize)>> = BTreeMap::new();
        self.topology.visit(&mut |name, resolved| {
            for (number, collector) in collectors.iter_mut().enumerate() {
                if collector.kind.policies.is_empty() {
                    continue;
                }
                let Some(steps) = self.steps(collector.kind, resolved) else {
                    continue;
                };
                collector.note_ancestor(resolved, &steps);
                if !self.is_scope(collector.kind, resolved) {
                    continue;
                }
                let Some(chain) = self.attachment_chain(collector.kind, resolved) else {
                    continue;
                };
                let kind = collector.kind;
                let told = collector.scope(self, name, chain);
                for (policy, nodes) in told {
                    self.affect(kind, &steps, nodes, |node| {
                        affected.entry(node).or_default().insert((number, *policy));
                    });
                }
            }
        });
        let kinds = collectors.iter().map(|g| g.statuses(self)).collect();
        Statuses { kinds, affected }
    }

    /// The nodes that a policy affects on a path: those that it is attached to, and everything
    /// below them; for a section its object, too, in part (specification 9.3).
    fn affect(
        &self,
        kind: &PolicyKind,
        steps: &[PathStep],
        nodes: &[NodeId],
        mut f: impl FnMut(NodeId),
    ) {
        let Some(first) = steps.iter().position(|s| nodes.contains(&s.node)) else {
            return;
        };
        let below = steps.iter().skip(first);
        for step in below
            .take_while(|s| kind.profile.class != PolicyClass::Direct || nodes.contains(&s.node))
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

impl StatusCollector<'_> {
    /// Every Gateway and mesh root on a path through a node.
    fn note_ancestor(&mut self, resolved: &ResolvedPath, steps: &[PathStep]) {
        let Some(root) = resolved.ancestor() else {
            return;
        };
        for step in steps {
            self.ancestors.entry(step.node).or_default().insert(root);
        }
    }

    /// Counts a scope. Returns who contributes there, with the nodes that they stand on.
    fn scope(
        &mut self,
        world: &World,
        name: &str,
        chain: AttachmentChain,
    ) -> &[(usize, Vec<NodeId>)] {
        let kind = self.kind;
        let contribution = self
            .known
            .entry(chain)
            .or_insert_with_key(|chain| world.contribution(kind, chain));
        for share in &contribution.shares {
            let Some(summary) = self.summaries.get_mut(share.policy) else {
                continue;
            };
            summary.scopes += 1;
            if share.lost.is_empty() {
                continue;
            }
            summary.scopes_lost += 1;
            if summary.lost_in.len() < MAX_SCOPE_NAMES {
                summary.lost_in.push(name.to_owned());
            }
        }
        if !contribution.counted {
            contribution.counted = true;
            for share in &contribution.shares {
                if let Some(summary) = self.summaries.get_mut(share.policy) {
                    summary.add(share);
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
        let computed = kind.profile.class != PolicyClass::Listed;
        let Some(summary) = self.summaries.get(policy).filter(|_| accepted && computed) else {
            return status;
        };
        status.in_force = Some(summary.in_force());
        let by = summary
            .overridden_by
            .iter()
            .filter_map(|&p| kind.policies.get(p));
        status.overridden_by = by.map(|p| PolicyRef::of(&p.key)).collect();
        status.overridden_by.sort();
        status.scopes = summary.scopes;
        status.scopes_lost = summary.scopes_lost;
        status.lost_units = summary.lost_units.iter().map(ToString::to_string).collect();
        status.lost_in.clone_from(&summary.lost_in);
        status
    }

    fn ancestors_of(&self, world: &World, policy: usize) -> Vec<ObjectKey> {
        let attached = self.kind.attached.get(policy);
        let nodes = attached.into_iter().flat_map(PolicyAttachment::nodes);
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
    /// specification 11.16 writes.
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
