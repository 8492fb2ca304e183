//! Compares the answers of a kind on one path in two worlds.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use hashbrown::{HashMap, HashSet};

use super::walk::TriePosition;
use crate::api::{origin, policy_ref, v1};
use entail_core::effective::Activity;
use entail_core::engine::{ChainKey, ChainTable, PathEngine};
use entail_core::model::{
    Explanation, GroupKind, InternalError, OrInternal, RejectedPolicy, UnitExplanation, Unknown,
};
use entail_core::topology::TrieNodeId;

/// A kind in both worlds, with the changes between its answers.
pub(super) struct KindPair<'e> {
    kind: &'e GroupKind,
    before: KindAnswers<'e>,
    after: KindAnswers<'e>,
    /// By the numbers of both explanations; `None` if the answers are equal.
    changes: BTreeMap<(usize, usize), Option<v1::ChangedAnswer>>,
}

/// The explanations of a kind in one of the two worlds, computed on demand.
struct KindAnswers<'e> {
    engine: &'e PathEngine,
    /// The chains of the kind; `None` if the world does not have the kind.
    chains: Option<ChainTable<'e>>,
    numbers: HashMap<Option<ChainKey>, usize>,
    explanations: Vec<Explanation>,
    /// The answers on paths that the other world does not have: whether they are unknown was seen.
    seen: HashSet<ChainKey>,
    /// What these answers do not know.
    unknown: Vec<Unknown>,
}

impl<'e> KindPair<'e> {
    pub(super) fn new(kind: &'e GroupKind, [before, after]: [&'e PathEngine; 2]) -> Self {
        Self {
            kind,
            before: KindAnswers::new(before, kind),
            after: KindAnswers::new(after, kind),
            changes: BTreeMap::new(),
        }
    }

    /// The kind.
    pub(super) fn kind(&self) -> &GroupKind {
        self.kind
    }

    /// Returns whether a path is a scope of the kind in at least one of the worlds.
    pub(super) fn has_scope(
        &self,
        [before, after]: [TriePosition; 2],
        acts: [bool; 2],
    ) -> Result<bool, InternalError> {
        let [acts_before, acts_after] = acts;
        Ok((acts_before && self.before.has_scope(before)?)
            || (acts_after && self.after.has_scope(after)?))
    }

    /// Returns whether the kind acts, or may act, on the paths of a root of one of the worlds.
    pub(super) fn acts(&self, world: usize, root: TrieNodeId) -> Result<bool, InternalError> {
        let answers = match world {
            0 => &self.before,
            _ => &self.after,
        };
        let Some(chains) = &answers.chains else {
            return Ok(false);
        };
        let activity = answers.engine.activity(chains.kind(), root)?;
        Ok(activity != Activity::Inactive)
    }

    /// Returns the change of the answer on a path; `None` if both worlds have the same answer.
    pub(super) fn change(
        &mut self,
        [before, after]: [TriePosition; 2],
    ) -> Result<Option<&mut v1::ChangedAnswer>, InternalError> {
        let numbers = (self.before.number(before)?, self.after.number(after)?);
        let change = match self.changes.entry(numbers) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let before = self.before.explanation(numbers.0)?;
                let after = self.after.explanation(numbers.1)?;
                entry.insert(changed_answer(self.kind, before, after))
            }
        };
        Ok(change.as_mut())
    }

    /// Looks whether the answer is unknown on a path that the other world does not have. This includes paths above the
    /// scopes of the kind, because there may be none below.
    pub(super) fn see(
        &mut self,
        world: usize,
        position: TriePosition,
    ) -> Result<(), InternalError> {
        let answers = match world {
            0 => &mut self.before,
            _ => &mut self.after,
        };
        answers.see(position)
    }

    /// Returns what the answers of both worlds do not know, with the name of the kind.
    pub(super) fn unknown(&self) -> impl Iterator<Item = (&GroupKind, &Unknown)> {
        let unknown = self.before.unknown().chain(self.after.unknown());
        unknown.map(|unknown| (self.kind, unknown))
    }

    /// Returns all changes, in the order of the explanations.
    pub(super) fn into_changes(self) -> impl Iterator<Item = v1::ChangedAnswer> {
        self.changes.into_values().flatten()
    }
}

impl<'e> KindAnswers<'e> {
    fn new(engine: &'e PathEngine, kind: &GroupKind) -> Self {
        let mut kinds = engine.world().kinds().iter().enumerate();
        let same = kinds.find(|(_, candidate)| candidate.profile().policy == *kind);
        Self {
            engine,
            chains: same.map(|(number, kind)| ChainTable::new(engine, number, kind)),
            numbers: HashMap::new(),
            explanations: Vec::new(),
            seen: HashSet::new(),
            unknown: Vec::new(),
        }
    }

    /// Returns what the answer of the kind on a path depends on; `None` if the kind has no policy there.
    fn key(&mut self, position: TriePosition) -> Result<Option<ChainKey>, InternalError> {
        let Some(chains) = &mut self.chains else {
            return Ok(None);
        };
        let Some(chain) = chains.at(position.state)? else {
            return Ok(None);
        };
        let node = self.engine.trie().node(position.node)?;
        let own = chains.kind().reads_own_fields().then_some(node.node);
        Ok(Some((chain, own)))
    }

    /// Keeps what the answer on a path does not know.
    fn see(&mut self, position: TriePosition) -> Result<(), InternalError> {
        let Some(key) = self.key(position)? else {
            return Ok(());
        };
        if self.seen.insert(key)
            && let Some(chains) = &self.chains
        {
            let chain = chains.chain(key.0)?;
            let answer = self.engine.world().answer(chains.kind(), chain);
            self.unknown.extend(answer.unknown);
        }
        Ok(())
    }

    /// What the answers that were compared or seen do not know.
    fn unknown(&self) -> impl Iterator<Item = &Unknown> {
        let explanations = self.explanations.iter();
        let compared = explanations.filter_map(|found| found.effective.unknown.as_ref());
        compared.chain(&self.unknown)
    }

    /// Returns the number of the explanation of the kind on a path.
    fn number(&mut self, position: TriePosition) -> Result<usize, InternalError> {
        let key = self.key(position)?;
        if let Some(&number) = self.numbers.get(&key) {
            return Ok(number);
        }
        let explanation = match (&self.chains, key) {
            (Some(chains), Some((chain, _))) => {
                let chain = chains.chain(chain)?;
                self.engine.world().explain(chains.kind(), chain)
            }
            _ => Explanation::default(),
        };
        let number = self.explanations.len();
        self.explanations.push(explanation);
        self.numbers.insert(key, number);
        Ok(number)
    }

    fn explanation(&self, number: usize) -> Result<&Explanation, InternalError> {
        self.explanations.get(number).or_internal("an explanation")
    }

    /// Whether a path is a scope of the kind where the kind acts.
    fn has_scope(&self, position: TriePosition) -> Result<bool, InternalError> {
        let Some(chains) = &self.chains else {
            return Ok(false);
        };
        let (root, level) = self.engine.automaton().end(position.state)?;
        let object = self.engine.object_kind(position.node)?;
        Ok(chains.kind().ends_at_scope(root, level, object))
    }
}

/// Compares two explanations; returns `None` if the answers are equal.
fn changed_answer(
    kind: &GroupKind,
    before: &Explanation,
    after: &Explanation,
) -> Option<v1::ChangedAnswer> {
    let change = v1::ChangedAnswer {
        kind: kind.to_string(),
        paths: Vec::new(),
        units: changed_units(&before.units, &after.units),
        newly_rejected: newly_rejected(&before.effective.rejected, &after.effective.rejected),
    };
    let is_changed = !change.units.is_empty() || !change.newly_rejected.is_empty();
    is_changed.then_some(change)
}

/// The units whose value or origin changes.
fn changed_units(before: &[UnitExplanation], after: &[UnitExplanation]) -> Vec<v1::ChangedUnit> {
    let with_values = |units: &[UnitExplanation]| -> BTreeMap<String, UnitExplanation> {
        units
            .iter()
            .filter(|unit| unit.value.is_some())
            .map(|unit| (unit.unit.to_string(), unit.clone()))
            .collect()
    };
    let (units_before, units_after) = (with_values(before), with_values(after));
    let names: BTreeSet<&String> = units_before.keys().chain(units_after.keys()).collect();
    let mut changes = Vec::new();
    for name in names {
        let (before, after) = (units_before.get(name), units_after.get(name));
        let value = |unit: Option<&UnitExplanation>| unit.and_then(|u| u.value.clone());
        let set_by = |unit: Option<&UnitExplanation>| {
            let origin = unit.and_then(|u| u.origin.as_ref());
            origin.map(|o| (o.policies.clone(), o.block))
        };
        if value(before) == value(after) && set_by(before) == set_by(after) {
            continue;
        }
        // A unit above or below replaces it and is reported there: the value is not lost.
        if before.is_some_and(|unit| after.is_none() && overlaps(unit, units_after.values())) {
            continue;
        }
        let origin_of =
            |unit: Option<&UnitExplanation>| unit.and_then(|u| u.origin.as_ref()).map(origin);
        changes.push(v1::ChangedUnit {
            unit: name.clone(),
            before_json: value(before).map(|v| v.to_string()),
            after_json: value(after).map(|v| v.to_string()),
            before_origin: origin_of(before),
            after_origin: origin_of(after),
        });
    }
    changes
}

/// Whether one of the units is equal to a unit, above or below it.
fn overlaps<'u>(
    unit: &UnitExplanation,
    mut others: impl Iterator<Item = &'u UnitExplanation>,
) -> bool {
    others.any(|other| other.unit.covers(&unit.unit) || unit.unit.covers(&other.unit))
}

/// The policies that only the later answer rejects.
fn newly_rejected(before: &[RejectedPolicy], after: &[RejectedPolicy]) -> Vec<v1::RejectedPolicy> {
    after
        .iter()
        .filter(|policy| !before.contains(policy))
        .map(|rejected| v1::RejectedPolicy {
            policy: Some(policy_ref(&rejected.policy)),
            reason: rejected.reason.clone(),
            message: rejected.message.clone(),
        })
        .collect()
}
