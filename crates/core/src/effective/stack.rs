//! Turns an attachment chain into an ordered stack of policies (specification 4).

use std::borrow::Cow;

use super::{AttachmentChain, NodePolicies, NodeRejection, PolicyKind, World};
use crate::attach::AttachmentGroup;
use crate::merge::{Layer, Stack, StackGroup};
use crate::model::{Level, Str, Strategy};
use crate::profile::{
    Block, LimitSet, LimitedBlocks, Policy, PolicyClass, StrategySource, fieldwise,
};
use crate::topology::{NodeId, PathStep};

/// A policy that is accepted on a node of a path.
#[derive(Clone, Debug)]
pub(crate) struct Acceptance<'k> {
    pub index: usize,
    pub policy: &'k Policy,
    pub node: NodeId,
    pub level: Level,
    /// The blocks of the policy with the fields that are rules on the path (specification 2.10).
    pub blocks: Cow<'k, [Block]>,
    /// Whether something of the policy is left there. Only policies of Direct kinds stay otherwise: they
    /// hold their place.
    pub takes_part: bool,
    /// Whether atomic blocks are merged field by field over all levels.
    pub fieldwise: bool,
}

impl Acceptance<'_> {
    /// Whether the policy offers and unsets nothing on the path.
    pub(super) fn is_transparent(&self) -> bool {
        !self.blocks.iter().any(Block::has_effect)
    }
}

impl PolicyKind {
    /// The groups of accepted policies on the chain's nodes, from least to most specific; in a
    /// group the most established first. A group without policies stands for one that was rejected and that
    /// keeps others out all the same (specification 7.6). Policies that child Routes cannot override are after all
    /// others (specification 1.8).
    pub(crate) fn groups(&self, chain: &AttachmentChain) -> Vec<Vec<Acceptance<'_>>> {
        let mut found = Vec::new();
        let refused = self.refused(chain);
        let takes_part = |node, index| {
            let mut refused = refused.iter();
            !refused.any(|refusal| refusal.node == node && refusal.policy == index)
        };
        for (step, on_node, limits) in self.acting(chain) {
            for (group, policies) in on_node.applying(chain) {
                let present = policies
                    .iter()
                    .filter(|&&index| takes_part(step.node, index));
                let accepted = present.filter_map(|&index| {
                    let policy = self.required_policy(index)?;
                    let LimitedBlocks {
                        blocks,
                        takes_part,
                        fieldwise,
                    } = self.profile.limited(&policy.blocks, limits);
                    let holds = takes_part || self.profile.class == PolicyClass::Direct;
                    holds.then_some(Acceptance {
                        index,
                        policy,
                        node: step.node,
                        level: step.level,
                        blocks,
                        takes_part,
                        fieldwise,
                    })
                });
                let accepted: Vec<_> = accepted.collect();
                if accepted.is_empty() && !policies.is_empty() {
                    continue;
                }
                // They are less specific than all others on the path (specification 7.5).
                let at = match group {
                    AttachmentGroup::GatewaySection => 0,
                    _ => found.len(),
                };
                found.insert(at, accepted);
            }
        }
        if !chain.preferred.is_empty() {
            // A group without policies is only found for Direct kinds, which have no such preference.
            let precedence = |group: &Vec<Acceptance<'_>>| {
                let first = group.first();
                first.map_or(0, |accepted| chain.precedence(accepted.node))
            };
            found.sort_by_key(precedence);
        }
        found
    }

    /// The steps of a chain whose policies act, each with its policies and the limits that hold for them
    /// (specification 2.10).
    pub(crate) fn acting<'n>(
        &'n self,
        chain: &'n AttachmentChain,
    ) -> impl Iterator<Item = (&'n PathStep, &'n NodePolicies, LimitSet)> {
        chain.steps.iter().filter_map(|step| {
            let on_node = self.nodes.get(&step.node)?;
            let limits = chain.limits.and(on_node.limits);
            (!self.profile.limits.allow_nothing(limits)).then_some((step, on_node, limits))
        })
    }
}

impl World {
    /// Builds the stack to fold from the groups of a chain.
    pub(crate) fn stack<'g>(
        &self,
        kind: &PolicyKind,
        groups: &'g [Vec<Acceptance<'_>>],
    ) -> Stack<'g> {
        let all_levels = groups.iter().flatten().any(|accepted| accepted.fieldwise);
        let groups = groups.iter().filter_map(|group| {
            let level = group.first()?.level;
            let layers = group.iter().map(|accepted| Layer {
                policy: Some(accepted.index),
                blocks: accepted
                    .blocks
                    .iter()
                    .map(|block| {
                        let strategy = self.strategy_on(kind, accepted.node, block);
                        let strategy = match accepted.fieldwise {
                            true => fieldwise(strategy),
                            false => strategy,
                        };
                        (block, strategy)
                    })
                    .collect(),
            });
            Some(StackGroup {
                level,
                layers: layers.collect(),
            })
        });
        Stack {
            groups: groups.collect(),
            all_levels,
        }
    }
}

impl World {
    /// The strategy of a block: that of the profile or the policy, or that of an annotation on the
    /// policy's target. An annotation with a value that the profile does not offer counts as omitted
    /// (specification 5.3, 11.6).
    pub(crate) fn strategy_on(&self, kind: &PolicyKind, node: NodeId, block: &Block) -> Strategy {
        let StrategySource::ByAnnotation(omitted) = block.strategy else {
            return block.strategy.strategy();
        };
        let object = &self.topology().key(node).object;
        let annotations = self.store().get(object).map(|e| &e.object.annotations);
        kind.profile
            .strategy_choice
            .annotation
            .as_ref()
            .and_then(|name| annotations?.get(name))
            .and_then(|raw| kind.profile.parse_strategy(raw, block.name))
            .unwrap_or(omitted)
    }
}

impl NodePolicies {
    /// The groups of all policies on the node, accepted or not.
    pub(crate) fn all_groups(&self) -> impl Iterator<Item = &AttachmentGroup> {
        let rejected = self.rejected.iter().map(|r| &r.group);
        let groups = self.groups.iter().map(|(group, _)| group);
        groups.chain(rejected)
    }

    /// The policies that are attached for the client of a chain and not accepted.
    pub(super) fn rejections(
        &self,
        chain: &AttachmentChain,
    ) -> impl Iterator<Item = &NodeRejection> {
        let rejected = self.rejected.iter();
        rejected.filter(|rejected| chain.includes(&rejected.group))
    }

    /// Whether some policy on the node concerns the paths of all clients.
    pub(crate) fn is_for_all(&self) -> bool {
        self.all_groups()
            .any(|g| !matches!(g, AttachmentGroup::Clients(_)))
    }

    /// Whether some policy on the node is for the clients of one namespace only (specification 4.6).
    pub(crate) fn is_for(&self, client: &Str) -> bool {
        self.all_groups()
            .any(|g| matches!(g, AttachmentGroup::Clients(c) if c == client))
    }

    /// The accepted policies, by group, that act for the chain's client.
    pub(super) fn applying<'n>(
        &'n self,
        chain: &'n AttachmentChain,
    ) -> impl Iterator<Item = (&'n AttachmentGroup, &'n [usize])> {
        let groups = self.groups.iter();
        groups.filter(|(group, _)| chain.includes(group))
    }
}

impl AttachmentChain {
    /// Whether the policies of a group act on the chain: policies for the clients of one namespace act for
    /// these clients only (specification 4.6).
    pub(crate) fn includes(&self, group: &AttachmentGroup) -> bool {
        match group {
            AttachmentGroup::Clients(client) => self.client.as_ref() == Some(client),
            AttachmentGroup::GatewaySection
            | AttachmentGroup::Port
            | AttachmentGroup::Whole
            | AttachmentGroup::Filter(_) => true,
            AttachmentGroup::BackendFilter | AttachmentGroup::Selecting => false,
        }
    }

    /// Whether nothing is known of the kind on the path: it is not known whether the kind acts there
    /// (specification 2.6), or the rule delegates to other Routes (specification 1.8).
    pub fn is_unknown(&self) -> bool {
        self.unknown.is_some() || self.delegated.is_some()
    }

    /// Whether the path ends above the kind's effective level.
    pub fn inherited_only(&self) -> bool {
        self.inherited_only
    }
}
