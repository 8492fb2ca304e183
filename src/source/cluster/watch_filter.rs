//! What is kept of a cluster, where not everything is wanted.

use std::collections::BTreeSet;
use std::fmt;

use entail_core::model::{Object, Str, groups};

/// What is kept: all, unless something is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchFilter {
    /// Namespaces: of all others nothing is kept that lives in them.
    pub namespaces: BTreeSet<Str>,
    /// Gateways, by namespace and name: others are not kept.
    pub gateways: BTreeSet<(Str, Str)>,
    /// GatewayClasses: others, and Gateways of others, are not kept.
    pub classes: BTreeSet<Str>,
}

impl WatchFilter {
    /// Whether an object is kept.
    pub fn matches(&self, object: &Object) -> bool {
        let key = &object.key;
        let is_near = key.namespace.is_empty()
            || self.namespaces.is_empty()
            || self.namespaces.contains(&key.namespace);
        is_near
            && match &*key.kind.kind {
                "GatewayClass" if &*key.kind.group == groups::GATEWAY => self.has_class(&key.name),
                "Gateway" if &*key.kind.group == groups::GATEWAY => {
                    let class = object.body.pointer("/spec/gatewayClassName");
                    let name = (key.namespace.clone(), key.name.clone());
                    (self.gateways.is_empty() || self.gateways.contains(&name))
                        && self.has_class(class.and_then(|c| c.as_str()).unwrap_or_default())
                }
                _ => true,
            }
    }

    fn has_class(&self, name: &str) -> bool {
        self.classes.is_empty() || self.classes.contains(name)
    }
}

impl fmt::Display for WatchFilter {
    /// The same text for the same scope; empty for all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for namespace in &self.namespaces {
            write!(f, " namespace={namespace}")?;
        }
        for (namespace, name) in &self.gateways {
            write!(f, " gateway={namespace}/{name}")?;
        }
        for class in &self.classes {
            write!(f, " gatewayclass={class}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, namespace: &str, name: &str, class: &str) -> Object {
        let metadata = match namespace {
            "" => json!({"name": name}),
            _ => json!({"name": name, "namespace": namespace}),
        };
        let body = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": metadata,
            "spec": {"gatewayClassName": class},
        });
        crate::source::object::parse_object(body, None)
            .unwrap()
            .unwrap()
    }

    #[test]
    fn what_is_not_named_is_not_kept() {
        let all = WatchFilter::default();
        assert!(all.matches(&object("Gateway", "a", "g", "c")));
        assert_eq!(all.to_string(), "");
        let filter = WatchFilter {
            namespaces: BTreeSet::from(["a".into()]),
            gateways: BTreeSet::from([("a".into(), "g".into())]),
            classes: BTreeSet::from(["c".into()]),
        };
        for (kept, kind, namespace, name, class) in [
            (true, "Gateway", "a", "g", "c"),
            (false, "Gateway", "a", "other", "c"),
            (false, "Gateway", "a", "g", "other"),
            (false, "Gateway", "b", "g", "c"),
            (true, "HTTPRoute", "a", "r", ""),
            (false, "HTTPRoute", "b", "r", ""),
            (true, "GatewayClass", "", "c", ""),
            (false, "GatewayClass", "", "other", ""),
        ] {
            let object = object(kind, namespace, name, class);
            assert_eq!(
                filter.matches(&object),
                kept,
                "{kind} {namespace}/{name} {class}"
            );
        }
        assert_eq!(
            filter.to_string(),
            " namespace=a gateway=a/g gatewayclass=c"
        );
    }
}
