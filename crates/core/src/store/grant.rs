//! ReferenceGrants.

use serde_json::Value;

use super::projection::{list, text};
use crate::model::{GroupKind, Str};

/// A ReferenceGrant: which kinds of other namespaces can reference which objects of its namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grant {
    from: Vec<(GroupKind, Str)>,
    to: Vec<(GroupKind, Option<Str>)>,
}

impl Grant {
    pub(super) fn read(spec: &Value) -> Self {
        let kind = |entry: &Value| {
            let group = entry
                .get("group")
                .and_then(Value::as_str)
                .unwrap_or_default();
            Some(GroupKind::new(group, text(entry, "kind")?).canonical())
        };
        Self {
            from: list(spec, "from")
                .iter()
                .filter_map(|e| Some((kind(e)?, text(e, "namespace")?.into())))
                .collect(),
            to: list(spec, "to")
                .iter()
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
