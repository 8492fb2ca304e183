//! The sections of a dump, and what is kept of each.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::keep::snake_case;
use super::names::{RouteName, gateway_path, listener_path};
use super::origin::{OriginRoute, gateway_of_node, keep_bootstrap, keep_metadata, keep_route};
use super::{ANY, Keep, Project, ProxyConfig, ProxyRoute};
use crate::verify::convert::{Convert, lookup, take, text};
use crate::verify::rows::{ConfigPart, all_rows};

/// The most updates that are named as pending.
const MAX_PENDING: usize = 20;

/// What is kept of routes, clusters and listeners.
pub(super) struct Keeps {
    route: Keep,
    cluster: Keep,
    listener: Keep,
}

impl Keeps {
    /// Keeps what the tables compare, and the names that connect routes with clusters and listeners.
    pub(super) fn new() -> Self {
        let mut keeps = Self {
            route: Keep::default(),
            cluster: Keep::default(),
            listener: Keep::default(),
        };
        let route = &mut keeps.route;
        route.add(&["name"]);
        route.add(&["metadata", "filter_metadata", "envoy-gateway"]);
        route.add(&["route", "cluster"]);
        route.add(&["route", "weighted_clusters", "clusters", ANY, "name"]);
        route.add(&["direct_response", "status"]);
        route.add_presence(&["redirect"]);
        keep_route(route);
        route.add_presence(&["typed_per_filter_config", ANY]);
        keeps.cluster.add(&["name"]);
        for chain in CHAINS {
            let mut path = chain.to_vec();
            path.extend(["filters", ANY, "typed_config", "rds", "route_config_name"]);
            keeps.listener.add(&path);
        }
        for row in all_rows() {
            let keep = match row.part {
                ConfigPart::Route => &mut keeps.route,
                ConfigPart::Cluster => &mut keeps.cluster,
                ConfigPart::Listener | ConfigPart::Manager => &mut keeps.listener,
            };
            let prefixes: &[&[&'static str]] = match row.part {
                ConfigPart::Manager => &CHAINS,
                _ => &[&[]],
            };
            for prefix in prefixes {
                let mut path = prefix.to_vec();
                if row.part == ConfigPart::Manager {
                    path.extend(["filters", ANY, "typed_config"]);
                }
                path.extend(row.at);
                match row.convert {
                    Convert::Owned(_) => {}
                    Convert::Block | Convert::Presence => keep.add_presence(&path),
                    _ => keep.add(&path),
                }
            }
        }
        keeps
    }
}

/// Where a listener has its filter chains.
const CHAINS: [&[&str]; 2] = [&["filter_chains", ANY], &["default_filter_chain"]];

/// A map of a dump: its fields are read one by one.
trait Section {
    /// Reads the value of a field that is of interest. Returns false for others, without reading the value.
    fn field<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error>;

    /// Called after the last field.
    fn end(&mut self) {}
}

/// Reads a map into a section.
struct MapOf<'s, S>(&'s mut S);

/// Reads a list of maps, each into the same section.
struct ListOf<'s, S>(&'s mut S);

/// Reads a list of values, of which parts are kept.
struct Values<'k, F>(&'k Keep, F);

impl<'de, S: Section> DeserializeSeed<'de> for MapOf<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de, S: Section> Visitor<'de> for MapOf<'_, S> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if !self.0.field(&snake_case(name), &mut map)? {
                map.next_value::<IgnoredAny>()?;
            }
        }
        self.0.end();
        Ok(())
    }
}

impl<'de, S: Section> DeserializeSeed<'de> for ListOf<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de, S: Section> Visitor<'de> for ListOf<'_, S> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(MapOf(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

impl<'de, F: FnMut(Value)> DeserializeSeed<'de> for Values<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de, F: FnMut(Value)> Visitor<'de> for Values<'_, F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element_seed(self.0)? {
            (self.1)(item);
        }
        Ok(())
    }
}

/// What reads a dump.
pub(super) struct Reader<'r> {
    /// What is kept.
    pub(super) config: &'r mut ProxyConfig,
    /// Which parts are kept.
    pub(super) keeps: &'r Keeps,
    /// The name of an Envoy route that is not the name of a rule.
    pub(super) sample: String,
    /// Whether there is a list `configs`.
    pub(super) has_configs: bool,
    /// Routes of other control planes in the route configuration that is read.
    pub(super) open: Vec<OriginRoute>,
    /// The Gateway that the bootstrap configuration names.
    pub(super) gateway: Option<(Project, String)>,
}

impl<'de> DeserializeSeed<'de> for &mut Reader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        MapOf(&mut Dump(self)).deserialize(input)
    }
}

impl Reader<'_> {
    fn note_pending(&mut self, what: &str, name: &str, why: &str) {
        if self.config.pending.len() < MAX_PENDING {
            self.config.pending.push(format!("{what} `{name}`: {why}"));
        }
    }

    fn add_cluster(&mut self, mut cluster: Value) {
        let Some(name) = take(&mut cluster, "name").and_then(text) else {
            return;
        };
        let cluster = self.config.share(cluster);
        self.config.clusters.insert(name.into(), cluster);
    }

    /// Adds the HTTP connection managers of a listener, each under the name of its route configuration.
    fn add_listener(&mut self, listener: Value) {
        let filters = CHAINS.iter().flat_map(|chain| match *chain {
            [list, _] => lookup(&listener, &[list])
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default(),
            _ => lookup(&listener, chain)
                .map(std::slice::from_ref)
                .unwrap_or_default(),
        });
        let filters = filters.flat_map(|chain| {
            let filters = lookup(chain, &["filters"]).and_then(Value::as_array);
            filters.map(Vec::as_slice).unwrap_or_default()
        });
        let managers: Vec<(Box<str>, Value)> = filters
            .filter_map(|filter| {
                let manager = lookup(filter, &["typed_config"])?;
                let name = lookup(manager, &["rds", "route_config_name"])?.as_str()?;
                let mut both = listener.clone();
                for chain in ["filter_chains", "default_filter_chain"] {
                    take(&mut both, chain);
                }
                let mut manager = manager.clone();
                take(&mut manager, "rds");
                both.as_object_mut()?.insert(MANAGER.to_owned(), manager);
                Some((name.into(), both))
            })
            .collect();
        for (name, manager) in managers {
            let manager = self.config.share(manager);
            self.config.managers.entry(name).or_default().push(manager);
        }
    }
}

/// The name of the field with the HTTP connection manager in what is kept of a listener.
pub(in crate::verify) const MANAGER: &str = "http_connection_manager";

/// The whole dump.
struct Dump<'s, 'r>(&'s mut Reader<'r>);

/// An item of `configs`, or the dump of one resource.
struct Config<'s, 'r>(&'s mut Reader<'r>);

/// An item of a list of clusters that are not in place yet.
struct WarmingCluster<'s, 'r>(&'s mut Reader<'r>);

/// An item of a list of listeners.
struct ListenerEntry<'s, 'r> {
    reader: &'s mut Reader<'r>,
    name: String,
    warming: bool,
    error: Option<String>,
}

/// A route configuration.
struct RouteConfig<'s, 'r> {
    reader: &'s mut Reader<'r>,
    name: String,
    metadata: Value,
    /// The listeners of its virtual hosts.
    listeners: Vec<String>,
}

/// A virtual host.
struct VirtualHost<'s, 'c, 'r> {
    reader: &'s mut Reader<'r>,
    listeners: &'c mut Vec<String>,
    name: String,
    metadata: Value,
    /// The position of the first of its routes among those of other control planes.
    first_open: usize,
    routes: Vec<(RouteName, ProxyRoute)>,
    /// How many routes are not named after a rule.
    unnamed: usize,
}

impl Section for Dump<'_, '_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        if name != "configs" {
            return Ok(false);
        }
        self.0.has_configs = true;
        map.next_value_seed(ListOf(&mut Config(self.0)))?;
        Ok(true)
    }
}

impl Section for Config<'_, '_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "static_route_configs" | "dynamic_route_configs" => {
                map.next_value_seed(ListOf(&mut Config(self.0)))?;
            }
            "route_config" => map.next_value_seed(MapOf(&mut RouteConfig {
                reader: self.0,
                name: String::new(),
                metadata: Value::Null,
                listeners: Vec::new(),
            }))?,
            "bootstrap" => {
                let bootstrap = map.next_value_seed(&keep_bootstrap())?;
                self.0.gateway = gateway_of_node(&bootstrap);
            }
            "static_clusters" | "dynamic_active_clusters" => {
                self.0.config.has_clusters = true;
                map.next_value_seed(ListOf(&mut Config(self.0)))?;
            }
            "dynamic_warming_clusters" => {
                map.next_value_seed(ListOf(&mut WarmingCluster(self.0)))?;
            }
            "cluster" => {
                let cluster = map.next_value_seed(&self.0.keeps.cluster)?;
                self.0.add_cluster(cluster);
            }
            "static_listeners" | "dynamic_listeners" => {
                self.0.config.has_listeners = true;
                map.next_value_seed(ListOf(&mut ListenerEntry {
                    reader: self.0,
                    name: String::new(),
                    warming: false,
                    error: None,
                }))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Section for WarmingCluster<'_, '_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        if name != "cluster" {
            return Ok(false);
        }
        let mut keep = Keep::default();
        keep.add(&["name"]);
        let mut cluster = map.next_value_seed(&keep)?;
        let name = take(&mut cluster, "name")
            .and_then(text)
            .unwrap_or_default();
        self.0
            .note_pending("cluster", &name, "it is not in place yet");
        Ok(true)
    }
}

impl Section for ListenerEntry<'_, '_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "name" => self.name = map.next_value()?,
            "active_state" => map.next_value_seed(MapOf(&mut ListenerEntry {
                reader: self.reader,
                name: String::new(),
                warming: false,
                error: None,
            }))?,
            "listener" => {
                let listener = map.next_value_seed(&self.reader.keeps.listener)?;
                self.reader.add_listener(listener);
            }
            "warming_state" => {
                self.warming = map.next_value::<Option<IgnoredAny>>()?.is_some();
            }
            "error_state" => {
                let mut keep = Keep::default();
                keep.add(&["details"]);
                let mut state = map.next_value_seed(&keep)?;
                self.error = take(&mut state, "details").and_then(text);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn end(&mut self) {
        let name = std::mem::take(&mut self.name);
        if let Some(error) = self.error.take() {
            self.reader.note_pending(
                "listener",
                &name,
                &format!("the proxy refused an update: {error}"),
            );
        } else if std::mem::take(&mut self.warming) {
            self.reader
                .note_pending("listener", &name, "an update is not in place yet");
        }
    }
}

impl Section for RouteConfig<'_, '_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "name" => self.name = map.next_value()?,
            "metadata" => {
                let mut keep = Keep::default();
                keep_metadata(&mut keep, &[]);
                self.metadata = map.next_value_seed(&keep)?;
            }
            "virtual_hosts" => map.next_value_seed(ListOf(&mut VirtualHost {
                first_open: self.reader.open.len(),
                reader: self.reader,
                listeners: &mut self.listeners,
                name: String::new(),
                metadata: Value::Null,
                routes: Vec::new(),
                unnamed: 0,
            }))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn end(&mut self) {
        let metadata = std::mem::take(&mut self.metadata);
        for mut route in self.reader.open.drain(..) {
            route.inherit(&metadata);
            let route = Arc::new(route);
            for key in &route.keys {
                let routes = self.reader.config.origins.entry(key.clone()).or_default();
                routes.push(Arc::clone(&route));
            }
        }
        let config = &mut *self.reader.config;
        config.route_configs += 1;
        let name: Box<str> = std::mem::take(&mut self.name).into();
        // A route configuration without virtual hosts still tells its listener.
        self.listeners.extend(listener_path(&name));
        for listener in self.listeners.drain(..) {
            config.gateways.insert(gateway_path(&listener));
            let configs = config.listeners.entry(listener).or_default();
            configs.insert(name.clone());
        }
    }
}

impl Section for VirtualHost<'_, '_, '_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "name" => self.name = map.next_value()?,
            "metadata" => {
                let mut keep = Keep::default();
                keep.add(&["filter_metadata", "envoy-gateway", "resources"]);
                keep_metadata(&mut keep, &[]);
                self.metadata = map.next_value_seed(&keep)?;
            }
            "routes" => {
                let reader = &mut *self.reader;
                let (routes, unnamed) = (&mut self.routes, &mut self.unnamed);
                let keep = &reader.keeps.route;
                map.next_value_seed(Values(keep, |route| {
                    let origin = OriginRoute::read(&route);
                    if let Some(origin) = origin {
                        reader.open.push(origin);
                        return;
                    }
                    match proxy_route(route, reader.config) {
                        // Envoy Gateway adds them for CORS filters of routes; no policy applies.
                        Ok((_, route)) if route.name.contains("/cors-preflight/") => {}
                        Ok(route) => routes.push(route),
                        Err(name) => {
                            *unnamed += 1;
                            reader.sample = name;
                        }
                    }
                }))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn end(&mut self) {
        let name = std::mem::take(&mut self.name);
        let metadata = std::mem::take(&mut self.metadata);
        let routes = std::mem::take(&mut self.routes);
        let unnamed = std::mem::take(&mut self.unnamed);
        for route in self.reader.open.iter_mut().skip(self.first_open) {
            route.inherit(&metadata);
        }
        self.first_open = self.reader.open.len();
        self.reader.config.unnamed_routes += unnamed;
        let by_name = name
            .rsplit_once('/')
            .and_then(|(listener, _)| listener_path(listener));
        let Some(listener) = by_name.or_else(|| listener_of_metadata(&metadata)) else {
            self.reader.config.unnamed_routes += routes.len();
            return;
        };
        self.reader.config.unnamed_in_gateways += unnamed;
        for (name, route) in routes {
            let path = name.path(&listener);
            let rules = &mut self.reader.config.rules;
            rules.entry(path).or_default().push(route);
        }
        self.listeners.push(listener);
    }
}

/// The path of the listener that the metadata of a virtual host names.
fn listener_of_metadata(metadata: &Value) -> Option<String> {
    let path = ["filter_metadata", "envoy-gateway", "resources", "0"];
    let object = lookup(metadata, &path)?;
    let field = |name| lookup(object, &[name]).and_then(Value::as_str);
    (field("kind")? == "Gateway").then_some(())?;
    let (namespace, name, section) = (field("namespace")?, field("name")?, field("section_name")?);
    Some(format!("gateways/{namespace}/{name}/listeners/{section}"))
}

/// Splits what is kept of an Envoy route into its name and the rest. Returns the name of a route that is not
/// named after a rule.
fn proxy_route(
    mut route: Value,
    config: &mut ProxyConfig,
) -> Result<(RouteName, ProxyRoute), String> {
    let name = take(&mut route, "name").and_then(text).unwrap_or_default();
    let Some(mut rule) = RouteName::parse(&name) else {
        return Err(name);
    };
    let mut metadata = take(&mut route, "metadata").unwrap_or_default();
    let object = [
        "filter_metadata",
        "envoy-gateway",
        "resources",
        "0",
        "section_name",
    ];
    let section = lookup(&metadata, &object).and_then(Value::as_str);
    rule.section = section.map(str::to_owned);
    let policies = metadata
        .pointer_mut("/filter_metadata/envoy-gateway/policies")
        .map(Value::take);
    let mut clusters = Vec::new();
    if let Some(action) = route.get_mut("route") {
        clusters.extend(take(action, "cluster").and_then(text).map(Into::into));
        let weighted = take(action, "weighted_clusters");
        let weighted = weighted
            .as_ref()
            .and_then(|list| lookup(list, &["clusters"]));
        let names = weighted.and_then(Value::as_array).into_iter().flatten();
        let names = names.filter_map(|cluster| lookup(cluster, &["name"])?.as_str());
        clusters.extend(names.map(Into::into));
    }
    if let (Some(fields), Some(policies)) = (route.as_object_mut(), policies) {
        fields.insert("policies".to_owned(), policies);
    }
    Ok((
        rule,
        ProxyRoute {
            name: name.into(),
            clusters,
            config: config.share(route),
        },
    ))
}
