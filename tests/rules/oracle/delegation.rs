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

/// Lets rules of some worlds delegate, and kinds follow that, without a change to their other objects.
pub fn add(seed: u64, profiles: &mut [Value], objects: &mut [Value]) {
    let mut rng = Rng::new(seed ^ 0xDE1E_6A7E);
    if !rng.percent(35) {
        return;
    }
    for profile in profiles {
        if rng.percent(70) {
            follow(&mut rng, profile);
        }
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
        if rng.percent(40) {
            let value = rng.pick(&["up", "up", "down", "no", "x"]);
            object["metadata"]["annotations"][PREFERS] = json!(value);
        }
        // A child Route often has no parent that is a Gateway, and takes the hostnames of its parent.
        if rng.percent(40) && object["kind"] == "HTTPRoute" {
            object["spec"].as_object_mut().unwrap().remove("hostnames");
        }
        match rng.below(100) {
            0..35 => object["spec"]["parentRefs"] = json!([]),
            35..50 => {
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

/// The annotation that says who precedes.
const PREFERS: &str = "example.com/prefers";

fn follow(rng: &mut Rng, profile: &mut Value) {
    let spec = &mut profile["spec"];
    let above = ["GatewayClass", "Gateway", "Listener", "Route"];
    if above.iter().any(|level| spec["effectiveTarget"] == *level) {
        return;
    }
    let inherited = spec["class"] == "Inherited";
    let mut setting = json!({});
    match rng.below(4) {
        0 if inherited => setting["prefer"] = json!("Parent"),
        1 => setting["prefer"] = json!("NotFollowed"),
        _ => {}
    }
    if inherited && rng.percent(60) {
        setting["annotation"] = json!(PREFERS);
        setting["values"] = json!({"up": "Parent", "down": "Child", "no": "NotFollowed"});
        if rng.percent(40) {
            setting["otherValues"] = json!(rng.pick(&["Child", "Parent", "NotFollowed"]));
        }
    }
    spec["delegation"] = setting;
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

/// How a kind follows delegation.
#[derive(Clone, Debug)]
pub struct Delegation {
    prefer: String,
    annotation: Option<String>,
    values: Value,
    other: String,
}

impl Delegation {
    pub fn read(setting: &Value) -> Option<Self> {
        setting.is_object().then(|| {
            let prefer = setting["prefer"].as_str().unwrap_or("Child").to_owned();
            Self {
                other: setting["otherValues"]
                    .as_str()
                    .unwrap_or(&prefer)
                    .to_owned(),
                prefer,
                annotation: setting["annotation"].as_str().map(str::to_owned),
                values: setting["values"].clone(),
            }
        })
    }

    /// The word of a Route that delegates.
    fn of(&self, route: &Found) -> &str {
        let name = self.annotation.as_deref();
        match name.and_then(|name| route.annotation(name)) {
            None => &self.prefer,
            Some(value) => self.values[value].as_str().unwrap_or(&self.other),
        }
    }
}

/// The API group and the entries of `controllers` of a kind that follows delegation.
pub fn controllers(spec: &Value) -> Option<(String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let controllers = spec["controllers"].as_array().into_iter().flatten();
    let controllers = controllers.map(text).collect();
    spec["delegation"]
        .is_object()
        .then(|| (text(&spec["policy"]["group"]), controllers))
}

/// What a rule on a path that delegates means for a kind.
pub enum Way {
    /// The kind is not known from here on.
    Hidden,
    /// Policies of the Route and of its rule yield to those of child Routes.
    Child,
    /// They do not.
    Parent,
}

/// A rule on a path that delegates.
pub struct Delegating {
    pub step: Step,
    /// Paths lead on to child Routes.
    pub followed: bool,
    /// It has no other backends.
    pub only: bool,
}

/// The rules on a path that delegate.
pub fn delegating(objects: &Objects, trail: &Trail) -> Vec<Delegating> {
    let rules = trail.steps.iter().filter(|step| step.level == "RouteRule");
    let found = rules.filter_map(|step| {
        let parent = objects.get(&step.object)?;
        let rules = rules_of(parent);
        let rule = &rules[step.rule?];
        let count = rule["backendRefs"].as_array().map_or(0, Vec::len);
        let named = references(parent, rule);
        let followed = is_followed(objects, parent, rule);
        (!named.is_empty()).then(|| Delegating {
            step: step.clone(),
            followed,
            only: followed && named.len() == count,
        })
    });
    found.collect()
}

/// Whether a path ends at a rule that only delegates.
pub fn ends_above(delegating: &[Delegating], trail: &Trail) -> bool {
    let end = trail.steps.last().map(|step| &step.node);
    let last = delegating.last();
    last.is_some_and(|last| last.only && end == Some(&last.step.node))
}

impl Delegating {
    /// What it means for a kind.
    pub fn way(&self, kind: &Settings, objects: &Objects) -> Way {
        let route = objects.get(&self.step.object).unwrap();
        let word = kind
            .delegation
            .as_ref()
            .map(|delegation| delegation.of(route));
        match (self.followed, word) {
            (true, Some("Child")) => Way::Child,
            (true, Some("Parent")) => Way::Parent,
            _ => Way::Hidden,
        }
    }
}

/// Whether paths lead on from a rule: worlds are small, so every way is gone.
fn is_followed(objects: &Objects, parent: &Found, rule: &Value) -> bool {
    let mut count = 0;
    can_follow(objects, parent, rule) && ways(objects, parent, rule, 1, &mut count)
}

/// Counts the ways down; false if there are too many, or one is too long.
fn ways(objects: &Objects, parent: &Found, rule: &Value, depth: usize, count: &mut usize) -> bool {
    children_of(objects, parent, rule).iter().all(|child| {
        let child = objects.get(child).unwrap();
        *count += 1;
        let rules = rules_of(child);
        let mut below = rules
            .iter()
            .filter(|rule| !references(child, rule).is_empty());
        *count <= 1_000
            && depth <= 8
            && below.all(|rule| {
                !can_follow(objects, child, rule) || ways(objects, child, rule, depth + 1, count)
            })
    })
}

/// Whether a rule of an HTTPRoute names HTTPRoutes alone, and none that leads back.
fn can_follow(objects: &Objects, parent: &Found, rule: &Value) -> bool {
    let named = references(parent, rule);
    let others = |[_, kind, ..]: &Reference| kind != "HTTPRoute" && kind != "label";
    if parent.kind != "HTTPRoute" || named.iter().any(others) {
        return false;
    }
    let children = children_of(objects, parent, rule);
    !children
        .iter()
        .any(|child| reaches(objects, child, &parent.key()))
}

/// The Routes that have paths below a rule, if it is followed.
fn children_of(objects: &Objects, parent: &Found, rule: &Value) -> BTreeSet<String> {
    let named = references(parent, rule);
    let named = named.iter().flat_map(|one| self::named(objects, one));
    let children = named.filter(|key| *key != parent.key());
    children
        .filter(|key| is_child(parent, objects.get(key).unwrap()))
        .collect()
}

/// Whether a Route delegates to another one, directly or through others.
fn reaches(objects: &Objects, from: &str, to: &str) -> bool {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut pending = vec![from.to_owned()];
    while let Some(key) = pending.pop() {
        let route = objects.get(&key).unwrap();
        for rule in rules_of(route) {
            let others = |[_, kind, ..]: &Reference| kind != "HTTPRoute" && kind != "label";
            if route.kind != "HTTPRoute" || references(route, &rule).iter().any(others) {
                continue;
            }
            for child in children_of(objects, route, &rule) {
                if child == to {
                    return true;
                }
                if seen.insert(child.clone()) {
                    pending.push(child);
                }
            }
        }
    }
    false
}

/// Whether a Route that a rule names has paths there.
fn is_child(parent: &Found, child: &Found) -> bool {
    let none = |name: &str| {
        child.body["spec"][name]
            .as_array()
            .is_none_or(Vec::is_empty)
    };
    let mut parents = child.body["spec"]["parentRefs"]
        .as_array()
        .into_iter()
        .flatten();
    let names = parents.any(|named| {
        let part = |name: &str, usual: &str| named[name].as_str().unwrap_or(usual).to_owned();
        part("group", GATEWAY) == GATEWAY
            && part("kind", "Gateway") == parent.kind
            && part("namespace", &child.namespace) == parent.namespace
            && named["name"] == *parent.name
    });
    child.kind == "HTTPRoute" && none("hostnames") && (none("parentRefs") || names)
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

/// The nodes of the child Routes of a rule.
pub fn children(objects: &Objects, rule: &Step) -> Vec<Step> {
    let parent = objects.get(&rule.object).unwrap();
    let first = references(parent, &rules_of(parent)[rule.rule.unwrap()]);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut pending: Vec<String> = first.iter().flat_map(|one| named(objects, one)).collect();
    let mut steps = Vec::new();
    while let Some(child) = pending.pop() {
        if !seen.insert(child.clone()) {
            continue;
        }
        let child = objects.get(&child).unwrap();
        add_steps(child, &mut steps);
        for rule in rules_of(child) {
            let references = references(child, &rule);
            pending.extend(references.iter().flat_map(|one| named(objects, one)));
        }
    }
    steps
}

/// A Route that a backendRef names, by its group, kind, namespace and name.
type Reference = [String; 4];

fn rules_of(route: &Found) -> Vec<Value> {
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
    for (index, rule) in rules_of(route).iter().enumerate() {
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
