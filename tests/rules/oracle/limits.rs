//! Limits: on which paths only some fields of a policy are rules, or none (specification 2.10).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::leaf::{Leaf, Step, assemble, dotted};
use super::objects::Objects;
use super::place::{AttachedKind, KnownControllers, fits_controller, fits_kind, may_act};
use super::policy::{Block, Policy};
use super::profiles::GROUP;
use super::refused::is_set;
use super::rng::Rng;
use super::settings::{Class, Granularity, Settings, texts};
use super::trail::{Step as Node, Trail};

/// One entry of `limits`.
#[derive(Clone, Debug)]
pub struct Limit {
    entry: Value,
    targets: Vec<String>,
    pub fields: Vec<String>,
    /// Values that are no rules: their paths, and what must be beside them.
    ignored: Vec<(String, Option<String>)>,
    pub fieldwise: bool,
    /// The kind that `replacedBy` names, and the nodes with policies of it that take the place of others.
    pub replaced: Option<(Box<Settings>, BTreeSet<String>)>,
}

/// Reads the entries.
pub fn limits(value: &Value) -> Vec<Limit> {
    let entries = value.as_array().into_iter().flatten();
    entries
        .map(|entry| Limit {
            targets: texts(&entry["targets"]),
            fields: texts(&entry["fields"]),
            ignored: (entry["ignored"].as_array().into_iter().flatten())
                .map(|entry| {
                    let text = |name: &str| entry[name].as_str().map(str::to_owned);
                    (text("path").unwrap(), text("beside"))
                })
                .collect(),
            fieldwise: entry["fieldwise"] == true,
            replaced: None,
            entry: entry.clone(),
        })
        .collect()
}

impl Limit {
    /// Finds where policies of the other kind take the place of less specific ones.
    pub fn look_at(&mut self, kinds: &[AttachedKind]) {
        let other = &self.entry["replacedBy"];
        let named = kinds.iter().find(|placed| {
            let kind = &placed.kind;
            kind.section.is_none() && other["group"] == *kind.group && other["kind"] == *kind.kind
        });
        let fields = texts(&other["fields"]);
        self.replaced = named.map(|placed| {
            let nodes = placed.nodes_with(|policy, body| replaces(policy, body, &fields));
            (Box::new(placed.kind.clone()), nodes.into_iter().collect())
        });
    }

    /// Whether all its conditions hold on a path, of which the kind looks at some steps.
    pub fn holds(
        &self,
        (objects, known): (&Objects, &KnownControllers),
        steps: &[Node],
        trail: &Trail,
    ) -> bool {
        let asked = |name: &str| Some(texts(&self.entry[name])).filter(|list| !list.is_empty());
        let level = |level: &str| steps.iter().find(|step| step.level == level);
        if let Some(routes) = asked("routes") {
            let on = level("Route").map(|step| step.object.split('/').next().unwrap().to_owned());
            if !on.is_some_and(|kind| routes.contains(&kind)) {
                return false;
            }
        }
        let is_through_set = level("ListenerSet").is_some();
        if (self.entry["listenerSets"] == true && !is_through_set)
            || !self.is_replaced((objects, known), steps, trail)
        {
            return false;
        }
        let class = trail.class.as_ref();
        if asked("classes").is_some_and(|list| !class.is_some_and(|class| list.contains(class))) {
            return false;
        }
        let others = asked("classesOtherThan");
        if others.is_some_and(|list| class.is_none_or(|class| list.contains(class))) {
            return false;
        }
        if self.entry["mesh"]
            .as_bool()
            .is_some_and(|mesh| mesh != trail.mesh)
        {
            return false;
        }
        let place = self.entry["waypointNamespace"].as_str();
        if place.is_some() && place != trail.waypoint {
            return false;
        }
        if let Some(entries) = asked("controllers") {
            let class = class.and_then(|class| objects.get(&format!("GatewayClass/{class}")));
            let name = class.and_then(|class| class.body["spec"]["controllerName"].as_str());
            let names = known.names(name);
            let fits = |name: &String| entries.iter().any(|entry| fits_controller(entry, name));
            if !names.iter().any(fits) {
                return false;
            }
        }
        let (protocols, modes) = (asked("protocols"), asked("tlsModes"));
        let without = asked("listenersWithout");
        if protocols.is_none() && modes.is_none() && without.is_none() {
            return true;
        }
        let Some(listener) = level("Listener").and_then(|step| listener(objects, step)) else {
            return false;
        };
        let tls = &listener["tls"];
        let mode = (!tls.is_null()).then(|| tls["mode"].as_str().unwrap_or("Terminate"));
        let is = |list: &Vec<String>, text: Option<&str>| list.iter().any(|t| Some(&**t) == text);
        let lacks = |field: &String| match field.as_str() {
            "hostname" => listener["hostname"].as_str().is_none_or(str::is_empty),
            "tls" => tls.is_null(),
            _ => tls["certificateRefs"].as_array().is_none_or(Vec::is_empty),
        };
        protocols.is_none_or(|list| is(&list, listener["protocol"].as_str()))
            && modes.is_none_or(|list| is(&list, mode))
            && without.is_none_or(|list| list.iter().any(lacks))
    }

    /// Whether policies of the other kind take the place of others on the path, or the limit names none.
    fn is_replaced(
        &self,
        (objects, known): (&Objects, &KnownControllers),
        steps: &[Node],
        trail: &Trail,
    ) -> bool {
        let below = ["ListenerSet", "Listener", "Route", "RouteRule"];
        let is_asked = !self.entry["replacedBy"].is_null();
        !is_asked
            || self.replaced.as_ref().is_some_and(|(kind, nodes)| {
                let at = |step: &Node| below.contains(&step.level) && nodes.contains(&step.node);
                steps.iter().any(at) && may_act(kind, objects, known, trail)
            })
    }

    /// Whether it is about attachments to a node; the root namespace counts as a Namespace.
    pub fn concerns(&self, node: &str) -> bool {
        let kind = node.split('/').next().unwrap_or_default();
        let kind = if node.is_empty() { "Namespace" } else { kind };
        self.targets.is_empty() || self.targets.iter().any(|target| fits_kind(target, kind))
    }
}

/// Whether a policy of the other kind takes the place of less specific ones.
fn replaces(policy: &Policy, body: &Value, fields: &[String]) -> bool {
    let mut blocks = policy.blocks.iter();
    let merged = blocks.any(|block| block.strategy.granularity != Granularity::Atomic);
    let set = |field: &String| is_set(&body["spec"], field);
    !merged || fields.iter().any(set)
}

fn listener<'o>(objects: &'o Objects, step: &Node) -> Option<&'o Value> {
    let (object, name) = step.node.split_once('#')?;
    let listeners = objects.get(object)?.body["spec"]["listeners"].as_array()?;
    listeners.iter().find(|listener| listener["name"] == name)
}

/// A policy with what is left of it where some limits hold; `None`: it takes no part.
pub fn limited(kind: &Settings, policy: &Policy, holding: &[&Limit]) -> Option<Policy> {
    let mut policy = policy.clone();
    if holding.is_empty() {
        return Some(policy);
    }
    for limit in holding {
        for block in &mut policy.blocks {
            for (path, beside) in &limit.ignored {
                ignore(block, path, beside.as_deref());
            }
            cut(kind, block, &limit.fields);
        }
        policy.fieldwise |= limit.fieldwise;
    }
    if policy.fieldwise {
        for block in &mut policy.blocks {
            if block.strategy.granularity == Granularity::Atomic {
                block.strategy.granularity = Granularity::Field;
            }
        }
    }
    policy.left = !policy.is_transparent();
    // A Direct policy holds its place.
    (policy.left || kind.class == Class::Direct).then_some(policy)
}

/// Whether a line is at or below one of the fields, or deletes one from above.
pub fn is_rule(leaf: &Leaf, fields: &[String]) -> bool {
    let mut fields = fields.iter().map(|field| dotted(field));
    fields.any(|field| {
        leaf.path.starts_with(&field) || (leaf.value.is_null() && field.starts_with(&leaf.path))
    })
}

/// Takes a value out of a block. A path with `[*]` is about the items of a list, each with what is beside it.
fn ignore(block: &mut Block, path: &str, beside: Option<&str>) {
    let Some((list, inner)) = path.split_once("[*].") else {
        let rules = assemble(&block.lines);
        if beside.is_none_or(|beside| is_set(&rules, beside)) {
            let path = dotted(path);
            block.lines.retain(|line| !line.path.starts_with(&path));
        }
        return;
    };
    let condition = beside.map(|beside| beside.strip_prefix(&format!("{list}[*].")).unwrap());
    let list = dotted(list);
    let at = block.lines.iter_mut().filter(|line| line.path == list);
    for item in at.flat_map(|line| line.value.as_array_mut().into_iter().flatten()) {
        if condition.is_none_or(|condition| is_set(item, condition)) {
            let (holder, name) = inner.rsplit_once('.').unwrap_or(("", inner));
            let mut fields = holder.split('.').filter(|name| !name.is_empty());
            let found = fields.try_fold(item, |value, name| value.get_mut(name));
            if let Some(Value::Object(fields)) = found {
                fields.remove(name);
            }
        }
    }
}

fn cut(kind: &Settings, block: &mut Block, fields: &[String]) {
    block.lines.retain(|leaf| is_rule(leaf, fields));
    let fields: Vec<Vec<Step>> = fields.iter().map(|field| dotted(field)).collect();
    let below = |path: &[Step]| fields.iter().any(|field| path.starts_with(field));
    let names = block.unset.iter().flat_map(|name| {
        let path = dotted(name);
        if below(&path) {
            return vec![name.clone()];
        }
        let inner = fields.iter().filter(|field| field.starts_with(&path));
        inner.map(|field| super::leaf::written(field)).collect()
    });
    block.unset = names.collect();
    let there = |path: &String| {
        let path = dotted(path);
        block.lines.iter().any(|leaf| leaf.path.starts_with(&path))
    };
    let counts = kind.blocking
        || kind.class == Class::Direct
        || kind.empty_unless.is_empty()
        || kind.empty_unless.iter().any(there);
    if !counts {
        block.lines.clear();
    }
    block.counts &= !block.lines.is_empty();
}

/// Adds limits to a random profile.
pub fn random(rng: &mut Rng, spec: &mut Value) {
    if !rng.percent(30) {
        return;
    }
    let level = spec["effectiveTarget"]
        .as_str()
        .unwrap_or("Every")
        .to_owned();
    let listeners = level != "Gateway";
    let routes = listeners && level != "Listener";
    let mut entries = Vec::new();
    for _ in 0..rng.within(1, 3) {
        let mut entry = json!({});
        if routes && rng.percent(50) {
            let routes = rng.some(&["TCPRoute", "GRPCRoute", "HTTPRoute"], 50);
            if !routes.is_empty() {
                entry["routes"] = json!(routes);
            }
        }
        if listeners {
            match rng.below(8) {
                0 => entry["protocols"] = json!(["TCP"]),
                1 => entry["protocols"] = json!(["HTTPS", "HTTP"]),
                2 => entry["listenersWithout"] = json!(["hostname"]),
                3 => entry["listenersWithout"] = json!(["hostname", "tls.certificateRefs"]),
                4 => entry["listenersWithout"] = json!(["tls"]),
                5 => entry["tlsModes"] = json!(["Terminate"]),
                6 => entry["listenerSets"] = json!(true),
                _ => {}
            }
        }
        match rng.below(6) {
            0 => entry["classes"] = json!(["gc"]),
            1 => entry["classesOtherThan"] = json!(["gc", "gd"]),
            _ => {}
        }
        let kinds: Vec<Value> = match spec["targets"].as_array() {
            Some(targets) => targets.iter().map(|t| t["kind"].clone()).collect(),
            None => ["Gateway", "HTTPRoute", "Service", "Namespace"]
                .map(|k| json!(k))
                .into(),
        };
        if entry == json!({}) || rng.percent(30) {
            entry["targets"] = json!([rng.choose(&kinds)]);
        }
        if rng.percent(75) {
            let fields = ["a", "a.x", "m", "m.e1", "n", "tags", "items", "flag", "b"];
            entry["fields"] = json!(rng.some(&fields, 40));
            let offered = texts(&spec["strategies"]);
            let splits = offered
                .iter()
                .any(|s| !s.starts_with("Atomic") && s != "None");
            if splits && entry["fields"] != json!([]) && rng.percent(30) {
                entry["fieldwise"] = json!(true);
            }
        }
        entries.push(entry);
    }
    spec["limits"] = json!(entries);
}

/// Makes the limits of a random profile depend on another kind.
pub fn random_dependence(rng: &mut Rng, spec: &mut Value, (level, other): (Option<&str>, String)) {
    let is_deep = matches!(
        level,
        None | Some("Every" | "RouteRule" | "Backend" | "BackendPort")
    );
    if !is_deep || !rng.percent(45) {
        return;
    }
    let mut entry = json!({"replacedBy": {"group": GROUP, "kind": other}});
    if rng.percent(50) {
        entry["replacedBy"]["fields"] = json!(["n"]);
    }
    if rng.percent(30) {
        entry["fields"] = json!(["a", "m"]);
    }
    if !spec["limits"].is_array() {
        spec["limits"] = json!([]);
    }
    spec["limits"].as_array_mut().unwrap().push(entry);
}
