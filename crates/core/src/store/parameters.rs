//! References from Gateways and GatewayClasses to objects with parameters (specification 2.9).

use super::projection::text;
use crate::model::{Encoded, GroupKind, Object, Str, groups};

/// A `parametersRef`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParametersRef {
    /// The kind of the object with the parameters.
    pub kind: GroupKind,
    /// Its namespace; empty for a cluster-scoped object.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
}

impl ParametersRef {
    /// The `spec.parametersRef` of a GatewayClass, or the `spec.infrastructure.parametersRef` of a Gateway,
    /// which names an object in the Gateway's namespace.
    pub fn of(object: &Object) -> Option<Self> {
        let key = &object.key;
        if key.kind.is(groups::GATEWAY, "GatewayClass") {
            let reference = object.body.spec().get("parametersRef")?;
            let namespace = text(reference, "namespace").unwrap_or_default();
            return Self::read(reference, namespace);
        }
        if key.kind.is(groups::GATEWAY, "Gateway") {
            let infrastructure = object.body.spec().get("infrastructure")?;
            return Self::read(infrastructure.get("parametersRef")?, &key.namespace);
        }
        None
    }

    fn read(reference: Encoded<'_>, namespace: &str) -> Option<Self> {
        let group = reference.text_of("group");
        Some(Self {
            kind: GroupKind::new(group.unwrap_or_default(), text(reference, "kind")?),
            namespace: namespace.into(),
            name: text(reference, "name")?.into(),
        })
    }
}
