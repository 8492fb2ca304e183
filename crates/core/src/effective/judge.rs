//! The judge: computes attachment chains and statuses path by path, from whole resolved paths. Tests
//! compare the engine, which walks the trie and the automaton, with it.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::chain::reaches_effective_level;
use super::enforcement::{Contribution, EnforcementSummary};
use super::{Activity, AttachmentChain, PathRoot, PolicyKind, PolicyStatus, Statuses, World};
use crate::model::{GroupKind, Level, NodeKey, ObjectKey, PolicyRef, Section, Str};
use crate::profile::{Ancestor, EffectiveTarget, LimitSet, PolicyClass, Profile};
use crate::topology::{NodeId, PathStep, ResolvedPath, RootKind, Topology};

/// The policies that affect a node, `(kind, slot)`.
pub type Affected = BTreeMap<NodeId, BTreeSet<(usize, usize)>>;

impl World {
    /// The chain of a kind on a path; `None` if the kind does not act there or nothing of it is
    /// attached.
    pub fn attachment_chain(
        &self,
        kind: &PolicyKind,
        resolved: &ResolvedPath,
    ) -> Option<AttachmentChain> {
        let profile = &*kind.profile;
        if kind.nodes.is_empty() {
            return None;
        }
        let activity = self.activity_on(kind, resolved);
        let steps = self.steps(kind, resolved)?;
        let inherited_only = !reaches_effective_level(profile, resolved.root, resolved.end());
        let layer = match profile.class {
            PolicyClass::Direct if activity.is_active() => self.direct_layer(kind, &steps),
            _ => steps.clone(),
        };
        let is_dropped = |level: Level| {
            let mut dropped = steps
                .iter()
                .filter_map(|step| kind.dropped_at(&self.topology, step.node, step.level));
            activity.is_active() && dropped.any(|dropped| dropped == level)
        };
        let mut chain = AttachmentChain {
            inherited_only,
            unknown: activity.unknown().cloned(),
            limits: self.limits_on(kind, resolved),
            ..AttachmentChain::default()
        };
        let services = kind.service_attachments(root_of(resolved)?);
        let counts = |step: &PathStep| !is_dropped(step.level) && services.includes(step.level);
        for step in layer.into_iter().filter(counts) {
            let Some(on_node) = kind.nodes.get(&step.node) else {
                continue;
            };
            let own_clients = on_node.is_for(&resolved.client);
            if !own_clients && !on_node.is_for_all() {
                continue;
            }
            if own_clients {
                chain.client = Some(resolved.client.clone());
            }
            chain.steps.push(step);
        }
        if activity != Activity::Inactive {
            let rules = resolved.steps.iter().filter(|_| resolved.delegates);
            let mut delegating = rules.clone();
            let delegation = delegating.find_map(|step| self.delegation_at(kind, *step));
            chain.delegated = delegation.map(|id| kind.delegated_nodes(&self.topology, id));
            let preferred = rules.map(|step| self.preferred_at(kind, *step));
            chain.preferred = preferred.filter(|nodes| !nodes.is_empty()).collect();
        }
        if chain.steps.is_empty() && chain.delegated_nodes().next().is_none() {
            return None;
        }
        if !profile.own_fields.is_empty() {
            chain.own = cut(profile, resolved).last().map(|step| step.node);
        }
        Some(chain)
    }
}

impl World {
    /// The steps of a path that a kind considers: down to its effective level, with Namespaces. `None` if
    /// the kind does not act on the path.
    pub(crate) fn steps(
        &self,
        kind: &PolicyKind,
        resolved: &ResolvedPath,
    ) -> Option<Vec<PathStep>> {
        let profile = &*kind.profile;
        let acts = self.activity_on(kind, resolved) != Activity::Inactive;
        let mut steps = cut(profile, resolved);
        if resolved.root == RootKind::Mesh {
            let above = kind.above_root(root_of(resolved)?);
            steps.splice(0..0, above);
        }
        acts.then(|| with_namespaces(profile, &self.topology, &steps))
    }

    /// The limits that hold on a path.
    fn limits_on(&self, kind: &PolicyKind, resolved: &ResolvedPath) -> LimitSet {
        let profile = &*kind.profile;
        let root = root_of(resolved).map(|root| self.met_by_root(kind, root));
        let mut met = root.unwrap_or_default();
        for step in cut(profile, resolved) {
            met.add(self.met_conditions(profile, step.node, step.level));
        }
        profile.limits.holding(met)
    }

    fn activity_on(&self, kind: &PolicyKind, resolved: &ResolvedPath) -> Activity {
        let root = root_of(resolved);
        root.map_or(Activity::Inactive, |root| self.activity(kind, root))
    }

    /// Whether a path is a scope of a kind, that is, ends at its effective level (specification 2.3, 7.2).
    pub fn is_scope(&self, kind: &PolicyKind, resolved: &ResolvedPath) -> bool {
        let profile = &*kind.profile;
        if !self.activity_on(kind, resolved).is_active()
            || !reaches_effective_level(profile, resolved.root, resolved.end())
        {
            return false;
        }
        let cut = cut(profile, resolved);
        if cut.len() != resolved.steps.len() {
            return false;
        }
        if profile.effective != EffectiveTarget::Target {
            return true;
        }
        // The target object, and each of its sections.
        let steps = with_namespaces(profile, &self.topology, &cut);
        let layer = self.direct_layer(kind, &steps);
        layer.last().is_some_and(|last| Some(last) == cut.last())
    }
}

impl Topology {
    /// Whether a step is a whole object of a kind that policies may target.
    fn is_target(&self, profile: &Profile, step: &PathStep) -> bool {
        let key = self.key(step.node);
        // The root node does not belong to an object, so no policy can target it.
        let named = step.level != Level::Root && profile.targets_object(&key.object.kind);
        key.section.is_none() && named
    }
}

impl World {
    /// The most specific object of a target kind, even if it has no policy, with its section on the path
    /// (specification 7.4). Policies on the Gateway may reach a ListenerSet (specification 7.5).
    fn direct_layer(&self, kind: &PolicyKind, steps: &[PathStep]) -> Vec<PathStep> {
        let (topology, profile) = (&self.topology, &*kind.profile);
        let Some(deepest) = steps.iter().rposition(|s| topology.is_target(profile, s)) else {
            return Vec::new();
        };
        let object = steps.get(deepest).map(|s| &topology.key(s.node).object);
        let joins = steps
            .get(deepest)
            .is_some_and(|s| kind.joins_gateway(s.level));
        let gateway = steps
            .iter()
            .filter(|s| joins && s.level == Level::Gateway)
            .copied();
        let own = steps
            .iter()
            .skip(deepest)
            .take_while(|s| Some(&topology.key(s.node).object) == object)
            .copied();
        gateway.chain(own).collect()
    }
}

/// The root of a path.
fn root_of(resolved: &ResolvedPath) -> Option<PathRoot<'_>> {
    let first = resolved.steps.first()?;
    let is_gateway = resolved.root == RootKind::Gateway && first.level == Level::GatewayClass;
    let (class, root) = match is_gateway {
        true => (Some(first.node), resolved.steps.get(1)?),
        false => (None, first),
    };
    Some(PathRoot {
        kind: resolved.root,
        node: root.node,
        class,
        controller: &resolved.controller,
    })
}

/// The path down to the effective level. A look-up below that level returns the same answer, and policies
/// below it never act.
fn cut(profile: &Profile, resolved: &ResolvedPath) -> Vec<PathStep> {
    let EffectiveTarget::Level(level) = profile.effective else {
        return resolved.steps.clone();
    };
    resolved
        .steps
        .iter()
        .filter(|step| step.level <= level || resolved.root == RootKind::Namespace)
        .copied()
        .collect()
}

/// Adds Namespaces and the root node. A Namespace is directly above the least specific node in it that
/// the kind reaches (specification 1.2); the root node is above all others (specification 3.1).
fn with_namespaces(profile: &Profile, topology: &Topology, steps: &[PathStep]) -> Vec<PathStep> {
    let mut found: Vec<PathStep> = Vec::with_capacity(steps.len() + 4);
    if profile.root_namespace.is_some() {
        found.extend(topology.node(&NodeKey::root()).map(|node| PathStep {
            node,
            level: Level::Root,
        }));
    }
    for step in steps {
        let key = topology.key(step.node);
        let reached = key.section.is_none() && profile.namespace_reaches.contains(&step.level);
        let above = topology
            .namespace(&key.object.namespace)
            .filter(|_| reached)
            .map(|node| PathStep {
                node,
                level: Level::Namespace,
            });
        if let Some(above) = above.filter(|above| !found.contains(above)) {
            found.push(above);
        }
        found.push(*step);
    }
    found
}

/// The maximum number of scope names in a status.
const MAX_SAMPLE_SCOPES: usize = 3;

/// Collects the statuses of a kind while paths are walked.
struct StatusCollector<'w> {
    kind: &'w PolicyKind,
    contributions: HashMap<AttachmentChain, Contribution>,
    summaries: Vec<EnforcementSummary>,
    /// The Gateways and mesh roots of the paths through each node, with their client namespaces.
    ancestors: HashMap<NodeId, BTreeSet<(NodeId, Str)>>,
}

impl World {
    /// Computes the statuses of all policies, and the policies that affect each node.
    pub fn judged_statuses(&self) -> (Statuses, Affected) {
        let mut collectors: Vec<StatusCollector<'_>> = self
            .kinds
            .iter()
            .map(|kind| StatusCollector {
                kind,
                contributions: HashMap::new(),
                summaries: (0..kind.slots())
                    .map(|slot| kind.summary_of(slot))
                    .collect(),
                ancestors: HashMap::new(),
            })
            .collect();
        let mut affected = Affected::new();
        self.topology.visit(&mut |name, resolved| {
            for (number, collector) in collectors.iter_mut().enumerate() {
                if collector.kind.policy_count() == 0 {
                    continue;
                }
                let Some(steps) = self.steps(collector.kind, resolved) else {
                    continue;
                };
                if let Some(chain) = self.attachment_chain(collector.kind, resolved) {
                    collector.note_unknown(self, &chain);
                }
                if !self.activity_on(collector.kind, resolved).is_active() {
                    continue;
                }
                collector.note_ancestor(resolved, &steps);
                if !self.is_scope(collector.kind, resolved) {
                    continue;
                }
                let chain = self.attachment_chain(collector.kind, resolved);
                let Some(chain) = chain.filter(|chain| !chain.is_unknown()) else {
                    continue;
                };
                let kind = collector.kind;
                let contributors = collector.scope(self, name, chain);
                for (policy, nodes) in contributors {
                    self.affect(kind, &steps, nodes, |node| {
                        affected.entry(node).or_default().insert((number, *policy));
                    });
                }
            }
        });
        let kinds = collectors.iter().map(|g| g.statuses(self)).collect();
        (Statuses { kinds }, affected)
    }

    /// Calls `f` for each node that a policy affects on a path: the nodes that it is attached to and those
    /// below them. A section also affects its object, in part (specification 9.3).
    fn affect(
        &self,
        kind: &PolicyKind,
        steps: &[PathStep],
        nodes: &[NodeId],
        mut f: impl FnMut(NodeId),
    ) {
        // A Direct policy affects its target only.
        let is_direct = kind.profile.class == PolicyClass::Direct;
        let is_attached = |step: &&PathStep| nodes.contains(&step.node);
        let below = steps.iter().skip_while(|step| !is_attached(step));
        for step in below.filter(|step| !is_direct || is_attached(step)) {
            let key = self.topology.key(step.node);
            // BackendRefs are on the way to a backend, but no object or section of their own.
            if !key.section.as_ref().is_none_or(Section::is_referable) {
                continue;
            }
            f(step.node);
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
    /// Records the Gateway or mesh root of a path as an ancestor of its nodes.
    fn note_ancestor(&mut self, resolved: &ResolvedPath, steps: &[PathStep]) {
        let Some(root) = resolved.ancestor() else {
            return;
        };
        for step in steps {
            let ancestors = self.ancestors.entry(step.node).or_default();
            ancestors.insert((root, resolved.client.clone()));
        }
    }

    /// Records the policies on a path where the kind is unknown.
    fn note_unknown(&mut self, world: &World, chain: &AttachmentChain) {
        for (slot, reason) in self.kind.unknown_slots(chain, &world.topology) {
            if let Some(summary) = self.summaries.get_mut(slot) {
                summary.note_unknown(reason);
            }
        }
    }

    /// Counts a scope. Returns the policies that contribute there, with the nodes that they are attached
    /// to.
    fn scope(
        &mut self,
        world: &World,
        name: &str,
        chain: AttachmentChain,
    ) -> &[(usize, Vec<NodeId>)] {
        let kind = self.kind;
        let contribution = self
            .contributions
            .entry(chain)
            .or_insert_with_key(|chain| world.contribution(kind, chain));
        for refusal in &contribution.refused {
            if let Some(summary) = self.summaries.get_mut(refusal.policy) {
                summary.refuse(&refusal.message);
            }
        }
        for share in &contribution.shares {
            let Some(summary) = self.summaries.get_mut(share.policy) else {
                continue;
            };
            summary.add(share);
            summary.paths += 1;
            if share.lost.is_empty() {
                continue;
            }
            summary.overridden_paths += 1;
            if summary.overridden_path_names.len() < MAX_SAMPLE_SCOPES {
                summary.overridden_path_names.push(name.to_owned());
            }
        }
        &contribution.contributors
    }

    fn statuses(&self, world: &World) -> Vec<PolicyStatus> {
        (0..self.kind.table.policies.len())
            .map(|policy| {
                let mut status = match self.summaries.get(policy) {
                    Some(summary) => self.kind.status(policy, summary),
                    None => PolicyStatus::default(),
                };
                status.ancestors = self.ancestors_of(world, policy);
                status
            })
            .collect()
    }

    fn ancestors_of(&self, world: &World, policy: usize) -> Vec<ObjectKey> {
        let nodes = self.kind.ancestor_nodes(policy);
        let mut found: Vec<ObjectKey> = match self.kind.profile.status.ancestor {
            Ancestor::None => Vec::new(),
            Ancestor::Target => nodes
                .map(|(key, _)| key.object.clone())
                .filter(|object| object.kind != NodeKey::root().object.kind)
                .collect(),
            Ancestor::Gateway => nodes
                .filter_map(|(key, group)| Some((world.topology.node(key)?, group)))
                .filter_map(|(node, group)| Some((self.ancestors.get(&node)?, group)))
                .flat_map(|(roots, group)| roots.iter().filter(|(_, c)| group.is_for(c)))
                .map(|(root, _)| world.topology.key(*root).object.clone())
                .collect(),
        };
        found.sort();
        found.dedup();
        found
    }
}

impl World {
    /// The policies that affect an object or section, by its key as in specification 11.16.
    pub fn judged_affecting(&self, affected: &Affected, key: &str) -> Vec<(GroupKind, PolicyRef)> {
        let mut found = Vec::new();
        for (&node, policies) in affected {
            if self.topology.describe(node) != key {
                continue;
            }
            for &(kind, policy) in policies {
                let Some(kind) = self.kinds.get(kind) else {
                    continue;
                };
                let Some(policy) = kind.policy_at(policy) else {
                    continue;
                };
                found.push((kind.profile.policy.clone(), PolicyRef::of(&policy.key)));
            }
        }
        found
    }
}

impl AttachmentChain {
    /// Whether two chains are equal, except that `other` may lack a node that sets no own fields.
    pub fn is_like(&self, other: &Self) -> bool {
        let own = other.own.is_none() || other.own == self.own;
        let same = Self {
            own: other.own,
            ..self.clone()
        };
        own && same == *other
    }
}
