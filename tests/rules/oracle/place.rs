//! Which policies stand where on a path (specification 1.2, 3, 4.1), read from the path's name and
//! the objects alone. Which paths there are is not asked here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::fold::{Node, conflicted};
use super::leaf::{Leaf, flatten};
use super::policy::Policy;
use super::settings::{SameTarget, Settings};
use super::trail::{Step, steps};

const LEVELS: [&str; 8] = [
    "GatewayClass",
    "Gateway",
    "ListenerSet",
    "Listener",
    "Route",
    "RouteRule",
    "Backend",
    "BackendPort",
];

/// A kind with its policies, placed.
pub struct AttachedKind<'w> {
    pub kind: Settings,
    pub policies: Vec<Policy>,
    objects: &'w [Value],
    /// Node to the policies accepted on it, the established one first.
    at: BTreeMap<String, Vec<Policy>>,
}

/// The path as one kind sees it.
pub struct PathView {
    pub nodes: Vec<Node>,
    pub own: Vec<Leaf>,
    /// The look-up is above the effective level.
    pub inherited_only: bool,
    /// The kind acts on the path (specification 2.4).
    pub acts: bool,
    /// It is a scope: a path that ends at the effective level.
    pub scope: bool,
}

/// Older first (specification 4.2, 4.4).
pub fn age(policy: &Policy) -> (bool, String, String) {
    let created = policy.created.clone();
    (
        created.is_none(),
        created.unwrap_or_default(),
        policy.name.clone(),
    )
}

/// The object of that kind and name.
pub fn object<'o>(
    objects: &'o [Value],
    kind: &str,
    namespace: &str,
    name: &str,
) -> Option<&'o Value> {
    objects.iter().find(|o| {
        o["kind"] == kind
            && o["metadata"]["name"] == name
            && o["metadata"]["namespace"].as_str().unwrap_or_default() == namespace
    })
}

fn rank(level: &str) -> usize {
    LEVELS.iter().position(|l| *l == level).unwrap()
}

impl<'w> AttachedKind<'w> {
    /// Places the valid policies of a kind.
    pub fn new(kind: Settings, objects: &'w [Value], invalid: &BTreeSet<String>) -> Self {
        let valid = |o: &&Value| {
            let part = |name: &str| o["metadata"][name].as_str().unwrap_or_default();
            let name = format!("{}/{}/{}", kind.kind, part("namespace"), part("name"));
            o["kind"] == kind.kind.as_str() && !invalid.contains(&name)
        };
        let mut policies: Vec<_> = objects
            .iter()
            .filter(valid)
            .map(|o| Policy::read(&kind, o))
            .collect();
        policies.sort_by_key(age);
        let mut at: BTreeMap<String, Vec<Policy>> = BTreeMap::new();
        for policy in &policies {
            let nodes = policy
                .refs
                .iter()
                .flat_map(|r| targets(&kind, objects, policy, r));
            for node in nodes.collect::<BTreeSet<_>>() {
                at.entry(node).or_default().push(policy.clone());
            }
        }
        let nodes: Vec<_> = at.values().cloned().collect();
        match kind.same_target {
            SameTarget::RejectNewer => at.values_mut().for_each(|here| here.truncate(1)),
            SameTarget::UnionOrReject => {
                let gone = conflicted(&kind, &nodes);
                at.values_mut()
                    .for_each(|here| here.retain(|p| !gone.contains(&p.name)));
            }
            _ => {}
        }
        Self {
            kind,
            policies,
            objects,
            at,
        }
    }

    /// Whether the policy stands on some node.
    pub fn is_accepted(&self, policy: &str) -> bool {
        self.at.values().flatten().any(|p| p.name == policy)
    }

    /// What stands on a path.
    pub fn scene(&self, path: &str) -> PathView {
        let mut steps = steps(self.objects, path);
        let full = match &self.kind.effective {
            None => true,
            Some(level) => {
                let mesh_root = path.starts_with("mesh/") && !path.contains("/routes/");
                let reached = rank(level) <= steps.last().map_or(0, |s| rank_of(s.level))
                    || (mesh_root && level == "Listener" && !path.contains("/ports/"));
                steps.retain(|step| rank_of(step.level) <= rank(level));
                reached
            }
        };
        let above = path.starts_with("gatewayclasses/") || path.starts_with("namespaces/");
        let wide = matches!(self.kind.effective.as_deref(), None | Some("GatewayClass"))
            && (self.kind.controllers.is_empty() || !path.starts_with("namespaces/"));
        let ends = match &self.kind.effective {
            None => true,
            Some(_) => full && steps.len() == steps_count(self.objects, path),
        };
        let own = own_fields(&self.kind, self.objects, &steps);
        PathView {
            acts: self.acts(path),
            nodes: self.nodes(&steps, path),
            own,
            inherited_only: if above { !wide } else { !full },
            scope: if above { wide } else { ends },
        }
    }

    /// Whether a node's object is of a target kind.
    pub fn is_target(&self, key: &str) -> bool {
        let kind = key.split('/').next().unwrap();
        allows(&self.kind, kind)
    }

    fn acts(&self, path: &str) -> bool {
        if path.starts_with("mesh/") {
            return self.kind.mesh;
        }
        // A Namespace has no class; with `controllers` it is just no scope (specification 11.2).
        if self.kind.controllers.is_empty() || path.starts_with("namespaces/") {
            return true;
        }
        let steps = steps(self.objects, path);
        let class = steps.first().filter(|s| s.level == "GatewayClass");
        class.is_some_and(|class| {
            let name = class.node.trim_start_matches("GatewayClass/");
            let object = object(self.objects, "GatewayClass", "", name);
            let controller = object.map(|o| &o["spec"]["controllerName"]);
            self.kind
                .controllers
                .iter()
                .any(|c| controller.is_some_and(|found| found == c))
        })
    }

    fn nodes(&self, steps: &[Step], path: &str) -> Vec<Node> {
        let node = |(key, level): (String, String)| Node {
            policies: self.on(&key).to_vec(),
            key,
            level,
        };
        self.keys(steps, path).into_iter().map(node).collect()
    }

    /// The policies accepted on a node.
    pub fn on(&self, key: &str) -> &[Policy] {
        self.at.get(key).map_or(&[], Vec::as_slice)
    }

    /// The nodes in order with their levels, namespaces among them (specification 1.2).
    fn keys(&self, steps: &[Step], path: &str) -> Vec<(String, String)> {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut keys = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            // The least specific node that lives there and that the kind's namespaces reach.
            if let Some(namespace) = &step.namespace
                && self.kind.reaches.iter().any(|level| level == step.level)
                && seen.insert(namespace.clone())
            {
                keys.push((format!("Namespace/{namespace}"), "Namespace".to_owned()));
            }
            let alone = path.starts_with("namespaces/") && at == 0;
            let level = if alone { "Namespace" } else { step.level };
            keys.push((step.node.clone(), level.to_owned()));
        }
        keys
    }
}

/// Whether policies may name objects of a kind.
fn allows(kind: &Settings, target: &str) -> bool {
    match &kind.targets {
        None => target != "GatewayClass",
        Some(all) => all.iter().any(|(k, _)| k == target),
    }
}

/// A Namespace by itself stands above everything that has a level of its own.
fn rank_of(level: &str) -> usize {
    if level == "Namespace" { 0 } else { rank(level) }
}

fn steps_count(objects: &[Value], path: &str) -> usize {
    steps(objects, path).len()
}

/// The index of a route's rule of that name.
pub fn rule_named(route: &Value, name: &str) -> Option<usize> {
    route["spec"]["rules"]
        .as_array()?
        .iter()
        .position(|rule| rule["name"] == name)
}

/// The object of a key `Kind/namespace/name`.
pub fn by_key<'o>(objects: &'o [Value], key: &str) -> Option<&'o Value> {
    let mut parts = key.split('/');
    object(objects, parts.next()?, parts.next()?, parts.next()?)
}

/// The nodes of one reference (specification 3); none if it does not attach.
fn targets(kind: &Settings, objects: &[Value], policy: &Policy, to: &Value) -> Vec<String> {
    let target = to["kind"].as_str().unwrap();
    let section = to["sectionName"].as_str();
    let allowed = match &kind.targets {
        None => target != "GatewayClass",
        Some(all) => all
            .iter()
            .any(|(k, sections)| k == target && (*sections || section.is_none())),
    };
    if !allowed {
        return Vec::new();
    }
    if let Some(labels) = to["selector"]["matchLabels"].as_object() {
        let fits = |o: &&Value| {
            o["kind"] == target
                && o["metadata"]["namespace"] == policy.namespace.as_str()
                && labels.iter().all(|(k, v)| &o["metadata"]["labels"][k] == v)
        };
        let key = |o: &Value| {
            let name = o["metadata"]["name"].as_str().unwrap();
            format!("{target}/{}/{name}", policy.namespace)
        };
        return objects.iter().filter(fits).map(key).collect();
    }
    let name = to["name"].as_str().unwrap();
    let found = match target {
        // A Namespace counts as living in itself; the policy lives in it, so it exists.
        "Namespace" => {
            return (policy.namespace == name)
                .then(|| format!("Namespace/{name}"))
                .into_iter()
                .collect();
        }
        "GatewayClass" => object(objects, target, "", name).map(|_| format!("GatewayClass/{name}")),
        _ => object(objects, target, &policy.namespace, name)
            .map(|_| format!("{target}/{}/{name}", policy.namespace)),
    };
    let Some(key) = found else {
        return Vec::new();
    };
    let Some(section) = section else {
        return vec![key];
    };
    let whole = by_key(objects, &key).unwrap();
    section_of(whole, section)
        .map(|part| format!("{key}#{part}"))
        .into_iter()
        .collect()
}

fn section_of(object: &Value, section: &str) -> Option<String> {
    let spec = &object["spec"];
    let named = |list: &str| {
        spec[list]
            .as_array()?
            .iter()
            .find(|item| item["name"] == section)
    };
    match object["kind"].as_str()? {
        "Gateway" | "ListenerSet" => named("listeners").map(|_| section.to_owned()),
        "Service" => named("ports").map(|port| port["port"].to_string()),
        _ => rule_named(object, section).map(|index| format!("#{index}")),
    }
}

/// Specification 6.4
fn own_fields(kind: &Settings, objects: &[Value], steps: &[Step]) -> Vec<Leaf> {
    let Some(end) = steps.last() else {
        return Vec::new();
    };
    let Some(object) = by_key(objects, &end.object) else {
        return Vec::new();
    };
    let mut rules = Map::new();
    for (from, to) in &kind.own_fields {
        let found = match (from.strip_prefix("spec.rules[*]."), end.rule) {
            (Some(field), Some(rule)) => object["spec"]["rules"][rule].get(field),
            (Some(_), None) => None,
            (None, _) => object.pointer(&format!("/{}", from.replace('.', "/"))),
        };
        let said = |value: &&Value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        };
        if let Some(value) = found.filter(said) {
            rules.insert(to.clone(), value.clone());
        }
    }
    flatten(
        &Value::Object(rules),
        &format!("={}", end.object),
        &kind.list_keys,
    )
}
