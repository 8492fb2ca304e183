//! The loss report (SEMANTICS §9.2): what some policy but the most specific one offers and the
//! result lacks.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Frames, Kind, World};
use crate::merge::{Tell, at, fold, leaves_of, units_of};
use crate::model::{Granularity, Unit};
use crate::profile::Class;

impl World {
    /// The units that get lost on the paths with these frames, sorted.
    pub fn losses(&self, kind: &Kind, frames: &Frames) -> Vec<Unit> {
        if kind.profile.class != Class::Inherited {
            return Vec::new();
        }
        let groups = kind.groups(frames);
        let own = self.own_rules(kind, frames);
        let mut stack = self.stack(kind, &groups);
        stack.groups.extend(own.as_ref().map(|own| own.group()));
        let folded = fold(&kind.profile, kind.schemas(), &stack, Tell::Rules);
        let speaking = || {
            groups
                .iter()
                .flatten()
                .filter(|s| !s.policy.is_transparent())
        };
        // In a group the most established comes first; the last of all is the most specific.
        let most_specific = speaking().next_back().map(|s| s.index);
        let atomic_only = kind
            .profile
            .strategies
            .iter()
            .all(|s| s.granularity() == Some(Granularity::Atomic));
        let mut lost = BTreeSet::new();
        for standing in speaking().filter(|s| Some(s.index) != most_specific) {
            for block in standing.policy.blocks.iter().filter(|b| b.offers) {
                let units = if atomic_only { leaves_of } else { units_of };
                for unit in units(&kind.profile, kind.schemas(), block.name, &block.rules) {
                    let offered = at(&Value::Object(block.rules.clone()), &unit.0).cloned();
                    // A null is no value that could be missed (SEMANTICS §11.13).
                    let is_null = offered.is_none_or(|value| value.is_null());
                    let found = folded.spec.as_ref().and_then(|spec| at(spec, &unit.0));
                    if !is_null && found.is_none() {
                        lost.insert(unit);
                    }
                }
            }
        }
        lost.into_iter().collect()
    }
}
