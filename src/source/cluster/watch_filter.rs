//! Restricts the objects that are read from a cluster.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::source::object::parse_object;
use entail_core::model::{Object, Str, groups};
use entail_core::store::reduce_detached_route;

/// Which objects of a cluster to read. An empty set matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchFilter {
    /// Namespaces of namespaced objects. Cluster-scoped objects always match.
    pub namespaces: BTreeSet<Str>,
    /// Gateways, by namespace and name.
    pub gateways: BTreeSet<(Str, Str)>,
    /// Names of GatewayClasses; restricts GatewayClasses and the Gateways that use them.
    pub classes: BTreeSet<Str>,
}

impl WatchFilter {
    /// Reports whether an object matches.
    pub fn matches(&self, object: &Object) -> bool {
        let key = &object.key;
        let in_namespace = key.namespace.is_empty()
            || self.namespaces.is_empty()
            || self.namespaces.contains(&key.namespace);
        in_namespace
            && match &*key.kind.kind {
                "GatewayClass" if &*key.kind.group == groups::GATEWAY => self.has_class(&key.name),
                "Gateway" if &*key.kind.group == groups::GATEWAY => {
                    let class = object.body.pointer("/spec/gatewayClassName");
                    let name = (key.namespace.clone(), key.name.clone());
                    (self.gateways.is_empty() || self.gateways.contains(&name))
                        && self
                            .has_class(class.as_ref().and_then(|c| c.as_str()).unwrap_or_default())
                }
                _ => true,
            }
    }

    /// Parses an object that a cluster has or is about to have; `None` if it does not match, and for a core Secret.
    ///
    /// # Errors
    /// The value is not an object that an API server would accept.
    pub fn read(&self, value: Value) -> Result<Option<Object>, String> {
        let object = parse_object(value, None).map_err(|invalid| invalid.message)?;
        let matching = object.filter(|object| self.matches(object));
        Ok(matching.map(|object| self.reduce(object)))
    }

    /// Drops what is not needed of an object that matches: of a Route whose parents are other Gateways than the chosen
    /// ones, the fields that only requests and its own paths need. An event carries the whole object, so that a Route
    /// that changes its parents is whole again.
    #[must_use]
    pub fn reduce(&self, object: Object) -> Object {
        if self.gateways.is_empty() {
            return object;
        }
        reduce_detached_route(object, |parent| {
            let name = (parent.namespace.clone(), parent.name.clone());
            !parent.kind.is(groups::GATEWAY, "Gateway") || self.gateways.contains(&name)
        })
    }

    fn has_class(&self, name: &str) -> bool {
        self.classes.is_empty() || self.classes.contains(name)
    }
}

impl fmt::Display for WatchFilter {
    /// Writes a canonical text, which identifies the filter in a checkpoint; empty for a filter that
    /// matches everything.
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
    fn routes_of_other_gateways_are_reduced() {
        let filter = WatchFilter {
            gateways: BTreeSet::from([("a".into(), "g".into())]),
            ..WatchFilter::default()
        };
        let route = |gateway: &str| {
            let mut route = object("HTTPRoute", "a", "r", "");
            let rules = json!([{"matches": [{"path": {"value": "/"}}]}]);
            let spec = json!({"parentRefs": [{"name": gateway}], "rules": rules});
            route.body.edit(|body| body["spec"] = spec);
            route
        };
        let is_whole = |filter: &WatchFilter, gateway: &str| {
            let reduced = filter.reduce(route(gateway));
            reduced.body.pointer("/spec/rules/0/matches").is_some()
        };
        assert!(is_whole(&filter, "g") && !is_whole(&filter, "other"));
        assert!(is_whole(&WatchFilter::default(), "other"));
    }

    #[test]
    fn filters_match_only_the_named_objects() {
        let all = WatchFilter::default();
        assert!(all.matches(&object("Gateway", "a", "g", "c")));
        assert_eq!(all.to_string(), "");
        let filter = WatchFilter {
            namespaces: BTreeSet::from(["a".into()]),
            gateways: BTreeSet::from([("a".into(), "g".into())]),
            classes: BTreeSet::from(["c".into()]),
        };
        for (matches, kind, namespace, name, class) in [
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
                matches,
                "{kind} {namespace}/{name} {class}"
            );
        }
        assert_eq!(
            filter.to_string(),
            " namespace=a gateway=a/g gatewayclass=c"
        );
    }
}
