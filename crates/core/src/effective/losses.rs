//! The loss report (specification 9.2): units that a policy other than the most specific one sets and
//! that the effective policy does not contain.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{AttachmentChain, PolicyKind, World, direct};
use crate::merge::{FoldDetail, fold, leaves_of, pruned, units_of, value_at};
use crate::model::{Granularity, Strategy, Unit};
use crate::profile::{Block, PolicyClass};

impl World {
    /// The lost units on the paths with this chain, sorted.
    pub fn losses(&self, kind: &PolicyKind, chain: &AttachmentChain) -> Vec<Unit> {
        if chain.is_unknown() {
            return Vec::new();
        }
        let groups = kind.groups(chain);
        let (spec, most_specific) = match kind.profile.class {
            PolicyClass::Listed | PolicyClass::Unprofiled => return Vec::new(),
            // On a section, the policy of the whole target loses what only it offers (specification 11.18).
            PolicyClass::Direct => {
                let Some(winner) = direct::winner(&groups) else {
                    return Vec::new();
                };
                let in_force = winner.takes_part && !direct::fails(winner);
                let spec = in_force.then(|| pruned(&direct::rules(winner)));
                (spec, Some(winner.index))
            }
            PolicyClass::Inherited => {
                let own = self.own_rules(kind, chain);
                let mut stack = self.stack(kind, &groups);
                stack.groups.extend(own.as_ref().map(|own| own.group()));
                let folded = fold(&kind.profile, kind.schemas(), &stack, FoldDetail::Rules);
                // In a group the most established policy comes first; the last policy of all is the
                // most specific.
                let opaque = groups.iter().flatten().rev();
                let mut opaque = opaque.filter(|s| !s.is_transparent());
                (folded.spec, opaque.next().map(|s| s.index))
            }
        };
        let mut lost = BTreeSet::new();
        let others = groups.iter().flatten();
        for accepted in others.filter(|s| Some(s.index) != most_specific) {
            for block in accepted.blocks.iter().filter(|b| b.participates) {
                let rules = Value::Object(block.rules.to_map());
                let strategy = self.strategy_on(kind, accepted.node, block);
                for unit in kind.report_units(block, strategy) {
                    let offered = value_at(&rules, &unit.0);
                    // A null is not reported as lost (specification 11.13).
                    let is_null = offered.is_none_or(Value::is_null);
                    let found = spec.as_ref().and_then(|spec| value_at(spec, &unit.0));
                    if !is_null && found.is_none() {
                        lost.insert(unit);
                    }
                }
            }
        }
        lost.into_iter().collect()
    }
}

impl PolicyKind {
    /// The units of a block by the finest granularity that the kind offers; leaves if blocks are only
    /// taken as a whole. An empty block that takes part is one unit, the whole (specification 11.9), unless it
    /// merges and so offers nothing (5.8).
    fn report_units(&self, block: &Block, strategy: Strategy) -> Vec<Unit> {
        if block.rules.is_empty() {
            let merges = self.profile.empty_merges(strategy);
            return if merges {
                Vec::new()
            } else {
                vec![Unit::default()]
            };
        }
        let mut granularities = self.profile.strategies.iter().map(|s| s.granularity());
        let is_whole = |g| matches!(g, None | Some(Granularity::Atomic));
        let units = if granularities.all(is_whole) {
            leaves_of
        } else {
            units_of
        };
        units(&self.profile, self.schemas(), block.name, &block.rules)
    }
}
