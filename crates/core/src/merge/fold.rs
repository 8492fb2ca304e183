//! Folds the stack of a path into one set of rules (specification 6).

use serde_json::{Map, Value};

use super::instances::InstanceFold;
use super::join::{CountedSide, Side, join};
use super::removal::{self, Exclusion};
use super::shape::{Schemas, ShapeRules};
use super::trace::{Loss, LossTracer};
use super::tree::{Leaf, MergeTree, decompose};
use super::unit_value::UnitValue;
use super::{BlockSource, Layer, Stack, StackGroup};
use crate::model::{BlockName, Direction, Level, LossReason, ObjectKey, Strategy, Unit};
use crate::profile::{Block, FoldOrder, FoldSpan, Profile, SameTarget};

/// The output that a fold computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldDetail {
    /// The rules.
    Rules,
    /// The rules, and the offers that lost.
    Losses,
    /// The rules as JSON text, for callers that only pass them on.
    Text,
    /// The rules as they are merged, before missing objects, fields that exclude each other, and own fields remove
    /// anything.
    Merged,
}

/// The result of a fold.
#[derive(Clone, Debug, Default)]
pub struct FoldResult<'p> {
    /// The rules; `None` exactly if no block took part (specification 5.6).
    pub spec: Option<Value>,
    /// The rules as compact JSON with sorted keys, instead of `spec`, with [`FoldDetail::Text`].
    pub text: Option<String>,
    /// The units of the result in order, including tombstones.
    pub units: Vec<MergedUnit<'p>>,
    /// The objects and keyed lists of the result that empty ones were merged with (specification
    /// 11.39), in order.
    pub filled: Vec<FilledUnit>,
    /// The blocks that units and losses refer to by index.
    pub sources: Vec<BlockSource>,
    /// Indexes in `sources` of the blocks that were skipped because their condition was not true.
    pub skipped: Vec<usize>,
    /// The offers that lost, with [`FoldDetail::Losses`].
    pub losses: Vec<Loss>,
    /// The strategy of the least specific block that took part.
    pub strategy: Option<Strategy>,
    /// The policies whose references to missing objects, or fields that exclude each other, make everything fail
    /// closed, sorted (specification 5.7, 5.12). There are no rules then.
    pub failed: Vec<usize>,
    /// The most specific policies of those that set fields that exclude each other, sorted (specification 5.12).
    pub refused: Vec<usize>,
    /// The policies of which the rules hold references that were not checked, without which requests would pass,
    /// each with the object (specification 5.7).
    pub unchecked: Vec<(usize, &'p ObjectKey)>,
}

/// One unit of a result.
#[derive(Clone, Debug)]
pub struct MergedUnit<'p> {
    /// The unit.
    pub unit: Unit,
    /// Its value; null for a tombstone.
    pub value: UnitValue<'p>,
    /// Indexes in [`FoldResult::sources`].
    pub sources: Vec<usize>,
}

/// An object or keyed list of a result that empty ones were merged with.
#[derive(Clone, Debug, PartialEq)]
pub struct FilledUnit {
    /// The unit of the empty objects or lists.
    pub unit: Unit,
    /// The sources of the empty objects or lists, as indexes in [`FoldResult::sources`].
    pub sources: Vec<usize>,
}

impl FoldResult<'_> {
    /// Returns the policies that set a unit.
    pub fn policies(&self, unit: &MergedUnit<'_>) -> impl Iterator<Item = usize> {
        self.policies_of(&unit.sources)
    }

    /// Returns the policies of sources.
    pub fn policies_of(&self, sources: &[usize]) -> impl Iterator<Item = usize> {
        sources
            .iter()
            .filter_map(|&source| self.sources.get(source)?.policy)
    }

    /// Returns the policies that set at least one unit, or an empty object or keyed list that was
    /// filled (specification 11.40); a policy can occur more than once.
    pub fn contributors(&self) -> impl Iterator<Item = usize> {
        let units = self.units.iter().map(|unit| &unit.sources);
        let filled = self.filled.iter().map(|filled| &filled.sources);
        units
            .chain(filled)
            .flat_map(|sources| self.policies_of(sources))
    }

    /// Reports whether a field of the object sets a unit (specification 6.4).
    pub fn is_own(&self, unit: &MergedUnit<'_>) -> bool {
        let mut sources = unit.sources.iter().filter_map(|&s| self.sources.get(s));
        sources.any(|source| source.block == BlockName::OwnFields)
    }

    /// Reports whether a block was skipped because its condition was not true, at each of its places.
    pub fn is_skipped(&self, policy: usize, block: BlockName) -> bool {
        if self.skipped.is_empty() {
            return false;
        }
        let sources = self.sources.iter().enumerate();
        let mut places = sources
            .filter(|(_, source)| source.policy == Some(policy) && source.block == block)
            .map(|(index, _)| index)
            .peekable();
        places.peek().is_some() && places.all(|index| self.skipped.contains(&index))
    }
}

/// A block at its turn in the fold.
#[derive(Clone, Copy)]
struct FoldStep<'p> {
    block: &'p Block,
    strategy: Strategy,
    policy: Option<usize>,
    source: usize,
    /// Index of its layer among all layers of the stack.
    layer: usize,
    /// The stage of the block. Unset names apply from the next stage on. A stage is a policy, or
    /// under OldestWins a node (specification 4.3).
    stage: usize,
}

/// The blocks that already took part: a policy can be attached to several nodes of a path.
#[derive(Default)]
struct CountedBlocks(Vec<(Option<usize>, BlockName)>);

impl CountedBlocks {
    /// Records that a block takes part. Returns `side` if the same block already did.
    fn note(&mut self, step: &FoldStep<'_>, side: CountedSide) -> CountedSide {
        let block = (step.policy, step.block.name);
        if self.0.contains(&block) {
            return side;
        }
        self.0.push(block);
        CountedSide::Neither
    }
}

impl<'p> FoldStep<'p> {
    /// Reports whether the condition of the block is true for the rules merged from below. A block
    /// without a condition always applies.
    fn holds(&self, below: Option<&Value>) -> bool {
        match (&self.block.when, below) {
            (Some(condition), Some(below)) => condition.is_true(&[("self", below)]),
            _ => true,
        }
    }

    /// Returns the strategy if the block belongs to a policy, and `None` for own fields.
    fn of_policy(&self) -> Option<Strategy> {
        (self.block.name != BlockName::OwnFields).then_some(self.strategy)
    }

    /// Returns the block as one side of a join.
    fn side(&self, shapes: &ShapeRules<'_>) -> Side<'p> {
        let merges = shapes.profile.empty_merges(self.strategy);
        Side {
            tree: self.decompose(shapes),
            // Only kinds with `empty: Blocking` or `ByStrategy` offer an empty block.
            closed: self.block.rules.is_empty() && !merges,
        }
    }

    fn decompose(&self, shapes: &ShapeRules<'_>) -> MergeTree<'p> {
        decompose(
            self.block.rules.encoded(),
            self.source,
            &shapes.of(self.block.name),
        )
    }
}

/// Folds a stack of blocks into the effective rules.
pub fn fold<'p>(
    profile: &Profile,
    schemas: Schemas<'_>,
    stack: &Stack<'p>,
    detail: FoldDetail,
) -> FoldResult<'p> {
    let (fold_steps, sources) = fold_steps(profile, stack);
    let mut tracer = LossTracer::new(&sources, detail == FoldDetail::Losses);
    let covered = span(profile, stack);
    let (near, far): (Vec<_>, Vec<_>) = fold_steps
        .into_iter()
        .partition(|t| covered.contains(&t.layer));
    let shapes = ShapeRules::finest(profile, schemas);
    for step in far.iter().filter(|t| t.block.participates) {
        let tree = step.decompose(&shapes);
        tracer.lost(&tree, LossReason::BeyondClosestParent);
    }
    let mut skipped = Vec::new();
    let (merged, strategy) = if profile.strategy_choice.lower || profile.fold == FoldOrder::TopDown
    {
        top_down(profile, &near, &shapes, &mut tracer)
    } else {
        let places: Vec<(&BlockSource, Level)> = sources
            .iter()
            .map(|source| (source, level_of(stack, source)))
            .collect();
        let instances = InstanceFold::new(profile);
        bottom_up(
            (&near, &places),
            instances,
            &shapes,
            &mut tracer,
            &mut skipped,
        )
    };
    // Own fields alone are not an effective policy (specification 5.6).
    let mut merged = merged.filter(|_| strategy.is_some());
    let (replaced, Exclusion { failed, refused }) = match &mut merged {
        Some(side) if detail != FoldDetail::Merged => removed(
            (&mut side.tree, profile),
            &near,
            (stack, &sources),
            &mut tracer,
        ),
        _ => (Vec::new(), Exclusion::default()),
    };
    let merged = merged.filter(|_| failed.is_empty());
    let tree = merged.as_ref().map(|side| &side.tree);
    let unchecked = tree.map(|tree| removal::unchecked(tree, offers(&near)));
    let is_text = detail == FoldDetail::Text;
    let text = tree.filter(|_| is_text).and_then(MergeTree::to_json);
    let spec = tree.filter(|_| !is_text).map(MergeTree::pruned);
    let strategy = strategy.filter(|_| failed.is_empty());
    let (units, filled) = units(merged, replaced, is_text);
    FoldResult {
        spec,
        text,
        units,
        filled,
        skipped,
        losses: tracer.into_losses(),
        strategy,
        sources,
        failed,
        refused,
        unchecked: unchecked.unwrap_or_default(),
    }
}

/// Returns the blocks of steps, each with its source and policy.
fn offers<'s, 'p>(
    steps: &'s [FoldStep<'p>],
) -> impl Iterator<Item = (&'p Block, usize, Option<usize>)> + use<'s, 'p> {
    steps
        .iter()
        .map(|step| (step.block, step.source, step.policy))
}

/// Removes what missing objects, fields that exclude each other, and own fields take from a result. Returns the
/// units that own fields stand for, and the policies for which everything fails closed (specification 5.7, 5.12,
/// 6.4).
fn removed<'p>(
    (tree, profile): (&mut MergeTree<'_>, &Profile),
    near: &[FoldStep<'p>],
    own: (&Stack<'p>, &[BlockSource]),
    tracer: &mut LossTracer<'_>,
) -> (Vec<MergedUnit<'p>>, Exclusion) {
    let failed = removal::withdraw(tree, offers(near), tracer);
    if !failed.is_empty() {
        let refused = Vec::new();
        return (Vec::new(), Exclusion { failed, refused });
    }
    let exclusion = removal::exclude(tree, profile, own.1, tracer);
    if !exclusion.failed.is_empty() {
        return (Vec::new(), exclusion);
    }
    (removal::replace(tree, own, tracer), exclusion)
}

/// Returns the units of a result, and the empty objects and lists that were filled. `replaced` are the units
/// that fields of the object stand for. With `is_text` values stay encoded: nothing looks into them.
fn units<'p>(
    merged: Option<Side<'p>>,
    replaced: Vec<MergedUnit<'p>>,
    is_text: bool,
) -> (Vec<MergedUnit<'p>>, Vec<FilledUnit>) {
    let (mut units, mut filled) = (Vec::new(), Vec::new());
    if let Some(side) = merged {
        let mut add_unit = |unit, leaf: Leaf<'p>| {
            units.push(MergedUnit {
                unit,
                value: match is_text {
                    true => leaf.value,
                    false => UnitValue::Decoded(leaf.value.into_decoded()),
                },
                sources: leaf.sources,
            });
        };
        let mut add_filled = |unit, sources| filled.push(FilledUnit { unit, sources });
        let tree = side.tree;
        tree.into_leaves(&mut Vec::new(), &mut add_unit, &mut add_filled);
    }
    if !replaced.is_empty() {
        units.extend(replaced);
        units.sort_by(|a, b| a.unit.cmp(&b.unit));
    }
    (units, filled)
}

/// Returns the level of the node that a block is attached to.
fn level_of(stack: &Stack<'_>, source: &BlockSource) -> Level {
    let group = stack.groups.get(source.group);
    group.map_or(Level::Root, |group| group.level)
}

/// Returns the blocks in the order of the bottom-up fold, from the most specific. Under OldestWins,
/// the defaults of a node are ordered from oldest to newest, then its overrides from newest to oldest
/// (specification 4.3).
fn fold_steps<'p>(profile: &Profile, stack: &Stack<'p>) -> (Vec<FoldStep<'p>>, Vec<BlockSource>) {
    let mut fold_steps = Vec::new();
    let mut sources = Vec::new();
    let mut first_layer: Vec<usize> = Vec::with_capacity(stack.groups.len());
    let mut count = 0;
    let by_node = profile.same_target == SameTarget::OldestWins;
    for group in &stack.groups {
        first_layer.push(count);
        count += group.layers.len();
    }
    for (index, group) in stack.groups.iter().enumerate().rev() {
        let first = first_layer.get(index).copied().unwrap_or_default();
        let mut take = |rank: usize, layer: &Layer<'p>, selects: &dyn Fn(Strategy) -> bool| {
            for &(block, strategy) in layer.blocks.iter().filter(|(_, s)| selects(*s)) {
                fold_steps.push(FoldStep {
                    block,
                    strategy,
                    policy: layer.policy,
                    source: sources.len(),
                    layer: first + rank,
                    stage: if by_node { index } else { first + rank },
                });
                sources.push(BlockSource {
                    policy: layer.policy,
                    block: block.name,
                    strategy,
                    group: index,
                    rank,
                });
            }
        };
        let ranked = || group.layers.iter().enumerate();
        if by_node {
            let is_override = |s: Strategy| s.direction() == Some(Direction::Overrides);
            ranked().for_each(|(rank, layer)| take(rank, layer, &|s| !is_override(s)));
            ranked()
                .rev()
                .for_each(|(rank, layer)| take(rank, layer, &is_override));
        } else {
            ranked()
                .rev()
                .for_each(|(rank, layer)| take(rank, layer, &|_| true));
        }
    }
    (fold_steps, sources)
}

/// Returns the indexes of the layers that the fold covers (specification 6.3): all layers, or the
/// most specific one and the next above it. Policies that offer and unset nothing do not count.
fn span(profile: &Profile, stack: &Stack<'_>) -> Vec<usize> {
    let mut layers = Vec::new();
    for (index, group) in stack.groups.iter().enumerate() {
        for layer in &group.layers {
            layers.push((index, layer));
        }
    }
    let FoldSpan::ClosestParent(levels) = &profile.span else {
        return (0..layers.len()).collect();
    };
    if stack.all_levels {
        return (0..layers.len()).collect();
    }
    let takes_part = |layer: &Layer<'_>| {
        let mut blocks = layer.blocks.iter();
        blocks.any(|(block, _)| block.participates || !block.unset.is_empty())
    };
    let level_fits = |group: usize| {
        let level = stack.groups.get(group).map(|g: &StackGroup<'_>| g.level);
        levels.is_empty() || level.is_some_and(|l| levels.contains(&l))
    };
    let participating = || {
        let all = layers.iter().enumerate().rev();
        all.filter(|(_, (_, layer))| takes_part(layer))
            .map(|(at, (group, layer))| (at, *group, layer.policy.is_none()))
    };
    // Own fields are below all policies and do not count as the closest layer (specification 6.4).
    let own = participating().filter(|(.., own)| *own).map(|(at, ..)| at);
    let Some((first, group, _)) = participating().find(|(.., own)| !own) else {
        return own.collect();
    };
    let whole_group = profile.same_target == SameTarget::OldestWins;
    let next = participating()
        .filter(|(at, g, own)| !own && *at < first && !(whole_group && *g == group))
        .find(|(_, g, _)| level_fits(*g));
    let mut covered: Vec<usize> = own.chain([first]).chain(next.map(|(at, ..)| at)).collect();
    if whole_group {
        let groups = [Some(group), next.map(|(_, g, _)| g)];
        let members = participating().filter(|(_, g, _)| groups.contains(&Some(*g)));
        covered.extend(members.map(|(at, ..)| at));
    }
    covered
}

/// Folds bottom-up (specification 6.1). With policies A, B, C from the least to the most specific,
/// the order of precedence is A override > B override > C override > C default > B default >
/// A default.
fn bottom_up<'p>(
    (fold_steps, places): (&[FoldStep<'p>], &[(&BlockSource, Level)]),
    mut instances: InstanceFold<'_>,
    shapes: &ShapeRules<'_>,
    tracer: &mut LossTracer<'_>,
    skipped: &mut Vec<usize>,
) -> (Option<Side<'p>>, Option<Strategy>) {
    let mut merged: Option<Side<'p>> = None;
    let mut unset: Vec<&Unit> = Vec::new();
    // (c) Names that a policy unsets apply from the next stage on.
    let mut pending: Vec<&Unit> = Vec::new();
    let mut last_stage = None;
    let mut last_strategy = None;
    let mut below: Option<Value> = None;
    let mut counts = CountedBlocks::default();
    for step in fold_steps {
        if last_stage.is_some_and(|stage| stage != step.stage) {
            unset.append(&mut pending);
        }
        if last_stage != Some(step.stage) {
            // Conditions see the rules merged from all lower policies (specification 5.4).
            below = has_condition(fold_steps, step.stage).then(|| pruned(merged.as_ref()));
        }
        last_stage = Some(step.stage);
        if !step.holds(below.as_ref()) {
            skipped.push(step.source);
            if step.block.participates {
                tracer.lost(&step.decompose(shapes), LossReason::ConditionFalse);
            }
            continue;
        }
        pending.extend(&step.block.unset);
        if !step.block.participates {
            continue;
        }
        let mut offered = step.side(shapes);
        let Strategy::Merge(granularity, direction) = step.strategy else {
            continue;
        };
        // (a) Defaults lose their unset units; (b) `unset` does not affect overrides.
        if direction == Direction::Defaults && !remove_unset(&mut offered.tree, &unset, tracer) {
            continue;
        }
        if let Some(&(source, level)) = places.get(step.source) {
            let below = merged.as_mut().map(|side| &mut side.tree);
            let (place, rules) = ((step.source, source, level), &step.block.rules);
            if !instances.accept(place, rules, &mut offered.tree, below, tracer) {
                continue;
            }
        }
        last_strategy = step.of_policy().or(last_strategy);
        let counted = counts.note(step, CountedSide::Higher);
        merged = Some(match merged {
            None => offered,
            Some(lower) => {
                let shapes = shapes.with(granularity).of(step.block.name);
                join(lower, offered, direction, counted, &shapes, tracer)
            }
        });
    }
    (merged, last_strategy)
}

/// Reports whether a block of a stage has a condition.
fn has_condition(fold_steps: &[FoldStep<'_>], stage: usize) -> bool {
    fold_steps
        .iter()
        .any(|t| t.stage == stage && t.block.when.is_some())
}

/// Returns the rules merged so far without tombstones (specification 11.7); an empty map if there are
/// none.
fn pruned(merged: Option<&Side<'_>>) -> Value {
    merged.map_or_else(|| Value::Object(Map::new()), |side| side.tree.pruned())
}

/// Removes unset names from an offered block. Returns `false` if nothing is left, so that the block
/// takes no part (specification 11.8).
fn remove_unset(offered: &mut MergeTree<'_>, unset: &[&Unit], tracer: &mut LossTracer<'_>) -> bool {
    if unset.is_empty() {
        return true;
    }
    let mut empty = false;
    // Remove every name, even after the tree is empty, so that all losses are recorded.
    for name in unset {
        tracer.cut_out(offered, name, LossReason::Unset);
        empty |= offered.cut(&name.0);
    }
    !empty
}

/// Folds from the least specific policy down, with one strategy for each policy. Either this is the
/// literal stack of GEP-713, where the strategy of the higher side applies and the result continues
/// with the strategy of the lower side (specification 6.2); or, with owner Lower, each policy is
/// merged with the result above it by its own strategy (specification 5.3).
fn top_down<'p>(
    profile: &Profile,
    fold_steps: &[FoldStep<'p>],
    shapes: &ShapeRules<'_>,
    tracer: &mut LossTracer<'_>,
) -> (Option<Side<'p>>, Option<Strategy>) {
    // The side joined so far, and the last block in it: its strategy and schema apply to the next join.
    let mut result: Option<(Side<'p>, &FoldStep<'p>)> = None;
    let mut first_strategy = None;
    let mut counts = CountedBlocks::default();
    for step in fold_steps.iter().rev().filter(|t| t.block.participates) {
        let lower = step.side(shapes);
        first_strategy = first_strategy.or(step.of_policy());
        let counted = counts.note(step, CountedSide::Lower);
        let joined = match result {
            None => lower,
            Some((higher, above)) => {
                let chosen = if profile.strategy_choice.lower {
                    step
                } else {
                    above
                };
                match chosen.strategy {
                    Strategy::Merge(granularity, direction) => {
                        let shapes = shapes.with(granularity).of(chosen.block.name);
                        join(lower, higher, direction, counted, &shapes, tracer)
                    }
                    Strategy::None => lower,
                }
            }
        };
        result = Some((joined, step));
    }
    (result.map(|(side, _)| side), first_strategy)
}
