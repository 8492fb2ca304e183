//! The units of a block and finished values, without a fold.

use serde_json::{Map, Value};

use super::shape::{Schemas, Shapes};
use super::slot::{take_apart, without_nulls};
use crate::model::{BlockName, Unit};
use crate::profile::Profile;

/// The units that rules hold, by the finest granularity that the kind offers.
pub fn units_of(
    profile: &Profile,
    schemas: Schemas<'_>,
    block: BlockName,
    rules: &Map<String, Value>,
) -> Vec<Unit> {
    if rules.is_empty() {
        return Vec::new();
    }
    let slot = take_apart(rules, 0, &Shapes::finest(profile, schemas).of(block));
    let mut found = Vec::new();
    slot.leaves(&mut Vec::new(), &mut |unit, _| found.push(unit));
    found
}

/// Rules without tombstones, their parents kept (SEMANTICS §5.2).
pub fn finished(rules: &Value) -> Value {
    without_nulls(rules)
}
