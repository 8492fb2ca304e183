//! Statuses of policies (specification 10).

use crate::model::{Enforcement, ObjectKey, PolicyRef, UnknownReason};

/// The statuses of all policies.
#[derive(Clone, Debug, Default)]
pub struct Statuses {
    /// By kind in the order of [`World::kinds`](super::World::kinds), then by the slot of the
    /// policy.
    pub kinds: Vec<Vec<PolicyStatus>>,
}

/// The status of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyStatus {
    /// How far the policy is in force; `None` if it is not accepted or the kind has no such condition.
    pub in_force: Option<Enforcement>,
    /// Why it is not known how far the policy is in force, if `in_force` is Unknown.
    pub unknown: Option<UnknownReason>,
    /// Why the policy is not accepted, if it is refused wherever it would take part (specification
    /// 2.13, 5.12).
    pub refused: Option<String>,
    /// The policies that override units of this policy, sorted.
    pub overridden_by: Vec<PolicyRef>,
    /// The ancestors in the policy's status, as the profile defines them, sorted.
    pub ancestors: Vec<ObjectKey>,
    /// The number of paths at the effective level that the policy reaches.
    pub paths: usize,
    /// The number of these paths on which a unit of the policy is overridden.
    pub overridden_paths: usize,
    /// The units that are overridden on some path, sorted.
    pub overridden_units: Vec<String>,
    /// The names of some paths on which a unit is overridden.
    pub overridden_path_names: Vec<String>,
}

impl Statuses {
    /// The status of a policy.
    pub fn of(&self, kind: usize, policy: usize) -> Option<&PolicyStatus> {
        self.kinds.get(kind)?.get(policy)
    }
}
