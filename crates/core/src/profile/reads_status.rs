//! Dependencies of a profile on object statuses, which change often.

use super::{OrderSource, OwnField, Profile, StrategyField};
use crate::model::FieldStep;

impl Profile {
    /// Reports whether the meaning of a policy can depend on its own status.
    pub fn reads_own_status(&self) -> bool {
        let in_status = |path: &[FieldStep]| matches!(path.first(), Some(FieldStep::Field(name)) if name == "status");
        let ordered = self.order.iter().any(|rule| match &rule.source {
            OrderSource::Field(path) => in_status(path),
            OrderSource::Annotation(_) => false,
        });
        let chosen = self.strategy_choice.fields.iter().any(|field| match field {
            StrategyField::Path(path) => in_status(path),
            StrategyField::Name(_) => false,
        });
        let selector = self.workload_selector.as_ref();
        self.trust_status
            || ordered
            || chosen
            || in_status(&self.rules.path)
            || selector.is_some_and(|path| in_status(path))
    }

    /// Reports whether own fields are read from the statuses of targets (specification 6.4).
    pub fn reads_target_status(&self) -> bool {
        let first = |field: &OwnField| field.object.first().cloned();
        let mut fields = self.own_fields.iter().filter_map(first);
        fields.any(|step| step == FieldStep::Field("status".to_owned()))
    }
}
