//! ReferenceGrants.

use super::projection::text;
use crate::model::{Encoded, GroupKind, Str};

/// A ReferenceGrant: which kinds of other namespaces can reference which objects of its namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grant {
    from: Vec<(GroupKind, Str)>,
    to: Vec<(GroupKind, Option<Str>)>,
}

impl Grant {
    pub(super) fn read(spec: Encoded<'_>) -> Self {
        let kind = |entry: Encoded<'_>| {
            let group = entry.text_of("group").unwrap_or_default();
            Some(GroupKind::new(group, text(entry, "kind")?).canonical())
        };
        Self {
            from: spec
                .items_of("from")
                .filter_map(|e| Some((kind(e)?, text(e, "namespace")?.into())))
                .collect(),
            to: spec
                .items_of("to")
                .filter_map(|e| Some((kind(e)?, text(e, "name").map(Into::into))))
                .collect(),
        }
    }

    /// The kinds whose objects the grant permits references, each with the namespace of these objects.
    pub fn sources(&self) -> &[(GroupKind, Str)] {
        &self.from
    }

    /// Reports whether the grant permits a reference from objects of `kind` in `namespace` to the
    /// object `name` of kind `to`.
    pub fn permits(&self, kind: &GroupKind, namespace: &str, to: &GroupKind, name: &str) -> bool {
        self.from
            .iter()
            .any(|(k, ns)| k == kind && **ns == *namespace)
            && self
                .to
                .iter()
                .any(|(k, n)| k == to && n.as_deref().is_none_or(|n| n == name))
    }
}
