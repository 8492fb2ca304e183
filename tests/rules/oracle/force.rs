//! How far policies are in force, and who overrides them (specification 10, 11.15, 11.19, 11.20, 11.24, 11.26, 11.32,
//! 11.39, 11.41, 11.42).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compare::effective;
use super::fold::{Folded, Node};
use super::join::{RuleSet, units_by};
use super::leaf::{Leaf, Path, written};
use super::losses::meet;
use super::place::{AttachedKind, PathView};
use super::policy::{Policy, names};
use super::settings::{Class, Granularity, Settings};
use super::targets::Outcome;
use super::unmerged;

/// The status of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    pub in_force: Option<&'static str>,
    /// Why it is Unknown.
    pub unknown: Option<&'static str>,
    pub overridden_by: BTreeSet<String>,
    pub ancestors: BTreeSet<String>,
    /// Its scopes, those where a unit of it is lost, and these units.
    pub paths: usize,
    pub overridden_paths: usize,
    pub overridden_units: BTreeSet<String>,
    /// It is not accepted: it is refused wherever it would take part (specification 2.13, 5.12).
    pub refused: bool,
}

/// What the scopes say of a policy.
#[derive(Default)]
struct Count {
    scopes: usize,
    won: usize,
    lost: usize,
    additions: bool,
    unknown: Option<&'static str>,
    by: BTreeSet<String>,
    lost_scopes: usize,
    lost_units: BTreeSet<String>,
    refused: bool,
    takes_part: bool,
}

/// The paths of a world as a kind sees them.
pub type Scenes = BTreeMap<String, PathView>;

/// The status of every policy of a kind.
pub fn statuses(placed: &AttachedKind, scenes: &Scenes) -> BTreeMap<String, Status> {
    let folded: BTreeMap<&String, Folded> = scenes
        .iter()
        .filter(|(_, scene)| scene.scope && placed.kind.class == Class::Inherited)
        .map(|(path, scene)| (path, effective(placed, scene)))
        .collect();
    let one = |attached: &super::place::Attached| {
        let name = &attached.policy.name;
        let mut status = Status {
            ancestors: ancestors(placed, scenes, attached),
            ..Status::default()
        };
        let accepted = !placed.held(name).is_empty() && attached.policy.missing.is_none();
        if accepted && placed.kind.class != Class::Listed {
            let count = count(placed, scenes, &folded, &attached.policy);
            let everywhere = count.refused && !count.takes_part && count.unknown.is_none();
            if everywhere || placed.refused_on_targets(&attached.policy) {
                status.refused = true;
                return (name.clone(), status);
            }
            status.in_force = Some(word(&count));
            status.unknown = count.unknown.filter(|_| status.in_force == Some("Unknown"));
            status.overridden_by = count.by;
            status.paths = count.scopes;
            status.overridden_paths = count.lost_scopes;
            status.overridden_units = count.lost_units;
        }
        (name.clone(), status)
    };
    placed.policies.iter().map(one).collect()
}

fn word(count: &Count) -> &'static str {
    match (count.scopes, count.won, count.lost, count.additions) {
        (0, ..) if count.unknown.is_some() => "Unknown",
        (0, ..) => "NoScope",
        (_, _, 0, false) => "All",
        (_, _, 0, true) => "AllWithAdditions",
        (_, 0, _, _) => "None",
        (_, _, _, false) => "Part",
        (_, _, _, true) => "PartWithAdditions",
    }
}

fn count(
    placed: &AttachedKind,
    scenes: &Scenes,
    folded: &BTreeMap<&String, Folded>,
    policy: &Policy,
) -> Count {
    let attached = placed.policies.iter();
    let attached = attached.filter(|attached| attached.policy.name == policy.name);
    let mut outcomes = attached.flat_map(|attached| &attached.references.outcomes);
    let of_backend = outcomes.any(|(_, outcome)| matches!(outcome, Outcome::NotEvaluated(_)));
    let mut count = Count {
        unknown: of_backend.then_some("BackendFilterNotEvaluated"),
        ..Count::default()
    };
    let held = placed.held(&policy.name);
    for (path, scene) in scenes {
        // Of both reasons, the first in order.
        let by_controller = scene.unknown && !scene.delegates && scene.has_open(&held);
        let by_rule = scene.unknown && (scene.has_open(&held) || scene.has_child(&held));
        count.unknown = match (count.unknown, by_controller, by_rule) {
            (Some("ControllerUnknown"), ..) | (_, true, _) => Some("ControllerUnknown"),
            (_, _, true) => Some("DelegationNotFollowed"),
            (before, ..) => before,
        };
        count.refused |= scene.scope && scene.refused.contains(&policy.name);
        if !scene.scope || !stands_in(placed, scene, &policy.name) {
            continue;
        }
        let lost = count.lost;
        match placed.kind.class {
            Class::Direct => whole(placed, scene, &policy.name, &mut count),
            // A transparent empty policy has no scope (specification 10).
            _ if policy.is_transparent() => {}
            _ => {
                let excluded = folded[path].refused.contains(&policy.name);
                count.refused |= excluded;
                count.takes_part |= !excluded;
                tally(&placed.kind, scene, policy, &folded[path], &mut count);
            }
        }
        count.lost_scopes += usize::from(count.lost > lost);
    }
    count
}

/// The policy as it stands on the path: an annotation of its target may choose its strategies.
pub fn here<'s>(scene: &'s PathView, policy: &'s Policy) -> &'s Policy {
    let all = scene.nodes.iter().flat_map(|node| &node.policies);
    all.into_iter()
        .find(|p| p.name == policy.name)
        .unwrap_or(policy)
}

/// Whether the policy reaches a scope. Of a Direct kind only the layer that answers does; without
/// an effective level the target and its sections are the scopes, and nothing below them (specification 7.2).
pub fn stands_in(placed: &AttachedKind, scene: &PathView, name: &str) -> bool {
    let stands = |node: &Node| node.policies.iter().any(|p| p.name == name && p.left);
    if placed.kind.class != Class::Direct {
        return scene.nodes.iter().any(stands);
    }
    is_direct_scope(placed, scene) && unmerged::layer(placed, scene).into_iter().any(stands)
}

/// Specification 7.2
pub fn is_direct_scope(placed: &AttachedKind, scene: &PathView) -> bool {
    let layer = unmerged::layer(placed, scene);
    let ends = |node: &&Node| Some(&node.key) == scene.nodes.last().map(|end| &end.key);
    !placed.kind.by_target || layer.first().is_some_and(ends)
}

/// Counts one scope of a policy that wins whole, or not at all (specification 7.1).
fn whole(placed: &AttachedKind, scene: &PathView, name: &str, count: &mut Count) {
    count.scopes += 1;
    match unmerged::winner(placed, scene) {
        Some(winner) if winner.name == name => count.won += 1,
        winner => {
            count.lost += 1;
            count.lost_units.insert(written(&[]));
            count.by.extend(winner.map(|winner| winner.name.clone()));
        }
    }
}

/// A unit of a status: a leaf, with the blocks that hold it, and whether it is an empty container.
struct Offered {
    blocks: Vec<usize>,
    lists: bool,
    objects: bool,
}

/// The leaves of all its blocks; two blocks that hold the same one count once (specification 11.15). An empty
/// block that counts is one unit, the whole (specification 11.9).
fn offered(scene: &PathView, name: &str) -> BTreeMap<Path, Offered> {
    let mut all: BTreeMap<Path, Offered> = BTreeMap::new();
    // Limits may leave something else of it at each of its places (2.10).
    let places = scene.nodes.iter().flat_map(|node| &node.policies);
    let places = places.filter(|policy| policy.name == name);
    let blocks = places.flat_map(|policy| policy.blocks.iter().enumerate());
    for (at, block) in blocks.filter(|(_, block)| block.counts) {
        let whole = block.lines.is_empty().then(|| (Path::new(), None));
        let lines = block
            .lines
            .iter()
            .map(|line| (line.path.clone(), Some(line)));
        for (path, line) in whole.into_iter().chain(lines) {
            let unit = all.entry(path).or_insert(Offered {
                blocks: Vec::new(),
                lists: false,
                objects: false,
            });
            if !unit.blocks.contains(&at) {
                unit.blocks.push(at);
            }
            let empty = |value: &Value| line.is_some_and(|line| line.value == *value);
            unit.lists |= empty(&Value::Array(Vec::new()));
            unit.objects |= empty(&Value::Object(Default::default()));
        }
    }
    all
}

/// Counts one scope.
fn tally(kind: &Settings, scene: &PathView, policy: &Policy, folded: &Folded, count: &mut Count) {
    count.scopes += 1;
    let policy = here(scene, policy);
    let name = &policy.name;
    let none = RuleSet::default();
    let rules = folded.rules.as_ref().unwrap_or(&none);
    let offered = offered(scene, name);
    let mut won = false;
    for (path, unit) in &offered {
        let unset_by = unset_by(scene, folded, name, path);
        let own = unset_by.is_empty() && loses_to_itself(kind, policy, folded, path, unit);
        if wins(rules, name, path, unit) || own {
            won = true;
            count.won += 1;
        } else {
            count.lost += 1;
            count.lost_units.insert(written(path));
            let by = winners(policy, folded, rules, path, unit, unset_by);
            count.by.extend(by);
        }
    }
    let foreign = |line: &Leaf| {
        !line.by.contains(name)
            && !line.by.iter().all(|by| by.starts_with('='))
            && !offered.keys().any(|path| meet(path, &line.path))
    };
    count.additions |= won && rules.lines.iter().any(foreign);
}

/// Whether a unit stands in the result with the policy among its origins.
fn wins(rules: &RuleSet, name: &String, path: &Path, unit: &Offered) -> bool {
    if path.is_empty() {
        let merged = rules.merged.iter().filter(|merged| merged.path.is_empty());
        return rules.sealed.as_ref() == Some(name)
            || merged.into_iter().any(|merged| merged.by.contains(name));
    }
    let stands = rules
        .lines
        .iter()
        .any(|line| line.path == *path && line.by.contains(name));
    // An empty container that others filled (11.39).
    let filled = rules.merged.iter().any(|merged| {
        merged.path == *path
            && merged.by.contains(name)
            && ((merged.list && unit.lists) || (!merged.list && unit.objects))
    });
    stands || filled
}

/// The other policies on the path whose `unset` names a unit, in blocks that were not skipped (11.42). What they
/// name is all that counts by the text of 10 and 11.32, not whether it acted on the unit: such an `unset` may stand
/// above the unit, or beyond the closest parent.
fn unset_by(scene: &PathView, folded: &Folded, name: &str, path: &Path) -> BTreeSet<String> {
    let unsets = |policy: &&Policy| {
        let mut blocks = policy.blocks.iter().enumerate();
        blocks.any(|(at, block)| {
            block.unset.iter().any(|unset| names(unset, path)) && !folded.skipped(&policy.name, at)
        })
    };
    let others = scene.nodes.iter().flat_map(|node| &node.policies);
    let others = others.filter(|policy| policy.name != name).filter(unsets);
    others.map(|policy| policy.name.clone()).collect()
}

/// The policy whose empty block of a Blocking kind is the result: one unit, the whole (11.9).
fn whole_of(rules: &RuleSet) -> Option<&String> {
    rules.sealed.as_ref().filter(|_| rules.lines.is_empty())
}

/// A policy never loses to itself (11.32): units stand at, above or below the place, and all come from it alone.
fn loses_to_itself(
    kind: &Settings,
    policy: &Policy,
    folded: &Folded,
    path: &Path,
    unit: &Offered,
) -> bool {
    let alone = BTreeSet::from([policy.name.clone()]);
    // Of a kind that offers Atomic alone, the unit is the block: the text does not say whether 11.32 means its
    // leaves, as the loss report does (9.2), or the whole, to which origins apply (9.1). Here it is the whole.
    let finest = kind.finest().unwrap_or(Granularity::Atomic);
    let units = units_by(kind, folded.lines(), Some(finest));
    let near = units.iter().filter(|(place, _)| meet(place, path));
    let mut near: Vec<BTreeSet<String>> = near.map(|(_, by)| by.clone()).collect();
    let whole = folded.rules.as_ref().and_then(whole_of);
    near.extend(whole.map(|name| BTreeSet::from([name.clone()])));
    !near.is_empty() && near.iter().all(|by| *by == alone) && !only_failed(policy, folded, unit)
}

/// Whether only blocks whose condition failed hold the unit.
fn only_failed(policy: &Policy, folded: &Folded, unit: &Offered) -> bool {
    let mut blocks = unit.blocks.iter();
    blocks.all(|at| folded.skipped(&policy.name, *at))
}

/// Who overrides a lost unit.
fn winners(
    policy: &Policy,
    folded: &Folded,
    rules: &RuleSet,
    path: &Path,
    unit: &Offered,
    unset_by: BTreeSet<String>,
) -> BTreeSet<String> {
    // A failed condition names nobody, unless another block lost it, too (11.20).
    if only_failed(policy, folded, unit) {
        return BTreeSet::new();
    }
    // Everything is lost to those for which everything fails closed (5.7).
    if !folded.closed_by.is_empty() {
        let closed_by = folded.closed_by.iter();
        return closed_by
            .filter(|name| **name != policy.name)
            .cloned()
            .collect();
    }
    let others = |all: BTreeSet<String>| -> BTreeSet<String> {
        let other = |by: &String| *by != policy.name && !by.starts_with('=');
        all.into_iter().filter(other).collect()
    };
    let by = |lines: Vec<&Leaf>| others(lines.iter().flat_map(|line| line.by.clone()).collect());
    // Those who hold it or a value above it; whoever holds something else inside the larger unit does not (11.19, 11.41).
    let holders: Vec<&Leaf> = rules
        .lines
        .iter()
        .filter(|line| meet(path, &line.path) && line.by.iter().any(|by| *by != policy.name))
        .collect();
    // The whole (11.9) is held by those who set anything in it; the text leaves open whether an empty one that
    // others filled holds it, too (10, 11.39), and here it does not.
    if !holders.is_empty() {
        return by(holders);
    }
    // The empty result of a Blocking kind is above every leaf (11.41).
    let whole = others(whole_of(rules).into_iter().cloned().collect());
    if !whole.is_empty() {
        return whole;
    }
    // Those whose unset names it, but never the policy itself (11.26).
    if !unset_by.is_empty() {
        return unset_by;
    }
    let mut all = by(rules.lines.iter().collect());
    all.extend(others(rules.sealed.iter().cloned().collect()));
    // An empty object that others filled makes a contributor (11.40).
    let merged = rules.merged.iter().flat_map(|merged| merged.by.clone());
    all.extend(others(merged.collect()));
    all
}

/// The ancestors (specification 10, 11.17, 11.25).
fn ancestors(
    placed: &AttachedKind,
    scenes: &Scenes,
    attached: &super::place::Attached,
) -> BTreeSet<String> {
    let held = placed.held(&attached.policy.name);
    let places = match held.is_empty() || attached.policy.missing.is_some() {
        // Not accepted: those of its references that resolve.
        true => attached.references.places().into_iter().collect(),
        false => held,
    };
    let object = |node: &str| node.split('#').next().unwrap_or_default().to_owned();
    // A policy for workloads is attached nowhere (3.1).
    if attached.references.by_workload {
        return BTreeSet::new();
    }
    let on = scenes.values();
    let on = on.filter(|scene| scene.acts || scene.delegates);
    match placed.kind.ancestor.as_str() {
        "None" => BTreeSet::new(),
        // The attached objects, whatever paths there are.
        "Target" => {
            let objects = places.iter().map(|place| object(&place.node));
            // The node above everything, for policies of a root namespace, is no object (3.1).
            objects.filter(|key| !key.is_empty()).collect()
        }
        _ => {
            let taking_part = on.filter(|scene| scene.has(&places));
            taking_part.filter_map(|scene| scene.root.clone()).collect()
        }
    }
}
