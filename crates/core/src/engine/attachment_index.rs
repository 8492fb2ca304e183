//! An index of a kind's policies by node, so that single policies can be replaced.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hash};
use std::marker::PhantomData;
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use rpds::RedBlackTreeSetSync;

use crate::attach::{AttachmentGroup, FilterReferences, PolicyAttachment};
use crate::effective::PolicyKind;
use crate::model::{FewList, LayeredMap, NodeKey, ObjectKey, OrInternal, Str, groups};
use crate::profile::{Policy, PolicyClass, Reference, ReferenceTarget, SameTarget};
use crate::store::Store;

/// The slots of policies by a key of which only the hash is kept, because the policies themselves have it. Should keys
/// have the same hash, each has the policies of all of them: they are then looked at, which changes nothing.
#[derive(Clone, Debug)]
pub(super) struct SlotsByKey<K> {
    slots: LayeredMap<u64, FewList<usize>>,
    hasher: DefaultHashBuilder,
    keys: PhantomData<K>,
}

/// The data of a kind that is needed to replace single policies. Clones share what does not change.
#[derive(Clone, Debug)]
pub(super) struct AttachmentIndex {
    /// Slots that are not in use.
    free: Vec<usize>,
    /// The policies whose references name a node.
    pub by_node: SlotsByKey<NodeKey>,
    /// The policies whose rules reference an object (specification 5.7).
    pub by_object: SlotsByKey<ObjectKey>,
    /// The policies that target an object by name, whether it exists or not.
    pub by_target: SlotsByKey<ObjectKey>,
    /// The policies that target objects by their labels.
    pub selecting: RedBlackTreeSetSync<usize>,
    pub filters: Arc<FilterReferences>,
}

impl<K> Default for SlotsByKey<K> {
    fn default() -> Self {
        Self {
            slots: LayeredMap::default(),
            hasher: DefaultHashBuilder::default(),
            keys: PhantomData,
        }
    }
}

impl<K: Hash> SlotsByKey<K> {
    /// The slots of the policies with a key, and perhaps others.
    pub fn get(&self, key: &K) -> &[usize] {
        let slots = self.slots.get(&self.hasher.hash_one(key));
        slots.map_or(&[], FewList::as_slice)
    }

    /// Adds a policy.
    fn add(&mut self, key: &K, slot: usize) {
        let hash = self.hasher.hash_one(key);
        self.slots.update(hash, |slots| slots.push(slot));
    }

    /// Removes a policy that was added. One with two keys of the same hash is there twice.
    fn remove(&mut self, key: &K, slot: usize) {
        let hash = self.hasher.hash_one(key);
        if let Some(slots) = self.slots.get_mut(&hash) {
            slots.remove(slot);
            if slots.is_empty() {
                self.slots.remove(&hash);
            }
        }
    }
}

impl AttachmentIndex {
    /// Builds the index of a kind.
    pub fn of(kind: &PolicyKind, store: &Store) -> Self {
        let mut index = Self {
            free: Vec::new(),
            by_node: SlotsByKey::default(),
            by_object: SlotsByKey::default(),
            by_target: SlotsByKey::default(),
            selecting: RedBlackTreeSetSync::default(),
            filters: Arc::new(FilterReferences::of(&kind.profile, store)),
        };
        for slot in 0..kind.slots() {
            for (node, _) in kind.table.attachment_points(slot).unwrap_or_default() {
                index.by_node.add(node, slot);
            }
        }
        for (slot, policy) in kind.policies() {
            index.add_references(slot, policy);
        }
        index
    }

    /// Adds what a policy targets and what its rules reference.
    fn add_references(&mut self, slot: usize, policy: &Policy) {
        if policy.references.iter().any(selects) {
            self.selecting.insert_mut(slot);
        }
        for target in targets(policy) {
            self.by_target.add(&target, slot);
        }
        for object in &policy.named_objects {
            self.by_object.add(object, slot);
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
        self.add_references(slot, &policy);
        kind.table.put(slot, Arc::new(policy), attached, None);
        let points = kind.table.attachment_points(slot);
        let points = points.or_internal("a policy").ok()?.iter();
        let nodes: Vec<NodeKey> = points.map(|(node, _)| node.clone()).collect();
        for node in &nodes {
            self.by_node.add(node, slot);
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
        for node in &nodes {
            self.by_node.remove(node, slot);
        }
        nodes.dedup();
        let named = kind.policy_at(slot).into_iter();
        for object in named.flat_map(|policy| &policy.named_objects) {
            self.by_object.remove(object, slot);
        }
        for target in kind.policy_at(slot).into_iter().flat_map(targets) {
            self.by_target.remove(&target, slot);
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
            for &policy in self.by_node.get(&node) {
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

/// The objects that a policy targets by name, each once.
fn targets(policy: &Policy) -> BTreeSet<ObjectKey> {
    let references = policy.references.iter();
    let targets = references.filter_map(|reference| {
        let ReferenceTarget::Name(name) = &reference.target else {
            return None;
        };
        let namespace = reference.namespace.as_ref();
        let kind = &reference.kind;
        let namespace = match kind.is_namespace() || kind.is(groups::GATEWAY, "GatewayClass") {
            true => Str::default(),
            false => namespace.unwrap_or(&policy.key.namespace).clone(),
        };
        // Also Gateways: a backendRef can name one that does not exist, which is then a node of paths.
        Some(ObjectKey::new(
            reference.kind.clone(),
            namespace,
            name.clone(),
        ))
    });
    targets.collect()
}
