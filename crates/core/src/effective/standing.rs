//! The policies of a kind by slot, and what stands on each node: clones share what did not change.

use std::sync::Arc;

use hashbrown::HashMap;
use rpds::RedBlackTreeMapSync;

use super::acceptance::{self, AttachmentPoint};
use super::{NodePolicies, PolicyKind};
use crate::attach::PolicyAttachment;
use crate::model::{ChunkedVec, ObjectKey, OrInternal};
use crate::profile::Policy;
use crate::store::NamespacedName;
use crate::topology::NodeId;

/// The policies of a kind. A slot is the number of a policy and never changes while it exists.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyTable {
    /// The slots in use, by namespace and name.
    pub(crate) slots: RedBlackTreeMapSync<NamespacedName, usize>,
    pub(crate) policies: ChunkedVec<Arc<Policy>>,
    /// Where the references of each policy point, before conflicts are settled.
    pub(crate) attachment_points: ChunkedVec<Arc<Vec<AttachmentPoint>>>,
    /// What the references came to, before conflicts are settled.
    offered: ChunkedVec<Arc<PolicyAttachment>>,
    /// What the references came to.
    attached: ChunkedVec<Arc<PolicyAttachment>>,
    /// The attachment_points that each policy lost to others, with the reason.
    lost: ChunkedVec<Arc<Vec<(AttachmentPoint, String)>>>,
}

/// What stands on the nodes of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeTable {
    /// Where the entry of a node is. A node keeps its entry when nothing stands on it any more.
    index: Arc<HashMap<NodeId, usize>>,
    entries: ChunkedVec<Arc<NodePolicies>>,
    /// How many entries say something.
    standing: usize,
}

impl PolicyTable {
    /// The slot of a policy.
    pub(crate) fn slot(&self, key: &ObjectKey) -> Option<usize> {
        let name = (key.namespace.clone(), key.name.clone());
        self.slots.get(&name).copied()
    }

    /// Puts a policy into a slot, which may be the next one.
    pub(crate) fn put(&mut self, slot: usize, policy: Policy, attached: PolicyAttachment) {
        let name = (policy.key.namespace.clone(), policy.key.name.clone());
        self.slots.insert_mut(name, slot);
        let attachment_points = acceptance::attachment_points(&attached);
        let attached = Arc::new(attached);
        put(&mut self.policies, slot, Arc::new(policy));
        put(
            &mut self.attachment_points,
            slot,
            Arc::new(attachment_points),
        );
        put(&mut self.offered, slot, Arc::clone(&attached));
        put(&mut self.attached, slot, attached);
        put(&mut self.lost, slot, Arc::default());
    }

    /// Takes a policy out of its slot.
    pub(crate) fn take_out(&mut self, slot: usize) {
        if let Some(policy) = self.policies.get(slot) {
            let name = (policy.key.namespace.clone(), policy.key.name.clone());
            self.slots.remove_mut(&name);
        }
        put(&mut self.attachment_points, slot, Arc::default());
        put(&mut self.offered, slot, Arc::default());
        put(&mut self.attached, slot, Arc::default());
        put(&mut self.lost, slot, Arc::default());
    }

    /// What the references of a policy came to.
    pub(crate) fn attached(&self, slot: usize) -> Option<&PolicyAttachment> {
        self.attached.get(slot).map(|attached| &**attached)
    }

    /// Takes the attachment_points that a policy lost to others away from its references. `settled` tells
    /// whether a place was settled just now: what was lost there before is forgotten.
    pub(crate) fn lose(
        &mut self,
        slot: usize,
        settled: impl Fn(&AttachmentPoint) -> bool,
        lost: Vec<(AttachmentPoint, String)>,
    ) {
        let Some(before) = self.lost.get(slot) else {
            return;
        };
        if before.is_empty() && lost.is_empty() {
            return;
        }
        let kept = before.iter().filter(|(place, _)| !settled(place)).cloned();
        let mut all: Vec<(AttachmentPoint, String)> = kept.chain(lost).collect();
        // The order in which a full read tells them.
        all.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(offered) = self.offered.get(slot) {
            let mut attached = PolicyAttachment::clone(offered);
            for (place, message) in &all {
                acceptance::lose(&mut attached, place, message);
            }
            let attached = Arc::new(attached);
            self.attached.set(slot, attached);
        }
        self.lost.set(slot, Arc::new(all));
    }
}

impl NodeTable {
    /// What stands on a node; `None` for nothing.
    pub(crate) fn get(&self, node: &NodeId) -> Option<&NodePolicies> {
        let here = self.entries.get(*self.index.get(node)?)?;
        here.stands().then_some(&**here)
    }

    /// Whether something stands on a node.
    pub(crate) fn contains_key(&self, node: &NodeId) -> bool {
        self.get(node).is_some()
    }

    /// Whether nothing stands anywhere.
    pub(crate) fn is_empty(&self) -> bool {
        self.standing == 0
    }

    /// What stands on all nodes, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &NodePolicies> {
        let entries = self.entries.iter().map(|here| &**here);
        entries.filter(|here| here.stands())
    }

    /// Puts what stands on a node now.
    pub(crate) fn put(&mut self, node: NodeId, now: NodePolicies) {
        self.standing -= usize::from(self.contains_key(&node));
        self.standing += usize::from(now.stands());
        match self.index.get(&node) {
            Some(&at) => self.entries.set(at, Arc::new(now)),
            None if now.stands() => {
                let at = self.entries.len();
                Arc::make_mut(&mut self.index).insert(node, at);
                self.entries.push(Arc::new(now));
            }
            None => {}
        }
    }
}

impl NodePolicies {
    /// Whether a policy stands here, accepted or not.
    pub(crate) fn stands(&self) -> bool {
        !self.groups.is_empty() || !self.rejected.is_empty()
    }
}

impl PolicyKind {
    /// Its policies with their slots, by namespace and name.
    pub fn policies(&self) -> impl Iterator<Item = (usize, &Policy)> {
        let slots = self.table.slots.values();
        slots.filter_map(|&slot| Some((slot, self.policy_at(slot)?)))
    }

    /// The number of its policies.
    pub fn policy_count(&self) -> usize {
        self.table.slots.size()
    }

    /// The policy in a slot.
    pub fn policy_at(&self, slot: usize) -> Option<&Policy> {
        self.table.policies.get(slot).map(|policy| &**policy)
    }

    /// The policy in a slot that something stands for: without it the kind is unknown.
    pub(crate) fn standing_policy(&self, slot: usize) -> Option<&Policy> {
        let policy = self.policy_at(slot).or_internal("a policy");
        policy.map_err(|error| self.fail(error)).ok()
    }

    /// The slot of a policy.
    pub fn policy(&self, key: &ObjectKey) -> Option<usize> {
        let slot = self.table.slot(key)?;
        (self.policy_at(slot)?.key == *key).then_some(slot)
    }

    /// What the references of a policy came to.
    pub fn attached(&self, policy: usize) -> Option<&PolicyAttachment> {
        self.table.attached(policy)
    }
}

/// Puts an entry in its slot, which may be the next one.
fn put<T: Clone>(list: &mut ChunkedVec<T>, slot: usize, entry: T) {
    if slot < list.len() {
        list.set(slot, entry);
    } else {
        list.push(entry);
    }
}
