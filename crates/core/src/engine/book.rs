//! Where the policies of a kind are written down, so that one of them can be exchanged.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use crate::attach::{Filters, Group};
use crate::effective::Kind;
use crate::model::{NodeKey, ObjectKey};
use crate::profile::{Class, SameTarget};
use crate::store::Store;

/// What is remembered of a kind, so that one policy can be exchanged.
#[derive(Debug)]
pub(super) struct Book {
    pub slots: HashMap<ObjectKey, usize>,
    free: Vec<usize>,
    /// The policies whose references point to a node.
    pub on: HashMap<NodeKey, Vec<usize>>,
    pub filters: Filters,
}

impl Book {
    /// The book of a kind.
    pub fn of(kind: &Kind, store: &Store) -> Self {
        let policies = kind.policies.iter().enumerate();
        let mut on: HashMap<NodeKey, Vec<usize>> = HashMap::new();
        for (slot, places) in kind.places.iter().enumerate() {
            for (node, _) in places {
                on.entry(node.clone()).or_default().push(slot);
            }
        }
        Self {
            slots: policies.map(|(at, p)| (p.key.clone(), at)).collect(),
            free: Vec::new(),
            on,
            filters: Filters::of(&kind.profile, store),
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
    pub fn take_off(&mut self, kind: &mut Kind, slot: usize, gone: bool) -> Option<Vec<NodeKey>> {
        let places = std::mem::take(kind.places.get_mut(slot)?);
        if places.iter().any(|(_, g)| matches!(g, Group::Clients(_))) {
            return None;
        }
        let mut nodes: Vec<NodeKey> = places.into_iter().map(|(node, _)| node).collect();
        nodes.dedup();
        for node in &nodes {
            if let Some(here) = self.on.get_mut(node) {
                here.retain(|&other| other != slot);
                if here.is_empty() {
                    self.on.remove(node);
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
    pub fn members(&self, kind: &Kind, affected: &mut BTreeSet<NodeKey>) -> Vec<usize> {
        let spreads = kind.profile.class != Class::Direct
            && kind.profile.same_target == SameTarget::UnionOrReject;
        let mut members: BTreeSet<usize> = BTreeSet::new();
        let mut pending: Vec<NodeKey> = affected.iter().cloned().collect();
        while let Some(node) = pending.pop() {
            for &policy in self.on.get(&node).into_iter().flatten() {
                if !members.insert(policy) || !spreads {
                    continue;
                }
                for (other, _) in kind.places.get(policy).into_iter().flatten() {
                    if affected.insert(other.clone()) {
                        pending.push(other.clone());
                    }
                }
            }
        }
        members.into_iter().collect()
    }
}
