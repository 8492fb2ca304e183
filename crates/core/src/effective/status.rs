//! Statuses of policies (specification 10).

use crate::model::{Enforcement, ObjectKey, PolicyRef};

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
    /// The policies that set the units which this policy lost, sorted.
    pub overridden_by: Vec<PolicyRef>,
    /// The ancestors in the policy's status, as the profile defines them, sorted.
    pub ancestors: Vec<ObjectKey>,
    /// The number of scopes that the policy reaches.
    pub scopes: usize,
    /// The number of scopes in which it lost a unit.
    pub scopes_lost: usize,
    /// The units that it lost in some scope, sorted.
    pub lost_units: Vec<String>,
    /// The names of some scopes in which it lost a unit.
    pub lost_in: Vec<String>,
}

impl Statuses {
    /// The status of a policy.
    pub fn of(&self, kind: usize, policy: usize) -> Option<&PolicyStatus> {
        self.kinds.get(kind)?.get(policy)
    }
}
