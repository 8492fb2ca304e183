//! Fields of which several instances apply together (specification 5.11).

use super::BlockSource;
use super::trace::LossTracer;
use super::tree::MergeTree;
use crate::model::{Level, Rules, Unit};
use crate::profile::{InstanceField, Profile};

/// The instances that apply so far, for each field that has instances.
pub(super) struct InstanceFold<'p>(Vec<FieldState<'p>>);

/// The instances of one field that apply so far.
struct FieldState<'p> {
    field: &'p InstanceField,
    place: Unit,
    accepted: Vec<Accepted>,
    /// The block that turns off all instances, as an index of sources.
    disabled_by: Option<usize>,
}

/// A block whose value of a field applies.
#[derive(Clone, Copy)]
struct Accepted {
    source: usize,
    group: usize,
    is_of_route: bool,
}

impl<'p> InstanceFold<'p> {
    pub fn new(profile: &'p Profile) -> Self {
        // Instances of policies apply on all levels, as named rules do.
        let keyed = profile
            .instances
            .iter()
            .filter(|field| !field.key.is_empty());
        let states = keyed.map(|field| FieldState {
            field,
            place: Unit::of_fields(&field.path),
            accepted: Vec::new(),
            disabled_by: None,
        });
        Self(states.collect())
    }

    /// Decides which values of a block apply, and removes the others from it. A value that turns off all
    /// instances removes those of more specific blocks from `merged`. Returns whether something of the block is
    /// left.
    pub fn accept(
        &mut self,
        (source, of, level): (usize, &BlockSource, Level),
        rules: &Rules,
        offered: &mut MergeTree<'_>,
        mut merged: Option<&mut MergeTree<'_>>,
        tracer: &mut LossTracer<'_>,
    ) -> bool {
        let mut is_empty = false;
        for state in &mut self.0 {
            let Some(value) = rules.encoded().at_fields(&state.field.path) else {
                continue;
            };
            let own = Accepted {
                source,
                group: of.group,
                is_of_route: level >= Level::Route,
            };
            let disable = state.field.disable.as_ref();
            let disables = disable.is_some_and(|name| value.get(name).is_some());
            if let Some(winner) = state.winner_against(own, disables) {
                tracer.removed(offered, &state.place, winner);
                is_empty |= offered.cut(&state.place.0);
                continue;
            }
            if disables {
                state.disabled_by = Some(source);
                if let Some(merged) = &mut merged {
                    tracer.removed(merged, &state.place, source);
                    merged.cut(&state.place.0);
                }
            }
            state.accepted.push(own);
        }
        !is_empty
    }
}

impl FieldState<'_> {
    /// The block that keeps out a value, if there is one.
    fn winner_against(&self, own: Accepted, disables: bool) -> Option<usize> {
        let keeps_out = |other: &&Accepted| match disables && !own.is_of_route {
            true => other.group == own.group,
            false => other.is_of_route == own.is_of_route,
        };
        let accepted = self.accepted.iter().find(keeps_out);
        self.disabled_by.or(accepted.map(|other| other.source))
    }
}
