//! Folding what stands on a path (specification 4.3 and 6), block after block.

use std::collections::BTreeSet;

use entail_core::expr::Expression;
use serde_json::Value;

use super::existing::{replace, with_unchecked, withdraw};
use super::join::{BlockUse, RuleSet, join, unit_paths};
use super::leaf::{Leaf, Path, assemble, dotted};
use super::policy::{Block, Policy, without};
use super::refused::exclude;
use super::settings::{Direction, SameTarget, Settings, Span};

/// A node of a path with the policies that are attached to it, the established one first (specification 4.2).
#[derive(Clone, Debug)]
pub struct Node {
    /// `Kind/namespace/name`, with `#section` for a section.
    pub key: String,
    pub level: String,
    pub policies: Vec<Policy>,
    /// Weaker than all others of the path (specification 7.5).
    pub weak: bool,
}

/// What a path comes to.
#[derive(Clone, Debug, Default)]
pub struct Folded {
    /// The lines with those who say them, tombstones included; `None`: no block took part.
    pub rules: Option<RuleSet>,
    /// Who unsets what, from the lowest policy on: name, policy.
    pub unset: Vec<(String, String)>,
    /// Blocks whose condition did not hold where the policy stands, and those that took part (policy, place
    /// among its blocks).
    pub failed: BTreeSet<(String, usize)>,
    pub held: BTreeSet<(String, usize)>,
    /// Policies that the span leaves out at one of their places at least.
    pub beyond: BTreeSet<String>,
    /// Policies for which everything fails closed (specification 5.7).
    pub closed_by: BTreeSet<String>,
    /// Policies that are merged to fields that exclude each other (specification 5.12).
    pub refused: BTreeSet<String>,
    /// Policies with a reference in the result that was not checked, and that lets requests pass (5.7).
    pub unchecked: BTreeSet<String>,
    /// Where own fields took the place of values, with their object (specification 6.4).
    pub replaced: Vec<(Path, String)>,
}

impl Folded {
    /// The effective rules.
    pub fn spec(&self) -> Option<Value> {
        // What stands for a field of the object is no rule, and has no parents.
        let own =
            |line: &&Leaf| line.value.is_null() && line.by.iter().all(|by| by.starts_with('='));
        let rules = self.rules.as_ref()?;
        let lines: Vec<Leaf> = rules.lines.iter().filter(|l| !own(l)).cloned().collect();
        Some(assemble(&lines))
    }

    /// Whether the condition of a block was false at each of its places. A place that the span leaves out is
    /// none of them: the text does not say whether its loss names the holders (10, 11.20), and here it does.
    pub fn skipped(&self, policy: &str, at: usize) -> bool {
        let block = (policy.to_owned(), at);
        self.failed.contains(&block) && !self.held.contains(&block) && !self.beyond.contains(policy)
    }

    /// The lines, none if there are no rules.
    pub fn lines(&self) -> &[Leaf] {
        self.rules.as_ref().map_or(&[], |rules| &rules.lines)
    }
}

/// Folds the nodes, from least to most specific, above the object's own fields.
pub fn fold(
    kind: &Settings,
    nodes: &[Node],
    own: &[Leaf],
    replacements: &[(Path, String)],
) -> Folded {
    let nodes = &numbered(nodes);
    let near = spanned(kind, nodes);
    if near.iter().all(|node| node.policies.is_empty()) {
        return Folded::default();
    }
    let folded = withdraw(kind, &near, merged(kind, nodes, own));
    let folded = replace(kind, &near, replacements, exclude(kind, nodes, folded));
    let folded = with_unchecked(&near, folded);
    let places = |nodes: &[Node], name: &str| {
        let policies = nodes.iter().flat_map(|node| &node.policies);
        policies.filter(|policy| policy.name == name).count()
    };
    let all = nodes.iter().flat_map(|node| &node.policies);
    let beyond = all.filter(|p| places(nodes, &p.name) > places(&near, &p.name));
    Folded {
        beyond: beyond.map(|policy| policy.name.clone()).collect(),
        ..folded
    }
}

/// Gives every block of a path a number, and its lines the number of their block.
pub fn numbered(nodes: &[Node]) -> Vec<Node> {
    let mut nodes = nodes.to_vec();
    let policies = nodes.iter_mut().flat_map(|node| &mut node.policies);
    let blocks = policies.flat_map(|policy| &mut policy.blocks);
    for (number, block) in blocks.enumerate() {
        block.number = number;
        block.lines.iter_mut().for_each(|line| {
            line.from.insert(number);
        });
    }
    nodes
}

/// What the policies come to, whatever objects are missing.
pub fn merged(kind: &Settings, nodes: &[Node], own: &[Leaf]) -> Folded {
    let near = spanned(kind, nodes);
    if kind.owner_lower {
        from_above(kind, &near)
    } else if kind.top_down {
        stack(kind, &near)
    } else {
        bottom_up(kind, &near, own)
    }
}

/// Specification 4.3, UnionOrReject: policies that overlap an older one on a node of theirs.
pub fn conflicted(kind: &Settings, nodes: &[Vec<Policy>]) -> BTreeSet<String> {
    let mut all: Vec<&Policy> = nodes.iter().flatten().collect();
    all.sort_by(|a, b| a.age.cmp(&b.age));
    all.dedup_by_key(|policy| policy.name.clone());
    let units = |policy: &Policy| -> Vec<_> {
        let blocks = policy.blocks.iter();
        blocks
            .flat_map(|b| unit_paths(kind, &b.named, b.strategy.granularity))
            .collect()
    };
    let mut rejected: BTreeSet<String> = BTreeSet::new();
    for (at, policy) in all.iter().enumerate() {
        let beside = |other: &Policy| {
            nodes.iter().any(|node| {
                let has = |name: &str| node.iter().any(|p| p.name == name);
                has(&policy.name) && has(&other.name)
            })
        };
        let overlaps = all[..at].iter().any(|older| {
            let (a, b) = (units(older), units(policy));
            let meet = |x: &Vec<_>| b.iter().any(|y| x.starts_with(y) || y.starts_with(x));
            !rejected.contains(&older.name) && beside(older) && a.iter().any(meet)
        });
        if overlaps {
            rejected.insert(policy.name.clone());
        }
    }
    rejected
}

/// Specification 6.3: what lies beyond the closest parent is left out.
fn spanned(kind: &Settings, nodes: &[Node]) -> Vec<Node> {
    let Span::ClosestParent(levels) = &kind.span else {
        return nodes.to_vec();
    };
    let mut all = nodes.iter().flat_map(|node| &node.policies);
    if all.any(|policy| policy.fieldwise) {
        return nodes.to_vec();
    }
    let listed = |level: &String| levels.as_ref().is_none_or(|levels| levels.contains(level));
    // From the most specific on: whole nodes with OldestWins (specification 11.11), else policies.
    let mut groups: Vec<Node> = Vec::new();
    for node in nodes.iter().rev() {
        let seen = node
            .policies
            .iter()
            .filter(|p| !p.is_transparent())
            .cloned();
        let group = |policies: Vec<Policy>| Node {
            key: node.key.clone(),
            level: node.level.clone(),
            policies,
            weak: node.weak,
        };
        if kind.same_target == SameTarget::OldestWins {
            let policies: Vec<_> = seen.collect();
            groups.extend((!policies.is_empty()).then(|| group(policies)));
        } else {
            groups.extend(seen.rev().map(|policy| group(vec![policy])));
        }
    }
    let mut groups = groups.into_iter();
    let lowest = groups.next();
    let parent = groups.find(|node| listed(&node.level));
    parent.into_iter().chain(lowest).collect()
}

/// What is gathered on the way up.
struct FoldState<'k> {
    kind: &'k Settings,
    folded: Folded,
    /// Custom blocks that have counted (specification 5.2).
    counted: BTreeSet<(String, usize)>,
    /// For each field that has instances: whose count, by node and by whether it is a route or below one; and
    /// whether all are off (specification 5.11).
    instances: Vec<(Vec<(usize, bool)>, bool)>,
    /// The node whose policies are taken.
    node: (usize, bool),
}

/// Specification 6.1
fn bottom_up(kind: &Settings, nodes: &[Node], own: &[Leaf]) -> Folded {
    let mut gathered = FoldState {
        kind,
        folded: Folded {
            rules: (!own.is_empty()).then(|| RuleSet {
                lines: own.to_vec(),
                ..RuleSet::default()
            }),
            ..Folded::default()
        },
        counted: BTreeSet::new(),
        instances: vec![Default::default(); kind.instances.len()],
        node: (0, false),
    };
    let mut anyone = false;
    for (number, node) in nodes.iter().enumerate().rev() {
        let levels = ["Route", "RouteRule", "Backend", "BackendPort"];
        gathered.node = (number, levels.contains(&node.level.as_str()));
        if kind.same_target == SameTarget::OldestWins {
            anyone |= gathered.group(&node.policies);
        } else {
            for policy in node.policies.iter().rev() {
                anyone |= gathered.group(std::slice::from_ref(policy));
            }
        }
    }
    if !anyone {
        gathered.folded.rules = None;
    }
    gathered.folded
}

impl FoldState<'_> {
    /// Takes policies of one group, the oldest first: all defaults from oldest to newest, then all
    /// overrides from newest to oldest (specification 4.3). One policy alone is a group of one (specification 6.1). Returns
    /// whether a block took part.
    fn group(&mut self, policies: &[Policy]) -> bool {
        let below = self.folded.clone();
        let mut unset = Vec::new();
        let mut anyone = false;
        let overriding = |block: &Block| block.strategy.direction == Direction::Overrides;
        let ups = policies.iter().map(|p| (p, false));
        let downs = policies.iter().rev().map(|p| (p, true));
        // One policy's blocks keep their order, whatever the bare rules' strategy (specification 11.10).
        let alone = policies.len() == 1;
        for (policy, overrides) in ups.chain(downs.filter(|_| !alone)) {
            for (at, block) in policy.blocks.iter().enumerate() {
                if !alone && overriding(block) != overrides {
                    continue;
                }
                let this = (policy.name.clone(), at);
                if !holds(block, &below) {
                    self.folded.failed.insert(this);
                    continue;
                }
                self.folded.held.insert(this);
                let names = block
                    .unset
                    .iter()
                    .map(|name| (name.clone(), policy.name.clone()));
                unset.extend(names);
                anyone |= self.block(policy, at, block, &below.unset);
            }
        }
        self.folded.unset.extend(unset);
        anyone
    }

    fn block(
        &mut self,
        policy: &Policy,
        at: usize,
        block: &Block,
        unset: &[(String, String)],
    ) -> bool {
        if !block.counts {
            return false;
        }
        let by = block.strategy;
        let again = if self.counted.insert((policy.name.clone(), at)) {
            BlockUse::Neither
        } else {
            BlockUse::Higher
        };
        let mut rules = block.sheet(&policy.name);
        if by.direction == Direction::Defaults {
            let names: Vec<String> = unset.iter().map(|(name, _)| name.clone()).collect();
            rules.lines = without(&rules.lines, &names);
            if rules.lines.is_empty() && !block.lines.is_empty() {
                return false;
            }
        }
        if !self.instances(&mut rules) {
            return false;
        }
        self.folded.rules = Some(match &self.folded.rules {
            None => rules,
            Some(lower) => join(self.kind, lower, &rules, by, again),
        });
        true
    }
}

impl FoldState<'_> {
    /// Specification 5.11: takes out what does not count of a policy, and of those below it. Returns whether
    /// something is left.
    fn instances(&mut self, rules: &mut RuleSet) -> bool {
        let (node, of_route) = self.node;
        for ((path, key, disable), (counting, off)) in
            self.kind.instances.iter().zip(&mut self.instances)
        {
            if key.is_empty() {
                continue;
            }
            let place = dotted(path);
            let mut lines = rules.lines.iter();
            if !lines.any(|line| line.path.starts_with(&place)) {
                continue;
            }
            let turns_off = disable.as_ref().is_some_and(|name| {
                let inside: Vec<_> = place.iter().cloned().chain(dotted(name)).collect();
                rules
                    .lines
                    .iter()
                    .any(|line| line.path.starts_with(&inside))
            });
            let same = |other: &(usize, bool)| match turns_off && !of_route {
                true => other.0 == node,
                false => other.1 == of_route,
            };
            if *off || counting.iter().any(same) {
                rules.lines.retain(|line| !line.path.starts_with(&place));
                if rules.lines.is_empty() {
                    return false;
                }
                continue;
            }
            if turns_off {
                *off = true;
                let below = self.folded.rules.iter_mut();
                below.for_each(|r| r.lines.retain(|line| !line.path.starts_with(&place)));
            }
            counting.push((node, of_route));
        }
        true
    }
}

/// Specification 5.4: whether a condition is true of what is gathered below; an error and what is no boolean
/// are not true. The language itself is not judged here.
fn holds(block: &Block, below: &Folded) -> bool {
    let Some(when) = &block.when else {
        return true;
    };
    let rules = below
        .spec()
        .unwrap_or_else(|| Value::Object(Default::default()));
    let said = Expression::compile(when).and_then(|when| when.evaluate(&[("self", &rules)]));
    said == Ok(Value::Bool(true))
}

/// The block of a policy that has one strategy, if it says anything.
fn only_block(policy: &Policy) -> Option<&Block> {
    let mut blocks = policy.blocks.iter().filter(|block| block.counts);
    let first = blocks.next();
    assert!(blocks.next().is_none(), "one strategy per policy");
    first
}

/// Specification 5.3, owner Lower: each policy joins, by its own strategy, what stands above it.
fn from_above(kind: &Settings, nodes: &[Node]) -> Folded {
    let mut above: Option<RuleSet> = None;
    let mut counted = BTreeSet::new();
    for policy in nodes.iter().flat_map(|node| &node.policies) {
        let Some(block) = only_block(policy) else {
            continue;
        };
        let again = lower_counted(&mut counted, &policy.name);
        let own = block.sheet(&policy.name);
        above = Some(match above {
            None => own,
            Some(above) => join(kind, &own, &above, block.strategy, again),
        });
    }
    Folded {
        rules: above,
        ..Folded::default()
    }
}

fn lower_counted(counted: &mut BTreeSet<String>, policy: &str) -> BlockUse {
    if counted.insert(policy.to_owned()) {
        BlockUse::Neither
    } else {
        BlockUse::Lower
    }
}

/// Specification 6.2: the literal stack.
fn stack(kind: &Settings, nodes: &[Node]) -> Folded {
    let policies = nodes.iter().flat_map(|node| &node.policies);
    let said = |policy: &Policy| {
        let block = only_block(policy)?;
        Some((
            block.sheet(&policy.name),
            block.strategy,
            policy.name.clone(),
        ))
    };
    // The top of the stack is the least specific one.
    let mut stack: Vec<_> = policies.filter_map(said).collect();
    stack.reverse();
    let mut counted: BTreeSet<String> = stack.last().map(|top| top.2.clone()).into_iter().collect();
    while stack.len() > 1 {
        let (higher, dictates, _) = stack.pop().unwrap();
        let (lower, next, name) = stack.pop().unwrap();
        let again = lower_counted(&mut counted, &name);
        stack.push((join(kind, &lower, &higher, dictates, again), next, name));
    }
    Folded {
        rules: stack.pop().map(|(rules, ..)| rules),
        ..Folded::default()
    }
}
