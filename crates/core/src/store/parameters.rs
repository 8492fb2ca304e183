//! References from Gateways and GatewayClasses to objects with parameters (specification 2.9).

use serde_json::Value;

use super::projection::text;
use crate::model::{GroupKind, Object, Str, groups};

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
            let reference = &object.body.pointer("/spec/parametersRef")?;
            let namespace = text(reference, "namespace").unwrap_or_default();
            return Self::read(reference, namespace);
        }
        if key.kind.is(groups::GATEWAY, "Gateway") {
            let reference = &object.body.pointer("/spec/infrastructure/parametersRef")?;
            return Self::read(reference, &key.namespace);
        }
        None
    }

    fn read(reference: &Value, namespace: &str) -> Option<Self> {
        let group = reference.get("group").and_then(Value::as_str);
        Some(Self {
            kind: GroupKind::new(group.unwrap_or_default(), text(reference, "kind")?),
            namespace: namespace.into(),
            name: text(reference, "name")?.into(),
        })
    }
}
