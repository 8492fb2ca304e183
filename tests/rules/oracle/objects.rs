//! The objects of a world, found by kind, namespace and name (specification 1.1, 1.2, 11.16, 11.47).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub const GATEWAY: &str = "gateway.networking.k8s.io";
const GATEWAY_X: &str = "gateway.networking.x-k8s.io";
const MULTICLUSTER: &str = "multicluster.x-k8s.io";
const ROUTES: [&str; 5] = ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"];

/// An object with its identity.
#[derive(Clone, Debug)]
pub struct Found {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub body: Value,
}

/// All objects of a world.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    by_key: BTreeMap<String, Found>,
    /// Backends that backendRefs name, whether there is an object or not (1.4).
    backends: BTreeSet<String>,
    /// Backends that are no Services, each with a port that a backendRef names (3.6).
    backend_ports: BTreeSet<(String, String)>,
    pub namespaces: BTreeSet<String>,
    /// Group and kind of Routes that generate others, each with the kind that they generate (1.9).
    pub generators: Vec<(String, String, String)>,
}

/// The kind of an object or reference; XListenerSet is another name of ListenerSet (11.47).
pub fn normal(group: &str, kind: &str) -> (String, String) {
    if group == GATEWAY_X && kind == "XListenerSet" {
        return (GATEWAY.to_owned(), "ListenerSet".to_owned());
    }
    (group.to_owned(), kind.to_owned())
}

/// The group of an `apiVersion`.
pub fn group_of(document: &Value) -> &str {
    let version = document["apiVersion"].as_str().unwrap_or_default();
    version.split_once('/').map_or("", |(group, _)| group)
}

/// A kind as keys write it (11.16).
pub fn short(group: &str, kind: &str) -> String {
    match group {
        "" | GATEWAY => kind.to_owned(),
        MULTICLUSTER if kind == "ServiceImport" => kind.to_owned(),
        _ => format!("{kind}.{group}"),
    }
}

/// The key of an object; a Namespace and a GatewayClass live in no namespace.
pub fn key(group: &str, kind: &str, namespace: &str, name: &str) -> String {
    let kind = short(group, kind);
    if namespace.is_empty() || kind == "Namespace" || kind == "GatewayClass" {
        return format!("{kind}/{name}");
    }
    format!("{kind}/{namespace}/{name}")
}

/// The group of a kind that is named without one (3.1); `None`: the profile's targets have it.
pub fn usual_group(kind: &str) -> Option<&'static str> {
    match kind {
        "Service" | "Namespace" => Some(""),
        "GatewayClass" | "Gateway" | "ListenerSet" => Some(GATEWAY),
        "XListenerSet" => Some(GATEWAY_X),
        _ if ROUTES.contains(&kind) => Some(GATEWAY),
        _ => None,
    }
}

/// Whether objects of the kind have sections (11.28).
pub fn has_sections(group: &str, kind: &str) -> bool {
    match group {
        "" => kind == "Service",
        GATEWAY => kind == "Gateway" || kind == "ListenerSet" || ROUTES.contains(&kind),
        _ => false,
    }
}

impl Found {
    pub fn key(&self) -> String {
        key(&self.group, &self.kind, &self.namespace, &self.name)
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.body["metadata"]["labels"][name].as_str()
    }

    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.body["metadata"]["annotations"][name].as_str()
    }
}

impl Objects {
    /// Takes in documents. `cluster` tells the kinds, beside the usual ones, that live in no namespace.
    pub fn new(documents: &[Value], cluster: &dyn Fn(&str, &str) -> bool) -> Self {
        let mut all = Self::default();
        for document in documents {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let written = text(&document["kind"]);
            let (group, kind) = normal(group_of(document), &written);
            let metadata = &document["metadata"];
            let usual = [
                "Namespace",
                "GatewayClass",
                "CustomResourceDefinition",
                "PolicyProfile",
                "ControllerAlias",
            ];
            let mut namespace = text(&metadata["namespace"]);
            if usual.contains(&kind.as_str()) || cluster(&group, &kind) {
                namespace.clear();
            } else if namespace.is_empty() {
                namespace.push_str("default");
            }
            let found = Found {
                group,
                kind,
                namespace,
                name: text(&metadata["name"]),
                body: document.clone(),
            };
            all.add(found, written == "XListenerSet");
        }
        all
    }

    /// The Routes that generate a Route, whether that exists or not (1.9).
    pub fn generators_of<'s>(
        &'s self,
        group: &'s str,
        kind: &'s str,
    ) -> impl Iterator<Item = &'s Found> {
        self.all().filter(move |found| {
            let mut generators = self.generators.iter();
            group == GATEWAY
                && generators
                    .any(|(g, k, made)| *g == found.group && *k == found.kind && made == kind)
        })
    }

    /// Whether a backendRef names the port of a backend that is no Service (3.6).
    pub fn has_port(&self, backend: &str, port: &str) -> bool {
        let named = (backend.to_owned(), port.to_owned());
        self.backend_ports.contains(&named)
    }

    /// The ListenerSets that a Gateway admits, the oldest first (1.4, 7.5).
    pub fn sets_of(&self, gateway: &Found) -> Vec<&Found> {
        let allowed = &gateway.body["spec"]["allowedListeners"]["namespaces"];
        let admits = |namespace: &str| match allowed["from"].as_str() {
            Some("All") => true,
            Some("Same") => namespace == gateway.namespace,
            Some("Selector") => self.namespace_matches(namespace, &allowed["selector"]),
            _ => false,
        };
        let ours = |set: &&Found| {
            let parent = &set.body["spec"]["parentRef"];
            let home = parent["namespace"].as_str().unwrap_or(&set.namespace);
            let is_gateway = parent["kind"].as_str().is_none_or(|kind| kind == "Gateway");
            set.group == GATEWAY
                && set.kind == "ListenerSet"
                && is_gateway
                && parent["name"] == *gateway.name
                && home == gateway.namespace
                && admits(&set.namespace)
        };
        let mut sets: Vec<&Found> = self.all().filter(ours).collect();
        sets.sort_by_key(|set| {
            let created = set.body["metadata"]["creationTimestamp"].as_str();
            let name = format!("{}/{}", set.namespace, set.name);
            (created.is_none(), created.map(str::to_owned), name)
        });
        sets
    }

    /// The HTTP listeners of a Gateway and its ListenerSets that share a port (7.6), each port's in order.
    pub fn shared_ports(&self) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        for gateway in self
            .all()
            .filter(|o| o.group == GATEWAY && o.kind == "Gateway")
        {
            let mut ports: BTreeMap<u64, Vec<String>> = BTreeMap::new();
            for object in std::iter::once(gateway).chain(self.sets_of(gateway)) {
                let listeners = object.body["spec"]["listeners"].as_array();
                for listener in listeners.into_iter().flatten() {
                    let name = listener["name"].as_str().unwrap_or_default();
                    if listener["protocol"] == "HTTP" {
                        let port = listener["port"].as_u64().unwrap_or_default();
                        let node = format!("{}#{name}", object.key());
                        ports.entry(port).or_default().push(node);
                    }
                }
            }
            all.extend(ports.into_values().filter(|nodes| nodes.len() > 1));
        }
        all
    }

    fn add(&mut self, found: Found, other_name: bool) {
        let key = found.key();
        // Of two objects of one name the ListenerSet counts (11.47).
        if other_name && self.by_key.contains_key(&key) {
            return;
        }
        let namespace = match found.kind.as_str() {
            "Namespace" => &found.name,
            _ => &found.namespace,
        };
        if !namespace.is_empty() {
            self.namespaces.insert(namespace.clone());
        }
        for rule in found.body["spec"]["rules"].as_array().into_iter().flatten() {
            for backend in rule["backendRefs"].as_array().into_iter().flatten() {
                let part = |name: &str| backend[name].as_str();
                let namespace = part("namespace").unwrap_or(&found.namespace);
                let kind = part("kind").unwrap_or("Service");
                let name = part("name").unwrap_or_default();
                if ROUTES.contains(&found.kind.as_str()) {
                    let group = part("group").unwrap_or("");
                    let backend_key = self::key(group, kind, namespace, name);
                    let port = backend["port"]
                        .as_u64()
                        .filter(|_| !backend_key.starts_with("Service/"));
                    let port = port.map(|port| (backend_key.clone(), port.to_string()));
                    self.backend_ports.extend(port);
                    self.backends.insert(backend_key);
                }
            }
        }
        self.by_key.insert(key, found);
    }

    pub fn get(&self, key: &str) -> Option<&Found> {
        self.by_key.get(key)
    }

    pub fn all(&self) -> impl Iterator<Item = &Found> {
        self.by_key.values()
    }

    /// Whether a node exists: an object, a backend that a reference names, a namespace that something
    /// lives in.
    pub fn exists(&self, key: &str) -> bool {
        let namespace = key.strip_prefix("Namespace/");
        self.by_key.contains_key(key)
            || (self.backends.contains(key) && !key.starts_with("Service/"))
            || namespace.is_some_and(|name| self.namespaces.contains(name))
    }

    /// The labels of a namespace match (1.2).
    pub fn namespace_matches(&self, namespace: &str, selector: &Value) -> bool {
        let found = self.by_key.get(&format!("Namespace/{namespace}"));
        let label = |name: &str| match name {
            "kubernetes.io/metadata.name" => Some(namespace),
            _ => found.and_then(|found| found.label(name)),
        };
        matches(selector, &label)
    }
}

/// Whether labels match a selector of `matchLabels` and `matchExpressions`.
pub fn matches<'l>(selector: &Value, label: &dyn Fn(&str) -> Option<&'l str>) -> bool {
    let mut exact = selector["matchLabels"].as_object().into_iter().flatten();
    let mut expressions = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten();
    exact.all(|(name, value)| label(name) == value.as_str())
        && expressions.all(|expression| {
            let found = label(expression["key"].as_str().unwrap_or_default());
            let values = expression["values"].as_array().cloned().unwrap_or_default();
            let among = found.is_some_and(|found| values.iter().any(|value| value == found));
            match expression["operator"].as_str() {
                Some("In") => among,
                Some("NotIn") => !among,
                Some("Exists") => found.is_some(),
                Some("DoesNotExist") => found.is_none(),
                _ => false,
            }
        })
}

/// A value at a dotted path; a step may end in an index, `tracing[0]`, or in what an item has, `filters[type=CORS]`.
pub fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut found = value;
    for step in path.split('.') {
        let (name, item) = match step.strip_suffix(']').and_then(|s| s.split_once('[')) {
            Some((name, item)) => (name, item),
            None => (step, ""),
        };
        found = found.get(name)?;
        if let Some((field, text)) = item.split_once('=') {
            found = found.as_array()?.iter().find(|item| item[field] == text)?;
        } else if let Ok(index) = item.parse::<usize>() {
            found = found.get(index)?;
        }
    }
    Some(found)
}

/// The index of the first rule of that name (11.38).
pub fn rule_named(route: &Value, name: &str) -> Option<usize> {
    let rules = route["spec"]["rules"].as_array()?;
    rules.iter().position(|rule| rule["name"] == name)
}
