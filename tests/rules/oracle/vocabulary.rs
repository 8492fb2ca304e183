//! The rest of the vocabulary of profiles, added to random worlds: forms of attachment, namespaces, order,
//! trust, controllers, where rules stand.

use serde_json::{Map, Value, json};

use super::limits;
use super::objects::GATEWAY;
use super::profiles::GROUP;
use super::rng::Rng;
use super::settings::{Class, CrossNamespace, Settings};
use super::worlds::TargetCandidate;

const NAMESPACES: [&str; 3] = ["a-b", "a", "shop"];
pub const STRATEGY: &str = "example.com/strategy";
const WEIGHT: &str = "example.com/weight";

/// Adds settings to a profile of a kind of this class.
pub fn profile(rng: &mut Rng, spec: &mut Value, class: Class) {
    // Of a cluster-scoped kind every namespace is another one (11.3).
    let cluster = spec["scope"] == "Cluster";
    if cluster && rng.percent(85) {
        spec["crossNamespace"] = json!("Any");
    } else if rng.percent(45) {
        spec["crossNamespace"] = json!(rng.pick(&["Any", "ReferenceGrant", "Clients"]));
    }
    if rng.percent(20) {
        spec["order"] = rng.choose(&[
            json!([{"annotation": WEIGHT, "descending": true}]),
            json!([{"field": "spec.priority"}]),
            json!([{"field": "spec.priority", "values": ["2", "1"]}, {"annotation": WEIGHT}]),
        ]);
        spec["rules"]["exclude"] = json!(["priority"]);
    }
    if rng.percent(25) {
        spec["status"] = json!({"ancestor": rng.pick(&["Target", "None", "Gateway"])});
    }
    if rng.percent(12) {
        spec["trustStatus"] = json!(true);
    }
    if rng.percent(12) {
        spec["whileDeleting"] = json!("Ignored");
    }
    if rng.percent(12) {
        spec["unnamedRules"] = json!("rule-{n}");
    }
    if rng.percent(8) {
        spec["workloadSelector"] = json!("spec.selector");
    }
    if rng.percent(10) {
        spec["maxTargets"] = json!(2);
    }
    limits::random(rng, spec);
    if spec["controllers"] != json!([]) && rng.percent(50) {
        spec["controllers"] = rng.choose(&[
            json!(["example.com/*"]),
            json!(["*.com/o*e"]),
            json!(["other.org/x", "example.com/two"]),
        ]);
    }
    if rng.percent(20) {
        spec["references"] = json!([
            {"path": "refs[*]", "oneIsEnough": rng.percent(30)},
            {"path": "auth.backend", "failOpen": "auth.open"},
            {"path": "procs[*].backend", "failOpen": "procs[*].open"},
            {"path": "config", "kind": "ConfigMap", "reason": "NoConfig"},
        ]);
    }
    // The text does not say what the namespace of a cluster-scoped policy is, nor whether a filter names one.
    if class != Class::Direct && !cluster {
        match rng.below(12) {
            0 => spec["attach"] = json!(["refs", "filter"]),
            1 => spec["attach"] = json!(["filter"]),
            2 => spec["attach"] = json!(["refs", "namespace"]),
            3 => {
                spec["attach"] = json!(["refs", "namespace"]);
                spec["rootNamespace"] = json!("shop");
            }
            _ => {}
        }
    }
    for target in spec["targets"].as_array_mut().into_iter().flatten() {
        if rng.percent(8) {
            target["fields"] = json!(rng.some(&["a", "m.e1", "n", "items"], 60));
        }
    }
    if spec["rootNamespace"] == "shop" && rng.percent(50) {
        for target in spec["targets"].as_array_mut().into_iter().flatten() {
            if rng.percent(40) {
                target["namespaces"] = json!("Root");
            }
        }
    }
    if class == Class::Inherited {
        if rng.percent(12) {
            spec["rules"]["path"] = json!("spec.conf");
        }
        if spec["strategy"].get("field").is_some() && rng.percent(15) {
            let choice = spec["strategy"].as_object_mut().unwrap();
            choice.remove("field");
            choice.insert("annotation".to_owned(), json!(STRATEGY));
        }
        field_defaults(rng, spec);
    }
}

/// Adds what fields count as that a policy leaves out (specification 5.10).
fn field_defaults(rng: &mut Rng, spec: &mut Value) {
    if spec["strategy"].get("annotation").is_none() && rng.percent(12) {
        spec["fieldDefaults"] = rng.choose(&[
            json!([{"path": "a.x"}]),
            json!([{"path": "m.e1.v", "value": 1}, {"path": "n", "value": null}]),
            json!([{"path": "flag", "value": true}]),
        ]);
    }
}

/// What an object says of the strategy of the policies that target it (specification 5.3).
pub fn annotate(rng: &mut Rng, metadata: &mut Value) {
    if rng.percent(25) {
        let names = [
            "PatchDefaults",
            "FieldOverrides",
            "atomic overrides",
            "Structural",
            "nonsense",
        ];
        metadata["annotations"] = json!({STRATEGY: rng.pick(&names)});
    }
}

/// Changes a policy of a kind: where it attaches, how old it counts, what its controller says.
#[allow(
    clippy::too_many_lines,
    reason = "one step after another, each of a few lines"
)]
pub fn policy(rng: &mut Rng, kind: &Settings, places: &[TargetCandidate], object: &mut Value) {
    let spec = object["spec"].as_object_mut().unwrap();
    for reference in spec
        .get_mut("targetRefs")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        spell(rng, kind, reference);
    }
    if let Some(reference) = spec.get_mut("targetRef") {
        spell(rng, kind, reference);
    }
    if kind.cross_namespace != CrossNamespace::Never {
        let several = spec.get_mut("targetRefs").and_then(Value::as_array_mut);
        for reference in several
            .into_iter()
            .flatten()
            .filter(|r| r.get("name").is_some())
        {
            let same = |place: &&TargetCandidate| {
                place.kind == reference["kind"] && !place.namespace.is_empty()
            };
            let others: Vec<&TargetCandidate> = places.iter().filter(same).collect();
            if others.is_empty() || !rng.percent(50) {
                continue;
            }
            let place = rng.choose(&others);
            reference["name"] = json!(place.name);
            reference["namespace"] = json!(place.namespace);
            reference.as_object_mut().unwrap().remove("sectionName");
        }
    }
    let free = kind.by_filter || kind.by_namespace;
    if free && rng.percent(60) {
        spec.remove("targetRefs");
        spec.remove("targetRef");
    } else if rng.percent(6) {
        let selectors = json!([{
            "group": GATEWAY, "kind": rng.pick(&["Gateway", "HTTPRoute"]),
            "matchExpressions": [{"key": "color", "operator": rng.pick(&["In", "NotIn"]), "values": ["red"]}],
            "namespaces": rng.choose(&[
                json!({"from": "All"}), json!({"from": "Same"}),
                json!({"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}),
            ]),
        }]);
        spec.insert("targetSelectors".to_owned(), selectors);
    }
    if kind.workload_selector.is_some() && rng.percent(40) {
        let selector = rng.choose(&[
            json!(null),
            json!({}),
            json!(""),
            json!({"matchLabels": {"app": "x"}}),
        ]);
        spec.insert("selector".to_owned(), selector);
    }
    if kind.path == "spec.conf" {
        let never = ["targetRef", "targetRefs", "targetSelectors", "selector"];
        let names: Vec<String> = spec
            .keys()
            .filter(|name| !never.contains(&name.as_str()))
            .cloned()
            .collect();
        let rules = names
            .into_iter()
            .map(|name| (name.clone(), spec.remove(&name).unwrap()));
        let rules: Value = rules.collect::<Vec<_>>().into_iter().collect();
        spec.insert("conf".to_owned(), rules);
    }
    if !kind.order.is_empty() {
        let priority = rng.choose(&[
            json!(1),
            json!(-2),
            json!("2"),
            json!(" 1 "),
            json!(null),
            json!("x"),
        ]);
        spec.insert("priority".to_owned(), priority);
        object["metadata"]["annotations"] = json!({WEIGHT: rng.pick(&["1", "2", "-1", "many"])});
    }
    if rng.percent(if kind.ignores_deleted { 40 } else { 4 }) {
        object["metadata"]["deletionTimestamp"] = json!("2026-02-01T00:00:00Z");
    }
    if kind.trust_status && rng.percent(50) {
        object["metadata"]["generation"] = json!(2);
        let mut condition = || {
            json!({
                "type": rng.pick(&["Accepted", "Accepted", "Ready"]), "reason": "TooBad",
                "status": rng.pick(&["False", "False", "True"]),
                "observedGeneration": if rng.percent(80) { 2 } else { 1 },
            })
        };
        let ancestors = json!([{"conditions": [condition()]}, {"conditions": [condition()]}]);
        object["status"] = json!({"ancestors": ancestors});
    }
}

/// Adds references to objects, some of which are missing (specification 5.7).
pub fn name_objects(rng: &mut Rng, kind: &Settings, rules: &mut Map<String, Value>) {
    if kind.references.is_empty() {
        return;
    }
    let reference = |rng: &mut Rng| {
        let mut reference = json!({"name": rng.pick(&["svc0", "svc0", "svc1", "gone"])});
        if rng.percent(15) {
            reference["namespace"] = json!(rng.pick(&["a-b", "a", "shop", "nowhere"]));
        }
        if rng.percent(20) {
            reference["port"] = json!(rng.choose(&[80, 80, 90]));
        }
        if rng.percent(10) {
            reference["kind"] = json!("ConfigMap");
        }
        reference
    };
    if rng.percent(30) {
        let refs: Vec<Value> = (0..rng.within(1, 2)).map(|_| reference(rng)).collect();
        rules.insert("refs".to_owned(), json!(refs));
    }
    if rng.percent(30) {
        let open = rng.choose(&[json!(true), json!(false), Value::Null]);
        let mut auth = json!({"open": open, "backend": reference(rng)});
        if !kind.exclusive.is_empty() && rng.percent(50) {
            auth.as_object_mut().unwrap().remove("backend");
            auth["other"] = json!({"name": "svc0"});
        }
        rules.insert("auth".to_owned(), auth);
    }
    if rng.percent(30) {
        let item = |rng: &mut Rng, reference: Value| json!({"open": rng.percent(60), "backend": reference});
        let procs: Vec<Value> = (0..rng.within(1, 3))
            .map(|_| {
                let named = reference(rng);
                item(rng, named)
            })
            .collect();
        rules.insert("procs".to_owned(), json!(procs));
    }
    if rng.percent(25) {
        rules.insert(
            "config".to_owned(),
            json!({"name": rng.pick(&["c0", "c1"])}),
        );
    }
}

/// Other ways to write the kind of a target.
fn spell(rng: &mut Rng, kind: &Settings, reference: &mut Value) {
    match rng.below(24) {
        0 if reference["kind"] == "Service" => reference["group"] = json!("core"),
        1 | 2 => {
            reference.as_object_mut().unwrap().remove("group");
        }
        3 if reference["kind"] == "Gateway" => reference["group"] = json!(format!("{GATEWAY}/v1")),
        // A section of what has none (11.28).
        4 if reference["kind"] == "Namespace" => reference["sectionName"] = json!("x"),
        5..=12 if reference["kind"] == "ListenerSet" => {
            reference["group"] = json!("gateway.networking.x-k8s.io");
            reference["kind"] = json!("XListenerSet");
        }
        _ => {}
    }
    if let Some(selector) = reference.get_mut("selector")
        && kind.cross_namespace != CrossNamespace::Never
        && rng.percent(40)
    {
        *selector = json!({"matchLabels": {"color": "red"}});
        reference["namespaces"] = json!({"from": "All"});
    }
}

/// Lets a rule or a backendRef name a policy of the kind by a filter.
fn add_filter(rng: &mut Rng, kind: &Settings, holder: &mut Value) {
    let name = format!("p{}", rng.below(8));
    let named = json!({"group": GROUP, "kind": kind.kind, "name": name});
    if holder["filters"].is_null() {
        holder["filters"] = json!([]);
    }
    let filters = holder["filters"].as_array_mut().unwrap();
    filters.push(json!({"type": "ExtensionRef", "extensionRef": named}));
}

/// Lets rules and backendRefs name policies of the kind by filters, and permits references between namespaces.
pub fn objects(rng: &mut Rng, kind: &Settings, objects: &mut Vec<Value>) {
    if kind.by_filter {
        for route in objects.iter_mut().filter(|o| o["kind"] == "HTTPRoute") {
            for rule in route["spec"]["rules"].as_array_mut().into_iter().flatten() {
                for _ in 0..rng.below(3) {
                    add_filter(rng, kind, rule);
                }
                for backend in rule["backendRefs"].as_array_mut().into_iter().flatten() {
                    if rng.percent(20) {
                        add_filter(rng, kind, backend);
                    }
                }
            }
        }
    }
    if !kind.references.is_empty() && !objects.iter().any(|o| o["kind"] == "ConfigMap") {
        for namespace in rng.some(&NAMESPACES, 60) {
            objects.push(json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "c0", "namespace": namespace},
            }));
        }
    }
    if kind.cross_namespace == CrossNamespace::ReferenceGrant && kind.class != Class::Listed {
        for namespace in rng.some(&NAMESPACES, 60) {
            let from = rng.some(&NAMESPACES, 60);
            let from: Vec<Value> = from
                .iter()
                .map(|from| json!({"group": GROUP, "kind": kind.kind, "namespace": from}))
                .collect();
            let to = rng.some(
                &[
                    json!({"group": GATEWAY, "kind": "Gateway"}),
                    json!({"group": GATEWAY, "kind": "HTTPRoute", "name": "r0"}),
                    json!({"group": "gateway.networking.x-k8s.io", "kind": "XListenerSet"}),
                    json!({"group": "", "kind": "Service"}),
                    json!({"group": "", "kind": "Namespace"}),
                ],
                60,
            );
            objects.push(json!({
                "apiVersion": format!("{GATEWAY}/v1beta1"), "kind": "ReferenceGrant",
                "metadata": {"name": format!("of-{}", kind.kind.to_lowercase()), "namespace": namespace},
                "spec": {"from": from, "to": to},
            }));
        }
    }
}
