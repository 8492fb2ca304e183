//! What follows from ReferenceGrants that come, go or change (specification 1.4, 3.1, 5.7).

use std::collections::BTreeSet;

use super::Engine;
use super::change_impact::{ChangeImpact, Versions};
use crate::model::{GroupKind, ObjectKey, Str};
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
            let key = |name: &Str| ObjectKey::new(kind.clone(), namespace.clone(), name.clone());
            let inside = store.of_kind_in(kind, namespace);
            let inside: Vec<ObjectKey> = inside.map(|(name, _)| key(name)).collect();
            let routes = inside.iter().filter(|key| {
                let route = store.route(key);
                route.is_some_and(|route| has_backend_in(route, home))
            });
            impact.routes.extend(routes.cloned());
            for (number, of_policies) in self.world().kinds().iter().enumerate() {
                if of_policies.profile.resource() != kind {
                    continue;
                }
                let affected = inside.iter().filter(|key| {
                    let slot = of_policies.table.slot(key);
                    let policy = slot.and_then(|slot| of_policies.policy_at(slot));
                    policy.is_some_and(|policy| references_into(policy, home))
                });
                impact.add_policies(affected.map(|key| (number, key.clone())));
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
            ReferenceTarget::Name(name) if reference.kind.is_namespace() => name == namespace,
            ReferenceTarget::Name(_) => reference.namespace.as_ref() == Some(namespace),
            ReferenceTarget::Selector(_) => true,
        })
}
