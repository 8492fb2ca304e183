//! Random worlds for Kuadrant from a seed, as an API server would hold them: the objects of the
//! Gateway API with their statuses, and policies that pass the validation of their CRDs.

use serde_json::{Value, json};

use super::policies;
use crate::rng::Rng;

const NAMESPACES: [&str; 3] = ["a-b", "a", "shop"];
const LISTENER_HOSTS: [&str; 3] = ["*.example.com", "shop.example.com", "a.shop.example.com"];
const ROUTE_HOSTS: [&str; 5] = [
    "*.example.com",
    "shop.example.com",
    "a.shop.example.com",
    "*.shop.example.com",
    "other.org",
];
/// The controllers whose gateways the operator configures, and another one.
pub const CONTROLLERS: [(&str, &str); 3] = [
    ("istio", "istio.io/gateway-controller"),
    ("envoy", "gateway.envoyproxy.io/gatewayclass-controller"),
    ("foreign", "example.com/gateway-controller"),
];

/// A world.
#[derive(Clone, Debug)]
pub struct World {
    /// Its seed.
    pub seed: u64,
    /// Its objects.
    pub objects: Vec<Value>,
}

/// What policies can target: kind, namespace, name, names of sections.
#[derive(Clone, Debug)]
pub struct Target {
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    pub sections: Vec<String>,
}

/// A world that is being built.
pub struct Builder {
    pub rng: Rng,
    pub objects: Vec<Value>,
    pub targets: Vec<Target>,
}

impl World {
    /// The world of a seed.
    pub fn new(seed: u64) -> Self {
        let mut builder = Builder {
            rng: Rng::new(seed),
            objects: Vec::new(),
            targets: Vec::new(),
        };
        builder.topology();
        policies::add(&mut builder);
        let mut objects = builder.objects;
        super::admission::write_statuses(&mut objects);
        Self { seed, objects }
    }
}

impl Builder {
    fn topology(&mut self) {
        for (name, controller) in CONTROLLERS {
            self.objects.push(json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
                "metadata": {"name": name}, "spec": {"controllerName": controller},
            }));
        }
        for namespace in NAMESPACES {
            self.objects.push(json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
            }));
        }
        for number in 0..self.rng.within(1, 2) {
            self.gateway(number);
        }
        if self.rng.percent(8) {
            self.listener_set();
        }
        for number in 0..self.rng.within(1, 4) {
            self.route(number);
        }
    }

    fn listeners(&mut self) -> (Vec<Value>, Vec<String>) {
        let mut listeners = Vec::new();
        let mut names = Vec::new();
        for number in 0..self.rng.within(1, 3) {
            let name = format!("l{number}");
            let protocol = self.rng.pick(&[
                "HTTP", "HTTP", "HTTP", "HTTP", "HTTPS", "HTTPS", "HTTPS", "HTTPS", "HTTPS", "TLS",
            ]);
            let mut listener = json!({"name": name, "port": 8000 + number, "protocol": protocol});
            if protocol == "HTTPS" {
                listener["tls"] = json!({
                    "mode": "Terminate",
                    "certificateRefs": [{"group": "", "kind": "Secret", "name": "cert"}],
                });
            } else if protocol == "TLS" {
                listener["tls"] = json!({"mode": "Passthrough"});
            }
            if self.rng.percent(50) {
                listener["hostname"] = json!(self.rng.pick(&LISTENER_HOSTS));
            }
            let from = if self.rng.percent(93) { "All" } else { "Same" };
            listener["allowedRoutes"] = json!({"namespaces": {"from": from}});
            listeners.push(listener);
            names.push(name);
        }
        (listeners, names)
    }

    fn gateway(&mut self, number: usize) {
        let namespace = self.rng.pick(&NAMESPACES);
        let name = format!("gw{number}");
        let (listeners, sections) = self.listeners();
        let class = self.rng.choose(&[
            "istio", "istio", "istio", "istio", "envoy", "envoy", "envoy", "foreign",
        ]);
        self.objects.push(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "gatewayClassName": class, "listeners": listeners,
                "allowedListeners": {"namespaces": {"from": "All"}},
            },
        }));
        self.note("Gateway", namespace, &name, sections);
    }

    fn listener_set(&mut self) {
        let Some(gateway) = self.one("Gateway") else {
            return;
        };
        let namespace = self.rng.pick(&NAMESPACES);
        self.objects.push(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ListenerSet",
            "metadata": {"name": "set", "namespace": namespace},
            "spec": {
                "parentRef": {
                    "group": "gateway.networking.k8s.io", "kind": "Gateway",
                    "name": gateway.name, "namespace": gateway.namespace,
                },
                "listeners": [{
                    "name": "extra", "port": 9000, "protocol": "HTTP",
                    "allowedRoutes": {"namespaces": {"from": "All"}},
                }],
            },
        }));
        // No kind of Kuadrant may target it, so the sections stay empty.
        self.note("ListenerSet", namespace, "set", Vec::new());
    }

    fn note(&mut self, kind: &'static str, namespace: &str, name: &str, sections: Vec<String>) {
        self.targets.push(Target {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            sections,
        });
    }

    /// One of the objects of a kind.
    pub fn one(&mut self, kind: &str) -> Option<Target> {
        let all: Vec<Target> = self
            .targets
            .iter()
            .filter(|target| target.kind == kind)
            .cloned()
            .collect();
        (!all.is_empty()).then(|| self.rng.choose(&all))
    }

    fn parents(&mut self) -> Vec<Value> {
        let mut parents: Vec<Value> = Vec::new();
        for _ in 0..self.rng.within(1, 2) {
            let kind = if self.rng.percent(85) {
                "Gateway"
            } else {
                "ListenerSet"
            };
            let Some(target) = self.one(kind) else {
                continue;
            };
            let mut parent = json!({
                "group": "gateway.networking.k8s.io", "kind": kind,
                "name": target.name, "namespace": target.namespace,
            });
            if !target.sections.is_empty() && self.rng.percent(30) {
                parent["sectionName"] = json!(self.rng.choose(&target.sections));
            }
            if kind == "Gateway" && self.rng.percent(4) {
                parent["port"] = json!(8000);
            }
            if !parents.contains(&parent) {
                parents.push(parent);
            }
        }
        parents
    }

    /// Rules, and the names by which Kuadrant knows them. Explicit names are unique, as the CRD
    /// demands; one may be the name that Kuadrant generates for another rule.
    fn rules(&mut self, kind: &str) -> (Vec<Value>, Vec<String>) {
        let count = self.rng.within(1, 3);
        let taken = self
            .rng
            .percent(4)
            .then(|| format!("rule-{}", self.rng.within(1, count)));
        let mut rules = Vec::new();
        let mut names = Vec::new();
        for index in 0..count {
            let matches = if kind == "HTTPRoute" {
                json!([{"path": {"type": "PathPrefix", "value": format!("/p{index}")}}])
            } else {
                json!([{"method": {"type": "Exact", "service": format!("p{index}")}}])
            };
            let mut rule = json!({"matches": matches});
            let name = match &taken {
                Some(name) if index == 0 => Some(name.clone()),
                _ => self.rng.percent(45).then(|| format!("named-{index}")),
            };
            if let Some(name) = &name {
                rule["name"] = json!(name);
            }
            names.push(name.unwrap_or_else(|| format!("rule-{}", index + 1)));
            rules.push(rule);
        }
        (rules, names)
    }

    fn route(&mut self, number: usize) {
        let kind = if self.rng.percent(70) {
            "HTTPRoute"
        } else {
            "GRPCRoute"
        };
        let namespace = self.rng.pick(&NAMESPACES);
        let parents = self.parents();
        if parents.is_empty() {
            return;
        }
        let mut kinds = vec![kind];
        if self.rng.percent(4) {
            let other = if kind == "HTTPRoute" {
                "GRPCRoute"
            } else {
                "HTTPRoute"
            };
            kinds.push(other);
        }
        let hostnames = self
            .rng
            .percent(45)
            .then(|| self.rng.some(&ROUTE_HOSTS, 35))
            .filter(|hosts| !hosts.is_empty());
        for kind in kinds {
            let (rules, sections) = self.rules(kind);
            let mut spec = json!({"parentRefs": parents, "rules": rules});
            if let Some(hostnames) = &hostnames {
                spec["hostnames"] = json!(hostnames);
            }
            let name = format!("r{number}");
            self.objects.push(json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind,
                "metadata": {"name": name, "namespace": namespace}, "spec": spec,
            }));
            self.note(kind, namespace, &name, sections);
        }
    }
}
