//! The fold of a path (SEMANTICS §6).

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::join::{Counted, Side, join};
use super::shape::{Schemas, Shapes};
use super::slot::{Slot, take_apart};
use super::trace::{Loss, Tracer};
use super::{Layer, Source, Stack, StackGroup};
use crate::model::{BlockName, Direction, LossReason, Strategy, Unit};
use crate::profile::{Block, Fold, Profile, SameTarget, Span};

/// What is to be told of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// The rules.
    Rules,
    /// The rules, and what lost.
    Losses,
    /// The rules as text, for those who only hand them on.
    Text,
}

/// The result of a fold.
#[derive(Clone, Debug, Default)]
pub struct Folded<'p> {
    /// The rules; `None` exactly if no block took part (SEMANTICS §5.6).
    pub spec: Option<Value>,
    /// The same as compact JSON, its keys sorted, if that was asked for instead.
    pub text: Option<String>,
    /// The units that stand at the end, tombstones included, in order.
    pub units: Vec<FoldedUnit<'p>>,
    /// Who units and losses point to.
    pub sources: Vec<Source>,
    /// What lost, if it was asked for.
    pub losses: Vec<Loss>,
    /// The strategy of the least specific block that took part.
    pub strategy: Option<Strategy>,
}

/// One unit of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldedUnit<'p> {
    /// The unit.
    pub unit: Unit,
    /// Its value; null for a tombstone.
    pub value: Cow<'p, Value>,
    /// Indexes of sources.
    pub sources: Vec<usize>,
}

impl Folded<'_> {
    /// The policies that say a unit.
    pub fn policies(&self, unit: &FoldedUnit<'_>) -> impl Iterator<Item = usize> {
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
struct Turn<'p> {
    block: &'p Block,
    strategy: Strategy,
    policy: Option<usize>,
    source: usize,
    /// Its layer's place in the stack, counted over all layers.
    layer: usize,
    /// What is unset acts from the next stage on: the next policy, or under OldestWins the next
    /// node (SEMANTICS §4.3).
    stage: usize,
}

/// The blocks that have taken part: a policy may stand at several nodes of a path.
#[derive(Default)]
struct Counts(Vec<(Option<usize>, BlockName)>);

impl Counts {
    /// Notes that a block takes part: `side` if it did before.
    fn note(&mut self, turn: &Turn<'_>, side: Counted) -> Counted {
        let block = (turn.policy, turn.block.name);
        if self.0.contains(&block) {
            return side;
        }
        self.0.push(block);
        Counted::Neither
    }
}

impl<'p> Turn<'p> {
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
    fn side(&self, shapes: &Shapes<'_>) -> Side<'p> {
        Side {
            slot: self.take_apart(shapes),
            // Only a Blocking kind offers an empty block.
            closed: self.block.rules.is_empty(),
        }
    }

    fn take_apart(&self, shapes: &Shapes<'_>) -> Slot<'p> {
        take_apart(&self.block.rules, self.source, &shapes.of(self.block.name))
    }
}

/// Folds a stack.
pub fn fold<'p>(
    profile: &Profile,
    schemas: Schemas<'_>,
    stack: &Stack<'p>,
    tell: Tell,
) -> Folded<'p> {
    let (turns, sources) = turns(profile, stack);
    let mut tracer = Tracer::new(&sources, tell == Tell::Losses);
    let within = span(profile, stack);
    let (near, far): (Vec<_>, Vec<_>) = turns.into_iter().partition(|t| within.contains(&t.layer));
    let shapes = Shapes::finest(profile, schemas);
    for turn in far.iter().filter(|t| t.block.offers) {
        let slot = turn.take_apart(&shapes);
        tracer.lost(&slot, LossReason::BeyondClosestParent);
    }
    let (gathered, strategy) = if profile.chooser.lower || profile.fold == Fold::TopDown {
        top_down(profile, &near, &shapes, &mut tracer)
    } else {
        bottom_up(&near, &shapes, &mut tracer)
    };
    // Own fields alone are no effective policy (SEMANTICS §5.6).
    let gathered = gathered.filter(|_| strategy.is_some());
    let (mut spec, mut text) = (None, None);
    match &gathered {
        Some(side) if tell == Tell::Text => text = side.slot.written(),
        Some(side) => spec = Some(side.slot.finished()),
        None => {}
    }
    let mut units = Vec::new();
    if let Some(side) = gathered {
        side.slot.into_leaves(&mut Vec::new(), &mut |unit, leaf| {
            units.push(FoldedUnit {
                unit,
                value: leaf.value,
                sources: leaf.sources,
            });
        });
    }
    let losses = tracer.into_losses();
    Folded {
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
/// (SEMANTICS §4.3).
fn turns<'p>(profile: &Profile, stack: &Stack<'p>) -> (Vec<Turn<'p>>, Vec<Source>) {
    let mut turns = Vec::new();
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
                turns.push(Turn {
                    block,
                    strategy,
                    policy: layer.policy,
                    source: sources.len(),
                    layer: first + rank,
                    stage: if by_node { index } else { first + rank },
                });
                sources.push(Source {
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
    (turns, sources)
}

/// The layers that the fold reaches (SEMANTICS §6.3): all, or the most specific one and the next
/// above it. Policies that offer and unset nothing are left out first.
fn span(profile: &Profile, stack: &Stack<'_>) -> Vec<usize> {
    let mut layers = Vec::new();
    for (index, group) in stack.groups.iter().enumerate() {
        for layer in &group.layers {
            layers.push((index, layer));
        }
    }
    let Span::ClosestParent(levels) = &profile.span else {
        return (0..layers.len()).collect();
    };
    let speaks = |layer: &Layer<'_>| {
        let mut blocks = layer.blocks.iter();
        blocks.any(|(block, _)| block.offers || !block.unset.is_empty())
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
    // Own fields stand below all policies and are no neighbour of theirs (SEMANTICS §6.4).
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

/// Bottom-up (SEMANTICS §6.1): the total order is A override > B override > C override >
/// C default > B default > A default, A being the least specific.
fn bottom_up<'p>(
    turns: &[Turn<'p>],
    shapes: &Shapes<'_>,
    tracer: &mut Tracer<'_>,
) -> (Option<Side<'p>>, Option<Strategy>) {
    let mut gathered: Option<Side<'p>> = None;
    let mut unset: Vec<&Unit> = Vec::new();
    // (c) what a policy unsets counts from the next stage on.
    let mut pending: Vec<&Unit> = Vec::new();
    let mut last_stage = None;
    let mut last_strategy = None;
    let mut below: Option<Value> = None;
    let mut counts = Counts::default();
    for turn in turns {
        if last_stage.is_some_and(|stage| stage != turn.stage) {
            unset.append(&mut pending);
        }
        if last_stage != Some(turn.stage) {
            // What is gathered from all lower policies (SEMANTICS §5.4).
            below = has_condition(turns, turn.stage).then(|| finished(gathered.as_ref()));
        }
        last_stage = Some(turn.stage);
        if !turn.holds(below.as_ref()) {
            if turn.block.offers {
                tracer.lost(&turn.take_apart(shapes), LossReason::ConditionFalse);
            }
            continue;
        }
        pending.extend(&turn.block.unset);
        if !turn.block.offers {
            continue;
        }
        let mut offered = turn.side(shapes);
        let Strategy::Merge(granularity, direction) = turn.strategy else {
            continue;
        };
        // (a) defaults, minus what is unset; (b) overrides are immune to it.
        if direction == Direction::Defaults && !keep(&mut offered.slot, &unset, tracer) {
            continue;
        }
        last_strategy = turn.of_policy().or(last_strategy);
        let counted = counts.note(turn, Counted::Higher);
        gathered = Some(match gathered {
            None => offered,
            Some(lower) => {
                let shapes = shapes.with(granularity).of(turn.block.name);
                join(lower, offered, direction, counted, &shapes, tracer)
            }
        });
    }
    (gathered, last_strategy)
}

/// Whether a block of a stage has a condition.
fn has_condition(turns: &[Turn<'_>], stage: usize) -> bool {
    turns
        .iter()
        .any(|t| t.stage == stage && t.block.when.is_some())
}

/// The rules gathered so far, an empty map if there are none; tombstones do not show
/// (SEMANTICS §11.7).
fn finished(gathered: Option<&Side<'_>>) -> Value {
    gathered.map_or_else(|| Value::Object(Map::new()), |side| side.slot.finished())
}

/// Takes what is unset out of what is offered; `false` if nothing is left, and the block takes no
/// part (SEMANTICS §11.8).
fn keep(offered: &mut Slot<'_>, unset: &[&Unit], tracer: &mut Tracer<'_>) -> bool {
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
/// (SEMANTICS §6.2), where the higher side's strategy counts and the result takes the lower one's;
/// or, with owner Lower, each policy joins by its own strategy what stands above it (§5.3).
fn top_down<'p>(
    profile: &Profile,
    turns: &[Turn<'p>],
    shapes: &Shapes<'_>,
    tracer: &mut Tracer<'_>,
) -> (Option<Side<'p>>, Option<Strategy>) {
    let mut result: Option<(Side<'p>, Strategy)> = None;
    let mut first_strategy = None;
    let mut counts = Counts::default();
    for turn in turns.iter().rev().filter(|t| t.block.offers) {
        let lower = turn.side(shapes);
        first_strategy = first_strategy.or(turn.of_policy());
        let counted = counts.note(turn, Counted::Lower);
        result = Some(match result {
            None => (lower, turn.strategy),
            Some((higher, above)) => {
                let chosen = if profile.chooser.lower {
                    turn.strategy
                } else {
                    above
                };
                let joined = match chosen {
                    Strategy::Merge(granularity, direction) => {
                        let shapes = shapes.with(granularity).of(turn.block.name);
                        join(lower, higher, direction, counted, &shapes, tracer)
                    }
                    Strategy::None => lower,
                };
                (joined, turn.strategy)
            }
        });
    }
    (result.map(|(side, _)| side), first_strategy)
}
