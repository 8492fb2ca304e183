//! Computes how far each policy is in force (specification 10): the units that it won and lost.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use serde_json::{Map, Value};

use super::merge_check::{EXCLUSIVE, MergeRefusal};
use super::stack::Acceptance;
use super::{AttachmentChain, PolicyKind, World, direct};
use crate::merge::{FoldDetail, FoldResult, MergedUnit, fold, leaves_of, value_at};
use crate::model::{Enforcement, Granularity, Segment, Unit, UnitTree, UnknownReason};
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
    /// The summary of a policy with something that is not known whatever its paths are.
    pub fn of_unknown(unknown: Option<UnknownReason>) -> Self {
        Self {
            unknown,
            ..Self::default()
        }
    }

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
                contributors: contributors(&places_of(&groups), |_| true),
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
        let index = FoldIndex::new(kind, &folded, groups);
        // A policy without rules and without `unset` has no scope.
        let places = places_of(groups);
        let has_scope = |places: &&Vec<&Acceptance<'_>>| places.iter().any(|p| !p.is_transparent());
        let accepted = places.iter().filter(has_scope);
        let shares = accepted.filter_map(|places| share(kind, &index, places));
        Contribution {
            shares: shares.collect(),
            contributors: contributors(&places, |policy| index.contributors.contains(&policy)),
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
    let places = places_of(groups);
    let taking_part = places.iter().filter_map(|places| places.first());
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
        contributors: contributors(&places, |policy| Some(policy) == contributor),
        refused: Vec::new(),
    }
}

/// The places of each policy, by the order of their first ones.
fn places_of<'s, 'k>(groups: &'s [Vec<Acceptance<'k>>]) -> Vec<Vec<&'s Acceptance<'k>>> {
    let mut found: Vec<Vec<&Acceptance<'k>>> = Vec::new();
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    for accepted in groups.iter().flatten() {
        let next = found.len();
        let number = *numbers.entry(accepted.index).or_insert(next);
        if number == next {
            found.push(Vec::new());
        }
        if let Some(places) = found.get_mut(number) {
            places.push(accepted);
        }
    }
    found
}

/// The policies that contribute, with the nodes of their places.
fn contributors(
    places: &[Vec<&Acceptance<'_>>],
    contributes: impl Fn(usize) -> bool,
) -> Vec<(usize, Vec<NodeId>)> {
    places
        .iter()
        .filter_map(|places| {
            let policy = places.first()?.index;
            let nodes = places.iter().map(|place| place.node);
            contributes(policy).then(|| (policy, nodes.collect()))
        })
        .collect()
}

/// Who sets the units at some places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Setters {
    /// There are no units.
    #[default]
    Nobody,
    /// One policy sets all of them.
    One(usize),
    /// Several policies do, or own fields.
    Several,
}

impl Setters {
    fn add(&mut self, other: Self) {
        *self = match (*self, other) {
            (Self::Nobody, other) | (other, Self::Nobody) => other,
            (Self::One(one), Self::One(other)) if one == other => Self::One(one),
            _ => Self::Several,
        };
    }
}

/// Who sets the units of a result, by place.
#[derive(Debug, Default)]
struct SetterTree {
    /// Of the units at the place.
    here: Setters,
    /// Of those at the place and below it.
    within: Setters,
    below: BTreeMap<Segment, SetterTree>,
}

impl SetterTree {
    fn insert(&mut self, place: &[Segment], setters: Setters) {
        self.within.add(setters);
        match place.split_first() {
            None => self.here.add(setters),
            Some((first, rest)) => {
                let next = self.below.entry(first.clone()).or_default();
                next.insert(rest, setters);
            }
        }
    }

    /// Of the units at, above and below a place.
    fn meeting(&self, place: &[Segment]) -> Setters {
        let mut all = Setters::Nobody;
        let mut node = self;
        for segment in place {
            all.add(node.here);
            match node.below.get(segment) {
                Some(next) => node = next,
                None => return all,
            }
        }
        all.add(node.within);
        all
    }
}

/// A result with what is looked up for each leaf of each policy, so that all statuses of a path take time in proportion
/// to their leaves.
struct FoldIndex<'f, 'p> {
    folded: &'f FoldResult<'p>,
    units: UnitTree<&'f MergedUnit<'p>>,
    /// The policies whose empty objects and keyed lists were filled.
    filled: UnitTree<usize>,
    setters: SetterTree,
    contributors: BTreeSet<usize>,
    /// The policies whose `unset` names units, in blocks that were not skipped (specification 11.42).
    unset: UnitTree<usize>,
}

impl<'f, 'p> FoldIndex<'f, 'p> {
    fn new(kind: &PolicyKind, folded: &'f FoldResult<'p>, groups: &[Vec<Acceptance<'_>>]) -> Self {
        // Units are those of the finest granularity that the kind offers: where that is Patch or Custom, a keyed list is
        // one unit (specification 11.13).
        let granularities = kind.profile.strategies.iter();
        let lists_are_units = granularities
            .filter_map(|strategy| strategy.granularity())
            .any(|g| matches!(g, Granularity::Patch | Granularity::Custom));
        let mut index = Self {
            folded,
            units: UnitTree::default(),
            filled: UnitTree::default(),
            setters: SetterTree::default(),
            contributors: folded.contributors().collect(),
            unset: UnitTree::default(),
        };
        for found in &folded.units {
            index.units.insert(&found.unit.0, found);
            let segments = found.unit.0.iter();
            let depth = segments.take_while(|s| !lists_are_units || matches!(s, Segment::Field(_)));
            let place = found.unit.0.get(..depth.count()).unwrap_or_default();
            index.setters.insert(place, setters_of(folded, found));
        }
        for filled in &folded.filled {
            for policy in folded.policies_of(&filled.sources) {
                index.filled.insert(&filled.unit.0, policy);
            }
        }
        for accepted in groups.iter().flatten() {
            let blocks = accepted.blocks.iter();
            for block in blocks.filter(|block| !block.unset.is_empty()) {
                if !folded.is_skipped(accepted.index, block.name) {
                    let names = block.unset.iter();
                    names.for_each(|name| index.unset.insert(&name.0, accepted.index));
                }
            }
        }
        index
    }

    /// Whether the result contains a leaf with the policy among its origins. A part that `unset` removed from
    /// a larger unit is not contained. Where an object with fields stands in the place of a leaf, its fields are the
    /// leaves, whatever the kind's granularity: the policy does not win by another of its blocks what a condition
    /// or the `unset` of another policy took from it (specification 11.32). An empty object or keyed list is also won
    /// where it was merged with another that stands in its place (specification 11.39).
    fn is_won(&self, unit: &Unit, policy: usize) -> bool {
        let is_leaf = |value: &Value| value.as_object().is_none_or(Map::is_empty);
        let mut covering = self.units.at_or_above(&unit.0);
        covering.any(|found| {
            let below = unit.0.get(found.unit.0.len()..).unwrap_or_default();
            value_at(&found.value.decoded(), below).is_some_and(is_leaf)
                && self.folded.policies(found).any(|p| p == policy)
        }) || self.is_filled(unit, policy)
    }

    /// Whether an empty object or keyed list of the policy at a unit was filled.
    fn is_filled(&self, unit: &Unit, policy: usize) -> bool {
        self.filled.at(&unit.0).contains(&policy)
    }

    /// Whether units of the result are at, above or below a place, and the policy alone sets all of them: it
    /// does not lose to itself (specification 11.32).
    fn is_own_place(&self, place: &Unit, policy: usize) -> bool {
        self.setters.meeting(&place.0) == Setters::One(policy)
    }

    /// The other policies whose `unset` names a unit.
    fn unset_by(&self, unit: &Unit, policy: usize) -> Vec<usize> {
        let named = self.unset.at_or_above(&unit.0).copied();
        named.filter(|&other| other != policy).collect()
    }

    /// The other policies that a unit was lost to: those that set it or a value above it. If the result has no
    /// such value, these are the policies whose `unset` names the unit; `None` if there are none of them either, and all
    /// other contributors overrode it.
    fn overriding_policies(
        &self,
        unset_by: Vec<usize>,
        unit: &Unit,
        policy: usize,
    ) -> Option<Vec<usize>> {
        let folded = self.folded;
        // Where a policy fails closed, the others have lost everything to it (specification 5.7).
        if !folded.failed.is_empty() {
            let failed = folded.failed.iter().copied();
            return Some(failed.filter(|&other| other != policy).collect());
        }
        let above = self.units.at_or_above(&unit.0).filter(|found| {
            let below = unit.0.get(found.unit.0.len()..).unwrap_or_default();
            is_at_or_above(&found.value.decoded(), below)
        });
        let holders = above.chain(self.units.at_or_below(&unit.0));
        let by_others = |found: &&&MergedUnit<'_>| {
            !matches!(setters_of(folded, found), Setters::One(one) if one == policy)
                && !found.sources.is_empty()
        };
        let mut holders = holders.filter(by_others).peekable();
        let mut found: Vec<usize> = if holders.peek().is_some() {
            holders.flat_map(|found| folded.policies(found)).collect()
        } else if unset_by.is_empty() {
            return None;
        } else {
            unset_by
        };
        found.retain(|&other| other != policy);
        Some(found)
    }
}

/// Who sets a unit.
fn setters_of(folded: &FoldResult<'_>, found: &MergedUnit<'_>) -> Setters {
    let mut setters = Setters::Nobody;
    for &source in &found.sources {
        let policy = folded.sources.get(source).and_then(|source| source.policy);
        setters.add(policy.map_or(Setters::Several, Setters::One));
    }
    setters
}

/// What one policy won and lost in a fold, by its places.
fn share(
    kind: &PolicyKind,
    index: &FoldIndex<'_, '_>,
    places: &[&Acceptance<'_>],
) -> Option<Share> {
    let policy = places.first()?.index;
    let folded = index.folded;
    let offered = offered_leaves(kind, folded, places);
    let mut won = 0;
    let mut lost = Vec::new();
    let mut overridden_by = BTreeSet::new();
    let mut by_all = false;
    for (unit, offer) in &offered {
        if index.is_won(unit, policy) {
            won += 1;
            continue;
        }
        if *offer == LeafOffer::Skipped {
            // Units that are lost because a condition failed are not overridden by any policy.
            lost.push(unit.clone());
            continue;
        }
        let unset_by = index.unset_by(unit, policy);
        if unset_by.is_empty() && index.is_own_place(unit, policy) {
            continue;
        }
        match index.overriding_policies(unset_by, unit, policy) {
            Some(found) => overridden_by.extend(found),
            None => by_all = true,
        }
        lost.push(unit.clone());
    }
    if by_all {
        let others = index.contributors.iter().filter(|&&other| other != policy);
        overridden_by.extend(others);
    }
    let mut own = UnitTree::default();
    offered.keys().for_each(|unit| own.insert(&unit.0, ()));
    let mut others = folded
        .units
        .iter()
        .filter(|unit| folded.policies(unit).any(|p| p != policy));
    Some(Share {
        policy,
        won,
        lost,
        additions: others.any(|unit| adds(&mut unit.unit.clone(), &unit.value.decoded(), &own)),
        overridden_by,
        is_refused: folded.refused.contains(&policy),
    })
}

/// The leaves of a policy's blocks. A leaf of several blocks is one unit (specification 11.15).
fn offered_leaves(
    kind: &PolicyKind,
    folded: &FoldResult<'_>,
    places: &[&Acceptance<'_>],
) -> BTreeMap<Unit, LeafOffer> {
    let mut offered: BTreeMap<Unit, LeafOffer> = BTreeMap::new();
    // A limit can concern some attachments of the policy only (specification 2.10).
    let mut blocks: Vec<(usize, &Block)> = Vec::new();
    for place in places {
        for block in place.blocks.iter() {
            let is_known =
                |(_, known): &(usize, &Block)| std::ptr::eq(*known, block) || *known == block;
            if block.participates && !blocks.iter().any(is_known) {
                blocks.push((place.index, block));
            }
        }
    }
    for (policy, block) in blocks {
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
fn adds(unit: &mut Unit, value: &Value, offered: &UnitTree<()>) -> bool {
    let fields = value.as_object().filter(|fields| !fields.is_empty());
    let Some(fields) = fields else {
        return !offered.meets(&unit.0);
    };
    fields.iter().any(|(name, value)| {
        unit.0.push(Segment::Field(name.as_str().into()));
        let found = adds(unit, value, offered);
        unit.0.pop();
        found
    })
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
