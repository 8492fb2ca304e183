//! Rules that delegate to other Routes: which policies precede those of child Routes, and what is hidden from the
//! answers of kinds that do not follow delegation (specification 1.8).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{AttachmentChain, NodePolicies, PolicyKind, World};
use crate::attach::AttachmentGroup;
use crate::model::{Level, NodeKey, ObjectKey, Outcome};
use crate::profile::{DelegationPreference, EffectiveTarget, TargetKinds};
use crate::topology::delegation::DelegationId;
use crate::topology::{NodeId, PathStep, RootController, RootKind, Topology};

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

impl World {
    /// The delegation of the rule at a step, if it is not followed for the kind and the answers of the kind depend
    /// on the Routes of a path.
    pub(crate) fn delegation_at(&self, kind: &PolicyKind, step: PathStep) -> Option<DelegationId> {
        let delegation = match step.level {
            Level::RouteRule => self.topology.delegations.of_rule(step.node),
            _ => None,
        };
        delegation.filter(|_| kind.reads_routes() && self.followed_at(kind, step).is_none())
    }

    /// The kinds with policies that act below a Gateway whose controller follows delegation.
    pub fn kinds_below_delegation(&self) -> Vec<&PolicyKind> {
        let gateways = self.topology.gateways.values();
        let controllers = gateways.filter(|gateway| gateway.delegates).map(|gateway| {
            let class = self.topology.classes.get(&gateway.class);
            gateway.controller(class)
        });
        let controllers: BTreeSet<RootController> = controllers.collect();
        let kinds = self.kinds.iter().map(|kind| &**kind);
        let kinds = kinds.filter(|kind| {
            let mut controllers = controllers.iter();
            let acts = controllers.any(|controller| {
                let root = RootKind::Gateway;
                let activity = self.controllers.activity(&kind.profile, root, controller);
                activity.is_active()
            });
            kind.policy_count() > 0 && acts
        });
        kinds.collect()
    }

    /// Whether a kind does not follow the delegation of a rule: it is unknown there where policies of it are attached.
    pub fn is_unknown_below(&self, kind: &PolicyKind, route: &ObjectKey, rule: usize) -> bool {
        let rule = self.topology.rule_node(route, rule);
        let delegation = rule.and_then(|rule| {
            let step = PathStep {
                node: rule.node,
                level: Level::RouteRule,
            };
            self.delegation_at(kind, step)
        });
        delegation.is_some()
    }

    /// The nodes whose policies those of child Routes cannot override, if the rule at a step delegates: the rule
    /// itself and its Route.
    pub(crate) fn preferred_at(&self, kind: &PolicyKind, step: PathStep) -> Vec<NodeId> {
        if self.followed_at(kind, step) != Some(DelegationPreference::Parent) {
            return Vec::new();
        }
        let route = NodeKey::whole(self.topology.key(step.node).object.clone());
        let nodes = self.topology.node(&route).into_iter().chain([step.node]);
        nodes.filter(|node| kind.nodes.contains_key(node)).collect()
    }

    /// Whose policies take precedence below the rule at a step; `None` if it does not delegate, or that is not
    /// followed for the kind.
    fn followed_at(&self, kind: &PolicyKind, step: PathStep) -> Option<DelegationPreference> {
        let delegation = kind.profile.delegation.as_ref()?;
        let is_followed = self.topology.delegations.is_followed(step.node);
        if step.level != Level::RouteRule || !is_followed {
            return None;
        }
        let route = &self.topology.key(step.node).object;
        let annotations = self.store.get(route).map(|entry| &entry.object.annotations);
        let preference = delegation.preference(annotations?);
        (preference != DelegationPreference::NotFollowed).then_some(preference)
    }
}

impl PolicyKind {
    /// Whether a Route, or something below it, can change the answers of the kind.
    fn reads_routes(&self) -> bool {
        match self.profile.effective {
            EffectiveTarget::Level(level) => level >= Level::Route,
            EffectiveTarget::Every => true,
            EffectiveTarget::Target => match &self.profile.targets {
                TargetKinds::Any { .. } => true,
                TargetKinds::Listed(list) => {
                    list.iter().any(|target| !target.kind.is_above_routes())
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

impl NodePolicies {
    /// Whether there is a policy for all clients that is not Invalid.
    pub(crate) fn has_valid(&self) -> bool {
        let counts = |group: &AttachmentGroup| {
            group.is_evaluated() && !matches!(group, AttachmentGroup::Clients(_))
        };
        let mut accepted = self.groups.iter();
        let mut rejected = self.rejected.iter();
        accepted.any(|(group, policies)| counts(group) && !policies.is_empty())
            || rejected.any(|r| counts(&r.group) && r.reason != Outcome::Invalid.as_str())
    }
}

impl AttachmentChain {
    /// The place of the policies on a node among the levels of the chain: those that child Routes cannot override
    /// are more specific than all others, and the more so the higher their Route is (specification 1.8).
    pub(crate) fn precedence(&self, node: NodeId) -> usize {
        let mut preferred = self.preferred.iter();
        let from_root = preferred.position(|nodes| nodes.contains(&node));
        from_root.map_or(0, |from_root| self.preferred.len() - from_root)
    }

    /// The first nodes of child Routes that had policies when the chain was found.
    pub(crate) fn delegated_nodes(&self) -> impl Iterator<Item = NodeId> {
        let nodes = self.delegated.iter().flat_map(|found| found.nodes.iter());
        nodes.copied()
    }
}
