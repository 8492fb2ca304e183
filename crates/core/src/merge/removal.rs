//! What is removed from a merged result: values of policies that reference missing objects (specification
//! 5.7), fields that exclude each other (specification 5.12), and values that fields of the object replace
//! (specification 6.4).

use serde_json::Value;

use super::fold::MergedUnit;
use super::trace::LossTracer;
use super::tree::MergeTree;
use super::unit_value::UnitValue;
use super::{BlockSource, Stack};
use crate::model::{BlockName, Direction, LossReason, ObjectKey, Segment, Unit};
use crate::profile::{Block, Profile};

/// Handles the references to missing objects in a result (specification 5.7): leaves out what fails open, and
/// returns the policies for which everything fails closed, sorted. `offers` are the blocks that the fold covers,
/// each with its source and policy.
pub(super) fn withdraw<'b>(
    tree: &mut MergeTree<'_>,
    offers: impl Iterator<Item = (&'b Block, usize, Option<usize>)>,
    tracer: &mut LossTracer<'_>,
) -> Vec<usize> {
    let mut failed = Vec::new();
    let mut omitted: Vec<Unit> = Vec::new();
    for (block, source, policy) in offers {
        for missing in &block.missing {
            if !is_from(tree, &missing.unit, source) {
                continue;
            }
            match &missing.fail_open {
                Some(unit) if is_true(tree, unit) => {
                    omitted.extend(missing.holder().map(|holder| Unit(holder.to_vec())));
                }
                _ => failed.extend(policy),
            }
        }
    }
    failed.sort_unstable();
    failed.dedup();
    if !failed.is_empty() {
        tracer.lost(tree, LossReason::MissingReference);
        return failed;
    }
    for unit in &omitted {
        tracer.cut_out(tree, unit, LossReason::MissingReference);
        tree.cut(&unit.0);
    }
    failed
}

/// Returns the references in a result that were not checked, and without which requests would pass (specification
/// 5.7): each the policy and the object.
pub(super) fn unchecked<'b>(
    tree: &MergeTree<'_>,
    offers: impl Iterator<Item = (&'b Block, usize, Option<usize>)>,
) -> Vec<(usize, &'b ObjectKey)> {
    let mut found = Vec::new();
    for (block, source, policy) in offers {
        for reference in &block.unchecked {
            let is_used = is_from(tree, &reference.unit, source);
            let may_pass = || match &reference.fail_open {
                Some(unit) => is_true(tree, unit),
                None => true,
            };
            if is_used && may_pass() {
                found.extend(policy.map(|policy| (policy, &reference.object)));
            }
        }
    }
    found
}

/// Whether something at or below a place comes from a source.
fn is_from(tree: &MergeTree<'_>, place: &Unit, source: usize) -> bool {
    let mut found = false;
    tree.leaves_at(&place.0, &mut |leaf, _| {
        found |= leaf.sources.contains(&source);
    });
    found
}

/// Whether the value at a place is true.
fn is_true(tree: &MergeTree<'_>, place: &Unit) -> bool {
    let mut found = false;
    tree.leaves_at(&place.0, &mut |_, is_true| {
        found = is_true;
    });
    found
}

/// What fields that exclude each other do to a result (specification 5.12).
#[derive(Default)]
pub(super) struct Exclusion {
    /// The policies for which everything fails closed, sorted.
    pub failed: Vec<usize>,
    /// The most specific policy of each group of fields, sorted.
    pub refused: Vec<usize>,
}

/// Handles fields that exclude each other and stand together in a result (specification 5.12): leaves out what
/// fails open.
pub(super) fn exclude(
    tree: &mut MergeTree<'_>,
    profile: &Profile,
    sources: &[BlockSource],
    tracer: &mut LossTracer<'_>,
) -> Exclusion {
    let mut exclusion = Exclusion::default();
    let mut omitted: Vec<&[Segment]> = Vec::new();
    for setting in &profile.exclusive {
        // The result is copied only where several fields can be set.
        let occurs = |field: &&Unit| {
            let mut found = false;
            tree.leaves_at(&field.0, &mut |_, _| found = true);
            found
        };
        if setting.fields.iter().filter(occurs).count() < 2 {
            continue;
        }
        let Value::Object(rules) = tree.pruned() else {
            continue;
        };
        let set = setting.set_in(&rules);
        if set.len() < 2 {
            continue;
        }
        let mut setters: Vec<usize> = Vec::new();
        for field in set {
            tree.leaves_at(&field.0, &mut |leaf, _| setters.extend(&leaf.sources));
        }
        let policies = setters.iter().filter_map(|&s| sources.get(s)?.policy);
        let policies: Vec<usize> = policies.collect();
        // A policy can be attached to several nodes of a path, of which the most specific counts.
        let places = sources.iter().filter_map(|source| {
            let policy = source.policy.filter(|policy| policies.contains(policy))?;
            Some((source.group, source.rank, policy))
        });
        exclusion
            .refused
            .extend(places.max().map(|(.., policy)| policy));
        match setting.holder_if_open(&rules) {
            Some(holder) => omitted.push(holder),
            None => exclusion.failed.extend(policies),
        }
    }
    for list in [&mut exclusion.failed, &mut exclusion.refused] {
        list.sort_unstable();
        list.dedup();
    }
    if !exclusion.failed.is_empty() {
        tracer.lost(tree, LossReason::ExclusiveFields);
        return exclusion;
    }
    for holder in omitted {
        let unit = Unit(holder.to_vec());
        tracer.cut_out(tree, &unit, LossReason::ExclusiveFields);
        tree.cut(&unit.0);
    }
    exclusion
}

/// Removes the values that fields of the object replace (specification 6.4), and returns the units that stand
/// for these fields: they have no value, and the object as origin. Values of overrides stay.
pub(super) fn replace<'p>(
    tree: &mut MergeTree<'_>,
    (stack, sources): (&Stack<'p>, &[BlockSource]),
    tracer: &mut LossTracer<'_>,
) -> Vec<MergedUnit<'p>> {
    let mut replaced = Vec::new();
    let Some(own) = sources.iter().position(|s| s.block == BlockName::OwnFields) else {
        return replaced;
    };
    let layers = stack.groups.iter().flat_map(|group| &group.layers);
    let blocks = layers.flat_map(|layer| &layer.blocks);
    for unit in blocks.flat_map(|(block, _)| &block.replaces) {
        let (mut is_set, mut is_override) = (false, false);
        tree.leaves_at(&unit.0, &mut |leaf, _| {
            is_set = true;
            let mut found = leaf
                .sources
                .iter()
                .filter_map(|&source| sources.get(source));
            is_override |= found.any(|s| s.strategy.direction() == Some(Direction::Overrides));
        });
        if is_set && !is_override {
            tracer.cut_out(tree, unit, LossReason::OwnField);
            tree.cut(&unit.0);
            replaced.push(MergedUnit {
                unit: unit.clone(),
                value: UnitValue::Decoded(Value::Null),
                sources: vec![own],
            });
        }
    }
    replaced
}
