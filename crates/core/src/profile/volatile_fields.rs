//! Dependencies of a profile on fields that controllers write often: statuses and metadata.

use super::{Membership, OrderSource, OwnField, Profile, StrategyField};
use crate::model::FieldStep;

impl Profile {
    /// Reports whether the meaning of a policy can depend on its own status.
    pub fn reads_own_status(&self) -> bool {
        self.trust_status || self.policy_paths().any(|path| begins_with(path, "status"))
    }

    /// Reports whether own fields are read from the statuses of targets (specification 6.4).
    pub fn reads_target_status(&self) -> bool {
        let mut paths = self.target_paths();
        paths.any(|path| begins_with(path, "status"))
    }

    /// Reports whether a path of the profile leads into `metadata`.
    pub fn reads_metadata(&self) -> bool {
        let mut paths = self.policy_paths().chain(self.target_paths());
        paths.any(|path| begins_with(path, "metadata"))
    }

    /// Reports whether the profile gives an annotation of policies, of targets or of Services a meaning.
    pub fn reads_annotation(&self, name: &str) -> bool {
        let ordered = self.order.iter().any(|rule| match &rule.source {
            OrderSource::Field(_) => false,
            OrderSource::Annotation(annotation) => annotation == name,
        });
        let delegation = self.delegation.iter();
        let delegation = delegation.filter_map(|delegation| delegation.annotation.as_ref());
        let canaries = self.waypoints.iter().filter_map(|w| w.canary.as_ref());
        let weights = canaries.map(|canary| &canary.weight);
        let strategy = self.strategy_choice.annotation.iter();
        let mut named = strategy.chain(delegation).chain(weights);
        ordered || named.any(|annotation| annotation == name)
    }

    /// The paths that are read of a policy, from its root.
    fn policy_paths(&self) -> impl Iterator<Item = &[FieldStep]> {
        let sections = match &self.membership {
            Membership::Whole => &[],
            Membership::Section(section) => std::slice::from_ref(section),
            Membership::Outside(sections) => sections.as_slice(),
        };
        let sections = sections.iter().flat_map(|section| {
            let condition = section.condition.iter();
            std::iter::once(&section.field).chain(condition.map(|condition| &condition.field))
        });
        let order = self.order.iter().filter_map(|rule| match &rule.source {
            OrderSource::Field(path) => Some(path),
            OrderSource::Annotation(_) => None,
        });
        let strategy = self.strategy_choice.fields.iter();
        let strategy = strategy.filter_map(|field| match field {
            StrategyField::Path(path) => Some(path),
            StrategyField::Name(_) => None,
        });
        let others = self.workload_selector.iter().chain([&self.rules.path]);
        let paths = sections.chain(order).chain(strategy).chain(others);
        paths.map(Vec::as_slice)
    }

    /// The paths that are read of targets, from their roots.
    fn target_paths(&self) -> impl Iterator<Item = &[FieldStep]> {
        let fields = self.own_fields.iter();
        fields.map(|field: &OwnField| field.object.as_slice())
    }
}

fn begins_with(path: &[FieldStep], field: &str) -> bool {
    matches!(path.first(), Some(FieldStep::Field(name)) if name == field)
}
