//! Permission checks of references into other namespaces (specification 3.1, 4.6, 11.3).

use super::{AttachmentGroup, Context};
use crate::model::{GroupKind, ObjectKey, groups};
use crate::profile::CrossNamespace;

impl Context<'_> {
    /// Returns the namespace of an object. A Namespace counts as in itself; other cluster-scoped
    /// objects have none.
    pub(super) fn namespace_of<'k>(&self, target: &'k ObjectKey) -> Option<&'k str> {
        if target.kind.is_namespace() {
            return Some(&target.name);
        }
        (!target.namespace.is_empty()).then_some(&*target.namespace)
    }

    /// Checks that the policy is allowed to reference an object, and returns the group that it joins
    /// there.
    ///
    /// # Errors
    /// A human-readable reason why the reference is not permitted.
    pub(super) fn check_reference(&self, target: &ObjectKey) -> Result<AttachmentGroup, String> {
        let own = &self.policy.key.namespace;
        let Some(home) = self.namespace_of(target) else {
            return Ok(AttachmentGroup::Whole);
        };
        if *home == **own {
            return Ok(AttachmentGroup::Whole);
        }
        // For a cluster-scoped kind every namespace is another one (specification 11.3).
        if own.is_empty() && self.profile.cross_namespace != CrossNamespace::Any {
            return Err(format!(
                "a cluster-scoped policy can reference `{target}` only if its kind allows any namespace"
            ));
        }
        match self.profile.cross_namespace {
            CrossNamespace::Any => Ok(AttachmentGroup::Whole),
            CrossNamespace::Never => Err(format!(
                "the kind does not allow references into other namespaces: `{target}`"
            )),
            CrossNamespace::ReferenceGrant if self.granted(target, home) => {
                Ok(AttachmentGroup::Whole)
            }
            CrossNamespace::ReferenceGrant => Err(format!(
                "no ReferenceGrant in namespace `{home}` permits a {} in namespace `{own}` to reference `{target}`",
                self.profile.resource().kind
            )),
            CrossNamespace::Clients if target.kind.is(groups::CORE, "Service") => {
                Ok(AttachmentGroup::Clients(own.clone()))
            }
            CrossNamespace::Clients => Err(format!(
                "the kind allows references into other namespaces to Services only: `{target}`"
            )),
        }
    }

    fn granted(&self, target: &ObjectKey, home: &str) -> bool {
        let kind: &GroupKind = self.profile.resource();
        self.store.grants_in(home).any(|grant| {
            grant.permits(kind, &self.policy.key.namespace, &target.kind, &target.name)
        })
    }
}
