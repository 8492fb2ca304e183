//! Rules that delegate to other Routes (specification 1.8), and random worlds that have some.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::objects::{Found, GATEWAY, Objects, key};
use super::rng::Rng;
use super::settings::Settings;
use super::trail::{Step, Trail};

const ROUTES: [&str; 5] = ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"];
/// A group whose kind `label` selects Routes.
const BY_LABEL: &str = "delegation.kgateway.dev";

/// Lets rules of some worlds delegate, without a change to their other objects.
pub fn add(seed: u64, objects: &mut [Value]) {
    let mut rng = Rng::new(seed ^ 0xDE1E_6A7E);
    if !rng.percent(35) {
        return;
    }
    let routes = objects.iter().filter(|object| is_route(object));
    let routes: Vec<Value> = routes.cloned().collect();
    if routes.is_empty() {
        return;
    }
    for object in objects.iter_mut().filter(|object| is_route(object)) {
        if rng.percent(30) {
            let value = rng.pick(&["a", "b"]);
            object["metadata"]["labels"][format!("{BY_LABEL}/label")] = json!(value);
        }
        // A child Route often has no parent that is a Gateway.
        match rng.below(100) {
            0..25 => object["spec"]["parentRefs"] = json!([]),
            25..35 => {
                let parent = &rng.choose(&routes);
                let (kind, name) = (&parent["kind"], &parent["metadata"]["name"]);
                let namespace = &parent["metadata"]["namespace"];
                object["spec"]["parentRefs"] =
                    json!([{"group": GATEWAY, "kind": kind, "name": name, "namespace": namespace}]);
            }
            _ => {}
        }
        for rule in object["spec"]["rules"].as_array_mut().into_iter().flatten() {
            if !rng.percent(35) {
                continue;
            }
            if rule["backendRefs"].is_null() {
                rule["backendRefs"] = json!([]);
            }
            let backends = rule["backendRefs"].as_array_mut().unwrap();
            backends.push(reference(&mut rng, &routes));
        }
    }
}

fn is_route(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    ROUTES.contains(&kind)
}

fn reference(rng: &mut Rng, routes: &[Value]) -> Value {
    let named = rng.choose(routes);
    let namespace = &named["metadata"]["namespace"];
    match rng.below(10) {
        0 => json!({"group": GATEWAY, "kind": named["kind"], "name": "*", "namespace": namespace}),
        1 => json!({"group": BY_LABEL, "kind": "label", "name": "a", "namespace": namespace}),
        2 => json!({"group": BY_LABEL, "kind": "label", "name": "b", "namespace": "all"}),
        3 => json!({"group": GATEWAY, "kind": "HTTPRoute", "name": "gone", "namespace": namespace}),
        _ => json!({
            "group": GATEWAY, "kind": named["kind"],
            "name": named["metadata"]["name"], "namespace": namespace,
        }),
    }
}

/// Whether something at or below a Route can change what the kind says.
pub fn concerns(kind: &Settings, rank: &dyn Fn(&str) -> usize) -> bool {
    let above = ["GatewayClass", "Gateway", "ListenerSet"];
    match (&kind.effective, &kind.targets) {
        (Some(level), _) => rank(level) >= rank("Route"),
        (None, Some(targets)) if kind.by_target => targets
            .iter()
            .any(|target| target.group != GATEWAY || !above.contains(&target.kind.as_str())),
        _ => true,
    }
}

/// The nodes of the child Routes of the rule on a path; `None` if the rule does not delegate.
pub fn children(objects: &Objects, trail: &Trail) -> Option<Vec<Step>> {
    let rule = trail.steps.iter().find(|step| step.level == "RouteRule")?;
    let parent = objects.get(&rule.object)?;
    let rule = &parent.body["spec"]["rules"][rule.rule?];
    let first = references(parent, rule);
    if first.is_empty() {
        return None;
    }
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut pending: Vec<String> = first.iter().flat_map(|one| named(objects, one)).collect();
    let mut steps = Vec::new();
    while let Some(child) = pending.pop() {
        if !seen.insert(child.clone()) {
            continue;
        }
        let child = objects.get(&child).unwrap();
        add_steps(child, &mut steps);
        for rule in rules(child) {
            let references = references(child, &rule);
            pending.extend(references.iter().flat_map(|one| named(objects, one)));
        }
    }
    Some(steps)
}

/// A Route that a backendRef names, by its group, kind, namespace and name.
type Reference = [String; 4];

fn rules(route: &Found) -> Vec<Value> {
    match &route.body["spec"]["rules"] {
        // An HTTPRoute without rules has one (1.4).
        Value::Null if route.kind == "HTTPRoute" => vec![json!({})],
        rules => rules.as_array().cloned().unwrap_or_default(),
    }
}

fn parts(route: &Found, backend: &Value) -> Reference {
    let part = |name: &str, usual: &str| backend[name].as_str().unwrap_or(usual).to_owned();
    [
        part("group", ""),
        part("kind", "Service"),
        part("namespace", &route.namespace),
        part("name", ""),
    ]
}

/// The backendRefs of a rule that name Routes.
fn references(route: &Found, rule: &Value) -> Vec<Reference> {
    let backends = rule["backendRefs"].as_array().into_iter().flatten();
    let all = backends.map(|backend| parts(route, backend));
    all.filter(|[group, kind, ..]| {
        (group == GATEWAY && ROUTES.contains(&kind.as_str()))
            || (group.starts_with("delegation.") && kind == "label")
    })
    .collect()
}

/// The Routes that a backendRef names.
fn named(objects: &Objects, [group, kind, namespace, name]: &Reference) -> Vec<String> {
    let routes = objects
        .all()
        .filter(|o| o.group == GATEWAY && ROUTES.contains(&o.kind.as_str()));
    let found = routes.filter(|route| match kind.as_str() {
        "label" => {
            let label = format!("{group}/label");
            let there = *namespace == "all" || route.namespace == *namespace;
            there && route.label(&label) == Some(name)
        }
        _ => {
            let by_name = name == "*" || route.name == *name;
            by_name && route.kind == *kind && route.namespace == *namespace
        }
    });
    found.map(Found::key).collect()
}

fn add_steps(route: &Found, steps: &mut Vec<Step>) {
    let object = route.key();
    let whole = |object: &str, namespace: &str, level: &'static str| Step {
        node: object.to_owned(),
        level,
        namespace: Some(namespace.to_owned()),
        object: object.to_owned(),
        rule: None,
    };
    let section = |object: &str, section: String, level: &'static str, rule: Option<usize>| Step {
        node: format!("{object}#{section}"),
        level,
        namespace: None,
        object: object.to_owned(),
        rule,
    };
    steps.push(whole(&object, &route.namespace, "Route"));
    for (index, rule) in rules(route).iter().enumerate() {
        steps.push(section(
            &object,
            format!("#{index}"),
            "RouteRule",
            Some(index),
        ));
        for backend in rule["backendRefs"].as_array().into_iter().flatten() {
            let [group, kind, namespace, name] = parts(route, backend);
            let target = key(&group, &kind, &namespace, &name);
            steps.push(whole(&target, &namespace, "Backend"));
            if let Some(port) = backend["port"].as_u64() {
                steps.push(section(&target, port.to_string(), "BackendPort", None));
            }
        }
    }
}
