//! The loss report of a path (specification 9.2, 11.13, 11.18).

use std::collections::BTreeSet;

use serde_json::Value;

use super::compare::effective;
use super::join::units_by;
use super::leaf::{Path, is_tombstone, value_at, written};
use super::place::{AttachedKind, PathView};
use super::policy::{Block, Policy};
use super::settings::Class;
use super::unmerged;

/// The units that the result lacks, though another policy than the most specific one offers them.
pub fn losses(placed: &AttachedKind, scene: &PathView) -> BTreeSet<String> {
    if !scene.acts {
        return BTreeSet::new();
    }
    match placed.kind.class {
        Class::Listed => BTreeSet::new(),
        Class::Direct => direct(placed, scene),
        Class::Inherited => inherited(placed, scene),
    }
}

/// What the policy of the whole offers, and the answer of a section lacks (11.18).
fn direct(placed: &AttachedKind, scene: &PathView) -> BTreeSet<String> {
    let Some(winner) = most_specific(placed, scene) else {
        return BTreeSet::new();
    };
    // Where nothing is left of the policy that holds the section, there is no result.
    let folded = effective(placed, scene);
    let result = folded.spec().unwrap_or(Value::Null);
    let layer = unmerged::layer(placed, scene);
    let policies = layer.iter().flat_map(|node| &node.policies);
    // Only others than the most specific policy lose units, which may be attached to the whole, too (9.2).
    let blocks: Vec<&Block> = policies
        .filter(|policy| policy.name != winner.name)
        .flat_map(|policy| &policy.blocks)
        .collect();
    let lines = blocks.iter().flat_map(|block| &block.lines);
    let lost = lines.filter(|line| !is_tombstone(line) && value_at(&result, &line.path).is_none());
    let lost = lost.map(|line| written(&line.path));
    let none = folded.spec().is_none();
    let wholes = blocks.iter().filter(|block| none && has_one_unit(block));
    lost.chain(wholes.map(|_| written(&[]))).collect()
}

/// The policy that loses nothing. A transparent empty policy is not the most specific one (11.13).
pub fn most_specific<'s>(placed: &AttachedKind, scene: &'s PathView) -> Option<&'s Policy> {
    if placed.kind.class == Class::Direct {
        return unmerged::winner(placed, scene);
    }
    let all = scene.nodes.iter().rev();
    let mut all = all.flat_map(|node| node.policies.iter().rev());
    all.find(|policy| !policy.is_transparent())
}

fn inherited(placed: &AttachedKind, scene: &PathView) -> BTreeSet<String> {
    let folded = effective(placed, scene);
    let result = folded.spec().unwrap_or(Value::Null);
    let Some(most_specific) = most_specific(placed, scene) else {
        return BTreeSet::new();
    };
    let mut lost = BTreeSet::new();
    let all = scene.nodes.iter().flat_map(|node| &node.policies);
    for policy in all.filter(|policy| policy.name != most_specific.name) {
        for block in &policy.blocks {
            if folded.spec().is_none() && has_one_unit(block) {
                lost.insert(written(&[]));
            }
            for (path, _) in units_by(&placed.kind, &block.lines, placed.kind.finest()) {
                // A null is no loss: one that won is there (11.13), and what one that lost wants to be away is
                // away. A unit with a null inside is a value.
                let mut lines = block.lines.iter();
                if lines.any(|line| line.path == path && is_tombstone(line)) {
                    continue;
                }
                let stands = value_at(&result, &path).is_some();
                let is_whole = path.is_empty() && folded.rules.is_some();
                if !stands && !is_whole {
                    lost.insert(written(&path));
                }
            }
        }
    }
    lost
}

/// Whether a block has one unit, the whole (11.9), which is lost where there is no result.
pub fn has_one_unit(block: &Block) -> bool {
    block.counts && block.lines.is_empty() && !block.merges_if_empty
}

/// Whether one path is above the other, or they are the same.
pub fn meet(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}
