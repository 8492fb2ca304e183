//! Random worlds from a seed: the objects of the Gateway API, and policies of random kinds.

use serde_json::{Value, json};

use super::policies;
use super::profiles::{self, EXTERNAL};
use super::rng::Rng;
use super::vocabulary;

const NAMESPACES: [&str; 3] = ["a-b", "a", "shop"];
/// Makes other random numbers of a seed.
const MORE: u64 = 0x5EED_0F0A_DDED_0001;
const HOSTS: [&str; 4] = [
    "*.example.com",
    "shop.example.com",
    "a.shop.example.com",
    "other.org",
];

/// A world.
pub struct World {
    pub seed: u64,
    pub profiles: Vec<Value>,
    pub objects: Vec<Value>,
}

/// What can be named: kind, namespace, name, sections.
#[derive(Clone, Debug)]
pub struct TargetCandidate {
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    pub sections: Vec<String>,
    /// Listeners of the ListenerSets of a Gateway.
    pub others: Vec<String>,
}

struct Builder {
    rng: Rng,
    /// Decides what is added to a world, so that the rest of it stays what it was.
    more: Rng,
    objects: Vec<Value>,
    places: Vec<TargetCandidate>,
}

impl World {
    /// The world of a seed.
    pub fn new(seed: u64) -> Self {
        let mut builder = Builder {
            rng: Rng::new(seed),
            more: Rng::new(seed ^ MORE),
            objects: Vec::new(),
            places: Vec::new(),
        };
        builder.topology();
        let Builder {
            mut rng,
            mut more,
            mut objects,
            places,
        } = builder;
        let mut profiles = Vec::new();
        for number in 0..rng.within(1, 3) {
            let profile = profiles::profile(&mut rng, &mut more, number);
            if rng.percent(80) {
                objects.push(profiles::definition(&mut rng, &profile));
            }
            policies::policies((&mut rng, &mut more), &profile, &places, &mut objects);
            profiles.push(profile);
        }
        super::filters::add(seed, &mut objects);
        super::delegation::add(seed, &mut profiles, &mut objects);
        super::waypoints::add(seed, &mut profiles, &mut objects);
        super::sections::add(seed, &mut profiles, &mut objects);
        Self {
            seed,
            profiles,
            objects,
        }
    }

    /// Everything that a source would deliver.
    pub fn documents(&self) -> Vec<Value> {
        self.profiles.iter().chain(&self.objects).cloned().collect()
    }
}

impl Builder {
    fn topology(&mut self) {
        for (name, controller) in [("gc", "example.com/one"), ("gd", "example.com/two")] {
            self.objects.push(json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
                "metadata": {"name": name}, "spec": {"controllerName": controller},
            }));
            self.note("GatewayClass", "", name, &[]);
        }
        for namespace in NAMESPACES {
            self.objects.push(json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace, "labels": {"team": namespace}},
            }));
            self.note("Namespace", namespace, namespace, &[]);
        }
        for number in 0..self.rng.within(1, 3) {
            self.gateway(number);
        }
        for number in 0..self.rng.within(1, 3) {
            self.service(number);
        }
        if self.rng.percent(30) {
            let day = self.more.below(6);
            self.listener_set("set", day);
        }
        if self.more.percent(20) {
            let day = self.more.below(6);
            std::mem::swap(&mut self.rng, &mut self.more);
            self.listener_set("other", day);
            std::mem::swap(&mut self.rng, &mut self.more);
        }
        for number in 0..self.rng.within(1, 4) {
            self.route(number);
        }
        if self.rng.percent(40) {
            self.mesh_route();
        }
        if self.rng.percent(60) {
            self.grants();
        }
    }

    fn note(&mut self, kind: &'static str, namespace: &str, name: &str, sections: &[String]) {
        self.places.push(TargetCandidate {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            sections: sections.to_vec(),
            others: Vec::new(),
        });
    }

    fn metadata(&mut self, namespace: &str, name: &str) -> Value {
        let label = self.rng.pick(&["red", "blue"]);
        let mut metadata =
            json!({"name": name, "namespace": namespace, "labels": {"color": label}});
        vocabulary::annotate(&mut self.rng, &mut metadata);
        metadata
    }

    /// Now and then an object has fields of its own that a policy may know, too (specification 6.4).
    fn with_own(&mut self, mut spec: Value) -> Value {
        if self.rng.percent(40) {
            spec["own"] = self
                .rng
                .choose(&[json!(7), json!({"x": 7}), json!([]), json!("")]);
        }
        spec
    }

    fn listeners(&mut self) -> (Vec<Value>, Vec<String>) {
        let mut listeners = Vec::new();
        let mut names = Vec::new();
        for number in 0..self.rng.within(1, 3) {
            let protocol = self.rng.pick(&["HTTP", "HTTP", "HTTPS", "TCP"]);
            let name = format!("l{number}");
            let mut listener = json!({"name": name, "port": 8000 + number, "protocol": protocol});
            if protocol == "HTTPS" {
                listener["tls"] = json!({"certificateRefs": [{"name": "cert"}]});
            }
            if protocol != "TCP" && self.rng.percent(30) {
                listener["hostname"] = json!(self.rng.pick(&HOSTS));
            }
            if self.rng.percent(80) {
                listener["allowedRoutes"] = json!({"namespaces": {"from": "All"}});
            }
            listeners.push(listener);
            names.push(name);
        }
        (listeners, names)
    }

    fn gateway(&mut self, number: usize) {
        let namespace = self.rng.pick(&NAMESPACES);
        let name = format!("gw{number}");
        let (listeners, sections) = self.listeners();
        // Of the last nobody knows what it is (2.6): the object is missing.
        let class = self.rng.pick(&["gc", "gc", "gc", "gd", "none"]);
        let spec = self.with_own(json!({
            "gatewayClassName": class,
            "listeners": listeners,
            "allowedListeners": {"namespaces": {"from": "All"}},
        }));
        let metadata = self.metadata(namespace, &name);
        self.objects.push(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": metadata, "spec": spec,
        }));
        self.note("Gateway", namespace, &name, &sections);
    }

    /// A ListenerSet that was created on a day of the month; on the first ones none is said.
    fn listener_set(&mut self, name: &str, day: usize) {
        let Some(gateway) = self.one("Gateway") else {
            return;
        };
        let namespace = self.rng.pick(&NAMESPACES);
        let (listeners, sections) = self.listeners();
        let mut metadata = self.metadata(namespace, name);
        if day > 2 {
            metadata["creationTimestamp"] = json!(format!("2026-01-0{day}T00:00:00Z"));
        }
        // Another name of the kind (11.47).
        let (group, kind) = match self.rng.percent(30) {
            true => ("gateway.networking.x-k8s.io", "XListenerSet"),
            false => ("gateway.networking.k8s.io", "ListenerSet"),
        };
        self.objects.push(json!({
            "apiVersion": format!("{group}/v1"), "kind": kind,
            "metadata": metadata,
            "spec": {
                "parentRef": {"name": gateway.name, "namespace": gateway.namespace},
                "listeners": listeners,
            },
        }));
        // Its listeners may be named as sections of the Gateway (7.5).
        for place in &mut self.places {
            if place.kind == "Gateway" && place.name == gateway.name {
                place.others.extend(sections.iter().cloned());
            }
        }
        // Routes and policies name the first one alone, as they did before there was another.
        if name == "set" {
            self.note("ListenerSet", namespace, name, &sections);
        }
    }

    fn service(&mut self, number: usize) {
        let namespace = self.rng.pick(&NAMESPACES);
        let name = format!("svc{number}");
        let all = [
            json!({"name": "web", "port": 80}),
            json!({"name": "admin", "port": 90}),
        ];
        let ports = all[..self.rng.within(1, 2)].to_vec();
        let sections: Vec<_> = ports
            .iter()
            .map(|p| p["name"].as_str().unwrap().to_owned())
            .collect();
        let spec = self.with_own(json!({"ports": ports}));
        let metadata = self.metadata(namespace, &name);
        self.objects.push(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}),
        );
        self.note("Service", namespace, &name, &sections);
    }

    /// One of the places of a kind.
    fn one(&mut self, kind: &str) -> Option<TargetCandidate> {
        let all: Vec<_> = self
            .places
            .iter()
            .filter(|p| p.kind == kind)
            .cloned()
            .collect();
        (!all.is_empty()).then(|| self.rng.choose(&all))
    }

    fn rules(&mut self, kind: &str) -> (Vec<Value>, Vec<String>) {
        let mut rules = Vec::new();
        let mut names = Vec::new();
        for number in 0..self.rng.within(1, 3) {
            let mut rule = json!({});
            if self.rng.percent(60) {
                let name = format!("rule-{number}");
                rule["name"] = json!(name);
                names.push(name);
            }
            let mut backends = Vec::new();
            for _ in 0..self.rng.within(usize::from(kind == "TCPRoute"), 2) {
                let backend = if self.rng.percent(88) {
                    let Some(service) = self.one("Service") else {
                        continue;
                    };
                    let port = if self.rng.percent(85) { 80 } else { 90 };
                    json!({"name": service.name, "namespace": service.namespace, "port": port})
                } else {
                    self.external()
                };
                if !backends.contains(&backend) {
                    backends.push(backend);
                }
            }
            if !backends.is_empty() {
                rule["backendRefs"] = json!(backends);
            }
            if self.rng.percent(30) {
                rule["own"] = json!(9);
            }
            rules.push(rule);
        }
        (rules, names)
    }

    fn route(&mut self, number: usize) {
        let kind = self
            .rng
            .pick(&["HTTPRoute", "HTTPRoute", "GRPCRoute", "TCPRoute"]);
        let kinds = ["HTTPRoute", "GRPCRoute", "TCPRoute"];
        let kind = kinds.into_iter().find(|k| *k == kind).unwrap();
        let namespace = self.rng.pick(&NAMESPACES);
        let name = format!("r{number}");
        let mut parents: Vec<Value> = Vec::new();
        for _ in 0..self.rng.within(1, 2) {
            let parent = self
                .rng
                .pick(&["Gateway", "Gateway", "Gateway", "ListenerSet"]);
            let Some(place) = self.one(parent) else {
                continue;
            };
            let mut parent =
                json!({"kind": place.kind, "name": place.name, "namespace": place.namespace});
            if self.rng.percent(30) {
                parent["sectionName"] = json!(self.rng.choose(&place.sections));
            }
            parents.push(parent);
        }
        let (rules, sections) = self.rules(kind);
        let mut spec = self.with_own(json!({"parentRefs": parents, "rules": rules}));
        if kind != "TCPRoute" && self.rng.percent(40) {
            spec["hostnames"] = json!([self.rng.pick(&HOSTS)]);
        }
        self.push_route(kind, namespace, &name, spec, &sections);
    }

    fn push_route(
        &mut self,
        kind: &'static str,
        namespace: &str,
        name: &str,
        spec: Value,
        sections: &[String],
    ) {
        let version = if kind == "TCPRoute" { "v1alpha2" } else { "v1" };
        let metadata = self.metadata(namespace, name);
        self.objects.push(json!({
            "apiVersion": format!("gateway.networking.k8s.io/{version}"), "kind": kind,
            "metadata": metadata, "spec": spec,
        }));
        self.note(kind, namespace, name, sections);
    }

    /// A backend without an object (specification 1.4), which a profile may allow as a virtual target.
    fn external(&mut self) -> Value {
        let (group, kind) = EXTERNAL;
        let namespace = self.rng.pick(&NAMESPACES);
        let name = self.rng.pick(&["ext0", "ext1"]);
        let known = |place: &TargetCandidate| {
            place.kind == kind && place.namespace == namespace && place.name == name
        };
        if !self.places.iter().any(known) {
            self.note(kind, namespace, name, &[]);
        }
        let mut backend =
            json!({"group": group, "kind": kind, "name": name, "namespace": namespace});
        if self.rng.percent(50) {
            backend["port"] = json!(443);
        }
        backend
    }

    /// A producer route, and now and then a consumer route beside it.
    fn mesh_route(&mut self) {
        let Some(service) = self.one("Service") else {
            return;
        };
        for (number, chance) in [(0, 100), (1, 50)] {
            if !self.rng.percent(chance) {
                continue;
            }
            let other = self.rng.pick(&NAMESPACES);
            let namespace = if number == 0 {
                service.namespace.as_str()
            } else {
                other
            };
            let mut parent = json!({
                "group": "", "kind": "Service", "name": service.name,
                "namespace": service.namespace,
            });
            if self.rng.percent(30) {
                parent["port"] = json!(80);
            }
            let (rules, sections) = self.rules("HTTPRoute");
            let spec = self.with_own(json!({"parentRefs": [parent], "rules": rules}));
            self.push_route(
                "HTTPRoute",
                namespace,
                &format!("mesh{number}"),
                spec,
                &sections,
            );
        }
    }

    fn grants(&mut self) {
        for namespace in NAMESPACES {
            let from: Vec<_> = NAMESPACES
                .iter()
                .flat_map(|ns| {
                    ["HTTPRoute", "GRPCRoute", "TCPRoute"].map(|kind| {
                        json!({"group": "gateway.networking.k8s.io", "kind": kind, "namespace": ns})
                    })
                })
                .collect();
            self.objects.push(json!({
                "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
                "metadata": {"name": "all", "namespace": namespace},
                "spec": {"from": from, "to": [
                    {"group": "", "kind": "Service"},
                    {"group": EXTERNAL.0, "kind": EXTERNAL.1},
                ]},
            }));
        }
    }
}
