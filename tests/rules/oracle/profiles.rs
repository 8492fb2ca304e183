//! Random profiles over the vocabulary, valid ones only (PROFILES.md, "Refused").

use serde_json::{Value, json};

use super::rng::Rng;
use super::settings::Settings;
use super::vocabulary;

const GRANULARITIES: [&str; 6] = ["Atomic", "Field", "Rule", "Patch", "Structural", "Custom"];
pub const GROUP: &str = "oracle.example.com";
/// Reducers in CEL.
const SUM: &str = "established + challenger";
const LARGER: &str = "established > challenger ? established : challenger";

/// A kind of backends that some profiles take for virtual targets (specification 3.2).
pub const EXTERNAL: (&str, &str) = ("external.example.com", "ExternalService");
const PRESETS: [&str; 8] = [
    "direct",
    "listed",
    "gep713",
    "gep713-2023",
    "kuadrant",
    "kuadrant-rfc0009",
    "most-specific-field",
    "most-specific-whole",
];

/// A profile of the kind `P{number}`.
pub fn profile(rng: &mut Rng, more: &mut Rng, number: usize) -> Value {
    let kind = format!("P{number}");
    let mut spec = json!({
        "policy": {"group": GROUP, "kind": kind},
        "class": "Inherited",
        "controllers": [],
        "mesh": rng.percent(85),
        "namespaceReaches": rng.some(&["Gateway", "ListenerSet", "Route", "Backend"], 80),
        "effectiveTarget": rng.pick(&[
            "Every", "Every", "RouteRule", "Route", "Backend", "Listener", "BackendPort", "Gateway",
        ]),
    });
    if rng.percent(15) {
        spec["controllers"] = json!(["example.com/one"]);
    }
    targets(rng, &mut spec);
    match rng.below(9) {
        0 => unmerged(rng, &mut spec, "Direct"),
        1 => unmerged(rng, &mut spec, "Listed"),
        2 => preset(rng, &mut spec),
        _ if more.percent(12) => instances(more, &mut spec),
        _ => {
            let mut shape = Shape::new(rng);
            shape.strategies(rng);
            shape.write(rng, &mut spec);
        }
    }
    if rng.percent(8) {
        spec["scope"] = json!("Cluster");
    }
    let class = Settings::read(&json!({"spec": spec}), None).class;
    vocabulary::profile(rng, &mut spec, class);
    listener_sets(more, &mut spec);
    super::refused::random(&mut spec, class);
    let read = Settings::read(&json!({"spec": spec}), None);
    let other = (read.effective.as_deref(), format!("P{}", number ^ 1));
    super::limits::random_dependence(more, &mut spec, other);
    json!({
        "apiVersion": "entail.dev/v1alpha1", "kind": "PolicyProfile",
        "metadata": {"name": format!("p{number}s.{GROUP}")}, "spec": spec,
    })
}

/// A kind that leaves most to a preset.
fn preset(rng: &mut Rng, spec: &mut Value) {
    let name = rng.pick(&PRESETS);
    let fields = spec.as_object_mut().unwrap();
    fields.remove("class");
    fields.insert("preset".to_owned(), json!(name));
    for field in ["mesh", "namespaceReaches", "effectiveTarget"] {
        if rng.percent(50) {
            fields.remove(field);
        }
    }
    if name.starts_with("kuadrant") {
        spec["ruleMaps"] = rng.choose(&[json!(["m"]), json!(["m", "a.m"])]);
    }
    if name.starts_with("gep713") && rng.percent(30) {
        spec["sameTarget"] = json!("RejectNewer");
    }
}

/// A CRD whose schema says how some of the rules are merged (specification 5.2, structural). What it does not
/// name is open.
pub fn definition(rng: &mut Rng, profile: &Value) -> Value {
    let mut rules = json!({});
    if rng.percent(80) {
        rules["tags"] = json!({"type": "array", "x-kubernetes-list-type": "set"});
    }
    if rng.percent(50) {
        let keys = rng.choose(&[json!(["name"]), json!(["name", "port"])]);
        rules["items"] = json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object"},
        });
    }
    if rng.percent(40) {
        rules["a"] = json!({"type": "object", "x-kubernetes-map-type": "atomic"});
    }
    if rng.percent(40) {
        rules["m"] = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    }
    let mut spec = rules.clone();
    for block in ["defaults", "overrides", "override"] {
        if block == "override" && spec.get("overrides").is_some() {
            continue;
        }
        // A block that is not described takes nothing from the other (11.43).
        if rng.percent(85) {
            spec[block] = json!({"type": "object", "properties": rules.clone()});
        }
    }
    let kind = profile["spec"]["policy"]["kind"].as_str().unwrap();
    let plural = format!("{}s", kind.to_lowercase());
    let scope = profile["spec"]["scope"].as_str().unwrap_or("Namespaced");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": scope, "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": spec},
                }}},
            }],
        },
    })
}

/// A kind with fields of which several apply (specification 5.11).
fn instances(rng: &mut Rng, spec: &mut Value) {
    spec["rules"] = json!({"path": "spec", "defaults": [], "overrides": []});
    spec["strategies"] = json!(["RuleDefaults"]);
    spec["strategy"] = json!({"owner": "Higher"});
    spec["ruleMaps"] = json!(["m"]);
    spec["sameTarget"] = json!(rng.pick(&[
        "Established",
        "OldestWins",
        "OldestWins",
        "RejectNewer",
        "UnionOrReject",
    ]));
    let all = [
        json!({"path": "x", "key": "ref", "disable": "off"}),
        json!({"path": "y", "key": "ref.name"}),
    ];
    spec["instances"] = json!(all[..rng.within(1, 2)]);
}

/// A kind whose policies are not merged (specification 7, 8).
fn unmerged(rng: &mut Rng, spec: &mut Value, class: &str) {
    spec["class"] = json!(class);
    spec["rules"] = json!({"path": "spec", "defaults": [], "overrides": []});
    if class == "Direct" {
        spec["strategies"] = json!(["None"]);
        spec["sameTarget"] = json!(rng.pick(&["RejectNewer", "RejectNewer", "RejectAll"]));
        if rng.percent(50) {
            spec.as_object_mut().unwrap().remove("effectiveTarget");
        }
    } else {
        spec["sameTarget"] = json!(rng.pick(&["Established", "RejectNewer", "RejectAll"]));
    }
}

/// How policies reach ListenerSets, and whether those of one port conflict (specification 7.5, 7.6).
fn listener_sets(rng: &mut Rng, spec: &mut Value) {
    let direct = spec["class"] == "Direct" || spec["preset"] == "direct";
    let above =
        ["Gateway", "GatewayClass"].contains(&spec["effectiveTarget"].as_str().unwrap_or(""));
    let has = |kind: &str| {
        let targets = spec["targets"].as_array();
        targets.is_none_or(|all| all.iter().any(|target| target["kind"] == kind))
    };
    let (sets, namespaces) = (has("ListenerSet"), has("Namespace"));
    let mut settings = json!({});
    if rng.percent(if direct { 60 } else { 20 }) {
        let from = rng.percent(if direct { 70 } else { 20 });
        let refused = match from {
            true => direct && sets && namespaces,
            false => above && !(direct && sets),
        };
        if !refused {
            settings["fromGateway"] = json!(from);
        }
    }
    if direct && sets && rng.percent(50) {
        settings["gatewaySections"] = json!(true);
    }
    if settings != json!({}) {
        spec["listenerSets"] = settings;
    }
    if direct && rng.percent(40) {
        spec["conflicts"] = json!("Port");
    }
}

/// Which kinds may be targets; default now and then.
fn targets(rng: &mut Rng, spec: &mut Value) {
    if rng.percent(15) {
        spec["virtualTargets"] = json!([{"group": EXTERNAL.0, "kind": EXTERNAL.1}]);
    }
    if rng.percent(50) {
        return;
    }
    let gateway = "gateway.networking.k8s.io";
    let mut targets =
        vec![json!({"group": gateway, "kind": "Gateway", "sections": rng.percent(80)})];
    if rng.percent(60) {
        targets.push(json!({"group": gateway, "kind": "GatewayClass", "sections": false}));
    }
    let others = [
        (EXTERNAL.0, EXTERNAL.1),
        (gateway, "HTTPRoute"),
        (gateway, "GRPCRoute"),
        (gateway, "ListenerSet"),
        ("", "Service"),
        ("", "Namespace"),
    ];
    for (group, kind) in rng.some(&others, 75) {
        targets.push(json!({"group": group, "kind": kind}));
    }
    spec["targets"] = json!(targets);
}

/// The settings that exclude each other.
struct Shape {
    top_down: bool,
    lower: bool,
    blocks: bool,
    both: bool,
    same_target: &'static str,
    own: bool,
    offered: Vec<String>,
}

impl Shape {
    fn new(rng: &mut Rng) -> Self {
        let same_target = rng.choose(&[
            "Established",
            "Established",
            "Established",
            "OldestWins",
            "RejectNewer",
            "UnionOrReject",
            "RejectAll",
        ]);
        let top_down = rng.percent(15) && same_target != "OldestWins";
        let lower = !top_down && rng.percent(12) && same_target != "OldestWins";
        let blocks = !lower && rng.percent(65);
        Self {
            top_down,
            lower,
            blocks,
            both: blocks && !top_down && rng.percent(70),
            same_target,
            own: !lower && !top_down && rng.percent(15),
            offered: Vec::new(),
        }
    }

    fn strategies(&mut self, rng: &mut Rng) {
        let mut usable: Vec<&str> = GRANULARITIES.to_vec();
        if self.same_target == "OldestWins" {
            usable.retain(|g| *g != "Custom");
        }
        if self.own {
            usable.retain(|g| ["Field", "Patch", "Structural"].contains(g));
        }
        rng.shuffle(&mut usable);
        let kept = rng.within(1, 3).min(usable.len());
        let mut offered = Vec::new();
        for granularity in &usable[..kept] {
            for direction in rng.some(&["Defaults", "Overrides"], 80) {
                offered.push(format!("{granularity}{direction}"));
            }
        }
        if offered.is_empty() {
            offered.push(format!("{}Defaults", usable[0]));
        }
        rng.shuffle(&mut offered);
        self.offered = offered;
    }

    fn offers(&self, word: &str) -> bool {
        self.offered.iter().any(|s| s.contains(word))
    }

    fn write(&self, rng: &mut Rng, spec: &mut Value) {
        let plain = self.same_target != "OldestWins" && !self.top_down;
        let block = |direction: &str, name: &str| {
            if self.blocks && self.offers(direction) {
                json!([name])
            } else {
                json!([])
            }
        };
        let guards = self.blocks && !self.top_down;
        let unset = !self.top_down && !self.lower && rng.percent(35);
        spec["rules"] = json!({
            "path": "spec",
            "defaults": block("Defaults", "defaults"),
            "overrides": block("Overrides", "overrides"),
            "bothBlocks": self.both,
            "mixWithBare": self.both && plain && rng.percent(20),
            "when": if guards && rng.percent(40) { json!("when") } else { Value::Null },
            "unset": if unset { json!("unset") } else { Value::Null },
        });
        spec["strategies"] = json!(self.offered);
        self.choice(rng, spec);
        self.details(rng, spec);
        spec["fold"] = json!(if self.top_down { "TopDown" } else { "BottomUp" });
        spec["sameTarget"] = json!(self.same_target);
        if rng.percent(25) {
            let levels = rng.some(&["Gateway", "ListenerSet", "Listener", "Route"], 60);
            spec["span"] = if levels.is_empty() || rng.percent(50) {
                json!("ClosestParent")
            } else {
                json!({"closestParent": levels})
            };
        }
    }

    fn choice(&self, rng: &mut Rng, spec: &mut Value) {
        let mut choice = json!({"owner": if self.lower { "Lower" } else { "Higher" }});
        if self.offered.len() > 1 {
            choice["field"] = json!("strategy");
            if rng.percent(30) {
                choice["values"] = self
                    .offered
                    .iter()
                    .map(|s| (format!("x{s}"), json!(s)))
                    .collect();
            }
            if rng.percent(40) {
                choice["default"] = json!(rng.choose(&self.offered));
            }
        }
        spec["strategy"] = choice;
    }

    fn details(&self, rng: &mut Rng, spec: &mut Value) {
        if self.offers("Rule") {
            spec["ruleMaps"] = rng.choose(&[json!(["m"]), json!(["m", "a.m"])]);
        }
        if self.offers("Structural") {
            spec["listKeys"] = rng.choose(&[json!({"items": "name"}), json!({})]);
        }
        if rng.percent(30) {
            spec["atomicPaths"] = rng.choose(&[
                json!(["a"]),
                json!(["a.m"]),
                json!(["m.e1", "n"]),
                json!(["tags", "items.v"]),
                json!(["items", "m.*.v"]),
            ]);
        }
        if self.offers("Custom") {
            let lists = ["union", "intersection", "append", "prepend"];
            let number = [
                json!("min"),
                json!("max"),
                json!({"cel": SUM}),
                json!({"cel": LARGER}),
            ];
            spec["reducers"] = json!([
                {"path": "n", "reduce": rng.choose(&number)},
                {"path": "m.*.v", "reduce": rng.pick(&["min", "max"])},
                {"path": "flag", "reduce": rng.pick(&["and", "or"])},
                {"path": "tags", "reduce": rng.pick(&lists)},
            ]);
        }
        self.reducers_under_strategies(rng, spec);
        self.fields_of_objects(rng, spec);
        match rng.below(10) {
            0 | 1 => spec["empty"] = json!("Blocking"),
            2 => spec["emptyUnless"] = json!(["a", "m.e1"]),
            3 => spec["empty"] = json!("ByStrategy"),
            _ => {}
        }
    }

    fn reducers_under_strategies(&self, rng: &mut Rng, spec: &mut Value) {
        let merging = ["Patch", "Structural"].into_iter().find(|g| self.offers(g));
        if let Some(granularity) = merging.filter(|_| self.same_target != "OldestWins")
            && rng.percent(30)
        {
            let mut reducers = spec["reducers"].as_array().cloned().unwrap_or_default();
            let under = rng.choose(&[
                json!([format!("{granularity}Defaults")]),
                json!([
                    format!("{granularity}Defaults"),
                    format!("{granularity}Overrides")
                ]),
            ]);
            for (path, reduce) in [("tags", rng.pick(&["append", "prepend"])), ("n", "max")] {
                reducers.push(json!({"path": path, "reduce": reduce, "strategies": under}));
            }
            spec["reducers"] = json!(reducers);
        }
    }

    fn fields_of_objects(&self, rng: &mut Rng, spec: &mut Value) {
        if self.own {
            spec["ownFields"] = json!([
                {"object": "spec.own", "policy": rng.pick(&["n", "a"])},
                {"object": "spec.rules[*].own", "policy": "flag"},
            ]);
        }
        if rng.percent(15) {
            let mut fields = spec["ownFields"].as_array().cloned().unwrap_or_default();
            let policy = rng.pick(&["b", "m.e1", "items"]);
            fields.push(json!({"object": "spec.own", "policy": policy, "mode": "Replace"}));
            fields.push(json!({"object": "spec.rules[*].own", "policy": "m", "mode": "Replace"}));
            spec["ownFields"] = json!(fields);
        }
    }
}
