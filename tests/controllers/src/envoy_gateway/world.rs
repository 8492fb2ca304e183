//! Random worlds: the objects of the Gateway API and of Envoy Gateway, and policies on them.

use serde_json::{Value, json};

use super::policies;
use crate::rng::Rng;

/// The controllerName that the judge serves.
pub const CONTROLLER: &str = "gateway.envoyproxy.io/gatewayclass-controller";

/// Another name of it.
const RENAMED: &str = "example.com/renamed";

/// The namespaces of a world.
pub const NAMESPACES: [&str; 3] = ["infra", "team-a", "team-b"];

const HOSTS: [&str; 4] = [
    "*.example.com",
    "shop.example.com",
    "a.shop.example.com",
    "other.org",
];
const TIMES: [&str; 4] = [
    "2025-01-01T00:00:00Z",
    "2025-01-02T00:00:00Z",
    "2025-01-02T00:00:00Z",
    "2025-01-03T00:00:00Z",
];

/// An object that policies can target.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its listeners or named rules.
    pub sections: Vec<String>,
}

/// Creates objects, and keeps what they can be referenced by.
#[derive(Debug)]
pub struct Builder {
    /// The source of all decisions.
    pub rng: Rng,
    /// The objects so far.
    pub objects: Vec<Value>,
    /// What policies can target.
    pub targets: Vec<Target>,
    parents: Vec<Parent>,
}

/// A Gateway or ListenerSet with its listeners and their protocols.
#[derive(Clone, Debug)]
struct Parent {
    kind: &'static str,
    namespace: String,
    name: String,
    listeners: Vec<(String, &'static str)>,
}

/// Says what the controllers of a world are, as the operator of such a cluster would.
pub fn aliases(objects: &[Value]) -> Vec<Value> {
    let classes = objects
        .iter()
        .filter(|object| object["kind"] == "GatewayClass");
    let names = classes.filter_map(|class| class["spec"]["controllerName"].as_str());
    let alias = |name: &str| {
        let profiles = match name {
            RENAMED => "gateway.envoyproxy.io",
            _ => "gateway.kgateway.dev",
        };
        json!({
            "apiVersion": "entail.dev/v1alpha1", "kind": "ControllerAlias",
            "metadata": {"name": name.replace('/', "-")},
            "spec": {"controllerName": name, "profiles": profiles},
        })
    };
    names
        .filter(|name| *name != CONTROLLER)
        .map(alias)
        .collect()
}

/// Returns the objects of the world of a seed.
pub fn world(seed: u64) -> Vec<Value> {
    let mut builder = Builder {
        rng: Rng::new(seed),
        objects: Vec::new(),
        targets: Vec::new(),
        parents: Vec::new(),
    };
    builder.classes();
    builder.shared();
    for number in 0..builder.rng.within(1, 2) {
        builder.gateway(number);
    }
    for number in 0..builder.rng.within(0, 1) {
        builder.listener_set(number);
    }
    for number in 0..builder.rng.within(2, 5) {
        builder.route(number);
    }
    builder.grants();
    policies::add(&mut builder);
    builder.objects
}

impl Builder {
    fn classes(&mut self) {
        let own = if self.rng.percent(4) {
            RENAMED
        } else {
            CONTROLLER
        };
        for (name, controller) in [("eg", own), ("foreign", "example.com/another")] {
            self.objects.push(json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
                "metadata": {"name": name}, "spec": {"controllerName": controller},
            }));
        }
    }

    /// The objects that policies and routes name, in every namespace with other values.
    fn shared(&mut self) {
        self.own_secret();
        for namespace in NAMESPACES {
            let team = json!({"team": namespace});
            self.objects.push(json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": team},
            }));
            for service in ["web", "api", "auth"] {
                self.service(namespace, service);
            }
            self.secret(
                namespace,
                "users",
                json!({".htpasswd": format!("{namespace}:{{SHA}}W6ph5Mm5Pz8GgiULbPgzG37mj9g=")}),
            );
            self.secret(
                namespace,
                "keys",
                json!({"client": format!("key-{namespace}")}),
            );
            self.secret(
                namespace,
                "client",
                json!({"client-secret": format!("secret-{namespace}")}),
            );
            self.objects.push(json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ca", "namespace": namespace},
                "data": {"ca.crt": "@CERTIFICATE@"},
            }));
            self.objects.push(json!({
                "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "Backend",
                "metadata": {"name": "far", "namespace": namespace},
                "spec": {"endpoints": [{"fqdn": {"hostname": format!("{namespace}.test"), "port": 443}}]},
            }));
        }
    }

    /// The secret that Envoy Gateway makes for itself, for cookies.
    fn own_secret(&mut self) {
        let namespace = "envoy-gateway-system";
        self.secret(
            namespace,
            "envoy-oidc-hmac",
            json!({"hmac-secret": "secret"}),
        );
    }

    fn service(&mut self, namespace: &str, name: &str) {
        let ports = [("http", 80), ("alt", 81), ("grpc", 9000)];
        let of = |port: &(&str, u32)| json!({"name": port.0, "port": port.1, "protocol": "TCP"});
        let ports: Vec<Value> = ports.iter().map(of).collect();
        self.objects.push(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterIP": "10.0.0.1", "ports": ports},
        }));
        self.objects.push(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4", "ports": ports,
            "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": true}}],
        }));
    }

    fn secret(&mut self, namespace: &str, name: &str, data: Value) {
        // The API server turns stringData into data; the judge reads data alone.
        let encoded: serde_json::Map<String, Value> = data
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| {
                (
                    key.clone(),
                    base64(value.as_str().unwrap_or_default()).into(),
                )
            })
            .collect();
        self.objects.push(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
            "data": encoded,
        }));
    }

    /// The metadata of an object with a label and a time, which may be equal to another's.
    pub fn metadata(&mut self, namespace: &str, name: &str) -> Value {
        let color = self.rng.pick(&["red", "blue"]);
        let time = self.rng.pick(&TIMES);
        json!({"name": name, "namespace": namespace, "labels": {"color": color}, "creationTimestamp": time})
    }

    fn gateway(&mut self, number: usize) {
        let namespace = self.rng.pick(&["infra", "team-a"]).to_owned();
        let name = format!("gw-{number}");
        let class = if self.rng.percent(10) {
            "foreign"
        } else {
            "eg"
        };
        let (listeners, names) = self.listeners(true);
        let metadata = self.metadata(&namespace, &name);
        self.objects.push(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": metadata,
            "spec": {
                "gatewayClassName": class, "listeners": listeners,
                "allowedListeners": {"namespaces": {"from": "All"}},
            },
        }));
        self.note("Gateway", namespace, name, names);
    }

    fn listener_set(&mut self, number: usize) {
        let gateways: Vec<Parent> = self
            .parents
            .iter()
            .filter(|parent| parent.kind == "Gateway")
            .cloned()
            .collect();
        let Some(gateway) = gateways.get(self.rng.below(gateways.len())) else {
            return;
        };
        let namespace = self.rng.pick(&NAMESPACES).to_owned();
        let name = format!("ls-{number}");
        let (listeners, names) = self.listeners(false);
        let metadata = self.metadata(&namespace, &name);
        self.objects.push(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ListenerSet", "metadata": metadata,
            "spec": {
                "parentRef": {"name": gateway.name, "namespace": gateway.namespace}, "listeners": listeners,
            },
        }));
        self.note("ListenerSet", namespace, name, names);
    }

    fn note(
        &mut self,
        kind: &'static str,
        namespace: String,
        name: String,
        listeners: Vec<(String, &'static str)>,
    ) {
        let sections = listeners.iter().map(|(name, _)| name.clone()).collect();
        self.targets.push(Target {
            kind,
            namespace: namespace.clone(),
            name: name.clone(),
            sections,
        });
        self.parents.push(Parent {
            kind,
            namespace,
            name,
            listeners,
        });
    }

    fn listeners(&mut self, of_gateway: bool) -> (Vec<Value>, Vec<(String, &'static str)>) {
        let mut listeners = Vec::new();
        let mut names = Vec::new();
        for number in 0..self.rng.within(1, 3) {
            let protocols = ["HTTP", "HTTP", "HTTP", "HTTP", "TLS", "TCP", "UDP"];
            let protocol = self.rng.choose(&protocols);
            // Names of a ListenerSet may be those of its Gateway.
            let name = if of_gateway || self.rng.percent(30) {
                format!("l{number}")
            } else {
                format!("s{number}")
            };
            let base = if of_gateway { 8000 } else { 9000 };
            let shared = protocol == "HTTP" && self.rng.percent(30);
            let port = if shared { base } else { base + number + 1 };
            let mut listener = json!({
                "name": name, "port": port, "protocol": protocol,
                "allowedRoutes": {"namespaces": {"from": "All"}},
            });
            if protocol == "TLS" {
                listener["tls"] = json!({"mode": "Passthrough"});
            }
            if protocol == "HTTP" && (shared || self.rng.percent(30)) {
                listener["hostname"] = HOSTS.get(number).copied().unwrap_or("other.org").into();
            }
            listeners.push(listener);
            names.push((name, protocol));
        }
        (listeners, names)
    }

    fn route(&mut self, number: usize) {
        let Some(first) = self
            .parents
            .get(self.rng.below(self.parents.len()))
            .cloned()
        else {
            return;
        };
        let (section, protocol) = first
            .listeners
            .get(self.rng.below(first.listeners.len()))
            .cloned()
            .unwrap_or_default();
        let kind = match protocol {
            "TLS" => "TLSRoute",
            "TCP" => "TCPRoute",
            "UDP" => "UDPRoute",
            _ if self.rng.percent(25) => "GRPCRoute",
            _ => "HTTPRoute",
        };
        let by_section = protocol != "HTTP" || self.rng.percent(50);
        let mut parents = vec![parent_ref(&first, by_section.then_some(section.as_str()))];
        if protocol == "HTTP" && self.rng.percent(40) {
            let second = self
                .parents
                .get(self.rng.below(self.parents.len()))
                .cloned();
            if let Some(second) = second.filter(|second| second.name != first.name) {
                parents.push(parent_ref(&second, None));
            }
        }
        let namespace = self.rng.pick(&NAMESPACES).to_owned();
        let name = format!("route-{number}");
        let metadata = self.metadata(&namespace, &name);
        let mut sections = Vec::new();
        let most = if matches!(kind, "HTTPRoute" | "GRPCRoute") {
            3
        } else {
            1
        };
        let rules: Vec<Value> = (0..self.rng.within(1, most))
            .map(|index| self.rule(kind, index, &mut sections))
            .collect();
        let mut spec = json!({"parentRefs": parents, "rules": rules});
        if kind == "TLSRoute" {
            spec["hostnames"] = json!([format!("r{number}.test")]);
        } else if matches!(kind, "HTTPRoute" | "GRPCRoute") && self.rng.percent(40) {
            spec["hostnames"] = json!(self.rng.some(&HOSTS, 50));
        }
        let version = "gateway.networking.k8s.io/v1";
        self.objects
            .push(json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}));
        self.targets.push(Target {
            kind,
            namespace,
            name,
            sections,
        });
    }

    fn rule(&mut self, kind: &str, index: usize, sections: &mut Vec<String>) -> Value {
        let mut backends = Vec::new();
        for _ in 0..self.rng.within(1, 2) {
            let mut backend = match self.rng.below(10) {
                0 => json!({"group": "gateway.envoyproxy.io", "kind": "Backend", "name": "far"}),
                _ => {
                    json!({"name": self.rng.pick(&["web", "api"]), "port": self.rng.choose(&[80, 81])})
                }
            };
            if self.rng.percent(5) {
                backend = json!({"name": "missing", "port": 80});
            }
            backends.push(backend);
        }
        let mut rule = json!({"backendRefs": backends});
        if self.rng.percent(60) {
            let name = format!("rule-{index}");
            rule["name"] = name.clone().into();
            sections.push(name);
        }
        if kind == "HTTPRoute" {
            rule["matches"] =
                json!([{"path": {"type": "PathPrefix", "value": format!("/{index}")}}]);
            self.own_fields(&mut rule);
        }
        if kind == "GRPCRoute" {
            rule["matches"] = json!([{"method": {"service": format!("s{index}"), "method": "m"}}]);
        }
        rule
    }

    /// The route's own fields, which concern the same behaviour as fields of policies.
    fn own_fields(&mut self, rule: &mut Value) {
        if self.rng.percent(12) {
            rule["timeouts"] = json!({"request": "3s"});
        }
        if self.rng.percent(12) {
            rule["retry"] = json!({"attempts": 2, "codes": [503]});
        }
        if self.rng.percent(12) {
            rule["filters"] =
                json!([{"type": "CORS", "cors": {"allowOrigins": ["https://own.test"]}}]);
        }
    }

    fn grants(&mut self) {
        for to in NAMESPACES {
            if self.rng.percent(50) {
                continue;
            }
            let from: Vec<Value> = policies::KINDS
                .iter()
                .flat_map(|kind| {
                    NAMESPACES.map(|namespace| {
                    json!({"group": "gateway.envoyproxy.io", "kind": kind, "namespace": namespace})
                })
                })
                .filter(|_| self.rng.percent(60))
                .take(16)
                .collect();
            let kinds = [
                "Gateway",
                "ListenerSet",
                "HTTPRoute",
                "GRPCRoute",
                "TCPRoute",
            ];
            let to_kinds: Vec<Value> = kinds
                .iter()
                .map(|kind| json!({"group": "gateway.networking.k8s.io", "kind": kind}))
                .collect();
            if !from.is_empty() {
                self.objects.push(json!({
                    "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
                    "metadata": {"name": "grant", "namespace": to}, "spec": {"from": from, "to": to_kinds},
                }));
            }
        }
    }
}

fn parent_ref(parent: &Parent, section: Option<&str>) -> Value {
    let mut reference =
        json!({"kind": parent.kind, "name": parent.name, "namespace": parent.namespace});
    if let Some(section) = section {
        reference["sectionName"] = section.into();
    }
    reference
}

/// Encodes a text as a Secret has it.
fn base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place) & 63) as usize;
            let letter = ALPHABET
                .get(index)
                .map_or('=', |letter| char::from(*letter));
            encoded.push(if place <= chunk.len() { letter } else { '=' });
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_padded() {
        assert_eq!(base64("a"), "YQ==");
        assert_eq!(base64("ab"), "YWI=");
        assert_eq!(base64("abc"), "YWJj");
    }

    #[test]
    fn a_seed_has_one_world() {
        assert_eq!(world(7), world(7));
        assert_ne!(world(7), world(8));
    }
}
