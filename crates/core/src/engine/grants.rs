//! What follows from ReferenceGrants that come, go or change (specification 1.4, 3.1, 5.7).

use std::collections::BTreeSet;

use super::Engine;
use super::change_impact::{ChangeImpact, Versions};
use crate::model::{GroupKind, ObjectKey, Str, groups};
use crate::profile::{Policy, ReferenceTarget};
use crate::store::{Projection, Route};

impl Engine {
    /// Adds what may be permitted now and was not before, or the other way round, to objects of the namespace of a
    /// ReferenceGrant.
    pub(super) fn follow_grant(
        &self,
        grant: &ObjectKey,
        (before, now): Versions<'_>,
        impact: &mut ChangeImpact,
    ) {
        let versions = before.into_iter().chain(now);
        let grants = versions.filter_map(|version| match &version.projection {
            Projection::Grant(grant) => Some(&**grant),
            _ => None,
        });
        let sources: BTreeSet<&(GroupKind, Str)> = grants.flat_map(|g| g.sources()).collect();
        let home = &grant.namespace;
        let store = self.world().store();
        for (kind, namespace) in sources {
            for (name, entry) in store.of_kind_in(kind, namespace) {
                let is_affected = match &entry.projection {
                    Projection::Route(route) => has_backend_in(route, home),
                    _ => false,
                };
                if is_affected {
                    let key = ObjectKey::new(kind.clone(), namespace.clone(), name.clone());
                    impact.routes.insert(key);
                }
            }
            for (number, of_policies) in self.world().kinds().iter().enumerate() {
                if of_policies.profile.resource() != kind {
                    continue;
                }
                let policies = of_policies.policies().map(|(_, policy)| policy);
                let own = policies.filter(|policy| policy.key.namespace == *namespace);
                let affected = own.filter(|policy| references_into(policy, home));
                impact.add_policies(affected.map(|policy| (number, policy.key.clone())));
            }
        }
    }
}

/// Whether a route names a backend in a namespace.
fn has_backend_in(route: &Route, namespace: &Str) -> bool {
    let mut backends = route.rules.iter().flat_map(|rule| &*rule.backends);
    backends.any(|backend| backend.namespace == *namespace)
}

/// Whether a policy may target or reference an object in a namespace.
fn references_into(policy: &Policy, namespace: &Str) -> bool {
    let mut named = policy.named_objects.iter();
    let mut references = policy.references.iter();
    named.any(|object| object.namespace == *namespace)
        || references.any(|reference| match &reference.target {
            ReferenceTarget::Name(name) if reference.kind.is(groups::CORE, "Namespace") => {
                name == namespace
            }
            ReferenceTarget::Name(_) => reference.namespace.as_ref() == Some(namespace),
            ReferenceTarget::Selector(_) => true,
        })
}
