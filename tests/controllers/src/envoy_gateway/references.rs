//! References in answers: they mean the namespace of the policy that they come from.

use std::collections::{BTreeMap, BTreeSet};

use entail::api::v1;
use serde_json::{Value, json};

/// The grants that a replay needs: for each namespace, the kinds and namespaces of policies.
pub type Needed = BTreeMap<String, BTreeSet<(String, String)>>;

/// The fields that hold a reference, or a list of references, that can have a namespace.
const FIELDS: [&str; 7] = [
    "backendRef",
    "backendRefs",
    "clientSecret",
    "clientIDRef",
    "credentialRefs",
    "users",
    "pullSecretRef",
];

/// Writes the namespace of its policy into each reference without one, if a policy in another
/// namespace is to have the answer.
pub fn fill(
    spec: &mut Value,
    kind: &str,
    namespace: &str,
    origins: &[v1::Origin],
    needed: &mut Needed,
) {
    let mut filler = Filler {
        kind,
        namespace,
        origins,
        needed,
    };
    filler.visit(spec, "");
}

struct Filler<'a> {
    kind: &'a str,
    namespace: &'a str,
    origins: &'a [v1::Origin],
    needed: &'a mut Needed,
}

impl Filler<'_> {
    fn visit(&mut self, value: &mut Value, path: &str) {
        match value {
            Value::Object(object) => {
                for (name, inner) in object {
                    let path = if path.is_empty() {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    if FIELDS.contains(&name.as_str()) {
                        self.references(inner, &path);
                    }
                    self.visit(inner, &path);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.visit(item, path)),
            _ => {}
        }
    }

    fn references(&mut self, value: &mut Value, path: &str) {
        match value {
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.references(item, path)),
            Value::Object(object)
                if object.contains_key("name") && !object.contains_key("namespace") =>
            {
                let Some(origin) = self.origin(path).filter(|origin| origin != self.namespace)
                else {
                    return;
                };
                object.insert("namespace".to_owned(), origin.clone().into());
                let policy = (self.kind.to_owned(), self.namespace.to_owned());
                self.needed.entry(origin).or_default().insert(policy);
            }
            _ => {}
        }
    }

    /// The namespace of the policy that set a field: that of the most exact origin.
    fn origin(&self, path: &str) -> Option<String> {
        let covers =
            |unit: &str| unit == "*" || path == unit || path.starts_with(&format!("{unit}."));
        let below = |unit: &str| {
            unit.starts_with(&format!("{path}.")) || unit.starts_with(&format!("{path}["))
        };
        let of = |origin: &&v1::Origin| covers(&origin.unit) || below(&origin.unit);
        let found = self
            .origins
            .iter()
            .filter(of)
            .max_by_key(|origin| origin.unit.len())?;
        found
            .policies
            .first()
            .map(|policy| policy.namespace.clone())
    }
}

/// The ReferenceGrants for the references that were written.
pub fn grants(needed: Needed) -> Vec<Value> {
    let to = [
        ("", "Service"),
        ("", "Secret"),
        ("", "ConfigMap"),
        ("gateway.envoyproxy.io", "Backend"),
    ];
    let to = to.map(|(group, kind)| json!({"group": group, "kind": kind}));
    let grant = |(namespace, policies): (String, BTreeSet<(String, String)>)| {
        let of = |(kind, namespace)| json!({"group": "gateway.envoyproxy.io", "kind": kind, "namespace": namespace});
        let from: Vec<Value> = policies.into_iter().map(of).collect();
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
            "metadata": {"name": "replay", "namespace": namespace}, "spec": {"from": from, "to": to},
        })
    };
    needed.into_iter().map(grant).collect()
}
