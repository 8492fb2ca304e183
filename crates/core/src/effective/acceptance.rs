//! Acceptance (specification 4.3, 7.1): which policies hold their place, before any stacking.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use super::{NodePolicies, NodeRejection};
use crate::attach::{AttachmentGroup, PolicyAttachment};
use crate::merge::{Schemas, joined_units_of};
use crate::model::{ChunkedVec, NodeKey, Outcome, Unit};
use crate::profile::{Policy, PolicyClass, Profile, SameTarget};

/// A node, or a group of it: conflicts are between policies of one place (specification 11.1).
pub(crate) type AttachmentPoint = (NodeKey, AttachmentGroup);
/// Policies by slot.
type Policies = ChunkedVec<Arc<Policy>>;

/// Policies on their places.
#[derive(Debug, Default)]
pub(crate) struct ConflictResolution {
    /// Accepted ones, the established first.
    pub accepted: BTreeMap<AttachmentPoint, Vec<usize>>,
    /// The others, by node.
    pub rejected: BTreeMap<NodeKey, Vec<NodeRejection>>,
    /// Places that policies lost to others, with what their references are told.
    pub lost: Vec<(usize, AttachmentPoint, String)>,
}

/// Settles the conflicts between some policies of a kind, given the places of all.
pub(crate) fn resolve_conflicts(
    profile: &Profile,
    schemas: Schemas<'_>,
    policies: &Policies,
    attachment_points: &ChunkedVec<Arc<Vec<AttachmentPoint>>>,
    mut order: Vec<usize>,
) -> ConflictResolution {
    let mut resolution = ConflictResolution::default();
    order.sort_by_cached_key(|&index| policies.get(index).map(|policy| policy.establishment()));
    for &index in &order {
        let (Some(policy), Some(attachment_points)) =
            (policies.get(index), attachment_points.get(index))
        else {
            continue;
        };
        if let Some((reason, message)) = refusal(policy) {
            resolution.reject(index, attachment_points, &reason, &message);
            continue;
        }
        for point in attachment_points.iter() {
            let here = resolution.accepted.entry(point.clone()).or_default();
            here.push(index);
        }
    }
    match (profile.class, profile.same_target) {
        (PolicyClass::Direct, _) | (_, SameTarget::RejectNewer) => {
            resolution.reject_newer(policies);
        }
        (_, SameTarget::UnionOrReject) => {
            resolution.union_or_reject((profile, schemas), policies, &order);
        }
        (_, SameTarget::Established | SameTarget::OldestWins) => {}
    }
    for here in resolution.rejected.values_mut() {
        here.sort_by_key(|r| policies.get(r.policy).map(|p| p.key.qualified_name()));
    }
    resolution
}

/// Why a policy takes no part anywhere, if so.
fn refusal(policy: &Policy) -> Option<(String, String)> {
    match (&policy.invalid, &policy.untrusted) {
        (Some(message), _) => Some((Outcome::Invalid.to_string(), message.clone())),
        (None, Some(reason)) => Some((
            reason.clone(),
            "its controller does not accept it".to_owned(),
        )),
        (None, None) => None,
    }
}

impl ConflictResolution {
    /// The places that each policy lost.
    pub fn lost_of(&self) -> BTreeMap<usize, Vec<(AttachmentPoint, String)>> {
        let mut found: BTreeMap<usize, Vec<(AttachmentPoint, String)>> = BTreeMap::new();
        for (policy, point, message) in &self.lost {
            let lost = found.entry(*policy).or_default();
            lost.push((point.clone(), message.clone()));
        }
        found
    }

    /// What stands on each node.
    pub fn by_node(self) -> HashMap<NodeKey, NodePolicies> {
        let mut found: HashMap<NodeKey, NodePolicies> = HashMap::new();
        for ((node, group), policies) in self.accepted {
            let here = found.entry(node).or_default();
            here.groups.insert(group, policies);
        }
        for (node, rejected) in self.rejected {
            found.entry(node).or_default().rejected = rejected;
        }
        found
    }

    fn reject(
        &mut self,
        policy: usize,
        attachment_points: &[AttachmentPoint],
        reason: &str,
        message: &str,
    ) {
        for (node, group) in attachment_points {
            let here = self.rejected.entry(node.clone()).or_default();
            here.push(NodeRejection {
                group: group.clone(),
                policy,
                reason: reason.to_owned(),
                message: message.to_owned(),
            });
        }
    }

    /// A policy lost a place to another.
    fn lose(&mut self, policy: usize, point: AttachmentPoint, message: String) {
        let reason = Outcome::Conflicted.as_str();
        self.reject(policy, std::slice::from_ref(&point), reason, &message);
        self.lost.push((policy, point, message));
    }

    /// Per node only the oldest is accepted; a newer one keeps its other references and is
    /// Conflicted only if none is left. Acceptance looks at references only: an empty policy holds
    /// its place too.
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
            let message = held_by(policies, winner);
            self.lose(loser, point, message);
        }
    }

    /// All policies from oldest to newest; one that overlaps an accepted one on any of its nodes
    /// is Conflicted on all of them and overlaps nobody later.
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
        let mut held: BTreeMap<&AttachmentPoint, Vec<(usize, Vec<Unit>)>> = BTreeMap::new();
        for index in order {
            let (Some(mine), Some(policy)) = (attachment_points.get(index), policies.get(*index))
            else {
                continue;
            };
            let units = units(profile, schemas, policy);
            let rival = mine
                .iter()
                .flat_map(|point| held.get(point).into_iter().flatten())
                .find(|(_, theirs)| overlap(&units, theirs));
            if let Some((winner, _)) = rival {
                let message = held_by(policies, *winner);
                for &point in mine {
                    self.lose(*index, point.clone(), message.clone());
                }
                continue;
            }
            for &point in mine {
                held.entry(point).or_default().push((*index, units.clone()));
                self.accepted.entry(point.clone()).or_default().push(*index);
            }
        }
    }
}

fn held_by(policies: &Policies, winner: usize) -> String {
    let name = policies.get(winner).map(|p| p.key.qualified_name());
    format!(
        "the established policy `{}` holds the place",
        name.unwrap_or_default()
    )
}

/// The places of a policy's accepted references; twice to one node counts once (specification 3.5).
pub(crate) fn attachment_points(attached: &PolicyAttachment) -> Vec<AttachmentPoint> {
    let mut attachment_points: Vec<AttachmentPoint> = attached.nodes().cloned().collect();
    attachment_points.sort_unstable();
    attachment_points.dedup();
    attachment_points
}

/// Takes a node away from the references of a policy. One that lost all its nodes is Conflicted.
pub(crate) fn lose(attached: &mut PolicyAttachment, point: &AttachmentPoint, message: &str) {
    for reference in &mut attached.references {
        let before = reference.nodes.len();
        reference.nodes.retain(|own| own != point);
        if before > 0 && reference.nodes.is_empty() {
            reference.outcome = Outcome::Conflicted;
            message.clone_into(&mut reference.message);
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

/// Two units overlap if one's path equals or is a prefix of the other's.
fn overlap(ours: &[Unit], theirs: &[Unit]) -> bool {
    ours.iter().any(|our| {
        theirs
            .iter()
            .any(|their| our.covers(their) || their.covers(our))
    })
}
