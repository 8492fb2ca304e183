//! Checks what becomes of policies when they are merged (specification 2.13).

use super::{AttachmentChain, PolicyKind};
use crate::merge::{FoldDetail, Layer, Stack, StackGroup, fold};
use crate::model::{Direction, Granularity, Strategy};
use crate::profile::{Policy, Refusal, SameTarget, TargetKind};
use crate::topology::NodeId;

/// The message for a policy that, merged with others, sets fields that exclude each other (specification 5.12).
pub(super) const EXCLUSIVE: &str =
    "merged with less specific policies, it sets fields that exclude each other";

/// A policy that is refused on a chain because of what it is merged to.
#[derive(Debug)]
pub(crate) struct MergeRefusal {
    /// The node that the policy is attached to.
    pub node: NodeId,
    /// The policy.
    pub policy: usize,
    /// What the merged policy cannot have.
    pub message: String,
}

impl PolicyKind {
    /// The policies that are refused on a chain because of what they are merged to, from the least specific. They
    /// take no part there (specification 2.13).
    pub(crate) fn refused(&self, chain: &AttachmentChain) -> Vec<MergeRefusal> {
        let mut refused = Vec::new();
        if !self.profile.checks_merges() {
            return refused;
        }
        let mut stack = Stack::default();
        for (step, on_node, _) in self.acting(chain) {
            let target = on_node.merge_check;
            let target = target.and_then(|position| self.profile.target_at(position));
            for (_, policies) in on_node.applying(chain) {
                stack.groups.push(StackGroup {
                    level: step.level,
                    layers: Vec::new(),
                });
                for &index in policies {
                    let Some(policy) = self.required_policy(index) else {
                        continue;
                    };
                    add_layer(&mut stack, index, policy);
                    // A policy that offers nothing is not merged.
                    let Some(target) = target.filter(|_| !policy.is_transparent()) else {
                        continue;
                    };
                    let refusal = target.refusal_of(policy);
                    if let Some(message) = refusal.or_else(|| self.merged_refusal(target, &stack)) {
                        refused.push(MergeRefusal {
                            node: step.node,
                            policy: index,
                            message,
                        });
                        remove_layer(&mut stack);
                    }
                }
            }
        }
        refused
    }

    /// Why a policy cannot be on a target with the result of the stack that it is the last of.
    fn merged_refusal(&self, target: &TargetKind, stack: &Stack<'_>) -> Option<String> {
        let layers: Vec<_> = stack.groups.iter().flat_map(|g| &g.layers).collect();
        let [_, .., last] = layers.as_slice() else {
            return None;
        };
        let replaces = Strategy::Merge(Granularity::Atomic, Direction::Defaults);
        let mut strategies = last.blocks.iter().map(|(_, strategy)| strategy);
        // A policy that takes the place of the rest has its own rules, which were checked. With OldestWins the last layer
        // need not be the most specific one.
        if self.profile.same_target != SameTarget::OldestWins && strategies.all(|s| *s == replaces)
        {
            return None;
        }
        let folded = fold(&self.profile, self.schemas(), stack, FoldDetail::Merged);
        let refusal = target.refusal(folded.spec.as_ref()?.as_object()?)?;
        let kind = &target.kind;
        let why = match refusal {
            Refusal::Has(what) => {
                format!("it has {what}, which a policy that targets `{kind}` cannot have")
            }
            Refusal::Says(what) => what,
        };
        Some(format!("merged with less specific policies, {why}"))
    }

    /// Why no reference of an attached policy is accepted: its own rules are refused on all of its targets
    /// (specification 2.13).
    pub(crate) fn refused_on_targets(&self, index: usize) -> Option<String> {
        if !self.profile.checks_merges() {
            return None;
        }
        let policy = self.policy_at(index)?;
        let mut refusal = None;
        for (node, _) in self.attached(index)?.nodes() {
            let target = self
                .profile
                .listed_target(self.profile.target_kind(&node.object.kind));
            refusal = Some(target.filter(|t| t.merged)?.refusal_of(policy)?);
        }
        refusal
    }
}

/// Adds a policy with all of its rules to the last group of a stack.
fn add_layer<'p>(stack: &mut Stack<'p>, index: usize, policy: &'p Policy) {
    let blocks = policy.blocks.iter();
    if let Some(group) = stack.groups.last_mut() {
        group.layers.push(Layer {
            policy: Some(index),
            blocks: blocks
                .map(|block| (block, block.strategy.strategy()))
                .collect(),
        });
    }
}

/// Removes the last policy of a stack.
fn remove_layer(stack: &mut Stack<'_>) {
    if let Some(group) = stack.groups.last_mut() {
        group.layers.pop();
    }
}
