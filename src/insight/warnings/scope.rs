//! Which objects a warning may name.

use std::collections::BTreeSet;

use entail_core::effective::World;
use entail_core::model::{GroupKind, ObjectKey, Str};
use entail_core::profile::{Policy, ReferenceTarget};
use entail_core::store::Projection;

/// The objects that a warning may name. The reader of a warning is who changes an object, and may not see others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameScope {
    /// All objects.
    All,
    /// The objects in the namespace of the changed object, and those that it names itself.
    Own {
        /// The namespace.
        namespace: Str,
        /// The objects that the changed object names.
        named: BTreeSet<ObjectKey>,
    },
}

impl NameScope {
    /// The scope of an object: what it names before and after its change.
    pub fn own(key: &ObjectKey, worlds: [&World; 2]) -> Self {
        let named = worlds.into_iter().flat_map(|world| named_by(world, key));
        Self::Own {
            namespace: key.namespace.clone(),
            named: named.collect(),
        }
    }

    /// Whether a warning may name an object of a kind, written as in names of paths.
    pub(super) fn includes(&self, kind: &str, namespace: &str, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Own {
                namespace: own,
                named,
            } => {
                **own == *namespace
                    || named.iter().any(|key| {
                        key.kind.short() == kind
                            && *key.namespace == *namespace
                            && *key.name == *name
                    })
            }
        }
    }

    /// Whether a warning may name a policy.
    pub(super) fn includes_policy(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Own { namespace: own, .. } => **own == *namespace,
        }
    }
}

/// The objects that an object of a world names: targets of a policy, parents and backends of a Route.
fn named_by(world: &World, key: &ObjectKey) -> BTreeSet<ObjectKey> {
    let kinds = world.kinds().iter();
    let policies = kinds.filter_map(|kind| kind.policy_at(kind.policy(key)?));
    let mut named: BTreeSet<ObjectKey> = policies.flat_map(targets).collect();
    let entry = world.store().get(key);
    if let Some(Projection::Route(route)) = entry.map(|entry| &entry.projection) {
        let object = |kind: &GroupKind, namespace: &Str, name: &Str| {
            ObjectKey::new(kind.clone(), namespace.clone(), name.clone())
        };
        let parents = route.parents.iter();
        named.extend(parents.map(|parent| object(&parent.kind, &parent.namespace, &parent.name)));
        let backends = route.rules.iter().flat_map(|rule| &*rule.backends);
        named.extend(backends.map(|to| object(&to.kind, &to.namespace, &to.name)));
    }
    named
}

/// The objects that a policy targets by name.
fn targets(policy: &Policy) -> impl Iterator<Item = ObjectKey> {
    policy.references.iter().filter_map(|reference| {
        let ReferenceTarget::Name(name) = &reference.target else {
            return None;
        };
        let own = &policy.key.namespace;
        let namespace = reference.namespace.as_ref().unwrap_or(own);
        Some(ObjectKey::new(
            reference.kind.clone(),
            namespace.clone(),
            name.clone(),
        ))
    })
}
