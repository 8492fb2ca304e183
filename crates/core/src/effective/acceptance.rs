//! Decides which policies are accepted on the nodes that they reference (specification 4.3, 7.1). This
//! happens before policies are stacked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;

use super::policy_table::PolicyTable;
use super::{NodePolicies, NodeRejection};
use crate::attach::{AttachmentGroup, PolicyAttachment};
use crate::merge::{Schemas, joined_units_of};
use crate::model::{ChunkedVec, NodeKey, Outcome, Unit, UnitTree};
use crate::profile::{BEING_DELETED, ConflictScope, Policy, PolicyClass, Profile, SameTarget};
use crate::topology::Topology;

/// A node with a group of its policies. Only policies with the same attachment point conflict
/// (specification 11.1).
pub(crate) type AttachmentPoint = (NodeKey, AttachmentGroup);
/// Policies by slot.
type Policies = ChunkedVec<Arc<Policy>>;

/// The policies that are accepted, rejected, and conflicted at each attachment point.
#[derive(Debug, Default)]
pub(crate) struct ConflictResolution {
    /// Accepted policies, the most established first.
    pub accepted: BTreeMap<AttachmentPoint, Vec<usize>>,
    /// Rejected policies by node.
    pub rejected: BTreeMap<NodeKey, Vec<NodeRejection>>,
    /// Attachment points that policies lost to others, with the message for their references.
    pub lost: Vec<(usize, AttachmentPoint, String)>,
}

/// Resolves the conflicts between the policies in the slots in `order`.
pub(crate) fn resolve_conflicts(
    profile: &Profile,
    schemas: Schemas<'_>,
    table: &PolicyTable,
    mut order: Vec<usize>,
    topology: &Topology,
) -> ConflictResolution {
    let policies = &table.policies;
    let mut resolution = ConflictResolution::default();
    let mut not_evaluated: BTreeMap<AttachmentPoint, Vec<usize>> = BTreeMap::new();
    order.sort_by_cached_key(|&index| policies.get(index).map(|policy| policy.establishment()));
    for &index in &order {
        let (Some(policy), Some(attachment_points)) =
            (policies.get(index), table.attachment_points(index))
        else {
            continue;
        };
        if let Some((reason, message)) = rejection_reason(policy) {
            resolution.reject(index, attachment_points, &reason, &message);
            continue;
        }
        for point in attachment_points.iter() {
            let policies = match point.1.is_evaluated() {
                true => &mut resolution.accepted,
                false => &mut not_evaluated,
            };
            policies.entry(point.clone()).or_default().push(index);
        }
    }
    match (profile.class, profile.same_target) {
        (_, SameTarget::RejectAll) => resolution.reject_all(policies),
        (PolicyClass::Direct, _) | (_, SameTarget::RejectNewer) => {
            resolution.reject_newer(policies);
        }
        (_, SameTarget::UnionOrReject) => {
            resolution.union_or_reject((profile, schemas), policies, &order);
        }
        (_, SameTarget::Established | SameTarget::OldestWins) => {}
    }
    if profile.conflicts == ConflictScope::Port {
        resolution.reject_on_shared_ports(topology);
    }
    resolution.report_missing(policies);
    resolution.accepted.append(&mut not_evaluated);
    for rejections in resolution.rejected.values_mut() {
        rejections.sort_by_key(|r| policies.get(r.policy).map(|p| p.key.qualified_name()));
    }
    resolution
}

/// Whether a policy is rejected at all its attachment points, and other policies are accepted as if it did not exist.
pub(super) fn takes_no_part(policy: &Policy) -> bool {
    rejection_reason(policy).is_some()
}

/// The reason and message for which a policy is rejected at all its attachment points, if there is one.
fn rejection_reason(policy: &Policy) -> Option<(String, String)> {
    match (&policy.invalid, &policy.untrusted) {
        (Some(message), _) => Some((Outcome::Invalid.to_string(), message.to_string())),
        (None, Some(reason)) => {
            let message = match reason.as_str() {
                BEING_DELETED => "it is being deleted",
                _ => "its controller does not accept it",
            };
            Some((reason.to_string(), message.to_owned()))
        }
        (None, None) => None,
    }
}

impl ConflictResolution {
    /// The attachment points that each policy lost.
    pub fn losses_by_policy(&self) -> BTreeMap<usize, Vec<(AttachmentPoint, String)>> {
        let mut grouped: BTreeMap<usize, Vec<(AttachmentPoint, String)>> = BTreeMap::new();
        for (policy, point, message) in &self.lost {
            let lost = grouped.entry(*policy).or_default();
            lost.push((point.clone(), message.clone()));
        }
        grouped
    }

    /// The policies on each node.
    pub fn by_node(self, profile: &Profile) -> HashMap<NodeKey, NodePolicies> {
        let mut grouped: HashMap<NodeKey, NodePolicies> = HashMap::new();
        for ((node, group), policies) in self.accepted {
            let on_node = grouped.entry(node).or_default();
            on_node.groups.insert(group, policies);
        }
        for (node, rejected) in self.rejected {
            grouped.entry(node).or_default().rejected = rejected.into();
        }
        if profile.checks_merges() {
            for (node, policies) in &mut grouped {
                policies.merge_check = profile.merge_check(profile.target_kind(&node.object.kind));
            }
        }
        if !profile.limits.is_empty() {
            let root = NodeKey::root();
            for (node, policies) in &mut grouped {
                let kind = (*node != root).then(|| profile.target_kind(&node.object.kind));
                policies.limits = profile.limits.concerning(kind);
            }
        }
        grouped
    }

    fn reject(
        &mut self,
        policy: usize,
        attachment_points: &[AttachmentPoint],
        reason: &str,
        message: &str,
    ) {
        for (node, group) in attachment_points {
            let rejections = self.rejected.entry(node.clone()).or_default();
            rejections.push(NodeRejection {
                group: group.clone(),
                policy,
                reason: reason.to_owned(),
                message: message.to_owned(),
            });
        }
    }

    /// Records the policies whose references to objects are missing as rejected. They keep their places: their
    /// controllers fail closed there (specification 5.7).
    fn report_missing(&mut self, policies: &Policies) {
        let mut found: Vec<(usize, AttachmentPoint)> = Vec::new();
        for (point, holders) in &self.accepted {
            let has_missing =
                |slot: &&usize| policies.get(**slot).is_some_and(|p| p.missing.is_some());
            let holders = holders.iter().filter(has_missing);
            found.extend(holders.map(|&slot| (slot, point.clone())));
        }
        for (slot, point) in found {
            if let Some(missing) = policies.get(slot).and_then(|p| p.missing.as_ref()) {
                self.reject(slot, &[point], &missing.reason, &missing.message);
            }
        }
    }

    /// Records that a policy lost an attachment point to another.
    fn lose(&mut self, policy: usize, point: AttachmentPoint, message: String) {
        let reason = Outcome::Conflicted.as_str();
        self.reject(policy, std::slice::from_ref(&point), reason, &message);
        self.lost.push((policy, point, message));
    }

    /// Accepts only the oldest policy at each attachment point. A newer policy keeps its other references
    /// and is Conflicted only if none is left. The content of policies does not count: an empty policy
    /// keeps others out, too.
    fn reject_newer(&mut self, policies: &Policies) {
        let mut lost: Vec<(usize, AttachmentPoint, usize)> = Vec::new();
        for (point, holders) in &mut self.accepted {
            let losers = holders.split_off(1.min(holders.len()));
            let Some(&winner) = holders.first() else {
                continue;
            };
            lost.extend(losers.into_iter().map(|l| (l, point.clone(), winner)));
        }
        for (loser, point, winner) in lost {
            let message = conflict_message(policies, winner);
            self.lose(loser, point, message);
        }
    }

    /// Rejects the policies on listeners that share their port with other listeners (specification 7.6). Such a
    /// policy keeps less specific ones out all the same: its group stays, without policies. The first listener
    /// of a port configures it for all.
    fn reject_on_shared_ports(&mut self, topology: &Topology) {
        let mut lost: Vec<(usize, AttachmentPoint, String)> = Vec::new();
        let mut held: BTreeSet<NodeKey> = BTreeSet::new();
        self.accepted.retain(|point, policies| {
            let node = topology.node(&point.0);
            let Some(group) = node.and_then(|node| topology.shared_ports.of(node)) else {
                return true;
            };
            let message = format!(
                "the listener shares port {} with other HTTP listeners, to which the policy would apply, too",
                group.port
            );
            let policies = policies.drain(..);
            lost.extend(policies.map(|policy| (policy, point.clone(), message.clone())));
            if point.1 != AttachmentGroup::GatewaySection {
                held.insert(point.0.clone());
                if node == group.listeners.first().copied() {
                    let all = group.listeners.iter();
                    held.extend(all.map(|&listener| topology.key(listener).clone()));
                }
            }
            false
        });
        for (policy, point, message) in lost {
            self.lose(policy, point, message);
        }
        let empty = held
            .into_iter()
            .map(|node| ((node, AttachmentGroup::Whole), Vec::new()));
        self.accepted.extend(empty);
    }

    /// Accepts no policy at an attachment point that several policies hold (specification 4.7).
    fn reject_all(&mut self, policies: &Policies) {
        let mut disputed = std::mem::take(&mut self.accepted);
        self.accepted = disputed
            .extract_if(.., |_, holders| holders.len() < 2)
            .collect();
        for (point, holders) in disputed {
            for &loser in &holders {
                // The message names the oldest of the others.
                let Some(&other) = holders.iter().find(|&&holder| holder != loser) else {
                    continue;
                };
                let name = policies.get(other).map(|p| p.key.qualified_name());
                let message = format!(
                    "conflicts with the policy `{}`: none of them is accepted",
                    name.unwrap_or_default()
                );
                self.lose(loser, point.clone(), message);
            }
        }
    }

    /// Accepts policies from oldest to newest. A policy that overlaps an accepted one at any of its
    /// attachment points is Conflicted at all of them, and keeps no later policy out.
    fn union_or_reject(
        &mut self,
        (profile, schemas): (&Profile, Schemas<'_>),
        policies: &Policies,
        order: &[usize],
    ) {
        let offered = std::mem::take(&mut self.accepted);
        let mut attachment_points: BTreeMap<usize, Vec<&AttachmentPoint>> = BTreeMap::new();
        for (point, holders) in &offered {
            for &holder in holders {
                attachment_points.entry(holder).or_default().push(point);
            }
        }
        // By unit, the policies in their order.
        let mut accepted_units: BTreeMap<&AttachmentPoint, UnitTree<(usize, usize)>> =
            BTreeMap::new();
        for (rank, index) in order.iter().enumerate() {
            let (Some(own_points), Some(policy)) =
                (attachment_points.get(index), policies.get(*index))
            else {
                continue;
            };
            let units = units(profile, schemas, policy);
            let conflict = own_points.iter().find_map(|point| {
                let accepted = accepted_units.get(point)?;
                units
                    .iter()
                    .filter_map(|unit| first_overlap(accepted, unit))
                    .min()
            });
            if let Some((_, winner)) = &conflict {
                let message = conflict_message(policies, *winner);
                for &point in own_points {
                    self.lose(*index, point.clone(), message.clone());
                }
                continue;
            }
            for &point in own_points {
                let accepted = accepted_units.entry(point).or_default();
                units
                    .iter()
                    .for_each(|unit| accepted.insert(&unit.0, (rank, *index)));
                self.accepted.entry(point.clone()).or_default().push(*index);
            }
        }
    }
}

fn conflict_message(policies: &Policies, winner: usize) -> String {
    let name = policies.get(winner).map(|p| p.key.qualified_name());
    format!(
        "conflicts with the established policy `{}`",
        name.unwrap_or_default()
    )
}

/// The attachment points of a policy's accepted references. Several references to one node count once
/// (specification 3.5).
pub(crate) fn attachment_points(attached: &PolicyAttachment) -> Vec<AttachmentPoint> {
    let mut attachment_points: Vec<AttachmentPoint> = attached.relevant_nodes().cloned().collect();
    attachment_points.sort_unstable();
    attachment_points.dedup();
    attachment_points
}

/// The most nodes that the message of a reference tells as lost.
const MAX_TOLD: usize = 3;

/// Removes an attachment point from the references of a policy. A reference that lost all its nodes is
/// Conflicted. One that keeps others, as a selector can, tells in its message which it lost (specification 4.3).
pub(crate) fn remove_point(
    attached: &mut PolicyAttachment,
    point: &AttachmentPoint,
    message: &str,
) {
    for reference in &mut attached.references {
        let before = reference.nodes.len();
        reference.nodes.retain(|own| own != point);
        if before == reference.nodes.len() {
            continue;
        }
        if reference.nodes.is_empty() {
            reference.outcome = Outcome::Conflicted;
            reference.message = message.into();
            continue;
        }
        match reference.message.matches("; ").count() + 1 {
            _ if reference.message.is_empty() => {
                reference.message = format!("`{}`: {message}", point.0).into();
            }
            told if told < MAX_TOLD => {
                let more = format!("{}; `{}`: {message}", reference.message, point.0);
                reference.message = more.into();
            }
            MAX_TOLD => reference.message = format!("{}; and others", reference.message).into(),
            _ => {}
        }
    }
}

/// The units of all blocks of a policy.
fn units(profile: &Profile, schemas: Schemas<'_>, policy: &Policy) -> Vec<Unit> {
    policy
        .blocks
        .iter()
        .flat_map(|block| joined_units_of(profile, schemas, block))
        .collect()
}

/// Adds the listeners that share a port with an affected one, if policies on them conflict (specification 7.6).
pub(crate) fn extend_to_ports(
    profile: &Profile,
    topology: &Topology,
    affected: &mut BTreeSet<NodeKey>,
) {
    if profile.conflicts != ConflictScope::Port {
        return;
    }
    let nodes = affected.iter().filter_map(|key| topology.node(key));
    let groups = nodes.filter_map(|node| topology.shared_ports.of(node));
    let listeners = groups.flat_map(|group| &group.listeners);
    let keys: Vec<NodeKey> = listeners.map(|&node| topology.key(node).clone()).collect();
    affected.extend(keys);
}

/// The first of the policies that hold a unit that overlaps another: their paths are equal, or one is a prefix of the
/// other. Of those below a unit, one is enough: nobody else may hold anything there.
fn first_overlap(accepted: &UnitTree<(usize, usize)>, unit: &Unit) -> Option<(usize, usize)> {
    let above = accepted.at_or_above(&unit.0);
    above.chain(accepted.at_or_below(&unit.0)).min().copied()
}
