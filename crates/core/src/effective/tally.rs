//! What each policy won and lost in one scope (SEMANTICS §10).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::stack::Standing;
use super::{Frames, Kind, World, direct};
use crate::merge::{Folded, FoldedUnit, Tell, at, fold, leaves_of};
use crate::model::{InForce, Segment, Unit};
use crate::profile::Class;
use crate::topology::NodeId;

/// What the policies of a kind come to in the scopes of the same frames.
#[derive(Debug, Default)]
pub(super) struct Contribution {
    pub shares: Vec<Share>,
    /// Those that contribute at least one unit, with the nodes that they stand on.
    pub contributors: Vec<(usize, Vec<NodeId>)>,
    /// Whether the shares are in the tallies already: scopes of the same frames add nothing.
    pub counted: bool,
}

/// What one policy won and lost.
#[derive(Debug)]
pub(super) struct Share {
    pub policy: usize,
    pub won: usize,
    pub lost: Vec<Unit>,
    pub additions: bool,
    pub overridden_by: BTreeSet<usize>,
}

/// What one policy won and lost over all scopes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub scopes: usize,
    pub scopes_lost: usize,
    pub lost_in: Vec<String>,
    pub lost_units: BTreeSet<Unit>,
    pub overridden_by: BTreeSet<usize>,
    won: bool,
    additions: bool,
}

impl Tally {
    pub fn add(&mut self, share: &Share) {
        self.won |= share.won > 0;
        self.additions |= share.won > 0 && share.additions;
        self.lost_units.extend(share.lost.iter().cloned());
        self.overridden_by.extend(&share.overridden_by);
    }

    /// How far the policy is in force.
    pub fn in_force(&self) -> InForce {
        let lost = !self.lost_units.is_empty();
        match (self.scopes, lost, self.won, self.additions) {
            (0, ..) => InForce::NoScope,
            (_, true, false, _) => InForce::None,
            (_, true, true, true) => InForce::PartWithAdditions,
            (_, true, true, false) => InForce::Part,
            (_, false, _, true) => InForce::AllWithAdditions,
            // One without units that has a scope is in force All.
            (_, false, _, false) => InForce::All,
        }
    }
}

impl World {
    /// What the policies of a kind come to in the scopes with these frames.
    pub(super) fn contribution(&self, kind: &Kind, frames: &Frames) -> Contribution {
        let groups = kind.groups(frames);
        match kind.profile.class {
            Class::Listed => Contribution {
                contributors: contributors(&groups, |_| true),
                ..Contribution::default()
            },
            Class::Direct => direct_contribution(&groups),
            Class::Inherited => self.merged_contribution(kind, frames, &groups),
        }
    }

    fn merged_contribution(
        &self,
        kind: &Kind,
        frames: &Frames,
        groups: &[Vec<Standing<'_>>],
    ) -> Contribution {
        let own = self.own_rules(kind, frames);
        let mut stack = self.stack(kind, groups);
        stack.groups.extend(own.as_ref().map(|own| own.group()));
        let folded = fold(&kind.profile, kind.schemas(), &stack, Tell::Losses);
        let contributing: BTreeSet<usize> = folded.contributors().collect();
        // A transparent empty policy has no scope unless it unsets.
        let standing = each_once(groups)
            .into_iter()
            .filter(|s| !s.policy.is_transparent());
        Contribution {
            shares: standing.map(|s| share(kind, &folded, groups, s)).collect(),
            contributors: contributors(groups, |policy| contributing.contains(&policy)),
            counted: false,
        }
    }
}

/// One policy wins whole.
fn direct_contribution(groups: &[Vec<Standing<'_>>]) -> Contribution {
    let winner = direct::winner(groups).map(|s| s.index);
    let shares = each_once(groups).into_iter().map(|standing| {
        let wins = Some(standing.index) == winner;
        Share {
            policy: standing.index,
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
        counted: false,
    }
}

/// The policies, each once.
fn each_once<'s, 'k>(groups: &'s [Vec<Standing<'k>>]) -> Vec<&'s Standing<'k>> {
    let mut found: Vec<&Standing<'k>> = Vec::new();
    for standing in groups.iter().flatten() {
        if !found.iter().any(|s| s.index == standing.index) {
            found.push(standing);
        }
    }
    found
}

fn contributors(
    groups: &[Vec<Standing<'_>>],
    contributes: impl Fn(usize) -> bool,
) -> Vec<(usize, Vec<NodeId>)> {
    each_once(groups)
        .into_iter()
        .filter(|s| contributes(s.index))
        .map(|one| {
            let same = groups.iter().flatten().filter(|s| s.index == one.index);
            (one.index, same.map(|s| s.node).collect())
        })
        .collect()
}

/// What one policy won and lost in a fold.
fn share(
    kind: &Kind,
    folded: &Folded<'_>,
    groups: &[Vec<Standing<'_>>],
    standing: &Standing<'_>,
) -> Share {
    let policy = standing.index;
    let mut offered: BTreeSet<Unit> = BTreeSet::new();
    let mut conditioned: BTreeSet<Unit> = BTreeSet::new();
    let mut empty: BTreeSet<Unit> = BTreeSet::new();
    for block in standing.policy.blocks.iter().filter(|b| b.offers) {
        let leaves = leaves_of(&kind.profile, kind.schemas(), block.name, &block.rules);
        let rules = Value::Object(block.rules.clone());
        let is_empty = |unit: &&Unit| {
            let value = at(&rules, &unit.0).and_then(Value::as_object);
            // The whole of an empty block is a unit of its own.
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
        .partition(|unit| stands(folded, unit, empty.contains(unit), policy));
    let mut overridden_by = BTreeSet::new();
    // A failed condition names nobody.
    for unit in lost.iter().filter(|unit| !conditioned.contains(unit)) {
        overridden_by.extend(beaten_by(folded, groups, unit));
    }
    overridden_by.remove(&policy);
    let others = |unit: &&FoldedUnit<'_>| folded.policies(unit).any(|p| p != policy);
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

/// Whether a unit of a result has a leaf that is not offered; an object is opened, whatever the
/// kind's granularity.
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

/// Whether a unit stands in the result with the policy among its origins. What `unset` has cut out
/// of a larger unit does not; an empty object stands as well where others have filled it.
fn stands(folded: &Folded<'_>, unit: &Unit, is_empty: bool, policy: usize) -> bool {
    let covering = |found: &&FoldedUnit<'_>| found.unit.covers(unit);
    match folded.units.iter().find(covering) {
        Some(found) => {
            let below = unit.0.get(found.unit.0.len()..).unwrap_or_default();
            at(&found.value, below).is_some() && folded.policies(found).any(|p| p == policy)
        }
        None => is_empty && folded.units.iter().any(|found| unit.covers(&found.unit)),
    }
}

/// Who a unit was lost to: those that hold it or a value above it; if nothing is there, those whose
/// `unset` names it, else all contributors.
fn beaten_by(folded: &Folded<'_>, groups: &[Vec<Standing<'_>>], unit: &Unit) -> Vec<usize> {
    let holds = |found: &&FoldedUnit<'_>| {
        let below = unit.0.get(found.unit.0.len()..).unwrap_or_default();
        unit.covers(&found.unit) || (found.unit.covers(unit) && at(&found.value, below).is_some())
    };
    let scalar_above =
        |found: &&FoldedUnit<'_>| found.unit.covers(unit) && !found.value.is_object();
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
