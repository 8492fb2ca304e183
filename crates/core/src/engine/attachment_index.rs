//! Where the policies of a kind are written down, so that one of them can be exchanged.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::attach::{AttachmentGroup, FilterReferences};
use crate::effective::PolicyKind;
use crate::model::{NodeKey, ObjectKey, OrInternal};
use crate::profile::{PolicyClass, SameTarget};
use crate::store::Store;

/// What is remembered of a kind, so that one policy can be exchanged.
#[derive(Debug)]
pub(super) struct AttachmentIndex {
    free: Vec<usize>,
    /// The policies whose references point to a node.
    pub by_node: HashMap<NodeKey, Vec<usize>>,
    pub filters: FilterReferences,
}

impl AttachmentIndex {
    /// The book of a kind.
    pub fn of(kind: &PolicyKind, store: &Store) -> Self {
        let mut by_node: HashMap<NodeKey, Vec<usize>> = HashMap::new();
        for (slot, attachment_points) in kind.table.attachment_points.iter().enumerate() {
            for (node, _) in attachment_points.iter() {
                by_node.entry(node.clone()).or_default().push(slot);
            }
        }
        Self {
            free: Vec::new(),
            by_node,
            filters: FilterReferences::of(&kind.profile, store),
        }
    }

    /// The slot of a policy, a new one if it has none.
    pub fn slot(&mut self, kind: &PolicyKind, key: &ObjectKey) -> usize {
        let known = kind.table.slot(key).or_else(|| self.free.pop());
        known.unwrap_or(kind.table.policies.len())
    }

    /// Takes a policy off its nodes; returns them. `None` if its clients may be set apart.
    pub fn detach(
        &mut self,
        kind: &mut PolicyKind,
        slot: usize,
        gone: bool,
    ) -> Option<Vec<NodeKey>> {
        let attachment_points = Arc::clone(
            kind.table
                .attachment_points
                .get(slot)
                .or_internal("a policy")
                .ok()?,
        );
        if attachment_points
            .iter()
            .any(|(_, g)| matches!(g, AttachmentGroup::Clients(_)))
        {
            return None;
        }
        let mut nodes: Vec<NodeKey> = attachment_points
            .iter()
            .map(|(node, _)| node.clone())
            .collect();
        nodes.dedup();
        for node in &nodes {
            if let Some(slots) = self.by_node.get_mut(node) {
                slots.retain(|&other| other != slot);
                if slots.is_empty() {
                    self.by_node.remove(node);
                }
            }
        }
        if gone {
            kind.table.remove(slot);
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
                let attachment_points = kind.table.attachment_points.get(policy).into_iter();
                for (other, _) in
                    attachment_points.flat_map(|attachment_points| attachment_points.iter())
                {
                    if affected.insert(other.clone()) {
                        pending.push(other.clone());
                    }
                }
            }
        }
        members.into_iter().collect()
    }
}
