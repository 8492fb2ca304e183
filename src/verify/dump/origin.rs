//! Routes of proxies whose control plane tells the rule of a route, but not where fields of policies are: kgateway, with
//! the policies that set each field, and Istio.

use serde_json::Value;

use super::Project;
use super::keep::Keep;
use super::names::rule_key;
use crate::verify::convert::lookup;

/// Where kgateway writes the policies that set the fields of a TrafficPolicy: at routes, virtual hosts, and route
/// configurations (`pkg/kgateway/translator/irtranslator/policy.go`).
const MERGE: &str = "merge.TrafficPolicy.gateway.kgateway.dev";
/// Where kgateway writes the route rule of an Envoy route.
const SOURCE: &str = "dev.kgateway.route_source";
/// The role of kgateway's proxies, before the namespace and the name of the Gateway.
const ROLE: &str = "kgateway-kube-gateway-api";
/// The label of Istio's proxies with the name of their Gateway.
const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";

/// An Envoy route of a rule, and the policies that set its fields.
#[derive(Debug)]
pub(in crate::verify) struct OriginRoute {
    /// Its name.
    pub(in crate::verify) name: Box<str>,
    /// The names that its rule can have, see [`rule_key`]: one that is certain, or one made of the name alone.
    pub(in crate::verify) keys: Vec<String>,
    /// Lists of policies by field, as `group/kind/namespace/name`.
    pub(in crate::verify) fields: Value,
    /// The status that every request of the rule is answered with.
    pub(in crate::verify) status: Option<u64>,
}

impl OriginRoute {
    /// Reads a route; `None` if it does not tell its rule.
    pub(super) fn read(route: &Value) -> Option<Self> {
        let name = lookup(route, &["name"]).and_then(Value::as_str);
        let metadata = lookup(route, &["metadata", "filter_metadata"]);
        let of = |key| metadata.and_then(|metadata| lookup(metadata, &[key]));
        let keys = match (of(SOURCE), of("istio")) {
            (Some(source), _) => source_keys(source),
            (None, Some(_)) => vec![rule_key(&["istio", name?])],
            (None, None) => vec![key_of_name(name?)?],
        };
        Some(Self {
            name: name.unwrap_or_default().into(),
            keys,
            fields: of(MERGE).cloned().unwrap_or_default(),
            status: lookup(route, &["direct_response", "status"]).and_then(Value::as_u64),
        })
    }

    /// Adds the policies of a virtual host or route configuration, for fields that no route has set.
    pub(super) fn inherit(&mut self, metadata: &Value) {
        let above = lookup(metadata, &["filter_metadata", MERGE]).and_then(Value::as_object);
        for (field, policies) in above.into_iter().flatten() {
            if self.fields.is_null() {
                self.fields = Value::Object(serde_json::Map::new());
            }
            if let Some(fields) = self.fields.as_object_mut() {
                fields.entry(field).or_insert_with(|| policies.clone());
            }
        }
    }
}

/// Keeps what [`OriginRoute::read`] reads.
pub(super) fn keep_route(keep: &mut Keep) {
    keep.add(&["metadata", "filter_metadata", SOURCE]);
    keep.add_presence(&["metadata", "filter_metadata", "istio"]);
    keep_metadata(keep, &["metadata"]);
}

/// Keeps what [`OriginRoute::inherit`] reads of the metadata at a path.
pub(super) fn keep_metadata(keep: &mut Keep, path: &[&'static str]) {
    let mut merge = path.to_vec();
    merge.extend(["filter_metadata", MERGE]);
    keep.add(&merge);
}

/// Keeps what [`gateway_of_node`] reads of the bootstrap configuration.
pub(super) fn keep_bootstrap() -> Keep {
    let mut keep = Keep::default();
    for field in ["role", "namespace", "NAMESPACE"] {
        keep.add(&["node", "metadata", field]);
    }
    keep.add(&["node", "metadata", "labels", GATEWAY_NAME]);
    keep.add(&["node", "metadata", "LABELS", GATEWAY_NAME]);
    keep
}

/// The project of a proxy and the path of its Gateway, by its bootstrap configuration.
pub(super) fn gateway_of_node(bootstrap: &Value) -> Option<(Project, String)> {
    let text = |path: &[&str]| lookup(bootstrap, path).and_then(Value::as_str);
    if let Some(role) = text(&["node", "metadata", "role"]) {
        let mut parts = role.split('~');
        let (owner, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        return (owner == ROLE).then(|| {
            let path = format!("gateways/{namespace}/{name}");
            (Project::Kgateway, path)
        });
    }
    let name = text(&["node", "metadata", "LABELS", GATEWAY_NAME])?;
    let namespace = text(&["node", "metadata", "NAMESPACE"])?;
    Some((Project::Istio, format!("gateways/{namespace}/{name}")))
}

/// The keys of a rule that kgateway names.
fn source_keys(source: &Value) -> Vec<String> {
    let part = |name| lookup(source, &[name]).and_then(Value::as_str);
    let parts = [part("kind"), part("namespace"), part("name"), part("rule")];
    let [Some(kind), Some(namespace), Some(name), Some(rule)] = parts else {
        return Vec::new();
    };
    let rule = match rule.strip_prefix("_rule-") {
        Some(index) => format!("#{index}"),
        None => rule.to_owned(),
    };
    vec![rule_key(&[kind, namespace, name, &rule])]
}

/// The key in the name of a route of kgateway, `...-route-1-httproute-NAME-NAMESPACE-RULE-MATCH-matcher-0`. Where the
/// boundary between name and namespace is cannot be told.
fn key_of_name(name: &str) -> Option<String> {
    let (rest, number) = name.rsplit_once("-matcher-")?;
    let (rule, a_match) = rest.rsplit_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let (_, rule) = rule.split_once("-route-")?;
    let (position, rule) = rule.split_once('-')?;
    let numbers = [number, a_match, position];
    numbers
        .into_iter()
        .all(is_number)
        .then(|| rule_key(&["kgateway", rule]))
}
