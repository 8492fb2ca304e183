//! Where the policies of a kind are written down, so that one of them can be exchanged.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::attach::{AttachmentGroup, FilterReferences};
use crate::effective::PolicyKind;
use crate::model::{NodeKey, ObjectKey};
use crate::profile::{PolicyClass, SameTarget};
use crate::store::Store;

/// What is remembered of a kind, so that one policy can be exchanged.
#[derive(Debug)]
pub(super) struct AttachmentIndex {
    pub slots: HashMap<ObjectKey, usize>,
    free: Vec<usize>,
    /// The policies whose references point to a node.
    pub by_node: HashMap<NodeKey, Vec<usize>>,
    pub filters: FilterReferences,
}

impl AttachmentIndex {
    /// The book of a kind.
    pub fn of(kind: &PolicyKind, store: &Store) -> Self {
        let policies = kind.policies.iter().enumerate();
        let mut by_node: HashMap<NodeKey, Vec<usize>> = HashMap::new();
        for (slot, attachment_points) in kind.attachment_points.iter().enumerate() {
            for (node, _) in attachment_points {
                by_node.entry(node.clone()).or_default().push(slot);
            }
        }
        Self {
            slots: policies.map(|(at, p)| (p.key.clone(), at)).collect(),
            free: Vec::new(),
            by_node,
            filters: FilterReferences::of(&kind.profile, store),
        }
    }

    /// The slots that policies are in, in order.
    pub fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.slots.values().copied().collect();
        slots.sort_unstable();
        slots
    }

    /// The slot of a policy, a new one if it has none.
    pub fn slot(&mut self, key: &ObjectKey, end: usize) -> usize {
        if let Some(&slot) = self.slots.get(key) {
            return slot;
        }
        let slot = self.free.pop().unwrap_or(end);
        self.slots.insert(key.clone(), slot);
        slot
    }

    /// Takes a policy off its nodes; returns them. `None` if its clients may be set apart.
    pub fn detach(
        &mut self,
        kind: &mut PolicyKind,
        slot: usize,
        gone: bool,
    ) -> Option<Vec<NodeKey>> {
        let attachment_points = std::mem::take(kind.attachment_points.get_mut(slot)?);
        if attachment_points
            .iter()
            .any(|(_, g)| matches!(g, AttachmentGroup::Clients(_)))
        {
            return None;
        }
        let mut nodes: Vec<NodeKey> = attachment_points
            .into_iter()
            .map(|(node, _)| node)
            .collect();
        nodes.dedup();
        for node in &nodes {
            if let Some(here) = self.by_node.get_mut(node) {
                here.retain(|&other| other != slot);
                if here.is_empty() {
                    self.by_node.remove(node);
                }
            }
        }
        if gone {
            if let Some(attached) = kind.attached.get_mut(slot) {
                attached.references.clear();
            }
            let key = kind.policies.get(slot).map(|policy| policy.key.clone())?;
            self.slots.remove(&key);
            self.free.push(slot);
        }
        Some(nodes)
    }

    /// The policies that may have a word on what is accepted on the affected nodes. Where one that
    /// overlaps another loses all its nodes, those are affected, too, and so on.
    pub fn affected_policies(
        &self,
        kind: &PolicyKind,
        affected: &mut BTreeSet<NodeKey>,
    ) -> Vec<usize> {
        let spreads = kind.profile.class != PolicyClass::Direct
            && kind.profile.same_target == SameTarget::UnionOrReject;
        let mut members: BTreeSet<usize> = BTreeSet::new();
        let mut pending: Vec<NodeKey> = affected.iter().cloned().collect();
        while let Some(node) = pending.pop() {
            for &policy in self.by_node.get(&node).into_iter().flatten() {
                if !members.insert(policy) || !spreads {
                    continue;
                }
                for (other, _) in kind.attachment_points.get(policy).into_iter().flatten() {
                    if affected.insert(other.clone()) {
                        pending.push(other.clone());
                    }
                }
            }
        }
        members.into_iter().collect()
    }
}
