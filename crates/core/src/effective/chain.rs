//! Decides on which paths a kind acts, at which level its scopes end, and which nodes of a chain have
//! policies (specification 1.2, 2.3, 2.4).

use super::{AttachmentChain, PolicyKind};
use crate::model::{GroupKind, InternalError, Level, Str};
use crate::profile::{ConflictScope, EffectiveTarget, Profile};
use crate::topology::{NodeId, PathStep, RootKind, Topology};

impl PolicyKind {
    /// Whether a path reaches the kind's effective level.
    pub fn reaches_effective_level(&self, root: RootKind, end: Level) -> bool {
        reaches_effective_level(&self.profile, root, end)
    }

    /// Whether a path that ends at this level, at an object of this kind, is a scope if the policy kind
    /// acts on it. A scope ends at the effective level; for kinds without an effective level, the target
    /// object and each of its sections are scopes (specification 2.3, 7.2).
    pub fn ends_at_scope(&self, root: RootKind, end: Level, object: &GroupKind) -> bool {
        let targets = self.profile.effective != EffectiveTarget::Target
            || self.profile.targets_object(object);
        targets && self.reaches_effective_level(root, end) && self.keeps(root, end)
    }

    /// Whether policies at a level count on paths of a root. Policies below the effective level never
    /// act, and a look-up there returns the answer of the effective level.
    pub fn keeps(&self, root: RootKind, level: Level) -> bool {
        root == RootKind::Namespace || self.sees(level)
    }

    /// Whether the kind considers nodes at a level. It considers the root node if its profile has a root
    /// namespace (specification 3.1).
    pub(crate) fn sees(&self, level: Level) -> bool {
        match (level, self.profile.effective) {
            (Level::Root, _) => self.profile.root_namespace.is_some(),
            (_, EffectiveTarget::Level(effective)) => level <= effective,
            _ => true,
        }
    }

    /// Whether the policies of a Direct kind on the Gateway apply below a node of this level that the kind can
    /// target itself (specification 7.5).
    pub(crate) fn joins_gateway(&self, level: Level) -> bool {
        // The cheap conditions first: this is asked for every node of the trie.
        level == Level::ListenerSet
            && self.profile.listener_sets.from_gateway
            && self.profile.target(&GroupKind::gateway()).is_some()
    }

    /// The level whose nodes do not apply at and below a node: the Gateway's below a ListenerSet, if policies do
    /// not reach it from there (specification 7.5), and the ListenerSet's at a listener that shares its port with
    /// others, if that is a conflict (specification 7.6).
    pub(crate) fn dropped_at(
        &self,
        topology: &Topology,
        node: NodeId,
        level: Level,
    ) -> Option<Level> {
        match level {
            Level::ListenerSet if !self.profile.listener_sets.from_gateway => Some(Level::Gateway),
            Level::Listener
                if self.profile.conflicts == ConflictScope::Port
                    && topology.shares_port_outside_its_set(node) =>
            {
                Some(Level::ListenerSet)
            }
            _ => None,
        }
    }

    /// Whether policies of the Namespace apply to objects at a level (specification 1.2).
    pub(crate) fn sees_namespace(&self, level: Level) -> bool {
        self.profile.namespace_reaches.contains(&level)
    }

    /// Whether own fields of objects are merged with the policies (specification 6.4).
    pub fn reads_own_fields(&self) -> bool {
        !self.profile.own_fields.is_empty()
    }

    /// Removes the nodes that have no policies any more from a chain; `None` if no node is left.
    pub(crate) fn prune_chain(&self, mut chain: AttachmentChain) -> Option<AttachmentChain> {
        let no_client = Str::default();
        let client = chain.client.take();
        let mut own_clients = false;
        chain.steps.retain(|step| {
            let Some(on_node) = self.nodes.get(&step.node) else {
                return false;
            };
            let is_for = client.is_some() && on_node.is_for(client.as_ref().unwrap_or(&no_client));
            own_clients |= is_for;
            is_for || on_node.is_for_all()
        });
        chain.client = client.filter(|_| own_clients);
        for nodes in &mut chain.preferred {
            nodes.retain(|node| self.nodes.contains_key(node));
        }
        chain.preferred.retain(|nodes| !nodes.is_empty());
        let is_attached = !chain.steps.is_empty() || chain.delegated_nodes().next().is_some();
        is_attached.then_some(chain)
    }

    /// The steps of a chain that a policy is attached to.
    pub(crate) fn steps_with_policy(&self, slot: usize, chain: &AttachmentChain) -> Vec<PathStep> {
        let mut found = Vec::new();
        for (step, on_node, _) in self.acting(chain) {
            let mut groups = on_node.applying(chain);
            if groups.any(|(_, policies)| policies.contains(&slot)) {
                found.push(*step);
            }
        }
        found
    }

    /// The slots of the policies that act on a chain; those that are attached to several of its nodes more than once.
    pub(crate) fn acting_slots(&self, chain: &AttachmentChain) -> Vec<usize> {
        let mut slots = Vec::new();
        for (_, on_node, _) in self.acting(chain) {
            for (_, policies) in on_node.applying(chain) {
                slots.extend_from_slice(policies);
            }
        }
        slots
    }

    /// The number of slots for policies; some may be free.
    pub fn slots(&self) -> usize {
        self.table.policies.len()
    }

    /// Records an internal error that concerns the answers of this kind. From then on the kind is
    /// UNKNOWN.
    pub fn fail(&self, error: InternalError) {
        // The first error is kept.
        let _ = self.fault.set(error);
    }

    /// The internal error that makes the kind UNKNOWN, if there is one.
    pub fn fault(&self) -> Option<InternalError> {
        self.fault.get().copied()
    }
}

/// Whether a path reaches the kind's effective level. Above that level a look-up returns the policies
/// inherited so far (specification 2.3).
pub(crate) fn reaches_effective_level(profile: &Profile, root: RootKind, end: Level) -> bool {
    let level = match profile.effective {
        EffectiveTarget::Every | EffectiveTarget::Target => return true,
        EffectiveTarget::Level(level) => level,
    };
    match root {
        RootKind::GatewayClass | RootKind::Namespace => level == Level::GatewayClass,
        RootKind::Gateway => level <= end,
        // The root counts as a Gateway, and also as a Listener while the path has no port
        // (specification 1.3).
        RootKind::Mesh => level <= end.max(Level::Listener),
    }
}
