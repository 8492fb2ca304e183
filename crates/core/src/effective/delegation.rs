//! What the rules that delegate to other Routes hide from answers (specification 1.8).

use std::sync::Arc;

use super::{AttachmentChain, NodePolicies, PolicyKind};
use crate::attach::AttachmentGroup;
use crate::model::{GroupKind, Level, Outcome, groups};
use crate::profile::{EffectiveTarget, TargetKinds};
use crate::topology::delegation::DelegationId;
use crate::topology::{NodeId, PathStep, Topology};

/// The number of nodes of child Routes in a chain. More are not needed, because an answer lists no more
/// policies.
const MAX_NODES: usize = super::unknown::MAX_LISTED;

/// The child Routes of the rule on a path, with the policies of a kind on them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DelegatedNodes {
    pub(crate) delegation: DelegationId,
    /// The first nodes of the child Routes that have policies.
    pub(crate) nodes: Arc<[NodeId]>,
}

impl PolicyKind {
    /// The delegation of the rule at a step, if the answers of the kind depend on the Routes of a path.
    pub(crate) fn delegation_at(
        &self,
        topology: &Topology,
        step: PathStep,
    ) -> Option<DelegationId> {
        let delegation = match step.level {
            Level::RouteRule => topology.delegations.of_rule(step.node),
            _ => None,
        };
        delegation.filter(|_| self.reads_routes())
    }

    /// Whether a Route, or something below it, can change the answers of the kind.
    fn reads_routes(&self) -> bool {
        match self.profile.effective {
            EffectiveTarget::Level(level) => level >= Level::Route,
            EffectiveTarget::Every => true,
            EffectiveTarget::Target => match &self.profile.targets {
                TargetKinds::Any { .. } => true,
                TargetKinds::Listed(list) => {
                    list.iter().any(|target| !is_above_routes(&target.kind))
                }
            },
        }
    }

    /// The policies of the kind on the child Routes of a rule.
    pub(crate) fn delegated_nodes(
        &self,
        topology: &Topology,
        delegation: DelegationId,
    ) -> DelegatedNodes {
        let mut nodes: Vec<NodeId> = Vec::new();
        for node in self.nodes_of_children(topology, delegation) {
            if nodes.len() == MAX_NODES {
                break;
            }
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        DelegatedNodes {
            delegation,
            nodes: nodes.into(),
        }
    }

    /// All nodes of child Routes, and the Namespaces above them, that have policies of the kind.
    pub(super) fn nodes_of_children<'k>(
        &'k self,
        topology: &'k Topology,
        delegation: DelegationId,
    ) -> impl Iterator<Item = NodeId> + 'k {
        let delegation = topology.delegations.get(delegation).into_iter();
        let steps = delegation.flat_map(|found| found.steps.iter());
        let steps = steps.filter(|step| self.sees(step.level));
        let nodes = steps.flat_map(|step| {
            let key = topology.key(step.node);
            let is_reached = key.section.is_none() && self.sees_namespace(step.level);
            let above = topology.namespace(&key.object.namespace);
            above.filter(|_| is_reached).into_iter().chain([step.node])
        });
        nodes.filter(|node| self.nodes.get(node).is_some_and(NodePolicies::has_valid))
    }
}

/// Whether objects of a kind are above all Routes of a path.
fn is_above_routes(kind: &GroupKind) -> bool {
    let gateway_api = ["GatewayClass", "Gateway", "ListenerSet"];
    &*kind.group == groups::GATEWAY && gateway_api.contains(&&*kind.kind)
}

impl NodePolicies {
    /// Whether there is a policy for all clients that is not Invalid.
    pub(crate) fn has_valid(&self) -> bool {
        let counts = |group: &AttachmentGroup| {
            !matches!(
                group,
                AttachmentGroup::Selecting | AttachmentGroup::Clients(_)
            )
        };
        let mut accepted = self.groups.iter();
        let mut rejected = self.rejected.iter();
        accepted.any(|(group, policies)| counts(group) && !policies.is_empty())
            || rejected.any(|r| counts(&r.group) && r.reason != Outcome::Invalid.as_str())
    }
}

impl AttachmentChain {
    /// The first nodes of child Routes that had policies when the chain was found.
    pub(crate) fn delegated_nodes(&self) -> impl Iterator<Item = NodeId> {
        let nodes = self.delegated.iter().flat_map(|found| found.nodes.iter());
        nodes.copied()
    }
}
