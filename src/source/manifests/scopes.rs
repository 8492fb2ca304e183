//! Determines which kinds are cluster-scoped, and with that the namespace of each object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use entail_core::model::{GroupKind, Object, Str, groups};

const DEFAULT_NAMESPACE: &str = "default";

/// The scopes of kinds. A CRD among the manifests takes precedence over well-known kinds and the
/// given ones.
#[derive(Clone, Debug, Default)]
pub struct KindScopes {
    given: BTreeSet<GroupKind>,
    /// Kinds with a CRD, and whether its scope is `Cluster`.
    declared: BTreeMap<GroupKind, bool>,
}

impl KindScopes {
    /// Creates scopes in which the given kinds are cluster-scoped, besides the well-known ones.
    pub fn new(cluster_scoped: BTreeSet<GroupKind>) -> Self {
        Self {
            given: cluster_scoped,
            declared: BTreeMap::new(),
        }
    }

    /// Replaces the scopes that CRDs declare with those of the CRDs among `objects`.
    pub fn update_from_crds<'o>(&mut self, objects: impl IntoIterator<Item = &'o Object>) {
        self.declared = objects.into_iter().filter_map(crd_scope).collect();
    }

    /// Returns whether objects of the kind have no namespace.
    pub fn is_cluster_scoped(&self, kind: &GroupKind) -> bool {
        self.declared
            .get(kind)
            .copied()
            .unwrap_or_else(|| self.given.contains(kind) || is_well_known(&kind.group, &kind.kind))
    }

    /// Returns the namespace of an object whose manifest has the namespace `written`, which is empty
    /// if it has none.
    pub fn namespace(&self, kind: &GroupKind, written: &Str) -> Str {
        if self.is_cluster_scoped(kind) {
            "".into()
        } else if written.is_empty() {
            DEFAULT_NAMESPACE.into()
        } else {
            written.clone()
        }
    }

    /// Sets the namespace of an object that was just read, in its key and in its body. The namespace
    /// of a cluster-scoped object is removed; other objects without one are in `default`.
    pub fn assign_namespace(&self, object: &mut Object) {
        let namespace = self.namespace(&object.key.kind, &object.key.namespace);
        if object.key.namespace != namespace {
            move_to(object, namespace);
        }
    }

    /// Sets the namespace of an object whose manifest has the namespace `written`, whatever namespace
    /// was assigned to it before.
    pub(super) fn reassign_namespace(&self, object: &mut Arc<Object>, written: &Str) {
        let namespace = self.namespace(&object.key.kind, written);
        if object.key.namespace != namespace {
            move_to(Arc::make_mut(object), namespace);
        }
    }
}

fn move_to(object: &mut Object, namespace: Str) {
    object.body.edit(|body| {
        if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
            if namespace.is_empty() {
                metadata.remove("namespace");
            } else {
                metadata.insert("namespace".to_owned(), Value::from(&*namespace));
            }
        }
    });
    object.key.namespace = namespace;
}

/// Returns the kind that a CRD declares, and whether it is cluster-scoped.
fn crd_scope(object: &Object) -> Option<(GroupKind, bool)> {
    let kind = object.defined_kind()?;
    let scope = object.body.pointer("/spec/scope")?;
    Some((kind, scope.as_str()? == "Cluster"))
}

/// Returns whether the kind is a cluster-scoped one of Kubernetes, the Gateway API or entail.
fn is_well_known(group: &str, kind: &str) -> bool {
    let kinds: &[&str] = match group {
        groups::CORE => &["ComponentStatus", "Namespace", "Node", "PersistentVolume"],
        groups::GATEWAY => &["GatewayClass"],
        groups::GATEWAY_X => &["XMesh"],
        groups::ENTAIL => &[
            "ClusterEffectivePolicyAssertion",
            "ControllerAlias",
            "PolicyProfile",
        ],
        groups::APIEXTENSIONS => &["CustomResourceDefinition"],
        "admissionregistration.k8s.io" => &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
        "apiregistration.k8s.io" => &["APIService"],
        "certificates.k8s.io" => &["CertificateSigningRequest", "ClusterTrustBundle"],
        "flowcontrol.apiserver.k8s.io" => &["FlowSchema", "PriorityLevelConfiguration"],
        "networking.k8s.io" => &["IPAddress", "IngressClass", "ServiceCIDR"],
        "node.k8s.io" => &["RuntimeClass"],
        "policy.networking.k8s.io" => &[
            "AdminNetworkPolicy",
            "BaselineAdminNetworkPolicy",
            "ClusterNetworkPolicy",
        ],
        "rbac.authorization.k8s.io" => &["ClusterRole", "ClusterRoleBinding"],
        "resource.k8s.io" => &["DeviceClass", "DeviceTaintRule", "ResourceSlice"],
        "scheduling.k8s.io" => &["PriorityClass"],
        "storage.k8s.io" => &[
            "CSIDriver",
            "CSINode",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
        _ => &[],
    };
    kinds.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::manifests::read_objects;

    const TEXT: &str = "
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: a, namespace: x}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: b}}
---
{apiVersion: p.io/v1, kind: P, metadata: {name: c, namespace: x}}
---
{apiVersion: q.io/v1, kind: Q, metadata: {name: d, namespace: x}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: qs.q.io}
spec: {group: q.io, names: {kind: Q}, scope: Cluster}
";

    fn objects() -> Vec<Object> {
        let parsed = read_objects(TEXT, "a.yaml");
        parsed.objects.into_iter().map(|read| read.object).collect()
    }

    fn placed(scopes: &mut KindScopes) -> Vec<String> {
        let mut objects = objects();
        scopes.update_from_crds(&objects);
        for object in &mut objects {
            scopes.assign_namespace(object);
            let written = object.body.pointer("/metadata/namespace");
            let written = written.as_ref().and_then(Value::as_str);
            assert_eq!(written.unwrap_or_default(), &*object.key.namespace);
        }
        objects
            .iter()
            .map(|object| object.key.to_string())
            .collect()
    }

    #[test]
    fn objects_get_the_namespace_for_their_kind() {
        let crd = "CustomResourceDefinition.apiextensions.k8s.io/qs.q.io";
        let expected = [
            "GatewayClass/a",
            "Gateway/default/b",
            "P.p.io/x/c",
            "Q.q.io/d",
            crd,
        ];
        assert_eq!(placed(&mut KindScopes::default()), expected);
    }

    #[test]
    fn given_kinds_add_to_well_known_ones_and_crds_take_precedence() {
        let kinds = [GroupKind::parse("P.p.io"), GroupKind::parse("Q.q.io")];
        let mut scopes = KindScopes::new(kinds.clone().into());
        assert_eq!(placed(&mut scopes).get(2).unwrap(), "P.p.io/c");
        scopes.update_from_crds([]);
        assert!(kinds.iter().all(|kind| scopes.is_cluster_scoped(kind)));
        let mut objects = objects();
        let crd = objects.last_mut().unwrap();
        crd.body
            .edit(|body| body["spec"]["scope"] = "Namespaced".into());
        scopes.update_from_crds([&*crd]);
        assert!(!scopes.is_cluster_scoped(&kinds[1]));
    }

    #[test]
    fn the_namespace_in_the_text_is_kept() {
        let mut object = Arc::new(objects().remove(3));
        let written: Str = "x".into();
        let mut scopes = KindScopes::new([GroupKind::parse("Q.q.io")].into());
        scopes.reassign_namespace(&mut object, &written);
        assert_eq!(&*object.key.namespace, "");
        scopes = KindScopes::default();
        scopes.reassign_namespace(&mut object, &written);
        assert_eq!(&*object.key.namespace, "x");
    }
}
