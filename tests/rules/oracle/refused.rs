//! What a controller refuses: values that policies on a target cannot have, themselves (specification 2.11) or after
//! they were merged (2.13), and fields that exclude each other (5.12).

use std::collections::BTreeSet;

use entail_core::expr::Expression;
use serde_json::{Value, json};

use super::existing::{remove, walk};
use super::fold::{Folded, Node, merged};
use super::leaf::{Leaf, Path, assemble, dotted, flatten, value_at};
use super::limits::is_rule;
use super::objects::short;
use super::rng::Rng;
use super::schema::Shape;
use super::settings::{Class, Settings, Target};

/// Fields of which only one may be in a result.
#[derive(Clone, Debug)]
pub struct Exclusive {
    pub fields: Vec<String>,
    pub fail_open: Option<String>,
}

/// Whether a policy with these rules cannot name the target.
pub fn forbids(target: &Target, rules: &Value) -> bool {
    let lines = flatten(rules, "", &Shape::default());
    let beside = |line: &Leaf| !is_rule(line, &target.fields);
    let elsewhere = !target.fields.is_empty() && lines.iter().any(beside);
    let own = without_nulls(rules);
    let is_true = |source: &String| {
        let rule = Expression::compile(source).unwrap();
        rule.evaluate(&[("self", &own)]) == Ok(json!(true))
    };
    elsewhere
        || target.without.iter().any(|path| is_set(rules, path))
        || !target.validations.iter().all(is_true)
}

/// Values as an API server stores them: no field of an object is null.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.retain(|_, value| !value.is_null());
            fields
                .values_mut()
                .for_each(|value| *value = without_nulls(value));
            fields.into()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// A null and an empty list are no values.
pub fn is_set(rules: &Value, path: &str) -> bool {
    let mut found = Vec::new();
    walk(rules, path, "", &mut found);
    let none = |value: &Value| value.is_null() || *value == Value::Array(Vec::new());
    found.iter().any(|(_, value)| !none(value))
}

/// The target of which policies are checked again after they were merged.
pub fn merge_target<'k>(kind: &'k Settings, object: &str) -> Option<&'k Target> {
    let mut targets = kind.targets.iter().flatten();
    targets.find(|t| t.merged && short(&t.group, &t.kind) == object)
}

/// The policies that take no part because of what they are merged to: the number of the node, and the name. `nodes`
/// are those of a path, with all rules of their policies.
pub fn refused(kind: &Settings, nodes: &[Node]) -> BTreeSet<(usize, String)> {
    let mut refused = BTreeSet::new();
    let mut above: Vec<Node> = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        let object = node.key.split('/').next().unwrap_or_default();
        let target = merge_target(kind, object);
        above.push(Node {
            policies: Vec::new(),
            ..node.clone()
        });
        for policy in &node.policies {
            above.last_mut().unwrap().policies.push(policy.clone());
            if policy.is_transparent() {
                continue;
            }
            let Some(target) = target else { continue };
            let spec = merged(kind, &above, &[]).spec();
            let mut own = policy.blocks.iter().map(|block| &block.rules);
            if own.any(|rules| forbids(target, rules))
                || spec.is_some_and(|spec| forbids(target, &spec))
            {
                above.last_mut().unwrap().policies.pop();
                refused.insert((number, policy.name.clone()));
            }
        }
    }
    refused
}

/// The fields of a setting that rules hold.
fn set(setting: &Exclusive, rules: &Value) -> Vec<Path> {
    let fields = setting.fields.iter().map(|field| dotted(field));
    let fields = fields.filter(|field| value_at(rules, field).is_some_and(|v| !v.is_null()));
    fields.collect()
}

/// Whether rules hold fields that exclude each other.
pub fn excludes(kind: &Settings, rules: &Value) -> bool {
    let mut settings = kind.exclusive.iter();
    settings.any(|setting| set(setting, rules).len() > 1)
}

/// What a result comes to that holds fields that exclude each other.
pub fn exclude(kind: &Settings, nodes: &[Node], mut folded: Folded) -> Folded {
    let Some(rules) = &mut folded.rules else {
        return folded;
    };
    let whole = assemble(&rules.lines);
    let mut closed: BTreeSet<String> = BTreeSet::new();
    let mut omitted: Vec<Path> = Vec::new();
    for setting in &kind.exclusive {
        let set = set(setting, &whole);
        if set.len() < 2 {
            continue;
        }
        let at = |line: &&Leaf| set.iter().any(|field| line.path.starts_with(field));
        let by = rules.lines.iter().filter(at).flat_map(|line| &line.by);
        let by: BTreeSet<String> = by.filter(|by| !by.starts_with('=')).cloned().collect();
        let policies = nodes.iter().rev().flat_map(|n| n.policies.iter().rev());
        let mut specific = policies.map(|policy| &policy.name);
        folded
            .refused
            .extend(specific.find(|name| by.contains(*name)).cloned());
        let open = setting.fail_open.as_deref().map(dotted);
        match open.filter(|path| value_at(&whole, path) == Some(&true.into())) {
            Some(path) => omitted.push(path[..path.len() - 1].to_vec()),
            None => closed.extend(by),
        }
    }
    if !closed.is_empty() {
        folded.rules = None;
        folded.closed_by = closed;
        return folded;
    }
    for path in omitted {
        remove(kind, rules, &path);
    }
    folded
}

/// Adds what the controller refuses to a random profile. The choice depends on the profile alone, so that worlds
/// without it stay as they are.
pub fn random(spec: &mut Value, class: Class) {
    let text = spec.to_string();
    let seed = text
        .bytes()
        .fold(0_u64, |n, b| n.wrapping_mul(31).wrapping_add(u64::from(b)));
    let mut rng = Rng::new(seed);
    if class != Class::Inherited {
        return;
    }
    if rng.percent(15) {
        spec["exclusive"] = rng.choose(&[
            json!([{"fields": ["a", "n"]}]),
            json!([{"fields": ["a.x", "a.y", "a.m"]}, {"fields": ["b", "tags"]}]),
            json!([{"fields": ["auth.backend", "auth.other"], "failOpen": "auth.open"}]),
        ]);
    }
    let choice = &spec["strategy"];
    let merges = choice["owner"] == "Lower" && choice.get("annotation").is_none();
    for target in spec["targets"].as_array_mut().into_iter().flatten() {
        if rng.percent(if merges { 35 } else { 6 }) {
            target["without"] = json!(rng.some(&["b", "items[*].v", "m.e2", "a.x"], 50));
        }
        let is_set = |name: &str| target[name].as_array().is_some_and(|list| !list.is_empty());
        let has_conditions = is_set("fields") || is_set("without");
        if merges && has_conditions && rng.percent(75) {
            target["merged"] = json!(true);
        }
    }
}
