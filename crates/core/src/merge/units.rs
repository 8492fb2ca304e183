//! Units of single blocks and values, without a fold.

use serde_json::Value;

use super::shape::{Schemas, ShapeRules};
use super::tree::{decompose, without_nulls};
use crate::model::{BlockName, Encoded, Granularity, Rules, Segment, Unit};
use crate::profile::{Block, Profile};

/// Returns the units of a block, by the granularity of its strategy (specification 4.3).
pub fn joined_units_of(profile: &Profile, schemas: Schemas<'_>, block: &Block) -> Vec<Unit> {
    if block.rules.is_empty() {
        return Vec::new();
    }
    let shapes = ShapeRules::finest(profile, schemas).of(block.name);
    match block.strategy.strategy().granularity() {
        Some(granularity) => decomposed_units(&shapes.with(granularity), &block.rules),
        None => vec![Unit::default()],
    }
}

/// Returns the units of rules in a loss report: by the finest granularity that the kind offers
/// (specification 9.2, 11.13).
pub fn units_of(
    profile: &Profile,
    schemas: Schemas<'_>,
    block: BlockName,
    rules: &Rules,
) -> Vec<Unit> {
    if rules.is_empty() {
        return Vec::new();
    }
    let mut shapes = ShapeRules::finest(profile, schemas).of(block);
    shapes.lists = false;
    decomposed_units(&shapes, rules)
}

/// Returns the leaves of rules: scalars, lists (items of keyed lists), nulls and empty objects. An
/// empty block has one leaf, the whole (specification 10, 11.9).
pub fn leaves_of(
    profile: &Profile,
    schemas: Schemas<'_>,
    block: BlockName,
    rules: &Rules,
) -> Vec<Unit> {
    let mut shapes = ShapeRules::finest(profile, schemas).of(block);
    shapes.granularity = Granularity::Patch;
    shapes.whole = true;
    decomposed_units(&shapes, rules)
}

fn decomposed_units(shapes: &ShapeRules<'_>, rules: &Rules) -> Vec<Unit> {
    let tree = decompose(rules.encoded(), 0, shapes);
    let mut units = Vec::new();
    tree.leaves(&mut Vec::new(), &mut |unit, _| units.push(unit));
    units
}

/// Returns rules without tombstones. Their parents are kept (specification 5.2).
pub fn pruned(rules: &Value) -> Value {
    without_nulls(rules)
}

/// Returns the value of a unit below a value.
pub fn value_at<'v>(value: &'v Value, unit: &[Segment]) -> Option<&'v Value> {
    unit.iter().try_fold(value, |value, segment| match segment {
        Segment::Field(name) => value.get(&**name),
        Segment::Item(keys) => value.as_array()?.iter().find(|item| {
            keys.iter().all(|(name, expected)| {
                item.get(&**name)
                    .is_some_and(|value| crate::model::item_value(value) == *expected)
            })
        }),
    })
}

/// Returns the encoded value of a unit below a value.
pub(super) fn encoded_at<'v>(value: Encoded<'v>, unit: &[Segment]) -> Option<Encoded<'v>> {
    unit.iter().try_fold(value, |value, segment| match segment {
        Segment::Field(name) => value.get(name),
        Segment::Item(keys) => value.items().find(|item| {
            keys.iter().all(|(name, expected)| {
                item.get(name)
                    .is_some_and(|value| crate::model::item_value(&value.value()) == *expected)
            })
        }),
    })
}
