//! The whole story of an answer (SEMANTICS §9.1): for every unit the policy that won it and those
//! that offered it and lost.

use super::stack::Standing;
use super::{Frames, Kind, World, direct};
use crate::merge::{Folded, Loss, Tell, fold};
use crate::model::{Beaten, Explained, Level, LossReason, NodeKey, PolicyRef, Unit, UnitOutcome};
use crate::profile::{Block, Class, Fold, Policy, Profile, SameTarget};
use crate::topology::NodeId;

/// A node of a path with the policies on it.
#[derive(Clone, Debug)]
pub struct AttachedHere<'k> {
    /// The node.
    pub node: NodeId,
    /// Its level.
    pub level: Level,
    /// The policies, the most established first.
    pub policies: Vec<&'k Policy>,
}

impl World {
    /// The answer with who won each unit, who lost it, and why.
    pub fn explain(&self, kind: &Kind, frames: &Frames) -> Explained {
        let effective = self.answer(kind, frames);
        let groups = kind.groups(frames);
        let units = match kind.profile.class {
            Class::Listed => Vec::new(),
            Class::Direct => kind.direct_units(&groups),
            Class::Inherited => {
                let own = self.own_rules(kind, frames);
                let mut stack = self.stack(kind, &groups);
                stack.groups.extend(own.as_ref().map(|own| own.group()));
                let folded = fold(&kind.profile, kind.schemas(), &stack, Tell::Losses);
                kind.unit_outcomes(&folded, own.as_ref().map(|own| &own.object))
            }
        };
        Explained { effective, units }
    }

    /// Whether folding from the top, as GEP-713 draws it, would give another answer: there one
    /// policy has one strategy, and there are no conditions and no `unset` (SEMANTICS §6.2).
    pub fn top_down_differs(&self, kind: &Kind, frames: &Frames) -> bool {
        let profile = &*kind.profile;
        let literal = profile.class == Class::Inherited
            && profile.fold == Fold::BottomUp
            && profile.same_target != SameTarget::OldestWins
            && !profile.chooser.lower;
        let groups = kind.groups(frames);
        let one_strategy = groups.iter().flatten().all(|s| {
            let speaks = |b: &&Block| b.offers || !b.unset.is_empty();
            s.policy.blocks.iter().filter(speaks).count() <= 1
                && s.policy
                    .blocks
                    .iter()
                    .all(|b| b.when.is_none() && b.unset.is_empty())
        });
        if !literal || !one_strategy {
            return false;
        }
        let own = self.own_rules(kind, frames);
        let mut stack = self.stack(kind, &groups);
        stack.groups.extend(own.as_ref().map(|own| own.group()));
        let other = Profile {
            fold: Fold::TopDown,
            ..profile.clone()
        };
        fold(profile, kind.schemas(), &stack, Tell::Rules).spec
            != fold(&other, kind.schemas(), &stack, Tell::Rules).spec
    }

    /// The nodes of the path that hold accepted policies of the kind.
    pub fn attached_here<'k>(&self, kind: &'k Kind, frames: &Frames) -> Vec<AttachedHere<'k>> {
        let groups = kind.groups(frames);
        let group = |standing: Vec<Standing<'k>>| {
            let first = standing.first()?;
            Some(AttachedHere {
                node: first.node,
                level: first.level,
                policies: standing.iter().map(|s| s.policy).collect(),
            })
        };
        groups.into_iter().filter_map(group).collect()
    }
}

impl Kind {
    /// The units of a fold with their losers.
    fn unit_outcomes(&self, folded: &Folded<'_>, own: Option<&NodeKey>) -> Vec<UnitOutcome> {
        let mut outcomes: Vec<UnitOutcome> = folded
            .units
            .iter()
            .map(|unit| UnitOutcome {
                unit: unit.unit.clone(),
                value: (!unit.value.is_null()).then(|| unit.value.clone().into_owned()),
                origin: self.origin(folded, unit.unit.clone(), &unit.sources, own),
                beaten: Vec::new(),
            })
            .collect();
        let mut losses: Vec<&Loss> = folded.losses.iter().collect();
        // From the least specific on.
        losses.sort_by_key(|loss| {
            let source = folded.sources.get(loss.source);
            source.map(|s| (s.group, s.rank, s.block))
        });
        for loss in losses {
            let Some(beaten) = self.beaten(folded, loss) else {
                continue;
            };
            let meets =
                |o: &&mut UnitOutcome| o.unit.covers(&loss.unit) || loss.unit.covers(&o.unit);
            match outcomes.iter_mut().find(meets) {
                Some(outcome) => outcome.beaten.push(beaten),
                None => outcomes.push(UnitOutcome {
                    unit: loss.unit.clone(),
                    value: None,
                    origin: None,
                    beaten: vec![beaten],
                }),
            }
        }
        outcomes.sort_by(|a, b| a.unit.cmp(&b.unit));
        outcomes
    }

    fn beaten(&self, folded: &Folded<'_>, loss: &Loss) -> Option<Beaten> {
        let source = folded.sources.get(loss.source)?;
        // Own fields are no policy (SEMANTICS §11.15).
        let policy = self.policies.get(source.policy?)?;
        Some(Beaten {
            policy: PolicyRef::of(&policy.key),
            block: source.block,
            unit: loss.unit.clone(),
            value: loss.value.clone(),
            reason: loss.reason,
        })
    }

    /// The whole of a Direct kind, with what its winner keeps out.
    fn direct_units(&self, groups: &[Vec<Standing<'_>>]) -> Vec<UnitOutcome> {
        let Some(winner) = direct::winner(groups) else {
            return Vec::new();
        };
        let others = groups.iter().flatten().filter(|s| s.index != winner.index);
        vec![UnitOutcome {
            unit: Unit::default(),
            value: Some(crate::merge::finished(&direct::rules(winner))),
            origin: Some(direct::origin(winner)),
            beaten: others
                .map(|standing| Beaten {
                    policy: standing.reference(),
                    block: crate::model::BlockName::Bare,
                    unit: Unit::default(),
                    value: direct::rules(standing),
                    reason: LossReason::SectionTaken,
                })
                .collect(),
        }]
    }
}
