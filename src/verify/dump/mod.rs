//! Reads Envoy's `config_dump`, as a stream: memory is in proportion to what is kept.

mod keep;
mod names;
mod origin;
mod visit;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde::de::DeserializeSeed;
use serde_json::Value;

pub(super) use keep::{ANY, Keep};
pub(super) use names::{gateway_path, rule_key};
pub(super) use origin::OriginRoute;
pub(super) use visit::MANAGER;

use visit::{Keeps, Reader};

/// The size of the reads from a dump.
const BUFFER: usize = 1 << 18;

/// What a dump holds of the things that are compared. Equal configurations are kept once.
#[derive(Debug, Default)]
pub struct ProxyConfig {
    /// The Envoy routes of each rule, by the name of its path.
    pub(super) rules: BTreeMap<String, Vec<ProxyRoute>>,
    /// The clusters by name.
    pub(super) clusters: HashMap<Box<str>, Arc<Value>>,
    /// The HTTP connection managers with their listeners, by the name of their route configuration.
    pub(super) managers: HashMap<Box<str>, Vec<Arc<Value>>>,
    /// The route configurations of a listener, by the name of its path.
    pub(super) listeners: HashMap<String, BTreeSet<Box<str>>>,
    /// The Gateways with a virtual host or a route configuration, as the beginning of path names.
    pub(super) gateways: BTreeSet<String>,
    /// How many Envoy routes are not named after a rule.
    pub(super) unnamed_routes: usize,
    /// Of these, those in virtual hosts of Gateways.
    pub(super) unnamed_in_gateways: usize,
    /// How many route configurations there are.
    pub(super) route_configs: usize,
    /// Whether the dump has a list of clusters.
    pub(super) has_clusters: bool,
    /// Whether the dump has a list of listeners.
    pub(super) has_listeners: bool,
    /// Updates that the proxy refused, or has not put in place yet: what, and why.
    pub(super) pending: Vec<String>,
    /// For control planes other than Envoy Gateway: which, and the routes of each rule by its key.
    pub(super) project: Option<Project>,
    pub(super) origins: HashMap<String, Vec<Arc<OriginRoute>>>,
    shared: HashSet<Arc<Value>>,
}

/// A control plane whose routes tell their rules, but not where fields of policies are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Project {
    /// Its metadata name the policies that set each field.
    Kgateway,
    /// Nothing tells of policies.
    Istio,
}

/// An Envoy route: one match of a rule for one hostname.
#[derive(Debug)]
pub(super) struct ProxyRoute {
    /// Its name.
    pub(super) name: Box<str>,
    /// The clusters that it forwards to.
    pub(super) clusters: Vec<Box<str>>,
    /// The kept parts of its configuration.
    pub(super) config: Arc<Value>,
}

/// Why a dump cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The input cannot be read.
    #[error("failed to read the dump: {0}")]
    Unreadable(#[from] io::Error),
    /// The input ends before its end.
    #[error(
        "the dump ends in the middle, at line {line}, column {column}: it is truncated; fetch it again, for example \
         with `curl -o FILE http://ADDRESS/config_dump`"
    )]
    Truncated {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The input is not a dump.
    #[error(
        "not a dump of Envoy: {0}; expected the JSON of `/config_dump` of Envoy's admin interface"
    )]
    Malformed(String),
    /// The dump has no route configurations.
    #[error(
        "the dump has no route configurations: fetch `/config_dump` without `resource` and `mask`, from a proxy that \
         received its configuration"
    )]
    NoRoutes,
    /// The routes are of kgateway or Istio, and the bootstrap configuration does not name a Gateway.
    #[error(
        "the dump does not tell which Gateway the proxy serves: its bootstrap configuration has no `node` of kgateway \
         or Istio; fetch `/config_dump` without `resource` and `mask`"
    )]
    NoGateway,
    /// No route has a name of a known project.
    #[error(
        "no route of the dump has a name that Envoy Gateway gives, such as `httproute/NAMESPACE/NAME/rule/0/match/0/*` \
         (one of {routes} others: `{sample}`), or kgateway or Istio: the proxy belongs to another control plane, or to \
         a version that names routes in another way"
    )]
    UnknownNames {
        /// How many routes there are.
        routes: usize,
        /// The name of one of them.
        sample: String,
    },
}

/// Reads a dump.
///
/// # Errors
/// The input is truncated, not a dump, or a dump without names of a known project.
pub fn read_dump(input: impl Read) -> Result<ProxyConfig, DumpError> {
    let input = io::BufReader::with_capacity(BUFFER, input);
    let mut json = serde_json::Deserializer::from_reader(input);
    let mut config = ProxyConfig::default();
    let keeps = Keeps::new();
    let mut reader = Reader {
        config: &mut config,
        keeps: &keeps,
        sample: String::new(),
        has_configs: false,
        open: Vec::new(),
        gateway: None,
    };
    let read = reader.deserialize(&mut json).and_then(|()| json.end());
    let (sample, has_configs) = (std::mem::take(&mut reader.sample), reader.has_configs);
    let gateway = reader.gateway.take();
    read.map_err(dump_error)?;
    config.shared = HashSet::new();
    if !has_configs {
        return Err(DumpError::Malformed("it has no list `configs`".to_owned()));
    }
    if config.rules.is_empty() && !config.origins.is_empty() {
        let (project, gateway) = gateway.ok_or(DumpError::NoGateway)?;
        config.project = Some(project);
        config.gateways.insert(gateway);
        return Ok(config);
    }
    // Routes for the proxy's own endpoints are in no virtual host of a Gateway.
    let is_strange = config.unnamed_in_gateways > 0 || config.gateways.is_empty();
    if config.rules.is_empty() && config.unnamed_routes > 0 && is_strange {
        return Err(DumpError::UnknownNames {
            routes: config.unnamed_routes,
            sample,
        });
    }
    if config.gateways.is_empty() {
        return Err(DumpError::NoRoutes);
    }
    Ok(config)
}

fn dump_error(error: serde_json::Error) -> DumpError {
    match error.classify() {
        serde_json::error::Category::Io => DumpError::Unreadable(error.into()),
        serde_json::error::Category::Eof => DumpError::Truncated {
            line: error.line(),
            column: error.column(),
        },
        _ => DumpError::Malformed(error.to_string()),
    }
}

impl ProxyConfig {
    /// The Gateways that the proxy serves, as `gateways/NAMESPACE/NAME`.
    pub fn gateways(&self) -> impl Iterator<Item = &str> {
        self.gateways.iter().map(String::as_str)
    }

    /// Updates that the proxy refused or has not put in place yet.
    pub fn pending(&self) -> &[String] {
        &self.pending
    }

    /// Returns the one copy of a value.
    fn share(&mut self, value: Value) -> Arc<Value> {
        if let Some(known) = self.shared.get(&value) {
            return Arc::clone(known);
        }
        let value = Arc::new(value);
        self.shared.insert(Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "gateways/infra/web/listeners/http/routes/HTTPRoute/shop/cart/rules/#1";

    fn read(text: &str) -> Result<ProxyConfig, DumpError> {
        read_dump(text.as_bytes())
    }

    #[test]
    fn both_cases_of_names_are_read() {
        let snake = r#"{"configs": [
            {"dynamic_active_clusters": [{"cluster": {"name": "c", "connect_timeout": "1s", "type": "EDS"}}]},
            {"dynamic_route_configs": [{"route_config": {"name": "infra/web/http", "virtual_hosts": [
                {"name": "infra/web/http/*", "routes": [{
                    "name": "httproute/shop/cart/rule/1/match/0/*",
                    "route": {"weighted_clusters": {"clusters": [{"name": "c"}, {"name": "d"}]}},
                    "typed_per_filter_config": {"envoy.filters.http.basic_auth/x": {"users": {"inline": "secret"}}}
                }]}]}}]}]}"#;
        let camel = snake
            .replace("dynamic_active_clusters", "dynamicActiveClusters")
            .replace("dynamic_route_configs", "dynamicRouteConfigs")
            .replace("route_config", "routeConfig")
            .replace("virtual_hosts", "virtualHosts")
            .replace("connect_timeout", "connectTimeout")
            .replace("weighted_clusters", "weightedClusters")
            .replace("typed_per_filter_config", "typedPerFilterConfig");
        assert_ne!(snake, camel);
        for text in [snake, &camel] {
            let config = read(text).unwrap();
            assert_eq!(
                config.gateways().collect::<Vec<_>>(),
                ["gateways/infra/web"]
            );
            let [route] = config.rules[RULE].as_slice() else {
                panic!("{config:?}");
            };
            assert_eq!(route.clusters.join(","), "c,d");
            let kept = config.clusters["c"].to_string();
            assert_eq!(kept, r#"{"connect_timeout":"1s"}"#);
            assert!(!format!("{config:?}").contains("secret"));
        }
    }

    #[test]
    fn the_second_scheme_of_names_needs_metadata() {
        let text = r#"{"configs": [{"dynamic_route_configs": [{"route_config": {"name": "http-80", "virtual_hosts": [{
            "name": "www_example_com",
            "metadata": {"filter_metadata": {"envoy-gateway": {"resources": [
                {"kind": "Gateway", "namespace": "infra", "name": "web", "sectionName": "http"}]}}},
            "routes": [{"name": "httproute/shop/cart/rule/1/match/0/*", "route": {"cluster": "c"}}]
        }]}}]}]}"#;
        let config = read(text).unwrap();
        assert!(config.rules.contains_key(RULE));
        let configs = &config.listeners["gateways/infra/web/listeners/http"];
        assert!(configs.contains("http-80"));
        let without = text.replace("envoy-gateway", "other");
        assert!(matches!(
            read(&without),
            Err(DumpError::UnknownNames { routes: 1, .. })
        ));
    }

    #[test]
    fn equal_configurations_are_kept_once() {
        let route = |index| {
            format!(
                r#"{{"name": "httproute/shop/cart/rule/{index}/match/0/*", "route": {{"cluster": "c{index}"}}}}"#
            )
        };
        let text = format!(
            r#"{{"configs": [{{"dynamic_route_configs": [{{"route_config": {{"name": "infra/web/http",
                "virtual_hosts": [{{"name": "infra/web/http/*", "routes": [{}, {}]}}]}}}}]}}]}}"#,
            route(0),
            route(1)
        );
        let config = read(&text).unwrap();
        let mut routes = config.rules.values().flatten();
        let (first, second) = (routes.next().unwrap(), routes.next().unwrap());
        assert!(Arc::ptr_eq(&first.config, &second.config));
    }
}
