//! The fold of a path (specification 6).

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::join::{CountedSide, Side, join};
use super::shape::{Schemas, ShapeRules};
use super::trace::{Loss, LossTracer};
use super::tree::{MergeTree, decompose};
use super::{BlockSource, Layer, Stack, StackGroup};
use crate::model::{BlockName, Direction, LossReason, Strategy, Unit};
use crate::profile::{Block, FoldOrder, FoldSpan, Profile, SameTarget};

/// What is to be told of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldDetail {
    /// The rules.
    Rules,
    /// The rules, and what lost.
    Losses,
    /// The rules as text, for those who only hand them on.
    Text,
}

/// The result of a fold.
#[derive(Clone, Debug, Default)]
pub struct FoldResult<'p> {
    /// The rules; `None` exactly if no block took part (specification 5.6).
    pub spec: Option<Value>,
    /// The same as compact JSON, its keys sorted, if that was asked for instead.
    pub text: Option<String>,
    /// The units that stand at the end, tombstones included, in order.
    pub units: Vec<MergedUnit<'p>>,
    /// Who units and losses point to.
    pub sources: Vec<BlockSource>,
    /// What lost, if it was asked for.
    pub losses: Vec<Loss>,
    /// The strategy of the least specific block that took part.
    pub strategy: Option<Strategy>,
}

/// One unit of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedUnit<'p> {
    /// The unit.
    pub unit: Unit,
    /// Its value; null for a tombstone.
    pub value: Cow<'p, Value>,
    /// Indexes of sources.
    pub sources: Vec<usize>,
}

impl FoldResult<'_> {
    /// The policies that say a unit.
    pub fn policies(&self, unit: &MergedUnit<'_>) -> impl Iterator<Item = usize> {
        unit.sources
            .iter()
            .filter_map(|&source| self.sources.get(source)?.policy)
    }

    /// The policies that contribute at least one unit.
    pub fn contributors(&self) -> impl Iterator<Item = usize> {
        self.units.iter().flat_map(|unit| self.policies(unit))
    }

    /// Whether the condition of a block was not true; known if the fold was traced.
    pub fn skipped(&self, policy: usize, block: BlockName) -> bool {
        self.losses.iter().any(|loss| {
            let source = self.sources.get(loss.source);
            loss.reason == LossReason::ConditionFalse
                && source.is_some_and(|s| s.policy == Some(policy) && s.block == block)
        })
    }
}

/// A block in its turn.
#[derive(Clone, Copy)]
struct FoldStep<'p> {
    block: &'p Block,
    strategy: Strategy,
    policy: Option<usize>,
    source: usize,
    /// Its layer's place in the stack, counted over all layers.
    layer: usize,
    /// What is unset acts from the next stage on: the next policy, or under OldestWins the next
    /// node (specification 4.3).
    stage: usize,
}

/// The blocks that have taken part: a policy may stand at several nodes of a path.
#[derive(Default)]
struct CountedBlocks(Vec<(Option<usize>, BlockName)>);

impl CountedBlocks {
    /// Notes that a block takes part: `side` if it did before.
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
    /// Whether the block's condition is true of what is gathered below; one without holds.
    fn holds(&self, below: Option<&Value>) -> bool {
        match (&self.block.when, below) {
            (Some(condition), Some(below)) => condition.is_true(&[("self", below)]),
            _ => true,
        }
    }

    /// The strategy, if the block is a policy's: own fields are none.
    fn of_policy(&self) -> Option<Strategy> {
        (self.block.name != BlockName::OwnFields).then_some(self.strategy)
    }

    /// The block as a side of a join.
    fn side(&self, shapes: &ShapeRules<'_>) -> Side<'p> {
        Side {
            tree: self.decompose(shapes),
            // Only a Blocking kind offers an empty block.
            closed: self.block.rules.is_empty(),
        }
    }

    fn decompose(&self, shapes: &ShapeRules<'_>) -> MergeTree<'p> {
        decompose(&self.block.rules, self.source, &shapes.of(self.block.name))
    }
}

/// Folds a stack.
pub fn fold<'p>(
    profile: &Profile,
    schemas: Schemas<'_>,
    stack: &Stack<'p>,
    detail: FoldDetail,
) -> FoldResult<'p> {
    let (steps, sources) = steps(profile, stack);
    let mut tracer = LossTracer::new(&sources, detail == FoldDetail::Losses);
    let within = span(profile, stack);
    let (near, far): (Vec<_>, Vec<_>) = steps.into_iter().partition(|t| within.contains(&t.layer));
    let shapes = ShapeRules::finest(profile, schemas);
    for step in far.iter().filter(|t| t.block.participates) {
        let tree = step.decompose(&shapes);
        tracer.lost(&tree, LossReason::BeyondClosestParent);
    }
    let (gathered, strategy) =
        if profile.strategy_choice.lower || profile.fold == FoldOrder::TopDown {
            top_down(profile, &near, &shapes, &mut tracer)
        } else {
            bottom_up(&near, &shapes, &mut tracer)
        };
    // Own fields alone are no effective policy (specification 5.6).
    let gathered = gathered.filter(|_| strategy.is_some());
    let (mut spec, mut text) = (None, None);
    match &gathered {
        Some(side) if detail == FoldDetail::Text => text = side.tree.to_json(),
        Some(side) => spec = Some(side.tree.pruned()),
        None => {}
    }
    let mut units = Vec::new();
    if let Some(side) = gathered {
        side.tree.into_leaves(&mut Vec::new(), &mut |unit, leaf| {
            units.push(MergedUnit {
                unit,
                value: leaf.value,
                sources: leaf.sources,
            });
        });
    }
    let losses = tracer.into_losses();
    FoldResult {
        spec,
        text,
        units,
        losses,
        strategy,
        sources,
    }
}

/// The blocks in the order of the bottom-up fold: from the most specific on. Under OldestWins a
/// node's defaults go from oldest to newest, then its overrides from newest to oldest
/// (specification 4.3).
fn steps<'p>(profile: &Profile, stack: &Stack<'p>) -> (Vec<FoldStep<'p>>, Vec<BlockSource>) {
    let mut steps = Vec::new();
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
        let mut take = |rank: usize, layer: &Layer<'p>, wanted: &dyn Fn(Strategy) -> bool| {
            for &(block, strategy) in layer.blocks.iter().filter(|(_, s)| wanted(*s)) {
                steps.push(FoldStep {
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
    (steps, sources)
}

/// The layers that the fold reaches (specification 6.3): all, or the most specific one and the next
/// above it. Policies that offer and unset nothing are left out first.
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
    let speaks = |layer: &Layer<'_>| {
        let mut blocks = layer.blocks.iter();
        blocks.any(|(block, _)| block.participates || !block.unset.is_empty())
    };
    let level_fits = |group: usize| {
        let level = stack.groups.get(group).map(|g: &StackGroup<'_>| g.level);
        levels.is_empty() || level.is_some_and(|l| levels.contains(&l))
    };
    let speaking = || {
        let all = layers.iter().enumerate().rev();
        all.filter(|(_, (_, layer))| speaks(layer))
            .map(|(at, (group, layer))| (at, *group, layer.policy.is_none()))
    };
    // Own fields stand below all policies and are no neighbour of theirs (specification 6.4).
    let own = speaking().filter(|(.., own)| *own).map(|(at, ..)| at);
    let Some((first, group, _)) = speaking().find(|(.., own)| !own) else {
        return own.collect();
    };
    let whole_group = profile.same_target == SameTarget::OldestWins;
    let next = speaking()
        .filter(|(at, g, own)| !own && *at < first && !(whole_group && *g == group))
        .find(|(_, g, _)| level_fits(*g));
    let mut within: Vec<usize> = own.chain([first]).chain(next.map(|(at, ..)| at)).collect();
    if whole_group {
        let groups = [Some(group), next.map(|(_, g, _)| g)];
        let members = speaking().filter(|(_, g, _)| groups.contains(&Some(*g)));
        within.extend(members.map(|(at, ..)| at));
    }
    within
}

/// Bottom-up (specification 6.1): the total order is A override > B override > C override >
/// C default > B default > A default, A being the least specific.
fn bottom_up<'p>(
    steps: &[FoldStep<'p>],
    shapes: &ShapeRules<'_>,
    tracer: &mut LossTracer<'_>,
) -> (Option<Side<'p>>, Option<Strategy>) {
    let mut gathered: Option<Side<'p>> = None;
    let mut unset: Vec<&Unit> = Vec::new();
    // (c) what a policy unsets counts from the next stage on.
    let mut pending: Vec<&Unit> = Vec::new();
    let mut last_stage = None;
    let mut last_strategy = None;
    let mut below: Option<Value> = None;
    let mut counts = CountedBlocks::default();
    for step in steps {
        if last_stage.is_some_and(|stage| stage != step.stage) {
            unset.append(&mut pending);
        }
        if last_stage != Some(step.stage) {
            // What is gathered from all lower policies (specification 5.4).
            below = has_condition(steps, step.stage).then(|| pruned(gathered.as_ref()));
        }
        last_stage = Some(step.stage);
        if !step.holds(below.as_ref()) {
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
        // (a) defaults, minus what is unset; (b) overrides are immune to it.
        if direction == Direction::Defaults && !keep(&mut offered.tree, &unset, tracer) {
            continue;
        }
        last_strategy = step.of_policy().or(last_strategy);
        let counted = counts.note(step, CountedSide::Higher);
        gathered = Some(match gathered {
            None => offered,
            Some(lower) => {
                let shapes = shapes.with(granularity).of(step.block.name);
                join(lower, offered, direction, counted, &shapes, tracer)
            }
        });
    }
    (gathered, last_strategy)
}

/// Whether a block of a stage has a condition.
fn has_condition(steps: &[FoldStep<'_>], stage: usize) -> bool {
    steps
        .iter()
        .any(|t| t.stage == stage && t.block.when.is_some())
}

/// The rules gathered so far, an empty map if there are none; tombstones do not show
/// (specification 11.7).
fn pruned(gathered: Option<&Side<'_>>) -> Value {
    gathered.map_or_else(|| Value::Object(Map::new()), |side| side.tree.pruned())
}

/// Takes what is unset out of what is offered; `false` if nothing is left, and the block takes no
/// part (specification 11.8).
fn keep(offered: &mut MergeTree<'_>, unset: &[&Unit], tracer: &mut LossTracer<'_>) -> bool {
    if unset.is_empty() {
        return true;
    }
    let mut empty = false;
    // Every name is cut, so that what is left is known.
    for name in unset {
        tracer.unset(offered, name);
        empty |= offered.cut(&name.0);
    }
    !empty
}

/// From the least specific policy down, one strategy per policy: the literal stack of GEP-713
/// (specification 6.2), where the higher side's strategy counts and the result takes the lower one's;
/// or, with owner Lower, each policy joins by its own strategy what stands above it (specification 5.3).
fn top_down<'p>(
    profile: &Profile,
    steps: &[FoldStep<'p>],
    shapes: &ShapeRules<'_>,
    tracer: &mut LossTracer<'_>,
) -> (Option<Side<'p>>, Option<Strategy>) {
    let mut result: Option<(Side<'p>, Strategy)> = None;
    let mut first_strategy = None;
    let mut counts = CountedBlocks::default();
    for step in steps.iter().rev().filter(|t| t.block.participates) {
        let lower = step.side(shapes);
        first_strategy = first_strategy.or(step.of_policy());
        let counted = counts.note(step, CountedSide::Lower);
        result = Some(match result {
            None => (lower, step.strategy),
            Some((higher, above)) => {
                let chosen = if profile.strategy_choice.lower {
                    step.strategy
                } else {
                    above
                };
                let joined = match chosen {
                    Strategy::Merge(granularity, direction) => {
                        let shapes = shapes.with(granularity).of(step.block.name);
                        join(lower, higher, direction, counted, &shapes, tracer)
                    }
                    Strategy::None => lower,
                };
                (joined, step.strategy)
            }
        });
    }
    (result.map(|(side, _)| side), first_strategy)
}
