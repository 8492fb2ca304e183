//! Computes how far each policy is in force (specification 10): the units that it won and lost.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::stack::Acceptance;
use super::{AttachmentChain, PolicyKind, World, direct};
use crate::merge::{FoldDetail, FoldResult, MergedUnit, fold, leaves_of, value_at};
use crate::model::{Enforcement, Segment, Unit};
use crate::profile::PolicyClass;
use crate::topology::NodeId;

/// What the policies of a kind contribute to the scopes that have the same chain.
#[derive(Debug, Default)]
pub(crate) struct Contribution {
    pub shares: Vec<Share>,
    /// The policies that contribute at least one unit, with the nodes that they are attached to.
    pub contributors: Vec<(usize, Vec<NodeId>)>,
}

/// What one policy won and lost in the scopes that have the same chain.
#[derive(Debug)]
pub(crate) struct Share {
    pub policy: usize,
    pub won: usize,
    pub lost: Vec<Unit>,
    pub additions: bool,
    pub overridden_by: BTreeSet<usize>,
}

/// What one policy won and lost in all scopes.
#[derive(Debug, Default)]
pub(crate) struct EnforcementSummary {
    pub paths: usize,
    pub overridden_paths: usize,
    pub overridden_path_names: Vec<String>,
    /// Whether the policy is on a path where its kind is unknown (specification 2.6).
    pub is_on_unknown_path: bool,
    pub overridden_units: BTreeSet<Unit>,
    pub overridden_by: BTreeSet<usize>,
    won: bool,
    additions: bool,
}

impl EnforcementSummary {
    pub fn add(&mut self, share: &Share) {
        self.won |= share.won > 0;
        self.additions |= share.won > 0 && share.additions;
        self.overridden_units.extend(share.lost.iter().cloned());
        self.overridden_by.extend(&share.overridden_by);
    }

    /// How far the policy is in force.
    pub fn in_force(&self) -> Enforcement {
        let lost = !self.overridden_units.is_empty();
        match (self.paths, lost, self.won, self.additions) {
            (0, ..) if self.is_on_unknown_path => Enforcement::Unknown,
            (0, ..) => Enforcement::NoScope,
            (_, true, false, _) => Enforcement::None,
            (_, true, true, true) => Enforcement::PartWithAdditions,
            (_, true, true, false) => Enforcement::Part,
            (_, false, _, true) => Enforcement::AllWithAdditions,
            // A policy without units that has a scope is in force as a whole.
            (_, false, _, false) => Enforcement::All,
        }
    }
}

impl World {
    /// What the policies of a kind contribute to the scopes with this chain.
    pub(crate) fn contribution(&self, kind: &PolicyKind, chain: &AttachmentChain) -> Contribution {
        if chain.unknown.is_some() {
            return Contribution::default();
        }
        let groups = kind.groups(chain);
        match kind.profile.class {
            PolicyClass::Unprofiled => Contribution::default(),
            PolicyClass::Listed => Contribution {
                contributors: contributors(&groups, |_| true),
                ..Contribution::default()
            },
            PolicyClass::Direct => direct_contribution(&groups),
            PolicyClass::Inherited => self.merged_contribution(kind, chain, &groups),
        }
    }

    fn merged_contribution(
        &self,
        kind: &PolicyKind,
        chain: &AttachmentChain,
        groups: &[Vec<Acceptance<'_>>],
    ) -> Contribution {
        let own = self.own_rules(kind, chain);
        let mut stack = self.stack(kind, groups);
        stack.groups.extend(own.as_ref().map(|own| own.group()));
        let folded = fold(&kind.profile, kind.schemas(), &stack, FoldDetail::Losses);
        let contributing: BTreeSet<usize> = folded.contributors().collect();
        // A policy without rules and without `unset` has no scope.
        let accepted = distinct_policies(groups)
            .into_iter()
            .filter(|s| !s.policy.is_transparent());
        Contribution {
            shares: accepted.map(|s| share(kind, &folded, groups, s)).collect(),
            contributors: contributors(groups, |policy| contributing.contains(&policy)),
        }
    }
}

/// The contribution of a Direct kind: one policy applies as a whole.
fn direct_contribution(groups: &[Vec<Acceptance<'_>>]) -> Contribution {
    let winner = direct::winner(groups).map(|s| s.index);
    let shares = distinct_policies(groups).into_iter().map(|accepted| {
        let wins = Some(accepted.index) == winner;
        Share {
            policy: accepted.index,
            won: usize::from(wins),
            lost: if wins {
                Vec::new()
            } else {
                vec![Unit::default()]
            },
            additions: false,
            overridden_by: winner.filter(|_| !wins).into_iter().collect(),
        }
    });
    Contribution {
        shares: shares.collect(),
        contributors: contributors(groups, |policy| Some(policy) == winner),
    }
}

/// The policies of all groups, each once.
fn distinct_policies<'s, 'k>(groups: &'s [Vec<Acceptance<'k>>]) -> Vec<&'s Acceptance<'k>> {
    let mut found: Vec<&Acceptance<'k>> = Vec::new();
    for accepted in groups.iter().flatten() {
        if !found.iter().any(|s| s.index == accepted.index) {
            found.push(accepted);
        }
    }
    found
}

fn contributors(
    groups: &[Vec<Acceptance<'_>>],
    contributes: impl Fn(usize) -> bool,
) -> Vec<(usize, Vec<NodeId>)> {
    distinct_policies(groups)
        .into_iter()
        .filter(|s| contributes(s.index))
        .map(|accepted| {
            let same = groups
                .iter()
                .flatten()
                .filter(|s| s.index == accepted.index);
            (accepted.index, same.map(|s| s.node).collect())
        })
        .collect()
}

/// What one policy won and lost in a fold.
fn share(
    kind: &PolicyKind,
    folded: &FoldResult<'_>,
    groups: &[Vec<Acceptance<'_>>],
    accepted: &Acceptance<'_>,
) -> Share {
    let policy = accepted.index;
    let mut offered: BTreeSet<Unit> = BTreeSet::new();
    let mut conditioned: BTreeSet<Unit> = BTreeSet::new();
    let mut empty: BTreeSet<Unit> = BTreeSet::new();
    for block in accepted.policy.blocks.iter().filter(|b| b.participates) {
        let leaves = leaves_of(&kind.profile, kind.schemas(), block.name, &block.rules);
        let rules = Value::Object(block.rules.clone());
        let is_empty = |unit: &&Unit| {
            let value = value_at(&rules, &unit.0).and_then(Value::as_object);
            // An empty block is a unit by itself, the empty path.
            value.is_some_and(Map::is_empty) && !unit.0.is_empty()
        };
        empty.extend(leaves.iter().filter(is_empty).cloned());
        if folded.skipped(policy, block.name) {
            conditioned.extend(leaves.iter().cloned());
        }
        offered.extend(leaves);
    }
    let (won, lost): (Vec<Unit>, Vec<Unit>) = offered
        .iter()
        .cloned()
        .partition(|unit| is_won(folded, unit, empty.contains(unit), policy));
    let mut overridden_by = BTreeSet::new();
    // Units that are lost because a condition failed are not overridden by any policy.
    for unit in lost.iter().filter(|unit| !conditioned.contains(unit)) {
        overridden_by.extend(overriding_policies(folded, groups, unit));
    }
    overridden_by.remove(&policy);
    let others = |unit: &&MergedUnit<'_>| folded.policies(unit).any(|p| p != policy);
    let additions = folded
        .units
        .iter()
        .filter(others)
        .any(|unit| adds(&mut unit.unit.clone(), &unit.value, &offered));
    Share {
        policy,
        won: won.len(),
        lost,
        additions,
        overridden_by,
    }
}

/// Whether a unit of the result has a leaf that the policy does not offer. Objects are compared leaf by
/// leaf, whatever the kind's granularity.
fn adds(unit: &mut Unit, value: &Value, offered: &BTreeSet<Unit>) -> bool {
    let fields = value.as_object().filter(|fields| !fields.is_empty());
    let Some(fields) = fields else {
        let meets = |own: &Unit| own.covers(unit) || unit.covers(own);
        return !offered.iter().any(meets);
    };
    fields.iter().any(|(name, value)| {
        unit.0.push(Segment::Field(name.as_str().into()));
        let found = adds(unit, value, offered);
        unit.0.pop();
        found
    })
}

/// Whether the result contains a unit with the policy among its origins. A part that `unset` removed from
/// a larger unit is not contained. An empty object also counts as won where other policies filled it.
fn is_won(folded: &FoldResult<'_>, unit: &Unit, is_empty: bool, policy: usize) -> bool {
    let covering = |found: &&MergedUnit<'_>| found.unit.covers(unit);
    match folded.units.iter().find(covering) {
        Some(found) => {
            let below = unit.0.get(found.unit.0.len()..).unwrap_or_default();
            value_at(&found.value, below).is_some() && folded.policies(found).any(|p| p == policy)
        }
        None => is_empty && folded.units.iter().any(|found| unit.covers(&found.unit)),
    }
}

/// The policies that a unit was lost to: those that set it or a value above it. If the result has no such
/// value, these are the policies whose `unset` names the unit, or else all contributors.
fn overriding_policies(
    folded: &FoldResult<'_>,
    groups: &[Vec<Acceptance<'_>>],
    unit: &Unit,
) -> Vec<usize> {
    let holds = |found: &&MergedUnit<'_>| {
        let below = unit.0.get(found.unit.0.len()..).unwrap_or_default();
        unit.covers(&found.unit)
            || (found.unit.covers(unit) && value_at(&found.value, below).is_some())
    };
    let scalar_above =
        |found: &&MergedUnit<'_>| found.unit.covers(unit) && !found.value.is_object();
    let holders = folded
        .units
        .iter()
        .filter(|found| holds(found) || scalar_above(found));
    if holders.clone().next().is_some() {
        return holders.flat_map(|found| folded.policies(found)).collect();
    }
    let unsetters: Vec<usize> = groups
        .iter()
        .flatten()
        .filter(|s| {
            let mut names = s.policy.blocks.iter().flat_map(|b| &b.unset);
            names.any(|name| name.covers(unit))
        })
        .map(|s| s.index)
        .collect();
    if unsetters.is_empty() {
        folded.contributors().collect()
    } else {
        unsetters
    }
}
