//! Explains an effective policy (specification 9.1): for each unit, the policy that set it and the policies
//! that offered another value and lost.

use super::stack::Acceptance;
use super::{AttachmentChain, PolicyKind, World, direct};
use crate::merge::{FoldDetail, FoldResult, Loss, fold};
use crate::model::{
    BlockName, Explanation, Level, LossReason, NodeKey, OverriddenPolicy, PolicyRef, Strategy,
    Unit, UnitExplanation, UnitTree,
};
use crate::profile::{Block, FoldOrder, Policy, PolicyClass, Profile, SameTarget};
use crate::topology::NodeId;

/// A node of a path with the accepted policies of one group on it.
#[derive(Clone, Debug)]
pub struct NodeAttachments<'k> {
    /// The node.
    pub node: NodeId,
    /// The level of the node on the path.
    pub level: Level,
    /// The policies, the most established first.
    pub policies: Vec<AttachedPolicy<'k>>,
    /// Whether child Routes cannot override the policies (specification 1.8).
    pub precedes_child_routes: bool,
}

/// An accepted policy on a node of a path.
#[derive(Clone, Debug)]
pub struct AttachedPolicy<'k> {
    /// The policy.
    pub policy: &'k Policy,
    /// The blocks that have an effect on the path, with the strategies by which they are merged there: an
    /// annotation of the target can name them (specification 5.3).
    pub blocks: Vec<(BlockName, Strategy)>,
}

impl World {
    /// Computes the effective policy with, for each unit, the policies that won and lost it and why.
    pub fn explain(&self, kind: &PolicyKind, chain: &AttachmentChain) -> Explanation {
        let effective = self.answer(kind, chain);
        let groups = kind.groups(chain);
        let units = match kind.profile.class {
            _ if chain.is_unknown() => Vec::new(),
            PolicyClass::Listed | PolicyClass::Unprofiled => Vec::new(),
            PolicyClass::Direct => kind.direct_units(&groups),
            PolicyClass::Inherited => {
                let own = self.own_rules(kind, chain);
                let mut stack = self.stack(kind, &groups);
                stack.groups.extend(own.as_ref().map(|own| own.group()));
                let folded = fold(&kind.profile, kind.schemas(), &stack, FoldDetail::Losses);
                kind.unit_outcomes(&folded, own.as_ref().map(|own| &own.object))
            }
        };
        Explanation { effective, units }
    }

    /// Whether merging from the least specific policy down, as GEP-713 describes it, results in another
    /// spec. Always false for policies with several strategies, conditions or `unset`, which GEP-713 does
    /// not define (specification 6.2).
    pub fn top_down_differs(&self, kind: &PolicyKind, chain: &AttachmentChain) -> bool {
        let profile = &*kind.profile;
        let is_gep_713_fold = profile.class == PolicyClass::Inherited
            && profile.fold == FoldOrder::BottomUp
            && profile.same_target != SameTarget::OldestWins
            && !profile.strategy_choice.lower
            && profile.instances.iter().all(|field| field.key.is_empty());
        let groups = kind.groups(chain);
        let one_strategy = groups.iter().flatten().all(|s| {
            let has_effect = |b: &&Block| b.has_effect();
            s.blocks.iter().filter(has_effect).count() <= 1
                && s.blocks
                    .iter()
                    .all(|b| b.when.is_none() && b.unset.is_empty())
        });
        if !is_gep_713_fold || !one_strategy {
            return false;
        }
        let own = self.own_rules(kind, chain);
        let mut stack = self.stack(kind, &groups);
        stack.groups.extend(own.as_ref().map(|own| own.group()));
        let top_down = Profile {
            fold: FoldOrder::TopDown,
            ..profile.clone()
        };
        fold(profile, kind.schemas(), &stack, FoldDetail::Rules).spec
            != fold(&top_down, kind.schemas(), &stack, FoldDetail::Rules).spec
    }

    /// The nodes of the chain that have accepted policies of the kind.
    pub fn node_attachments<'k>(
        &self,
        kind: &'k PolicyKind,
        chain: &AttachmentChain,
    ) -> Vec<NodeAttachments<'k>> {
        let groups = kind.groups(chain);
        let attached = |accepted: &Acceptance<'k>| {
            let blocks = accepted.blocks.iter().filter(|block| block.has_effect());
            let strategy = |block: &Block| self.strategy_on(kind, accepted.node, block);
            AttachedPolicy {
                policy: accepted.policy,
                blocks: blocks.map(|block| (block.name, strategy(block))).collect(),
            }
        };
        let group = |accepted: Vec<Acceptance<'k>>| {
            let first = accepted.first()?;
            Some(NodeAttachments {
                node: first.node,
                level: first.level,
                policies: accepted.iter().map(attached).collect(),
                precedes_child_routes: chain.precedence(first.node) > 0,
            })
        };
        groups.into_iter().filter_map(group).collect()
    }
}

impl PolicyKind {
    /// Explains the units of a fold.
    fn unit_outcomes(
        &self,
        folded: &FoldResult<'_>,
        own: Option<&NodeKey>,
    ) -> Vec<UnitExplanation> {
        let mut outcomes: Vec<UnitExplanation> = folded
            .units
            .iter()
            .map(|unit| UnitExplanation {
                unit: unit.unit.clone(),
                value: (!unit.value.is_null()).then(|| unit.value.decoded().into_owned()),
                origin: self.origin(folded, unit.unit.clone(), &unit.sources, own),
                overridden: Vec::new(),
            })
            .collect();
        let mut losses: Vec<&Loss> = folded.losses.iter().collect();
        // From least to most specific.
        losses.sort_by_key(|loss| {
            let source = folded.sources.get(loss.source);
            source.map(|s| (s.group, s.rank, s.block))
        });
        let mut places = UnitTree::default();
        for (index, outcome) in outcomes.iter().enumerate() {
            places.insert(&outcome.unit.0, index);
        }
        for loss in losses {
            let Some(overridden) = self.overridden(folded, loss) else {
                continue;
            };
            let meeting = places.at_or_above(&loss.unit.0);
            let first = meeting.chain(places.at_or_below(&loss.unit.0)).min();
            match first.and_then(|&first| outcomes.get_mut(first)) {
                Some(outcome) => outcome.overridden.push(overridden),
                None => {
                    places.insert(&loss.unit.0, outcomes.len());
                    outcomes.push(UnitExplanation {
                        unit: loss.unit.clone(),
                        value: None,
                        origin: None,
                        overridden: vec![overridden],
                    });
                }
            }
        }
        outcomes.sort_by(|a, b| a.unit.cmp(&b.unit));
        outcomes
    }

    fn overridden(&self, folded: &FoldResult<'_>, loss: &Loss) -> Option<OverriddenPolicy> {
        let source = folded.sources.get(loss.source)?;
        // Own fields are not a policy (specification 11.15).
        let policy = self.required_policy(source.policy?)?;
        Some(OverriddenPolicy {
            policy: PolicyRef::of(&policy.key),
            block: source.block,
            unit: loss.unit.clone(),
            value: loss.value.clone(),
            reason: loss.reason,
        })
    }

    /// Explains the only unit of a Direct kind: the policy that applies and those that it replaces.
    fn direct_units(&self, groups: &[Vec<Acceptance<'_>>]) -> Vec<UnitExplanation> {
        // A policy that is rejected for its port keeps the others out, and none applies (specification 7.6).
        let winner = direct::winner(groups);
        let others = groups.iter().flatten();
        let others = others.filter(|s| s.takes_part && Some(s.index) != winner.map(|w| w.index));
        let overridden = |accepted: &Acceptance<'_>, reason| OverriddenPolicy {
            policy: accepted.reference(),
            block: crate::model::BlockName::Bare,
            unit: Unit::default(),
            value: direct::rules(accepted),
            reason,
        };
        let taken = others.map(|other| overridden(other, LossReason::SectionTaken));
        // A policy that fails closed has no value in force (specification 5.7), and neither has one of which
        // nothing is left on the path (specification 2.10). Both hold their place.
        let (failed, in_force): (Vec<_>, Vec<_>) = winner
            .into_iter()
            .filter(|winner| winner.takes_part)
            .partition(|winner| direct::fails(winner));
        let failed = failed.into_iter();
        let missing = failed.map(|failed| overridden(failed, LossReason::MissingReference));
        let in_force = in_force.first().copied();
        let overridden: Vec<_> = taken.chain(missing).collect();
        if in_force.is_none() && overridden.is_empty() {
            return Vec::new();
        }
        vec![UnitExplanation {
            unit: Unit::default(),
            value: in_force.map(|winner| crate::merge::pruned(&direct::rules(winner))),
            origin: in_force.map(direct::origin),
            overridden,
        }]
    }
}
