//! Waypoints of Services (specification 2.12), from the labels and annotations of objects.

use serde_json::{Value, json};

use super::objects::{Found, GATEWAY, Objects, key};
use super::place::{KnownControllers, fits_controller};
use super::rng::Rng;
use super::settings::{Settings, texts};
use super::trail::{Step, Trail};

/// What serves the mesh paths of a Service.
pub enum Waypoint {
    /// Nothing.
    None,
    /// A Gateway.
    Gateway(Found),
    /// One of these Gateways, or another.
    Unknown(Vec<Found>),
}

/// A kind with what the documents say.
struct Reader<'r> {
    kind: &'r Settings,
    objects: &'r Objects,
    known: &'r KnownControllers,
}

/// The waypoint of a Service, by the key of the Service.
pub fn waypoint(
    kind: &Settings,
    objects: &Objects,
    known: &KnownControllers,
    service: &str,
) -> Waypoint {
    let reader = Reader {
        kind,
        objects,
        known,
    };
    let settings = &kind.waypoints;
    let service = objects.get(service).unwrap();
    let except = &settings["except"];
    let excepted = except["label"]
        .as_str()
        .and_then(|name| service.label(name));
    if excepted.is_some_and(|value| texts(&except["values"]).contains(&value.to_owned())) {
        return Waypoint::None;
    }
    let above = objects.get(&format!("Namespace/{}", service.namespace));
    let label = settings["label"].as_str().unwrap();
    let mut objects = vec![service];
    if service.label(label).is_none() {
        objects.extend(above);
    }
    let Some(first) = objects.iter().find(|o| o.label(label).is_some()) else {
        return Waypoint::None;
    };
    if first.label(label) == settings["optOut"].as_str() {
        return Waypoint::None;
    }
    let name = named(settings, first, &service.namespace);
    let found = reader.gateway(&name, &service.namespace);
    let Waypoint::Gateway(gateway) = &found else {
        return found;
    };
    let canary = &settings["canary"];
    let Some(label) = canary["label"].as_str() else {
        return found;
    };
    let weight = canary["weight"].as_str().unwrap();
    let mut weights = objects.iter().filter_map(|o| o.annotation(weight));
    let part = weights.next().and_then(|part| part.parse::<i64>().ok());
    let holder = objects.iter().find(|o| o.label(label).is_some());
    let (Some(1..=100), Some(holder)) = (part, holder) else {
        return found;
    };
    let other = named(canary, holder, &service.namespace);
    let opted_out = holder.label(label) == settings["optOut"].as_str();
    if other == name || opted_out || holder.label(label) == Some("") {
        return found;
    }
    match reader.gateway(&other, &service.namespace) {
        Waypoint::None => found,
        Waypoint::Gateway(other) => Waypoint::Unknown(vec![gateway.clone(), other]),
        Waypoint::Unknown(_) => Waypoint::Unknown(vec![gateway.clone()]),
    }
}

/// The key of the Gateway that the labels of an object name.
fn named(labels: &Value, object: &Found, namespace: &str) -> String {
    let label = |name: &Value| name.as_str().and_then(|name| object.label(name));
    let namespace = label(&labels["namespaceLabel"]).unwrap_or(namespace);
    key(
        GATEWAY,
        "Gateway",
        namespace,
        label(&labels["label"]).unwrap(),
    )
}

impl Reader<'_> {
    /// Points 3 to 6.
    fn gateway(&self, key: &str, namespace: &str) -> Waypoint {
        let settings = &self.kind.waypoints;
        let Some(gateway) = self.objects.get(key) else {
            return Waypoint::Unknown(Vec::new());
        };
        let spec = &gateway.body["spec"];
        let listener = &settings["listener"];
        if listener.is_object() {
            let mut listeners = spec["listeners"].as_array().into_iter().flatten();
            let found = listeners.find(|found| {
                found["protocol"] == listener["protocol"] && found["port"] == listener["port"]
            });
            let allowed = found.map(|found| &found["allowedRoutes"]["namespaces"]);
            let admits = match allowed.and_then(|allowed| allowed["from"].as_str()) {
                Some("All") => true,
                Some("Selector") => {
                    let selector = &allowed.unwrap()["selector"];
                    self.objects.namespace_matches(namespace, selector)
                }
                _ => gateway.namespace == namespace,
            };
            if !admits {
                return Waypoint::None;
            }
        }
        let class = spec["gatewayClassName"].as_str().unwrap_or_default();
        let class = self.objects.get(&format!("GatewayClass/{class}"));
        let traffic = &settings["traffic"];
        if let Some(label) = traffic["label"].as_str() {
            let objects = [Some(gateway), class].into_iter().flatten();
            let mut values = objects.filter_map(|object| object.label(label));
            let value = values.next();
            if value.is_some_and(|v| !texts(&traffic["values"]).contains(&v.to_owned())) {
                return Waypoint::None;
            }
        }
        let name = class.and_then(|class| class.body["spec"]["controllerName"].as_str());
        let names = self.known.names(name);
        let fits = |entries: &[String]| {
            let fits = |name: &String| entries.iter().any(|entry| fits_controller(entry, name));
            names.iter().any(fits)
        };
        let serving = texts(&settings["controllers"]);
        if fits(&self.kind.controllers) && !serving.is_empty() && !fits(&serving) {
            return Waypoint::None;
        }
        Waypoint::Gateway(gateway.clone())
    }
}

impl Trail {
    /// Puts the waypoint of the mesh root above it.
    pub fn put_behind(&mut self, kind: &Settings, objects: &Objects, known: &KnownControllers) {
        if !self.mesh || kind.waypoints.is_null() {
            return;
        }
        let service = self.steps[0].node.clone();
        let (gateways, is_known) = match waypoint(kind, objects, known, &service) {
            Waypoint::None => return self.bars = true,
            Waypoint::Gateway(gateway) => (vec![gateway], true),
            Waypoint::Unknown(gateways) => (gateways, false),
        };
        self.behind = true;
        self.undecided = !is_known;
        let (mut classes, mut above) = (Vec::new(), Vec::new());
        for gateway in &gateways {
            let class = gateway.body["spec"]["gatewayClassName"].as_str();
            let node = format!("GatewayClass/{}", class.unwrap_or_default());
            if is_known {
                self.class = Some(class.unwrap_or_default().to_owned());
                let own = service.split('/').nth(1) == Some(&gateway.namespace);
                self.waypoint = Some(if own { "Same" } else { "Other" });
            }
            if objects.get(&node).is_some() && !classes.contains(&node) {
                classes.push(node);
            }
            above.push(Step {
                node: gateway.key(),
                level: "Gateway",
                namespace: Some(gateway.namespace.clone()),
                object: gateway.key(),
                rule: None,
            });
        }
        let classes = classes.into_iter().map(|node| Step {
            object: node.clone(),
            node,
            level: "GatewayClass",
            namespace: None,
            rule: None,
        });
        self.steps.splice(0..0, classes.chain(above));
    }
}

/// Adds waypoints to some worlds, without a change to what else is in them.
pub fn add(seed: u64, profiles: &mut [Value], objects: &mut [Value]) {
    let mut rng = Rng::new(seed ^ 0x3A77_0123);
    if !rng.percent(50) {
        return;
    }
    for profile in profiles {
        add_to(&mut rng, &mut profile["spec"]);
    }
    let gateways = gateways(objects.iter());
    for object in objects {
        label(&mut rng, object, &gateways);
    }
}

fn add_to(rng: &mut Rng, spec: &mut Value) {
    let direct = spec["class"] == "Direct" || spec["preset"] == "direct";
    let above = spec["effectiveTarget"] == "GatewayClass";
    if direct || above || spec["mesh"] == false || !rng.percent(70) {
        return;
    }
    let mut waypoints = json!({"label": "way"});
    let canary = json!({"label": "canary", "namespaceLabel": "way-ns", "weight": "weight"});
    let settings = [
        ("namespaceLabel", json!("way-ns"), 80),
        ("optOut", json!("none"), 50),
        (
            "traffic",
            json!({"label": "way-for", "values": ["service", "all"]}),
            40,
        ),
        ("listener", json!({"protocol": "HTTP", "port": 8000}), 40),
        ("controllers", json!(["example.com/one"]), 30),
        ("except", json!({"label": "color", "values": ["blue"]}), 15),
        ("canary", canary, 50),
    ];
    for (name, value, chance) in settings {
        if rng.percent(chance) {
            waypoints[name] = value;
        }
    }
    spec["waypoints"] = waypoints;
    spec["status"]["ancestor"] = json!(rng.pick(&["None", "Target"]));
    if rng.percent(30) {
        let mut limits = spec["limits"].as_array().cloned().unwrap_or_default();
        let mut limit = rng.choose(&[
            json!({"waypointNamespace": "Other", "targets": ["Gateway"]}),
            json!({"waypointNamespace": "Same", "fields": ["a", "m"]}),
            json!({"mesh": false, "targets": ["Service"]}),
            json!({"mesh": true, "fields": ["a", "n", "tags"]}),
            json!({"controllers": ["example.com/t*"], "fields": ["m"]}),
        ]);
        let is_target = |kind: &Value| match spec["targets"].as_array() {
            Some(targets) => targets.iter().any(|target| target["kind"] == *kind),
            None => true,
        };
        if !is_target(&limit["targets"][0]) {
            limit.as_object_mut().unwrap().remove("targets");
        }
        limits.push(limit);
        spec["limits"] = json!(limits);
    }
}

/// The namespaces and names of Gateways.
pub fn gateways<'v>(documents: impl Iterator<Item = &'v Value>) -> Vec<(String, String)> {
    let gateways = documents.filter(|document| document["kind"] == "Gateway");
    let part = |metadata: &Value, name: &str| metadata[name].as_str().unwrap().to_owned();
    gateways
        .map(|document| {
            let metadata = &document["metadata"];
            (part(metadata, "namespace"), part(metadata, "name"))
        })
        .collect()
}

/// Sets labels of an object by which waypoints go.
pub fn label(rng: &mut Rng, document: &mut Value, gateways: &[(String, String)]) {
    let chance = match document["kind"].as_str().unwrap_or_default() {
        "Service" => 60,
        "Namespace" => 30,
        "Gateway" | "GatewayClass" if rng.percent(20) => {
            let value = rng.pick(&["service", "all", "workload"]);
            document["metadata"]["labels"]["way-for"] = json!(value);
            return;
        }
        _ => return,
    };
    if gateways.is_empty() || !rng.percent(chance) {
        return;
    }
    let (namespace, name) = rng.choose(gateways);
    let value = rng.choose(&[name.as_str(), name.as_str(), name.as_str(), "gone", "none"]);
    let metadata = &mut document["metadata"];
    metadata["labels"]["way"] = json!(value);
    if rng.percent(80) {
        metadata["labels"]["way-ns"] = json!(namespace);
    }
    if rng.percent(25) {
        metadata["labels"]["canary"] = json!(rng.choose(gateways).1);
        if rng.percent(80) {
            metadata["annotations"]["weight"] = json!(rng.pick(&["0", "10", "100", "x"]));
        }
    }
}
