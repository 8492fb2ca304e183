//! An index of a kind's policies by node, so that single policies can be replaced.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::sync::Arc;

use rpds::RedBlackTreeSetSync;
use smallvec::SmallVec;

use crate::attach::{AttachmentGroup, FilterReferences, PolicyAttachment};
use crate::effective::PolicyKind;
use crate::model::{LayeredMap, NodeKey, ObjectKey, OrInternal};
use crate::profile::{Policy, PolicyClass, Reference, ReferenceTarget, SameTarget};
use crate::store::Store;

/// The slots of policies: of few in nearly all entries.
type Slots = SmallVec<[usize; 2]>;

/// The data of a kind that is needed to replace single policies. Clones share what does not change.
#[derive(Clone, Debug)]
pub(super) struct AttachmentIndex {
    /// Slots that are not in use.
    free: Vec<usize>,
    /// The policies whose references name a node.
    pub by_node: LayeredMap<NodeKey, Slots>,
    /// The policies whose rules reference an object (specification 5.7).
    pub by_object: LayeredMap<ObjectKey, Slots>,
    /// The policies that target an object by name, whether it exists or not.
    pub by_target: LayeredMap<ObjectKey, Slots>,
    /// The policies that target objects by their labels.
    pub selecting: RedBlackTreeSetSync<usize>,
    pub filters: Arc<FilterReferences>,
}

impl AttachmentIndex {
    /// Builds the index of a kind.
    pub fn of(kind: &PolicyKind, store: &Store) -> Self {
        let mut by_node: LayeredMap<NodeKey, Slots> = LayeredMap::default();
        for slot in 0..kind.slots() {
            for (node, _) in kind.table.attachment_points(slot).unwrap_or_default() {
                by_node.update(node.clone(), |slots| slots.push(slot));
            }
        }
        let mut by_object: LayeredMap<ObjectKey, Slots> = LayeredMap::default();
        for (slot, policy) in kind.policies() {
            for object in &policy.named_objects {
                by_object.update(object.clone(), |slots| slots.push(slot));
            }
        }
        let mut index = Self {
            free: Vec::new(),
            by_node,
            by_object,
            by_target: LayeredMap::default(),
            selecting: RedBlackTreeSetSync::default(),
            filters: Arc::new(FilterReferences::of(&kind.profile, store)),
        };
        for (slot, policy) in kind.policies() {
            index.add_targets(slot, policy);
        }
        index
    }

    /// Adds the targets of a policy.
    fn add_targets(&mut self, slot: usize, policy: &Policy) {
        if policy.references.iter().any(selects) {
            self.selecting.insert_mut(slot);
        }
        for target in targets(policy) {
            self.by_target.update(target, |slots| slots.push(slot));
        }
    }

    /// The slot of a policy, or a free one if it has none.
    pub fn slot(&mut self, kind: &PolicyKind, key: &ObjectKey) -> usize {
        let existing = kind.table.slot(key).or_else(|| self.free.pop());
        existing.unwrap_or(kind.table.policies.len())
    }

    /// Stores a policy in a slot, and adds it to the index. Returns its nodes.
    pub fn attach(
        &mut self,
        kind: &mut PolicyKind,
        slot: usize,
        policy: Policy,
        attached: PolicyAttachment,
    ) -> Option<Vec<NodeKey>> {
        for object in &policy.named_objects {
            self.by_object
                .update(object.clone(), |slots| slots.push(slot));
        }
        self.add_targets(slot, &policy);
        kind.table.put(slot, Arc::new(policy), attached, None);
        let points = kind.table.attachment_points(slot);
        let points = points.or_internal("a policy").ok()?.iter();
        let nodes: Vec<NodeKey> = points.map(|(node, _)| node.clone()).collect();
        for node in &nodes {
            self.by_node.update(node.clone(), |slots| slots.push(slot));
        }
        Some(nodes)
    }

    /// Removes a policy from its nodes and returns them; also from its slot if it is `gone`. `None` if it is
    /// for the clients of one namespace, since such a policy can have paths of its own.
    pub fn detach(
        &mut self,
        kind: &mut PolicyKind,
        slot: usize,
        gone: bool,
    ) -> Option<Vec<NodeKey>> {
        let attachment_points = kind.table.attachment_points(slot);
        let attachment_points = attachment_points.or_internal("a policy").ok()?;
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
            remove(&mut self.by_node, node, slot);
        }
        let named = kind.policy_at(slot).into_iter();
        for object in named.flat_map(|policy| &policy.named_objects) {
            remove(&mut self.by_object, object, slot);
        }
        for target in kind.policy_at(slot).into_iter().flat_map(targets) {
            remove(&mut self.by_target, &target, slot);
        }
        self.selecting.remove_mut(&slot);
        if gone {
            kind.table.remove(slot);
            self.free.push(slot);
        }
        Some(nodes)
    }

    /// The policies that can influence which policies are accepted on the affected nodes. If a conflict
    /// rejects a policy on all its nodes, these nodes are added to `affected`, and so on.
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
                let attachment_points = kind.table.attachment_points(policy);
                for (other, _) in attachment_points.unwrap_or_default() {
                    if affected.insert(other.clone()) {
                        pending.push(other.clone());
                    }
                }
            }
        }
        members.into_iter().collect()
    }
}

/// Whether a reference selects its targets.
fn selects(reference: &Reference) -> bool {
    matches!(reference.target, ReferenceTarget::Selector(_))
}

/// The objects that a policy targets by name.
fn targets(policy: &Policy) -> impl Iterator<Item = ObjectKey> {
    let references = policy.references.iter();
    references.filter_map(|reference| {
        let ReferenceTarget::Name(name) = &reference.target else {
            return None;
        };
        let namespace = reference
            .namespace
            .as_ref()
            .unwrap_or(&policy.key.namespace);
        // Also Gateways: a backendRef can name one that does not exist, which is then a node of paths.
        Some(ObjectKey::new(
            reference.kind.clone(),
            namespace.clone(),
            name.clone(),
        ))
    })
}

/// Removes a policy from the entry of a key, and the entry if it is empty then.
fn remove<K: Clone + Eq + Hash + Ord>(index: &mut LayeredMap<K, Slots>, key: &K, slot: usize) {
    if let Some(slots) = index.get_mut(key) {
        slots.retain(|other| *other != slot);
        if slots.is_empty() {
            index.remove(key);
        }
    }
}
