//! Computes how far each policy is in force (specification 10): the units that it won and lost.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::merge_check::{EXCLUSIVE, MergeRefusal};
use super::stack::Acceptance;
use super::{AttachmentChain, PolicyKind, World, direct};
use crate::merge::{FoldDetail, FoldResult, MergedUnit, fold, leaves_of, value_at};
use crate::model::{Enforcement, Granularity, Segment, Unit, UnknownReason};
use crate::profile::{Block, PolicyClass};
use crate::topology::NodeId;

/// What the policies of a kind contribute to the scopes that have the same chain.
#[derive(Debug, Default)]
pub(crate) struct Contribution {
    pub shares: Vec<Share>,
    /// The policies that contribute at least one unit, with the nodes that they are attached to.
    pub contributors: Vec<(usize, Vec<NodeId>)>,
    /// The policies that take no part because of what they are merged to (specification 2.13).
    pub refused: Vec<MergeRefusal>,
}

/// What one policy won and lost in the scopes that have the same chain.
#[derive(Debug)]
pub(crate) struct Share {
    pub policy: usize,
    pub won: usize,
    pub lost: Vec<Unit>,
    pub additions: bool,
    pub overridden_by: BTreeSet<usize>,
    /// Whether the policy is refused because it is merged to fields that exclude each other (specification 5.12).
    pub is_refused: bool,
}

/// What one policy won and lost in all scopes.
#[derive(Debug, Default)]
pub(crate) struct EnforcementSummary {
    pub paths: usize,
    pub overridden_paths: usize,
    pub overridden_path_names: Vec<String>,
    /// Why the kind is unknown on a path of the policy, if it is; the first reason of several (specification
    /// 1.8, 2.6).
    pub unknown: Option<UnknownReason>,
    pub overridden_units: BTreeSet<Unit>,
    pub overridden_by: BTreeSet<usize>,
    /// Why the policy is refused on some path (specification 2.13, 5.12).
    refused: Option<String>,
    /// Whether the policy takes part on some path without being refused.
    takes_part: bool,
    won: bool,
    additions: bool,
}

/// Whether some block that offers a leaf was merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LeafOffer {
    /// All blocks that offer it were skipped, because their conditions failed.
    Skipped,
    /// At least one of them was not.
    Merged,
}

impl EnforcementSummary {
    pub fn add(&mut self, share: &Share) {
        match share.is_refused {
            true => self.refuse(EXCLUSIVE),
            false => self.takes_part = true,
        }
        self.won |= share.won > 0;
        self.additions |= share.won > 0 && share.additions;
        self.overridden_units.extend(share.lost.iter().cloned());
        self.overridden_by.extend(&share.overridden_by);
    }

    /// Records that the kind is unknown on a path of the policy.
    pub fn note_unknown(&mut self, reason: UnknownReason) {
        let first = self.unknown.into_iter().chain([reason]).min();
        self.unknown = first;
    }

    /// Records that the policy is refused on a path. Of several messages the first in order counts, whatever the
    /// order of the paths.
    pub fn refuse(&mut self, message: &str) {
        if self.refused.as_deref().is_none_or(|first| message < first) {
            self.refused = Some(message.to_owned());
        }
    }

    /// Why the policy is refused wherever it would take part.
    pub fn refused_everywhere(&self) -> Option<&String> {
        let refused = self.refused.as_ref();
        refused.filter(|_| !self.takes_part && self.unknown.is_none())
    }

    /// How far the policy is in force.
    pub fn in_force(&self) -> Enforcement {
        let lost = !self.overridden_units.is_empty();
        match (self.paths, lost, self.won, self.additions) {
            (0, ..) if self.unknown.is_some() => Enforcement::Unknown,
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
        if chain.is_unknown() {
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
        let accepted = distinct_policies(groups).into_iter().filter(|s| {
            let mut places = groups.iter().flatten();
            places.any(|other| other.index == s.index && !other.is_transparent())
        });
        Contribution {
            shares: accepted.map(|s| share(kind, &folded, groups, s)).collect(),
            contributors: contributors(groups, |policy| contributing.contains(&policy)),
            refused: kind.refused(chain),
        }
    }
}

/// The contribution of a Direct kind: one policy applies as a whole.
fn direct_contribution(groups: &[Vec<Acceptance<'_>>]) -> Contribution {
    let winner = direct::winner(groups);
    let in_force = |s: &&Acceptance<'_>| s.takes_part && !direct::fails(s);
    let contributor = winner.filter(in_force).map(|s| s.index);
    let winner = winner.map(|s| s.index);
    let taking_part = distinct_policies(groups).into_iter();
    let shares = taking_part.filter(|s| s.takes_part).map(|accepted| {
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
            is_refused: false,
        }
    });
    Contribution {
        shares: shares.collect(),
        contributors: contributors(groups, |policy| Some(policy) == contributor),
        refused: Vec::new(),
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
    let offered = offered_leaves(kind, folded, groups, policy);
    let mut won = 0;
    let mut lost = Vec::new();
    let mut overridden_by = BTreeSet::new();
    for (unit, offer) in &offered {
        if is_won(folded, unit, policy) {
            won += 1;
            continue;
        }
        if *offer == LeafOffer::Skipped {
            // Units that are lost because a condition failed are not overridden by any policy.
            lost.push(unit.clone());
            continue;
        }
        let unset_by = unset_by(folded, groups, unit, policy);
        if unset_by.is_empty() && is_own_place(kind, folded, unit, policy) {
            continue;
        }
        overridden_by.extend(overriding_policies(folded, unset_by, unit, policy));
        lost.push(unit.clone());
    }
    let others = |unit: &&MergedUnit<'_>| folded.policies(unit).any(|p| p != policy);
    let additions = folded
        .units
        .iter()
        .filter(others)
        .any(|unit| adds(&mut unit.unit.clone(), &unit.value, &offered));
    Share {
        policy,
        won,
        lost,
        additions,
        overridden_by,
        is_refused: folded.refused.contains(&policy),
    }
}

/// The leaves of a policy's blocks. A leaf of several blocks is one unit (specification 11.15).
fn offered_leaves(
    kind: &PolicyKind,
    folded: &FoldResult<'_>,
    groups: &[Vec<Acceptance<'_>>],
    policy: usize,
) -> BTreeMap<Unit, LeafOffer> {
    let mut offered: BTreeMap<Unit, LeafOffer> = BTreeMap::new();
    // A limit can concern some attachments of the policy only (specification 2.10).
    let places = groups.iter().flatten().filter(|s| s.index == policy);
    let mut blocks: Vec<&Block> = Vec::new();
    for block in places.flat_map(|s| s.blocks.iter()) {
        if block.participates && !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    for block in blocks {
        let skipped = folded.is_skipped(policy, block.name);
        let offer = if skipped {
            LeafOffer::Skipped
        } else {
            LeafOffer::Merged
        };
        for leaf in leaves_of(&kind.profile, kind.schemas(), block.name, &block.rules) {
            let existing = offered.entry(leaf).or_insert(offer);
            *existing = offer.max(*existing);
        }
    }
    offered
}

/// Whether a unit of the result has a leaf that the policy does not offer. Objects are compared leaf by
/// leaf, whatever the kind's granularity.
fn adds(unit: &mut Unit, value: &Value, offered: &BTreeMap<Unit, LeafOffer>) -> bool {
    let fields = value.as_object().filter(|fields| !fields.is_empty());
    let Some(fields) = fields else {
        let meets = |own: &Unit| own.covers(unit) || unit.covers(own);
        return !offered.keys().any(meets);
    };
    fields.iter().any(|(name, value)| {
        unit.0.push(Segment::Field(name.as_str().into()));
        let found = adds(unit, value, offered);
        unit.0.pop();
        found
    })
}

/// Whether the result contains a leaf with the policy among its origins. A part that `unset` removed from
/// a larger unit is not contained. Where an object with fields stands in the place of a leaf, its fields are the
/// leaves, whatever the kind's granularity: the policy does not win by another of its blocks what a condition
/// or the `unset` of another policy took from it (specification 11.32). An empty object or keyed list is also won
/// where it was merged with another that stands in its place (specification 11.39).
fn is_won(folded: &FoldResult<'_>, unit: &Unit, policy: usize) -> bool {
    let is_leaf = |value: &Value| value.as_object().is_none_or(Map::is_empty);
    let mut covering = folded.units.iter().filter(|found| found.unit.covers(unit));
    covering.any(|found| {
        let below = unit.0.get(found.unit.0.len()..).unwrap_or_default();
        value_at(&found.value, below).is_some_and(is_leaf)
            && folded.policies(found).any(|p| p == policy)
    }) || folded.is_filled(unit, policy)
}

/// Whether units of the result are at, above or below a place, and the policy alone sets all of them: it
/// does not lose to itself (specification 11.32). Units are those of the finest granularity that the kind
/// offers: where that is Patch or Custom, a keyed list is one unit (specification 11.13).
fn is_own_place(kind: &PolicyKind, folded: &FoldResult<'_>, place: &Unit, policy: usize) -> bool {
    let granularities = kind.profile.strategies.iter();
    let lists_are_units = granularities
        .filter_map(|strategy| strategy.granularity())
        .any(|g| matches!(g, Granularity::Patch | Granularity::Custom));
    let meets = |found: &&MergedUnit<'_>| {
        let segments = found.unit.0.iter();
        let depth = segments.take_while(|s| !lists_are_units || matches!(s, Segment::Field(_)));
        let found = found.unit.0.get(..depth.count()).unwrap_or_default();
        place.0.starts_with(found) || found.starts_with(&place.0)
    };
    let mut found = folded.units.iter().filter(meets).peekable();
    found.peek().is_some() && found.all(|found| !is_set_by_others(folded, found, policy))
}

/// Whether another policy, or an own field, is among the origins of a unit.
fn is_set_by_others(folded: &FoldResult<'_>, found: &MergedUnit<'_>, policy: usize) -> bool {
    let mut sources = found.sources.iter();
    sources.any(|&source| folded.sources.get(source).and_then(|s| s.policy) != Some(policy))
}

/// The other policies whose `unset` names a unit, in blocks that were not skipped (specification 11.42).
fn unset_by(
    folded: &FoldResult<'_>,
    groups: &[Vec<Acceptance<'_>>],
    unit: &Unit,
    policy: usize,
) -> Vec<usize> {
    let others = groups.iter().flatten().filter(|s| s.index != policy);
    let unsets = |s: &&Acceptance<'_>| {
        s.blocks.iter().any(|block| {
            block.unset.iter().any(|name| name.covers(unit))
                && !folded.is_skipped(s.index, block.name)
        })
    };
    others.filter(unsets).map(|s| s.index).collect()
}

/// The other policies that a unit was lost to: those that set it or a value above it. If the result has no
/// such value, these are the policies whose `unset` names the unit, or else all other contributors.
fn overriding_policies(
    folded: &FoldResult<'_>,
    unset_by: Vec<usize>,
    unit: &Unit,
    policy: usize,
) -> Vec<usize> {
    let stands = |found: &&MergedUnit<'_>| {
        unit.covers(&found.unit)
            || (found.unit.covers(unit) && {
                let below = unit.0.get(found.unit.0.len()..).unwrap_or_default();
                is_at_or_above(&found.value, below)
            })
    };
    // Where a policy fails closed, the others have lost everything to it (specification 5.7).
    if !folded.failed.is_empty() {
        let failed = folded.failed.iter().copied();
        return failed.filter(|&other| other != policy).collect();
    }
    let holders = folded.units.iter().filter(stands);
    let mut holders = holders
        .filter(|found| is_set_by_others(folded, found, policy))
        .peekable();
    let mut found: Vec<usize> = if holders.peek().is_some() {
        holders.flat_map(|found| folded.policies(found)).collect()
    } else if unset_by.is_empty() {
        folded.contributors().collect()
    } else {
        unset_by
    };
    found.retain(|&other| other != policy);
    found
}

/// Whether a value below `value` is at a place or above it: a scalar, a list, a null or an empty object. An
/// object with other fields is not a value above the place (specification 11.19, 11.41).
fn is_at_or_above(value: &Value, place: &[Segment]) -> bool {
    let mut value = value;
    for segment in place {
        let Some(fields) = value.as_object().filter(|fields| !fields.is_empty()) else {
            return true;
        };
        let next = match segment {
            Segment::Field(name) => fields.get(&**name),
            Segment::Item(_) => None,
        };
        let Some(next) = next else {
            return false;
        };
        value = next;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_above_a_place_is_a_leaf() {
        let place = Unit::parse("limits.k1.rate").unwrap();
        for (value, expected) in [
            (json!({"limits": {"k1": {"rate": 1}}}), true),
            (json!({"limits": {"k1": 7}}), true),
            (json!({"limits": {"k1": [7]}}), true),
            (json!({"limits": {"k1": null}}), true),
            (json!({"limits": {}}), true),
            (json!({"limits": {"k2": 7}}), false),
            (json!({"limits": {"k1": {"burst": 1}}}), false),
        ] {
            assert_eq!(is_at_or_above(&value, &place.0), expected, "{value}");
        }
    }
}
