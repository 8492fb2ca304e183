//! Tables of a kind's policies by slot and by node. Clones share the entries that did not change.

use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashMap;

use super::acceptance::{self, AttachmentPoint};
use super::{NodePolicies, PolicyGroups, PolicyKind};
use crate::attach::{AttachmentGroup, PolicyAttachment};
use crate::model::{ChunkedList, ChunkedVec, NodeKey, Object, ObjectKey, OrInternal, Outcome, Str};
use crate::profile::Policy;
use crate::topology::NodeId;

/// The policies of a kind by slot. A slot is the number of a policy; it does not change while the policy
/// exists.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyTable {
    /// The slots in use, ordered by the namespace and name of their policies.
    slots: ChunkedList<u32>,
    pub(crate) policies: ChunkedVec<Arc<Policy>>,
    /// The attachment points of each policy before conflicts are resolved; `None` if they are the nodes of its first
    /// reference.
    attachment_points: ChunkedVec<Option<Arc<[AttachmentPoint]>>>,
    /// The outcomes of each policy's references before conflicts are resolved.
    offered: ChunkedVec<Arc<PolicyAttachment>>,
    /// The outcomes of each policy's references after conflicts are resolved.
    attached: ChunkedVec<Arc<PolicyAttachment>>,
    /// The attachment points that each policy lost to others, with the message.
    lost: ChunkedVec<Arc<[(AttachmentPoint, String)]>>,
}

/// The policies of a kind by node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeTable {
    /// The index of each node's entry. A node keeps its entry when it has no policies any more.
    index: Arc<HashMap<NodeId, usize>>,
    entries: ChunkedVec<Arc<NodePolicies>>,
    /// The number of entries that have policies.
    occupied: usize,
}

impl PolicyTable {
    /// The policy with a name, if it was read from this version of its object.
    pub(crate) fn of_object(
        &self,
        name: (&Str, &Str),
        object: &Arc<Object>,
    ) -> Option<Arc<Policy>> {
        let policy = self.policies.get(self.slot_named(name)?)?;
        Arc::ptr_eq(&policy.object, object).then(|| Arc::clone(policy))
    }

    /// The slot of a policy.
    pub(crate) fn slot(&self, key: &ObjectKey) -> Option<usize> {
        self.slot_named((&key.namespace, &key.name))
    }

    fn slot_named(&self, name: (&Str, &Str)) -> Option<usize> {
        let slot = self.slots.find(by_name(&self.policies, name))?;
        usize::try_from(*slot).ok()
    }

    /// The slots in use, ordered by namespace and name.
    fn slots(&self) -> impl Iterator<Item = usize> {
        let slots = self.slots.iter();
        slots.filter_map(|slot| usize::try_from(*slot).ok())
    }

    /// Stores a policy in a slot, which is in use or the next new one. What is equal in the table of an earlier
    /// world is shared with it.
    pub(crate) fn put(
        &mut self,
        slot: usize,
        policy: Arc<Policy>,
        attached: PolicyAttachment,
        before: Option<&Self>,
    ) {
        let key = policy.key.clone();
        let before = before.and_then(|before| {
            let slot = before.slot(&key)?;
            let offered = before
                .offered
                .get(slot)
                .filter(|known| ***known == attached)?;
            Some((offered, before.attachment_points.get(slot)?))
        });
        let (attached, attachment_points) = match before {
            Some((attached, points)) => (Arc::clone(attached), points.clone()),
            None => {
                let points = acceptance::attachment_points(&attached);
                let is_first = match attached.references.as_slice() {
                    [] => points.is_empty(),
                    [only] => *only.nodes == *points,
                    _ => false,
                };
                let own = (!is_first).then(|| points.into());
                (Arc::new(compact(attached)), own)
            }
        };
        put(&mut self.policies, slot, policy);
        let order = by_name(&self.policies, (&key.namespace, &key.name));
        // 4 billion policies do not fit into memory; the last number would be shared.
        self.slots
            .put(order, u32::try_from(slot).unwrap_or(u32::MAX));
        put(&mut self.attachment_points, slot, attachment_points);
        put(&mut self.offered, slot, Arc::clone(&attached));
        put(&mut self.attached, slot, attached);
        put(&mut self.lost, slot, Arc::default());
    }

    /// Removes a policy from its slot.
    pub(crate) fn remove(&mut self, slot: usize) {
        if let Some(policy) = self.policies.get(slot) {
            let name = (&policy.key.namespace, &policy.key.name);
            self.slots.take(by_name(&self.policies, name));
        }
        put(&mut self.attachment_points, slot, None);
        put(&mut self.offered, slot, Arc::default());
        put(&mut self.attached, slot, Arc::default());
        put(&mut self.lost, slot, Arc::default());
    }

    /// The attachment points of a policy before conflicts are resolved, sorted.
    pub(crate) fn attachment_points(&self, slot: usize) -> Option<&[AttachmentPoint]> {
        if let Some(points) = self.attachment_points.get(slot)? {
            return Some(points);
        }
        let first = self.offered.get(slot)?.references.first();
        Some(first.map_or(&[], |reference| &reference.nodes))
    }

    /// The outcomes of a policy's references.
    pub(crate) fn attached(&self, slot: usize) -> Option<&PolicyAttachment> {
        self.attached.get(slot).map(|attached| &**attached)
    }

    /// The outcomes of a policy's references before conflicts with other policies.
    pub(crate) fn offered(&self, slot: usize) -> Option<&PolicyAttachment> {
        self.offered.get(slot).map(|offered| &**offered)
    }

    /// Removes the attachment points that a policy lost to others from its references. `resolved` returns
    /// whether conflicts at an attachment point have just been resolved: earlier losses there are dropped.
    pub(crate) fn record_losses(
        &mut self,
        slot: usize,
        resolved: impl Fn(&AttachmentPoint) -> bool,
        lost: Vec<(AttachmentPoint, String)>,
    ) {
        let Some(before) = self.lost.get(slot) else {
            return;
        };
        if before.is_empty() && lost.is_empty() {
            return;
        }
        let kept = before.iter().filter(|(point, _)| !resolved(point)).cloned();
        let mut all: Vec<(AttachmentPoint, String)> = kept.chain(lost).collect();
        // The same order as when the world is read from scratch.
        all.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(offered) = self.offered.get(slot) {
            let mut attached = PolicyAttachment::clone(offered);
            for (point, message) in &all {
                acceptance::remove_point(&mut attached, point, message);
            }
            let attached = Arc::new(attached);
            self.attached.set(slot, attached);
        }
        self.lost.set(slot, all.into());
    }
}

impl NodeTable {
    /// The policies on a node; `None` if there are none.
    pub(crate) fn get(&self, node: &NodeId) -> Option<&NodePolicies> {
        let on_node = self.entries.get(*self.index.get(node)?)?;
        on_node.has_policies().then_some(&**on_node)
    }

    /// Whether a node has policies.
    pub(crate) fn contains_key(&self, node: &NodeId) -> bool {
        self.get(node).is_some()
    }

    /// Whether no node has policies.
    pub(crate) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// The nodes with their policies, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, &NodePolicies)> {
        let nodes = self.index.keys();
        nodes.filter_map(|node| Some((*node, self.get(node)?)))
    }

    /// The policies of all nodes, in no particular order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &NodePolicies> {
        let entries = self.entries.iter().map(|on_node| &**on_node);
        entries.filter(|on_node| on_node.has_policies())
    }

    /// Replaces the policies on a node.
    pub(crate) fn put(&mut self, node: NodeId, policies: NodePolicies) {
        self.occupied -= usize::from(self.contains_key(&node));
        self.occupied += usize::from(policies.has_policies());
        match self.index.get(&node) {
            Some(&entry) => self.entries.set(entry, Arc::new(policies)),
            None if policies.has_policies() => {
                let entry = self.entries.len();
                Arc::make_mut(&mut self.index).insert(node, entry);
                self.entries.push(Arc::new(policies));
            }
            None => {}
        }
    }
}

impl PolicyGroups {
    /// Adds the policies of a group that is not there yet.
    pub(crate) fn insert(&mut self, group: AttachmentGroup, policies: Vec<usize>) {
        let mut all = std::mem::take(&mut self.0).into_vec();
        let place = all.partition_point(|(before, _)| *before < group);
        all.reserve_exact(1);
        all.insert(place, (group, policies.into()));
        self.0 = all.into();
    }

    /// The policies of a group.
    pub(crate) fn get(&self, group: &AttachmentGroup) -> Option<&[usize]> {
        let mut groups = self.iter();
        groups.find_map(|(one, policies)| (one == group).then_some(policies))
    }

    /// The groups with their policies, from less to more specific.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&AttachmentGroup, &[usize])> {
        let groups = self.0.iter();
        groups.map(|(group, policies)| (group, &**policies))
    }

    /// Whether there is no group.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl NodePolicies {
    /// Whether there is a policy, accepted or not.
    pub(crate) fn has_policies(&self) -> bool {
        !self.groups.is_empty() || !self.rejected.is_empty()
    }
}

impl PolicyKind {
    /// The policies of the kind with their slots, sorted by namespace and name.
    pub fn policies(&self) -> impl Iterator<Item = (usize, &Policy)> {
        let slots = self.table.slots();
        slots.filter_map(|slot| Some((slot, self.policy_at(slot)?)))
    }

    /// The number of policies of the kind.
    pub fn policy_count(&self) -> usize {
        self.table.slots.len()
    }

    /// The policy in a slot.
    pub fn policy_at(&self, slot: usize) -> Option<&Policy> {
        self.table.policies.get(slot).map(|policy| &**policy)
    }

    /// The policy in a slot that must be in use. If it is not, the kind becomes UNKNOWN.
    pub(crate) fn required_policy(&self, slot: usize) -> Option<&Policy> {
        let policy = self.policy_at(slot).or_internal("a policy");
        policy.map_err(|error| self.fail(error)).ok()
    }

    /// The slot of a policy.
    pub fn policy(&self, key: &ObjectKey) -> Option<usize> {
        let slot = self.table.slot(key)?;
        (self.policy_at(slot)?.key == *key).then_some(slot)
    }

    /// The outcomes of a policy's references.
    pub fn attached(&self, policy: usize) -> Option<&PolicyAttachment> {
        self.table.attached(policy)
    }

    /// The nodes whose paths determine the ancestors of a policy: those that an accepted policy holds
    /// (specification 11.17), and those that the references of any other policy resolve to
    /// (specification 11.25). The group of a node limits these paths to those of its own clients
    /// (specification 4.6).
    pub(crate) fn ancestor_nodes(
        &self,
        policy: usize,
    ) -> impl Iterator<Item = &(NodeKey, AttachmentGroup)> {
        let references = match self.outcome(policy).0 {
            Outcome::Accepted => self.table.attached(policy),
            _ => self.table.offered(policy),
        };
        references.into_iter().flat_map(PolicyAttachment::nodes)
    }
}

/// Frees the space that is kept for more references and nodes.
fn compact(mut attached: PolicyAttachment) -> PolicyAttachment {
    attached.references.shrink_to_fit();
    for reference in &mut attached.references {
        reference.nodes.shrink_to_fit();
    }
    attached
}

/// Compares the policy in a slot with a namespace and a name.
fn by_name(policies: &ChunkedVec<Arc<Policy>>, name: (&Str, &Str)) -> impl Fn(&u32) -> Ordering {
    move |slot| {
        let policy = policies.get(*slot as usize);
        policy.map_or(Ordering::Less, |policy| {
            (&policy.key.namespace, &policy.key.name).cmp(&name)
        })
    }
}

/// Stores an entry in its slot, which is in use or the next new one.
fn put<T: Clone>(list: &mut ChunkedVec<T>, slot: usize, entry: T) {
    if slot < list.len() {
        list.set(slot, entry);
    } else {
        list.push(entry);
    }
}
