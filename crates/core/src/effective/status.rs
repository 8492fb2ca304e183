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
    /// How far it is in force; `None` where it is not accepted or the kind has no such condition.
    pub in_force: Option<Enforcement>,
    /// The policies that hold what it lost, sorted.
    pub overridden_by: Vec<PolicyRef>,
    /// The ancestors that the profile names, sorted.
    pub ancestors: Vec<ObjectKey>,
    /// Scopes that it reaches.
    pub scopes: usize,
    /// Scopes in which it lost a unit.
    pub scopes_lost: usize,
    /// Units that it lost somewhere, sorted.
    pub lost_units: Vec<String>,
    /// Names of some scopes in which it lost.
    pub lost_in: Vec<String>,
}

impl Statuses {
    /// The status of a policy.
    pub fn of(&self, kind: usize, policy: usize) -> Option<&PolicyStatus> {
        self.kinds.get(kind)?.get(policy)
    }
}
