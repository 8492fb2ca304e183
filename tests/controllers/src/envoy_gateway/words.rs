//! Translates what entail reports into the words of the controller's conditions.
//!
//! The controller's Overridden and Merged tell which policies are attached above and below each other, and not what is
//! left of them: a policy is overridden as soon as a more specific one is attached that does not merge, on a Route that
//! names the object as parent, whether it is served there or not. entail reports attachments by the nodes of references,
//! and what is left by values, which are compared by themselves.

use std::collections::{BTreeMap, BTreeSet};

use entail::api::v1;
use serde_json::Value;

use super::answers::{Answers, Effective, ListenerPlace, is};
use super::status::object_name;

/// The policies that have the conditions Overridden and Merged, as `Kind.group/namespace/name`.
#[derive(Debug, Default)]
pub struct Words {
    /// Policies below which another one is attached that does not merge.
    pub overridden: BTreeSet<String>,
    /// Policies that merge, and those that they merge with.
    pub merged: BTreeSet<String>,
}

/// A policy at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attached {
    name: String,
    merges: bool,
    is_accepted: bool,
}

/// The attached policies of a kind, by node: `Kind/namespace/name[#section]`.
type ByNode = BTreeMap<String, Attached>;

/// Nodes below nodes.
type Below = BTreeMap<String, BTreeSet<String>>;

impl Words {
    /// The words for all policies of a world.
    pub fn of(answers: &Answers, objects: &[Value]) -> Self {
        let mut kinds: BTreeMap<&str, ByNode> = BTreeMap::new();
        for status in &answers.statuses {
            let nodes = kinds.entry(&status.kind).or_default();
            attach(status, objects, nodes);
        }
        let mut words = Self::default();
        for (kind, nodes) in &kinds {
            words.kind(kind, nodes, answers, objects);
        }
        words
    }

    fn kind(&mut self, kind: &str, nodes: &ByNode, answers: &Answers, objects: &[Value]) {
        let below = below(nodes, objects);
        let mut merged = Below::new();
        for answer in &answers.rules {
            let rule = &answer.rule;
            let route = format!("{}/{}/{}", rule.kind, rule.namespace, rule.name);
            let section = format!("{route}#{}", rule.section);
            let closest = above(&answer.listener)
                .into_iter()
                .rev()
                .find_map(|node| nodes.get(&node).map(|one| (node, one)));
            let Some((node, closest)) = closest else {
                continue;
            };
            // Where the result of a merge is refused, nothing is merged.
            let kind = kind.split('.').next().unwrap_or_default();
            if answer.kinds.get(kind) == Some(&Effective::FailsClosed) {
                continue;
            }
            let own = [nodes.get(&route), nodes.get(&section)];
            for own in own.into_iter().flatten() {
                if own.merges && own.is_accepted && closest.is_accepted {
                    self.merged.extend([own.name.clone(), closest.name.clone()]);
                    merged
                        .entry(node.clone())
                        .or_default()
                        .insert(route.clone());
                }
            }
        }
        for (node, policy) in nodes {
            let mut others = BTreeSet::new();
            descend(&below, node, &mut others);
            if object_of(node) != node && !is_route(node) {
                // Routes of the whole object are served by each listener.
                let whole = below.get(object_of(node)).into_iter().flatten();
                others.extend(whole.filter(|one| is_route(one)).cloned());
            }
            let merged = merged.get(node);
            let is_left = |node: &String| !merged.is_some_and(|merged| merged.contains(node));
            let has_policy = |node: &String| is_route(node) || nodes.contains_key(node);
            if others.iter().any(|one| has_policy(one) && is_left(one)) {
                self.overridden.insert(policy.name.clone());
            }
        }
    }
}

/// The nodes below each node: Routes and their rules are there only if they have a policy.
fn below(nodes: &ByNode, objects: &[Value]) -> Below {
    let mut below = Below::new();
    let mut add = |above: &str, node: &str| {
        below
            .entry(above.to_owned())
            .or_default()
            .insert(node.to_owned());
    };
    for node in nodes.keys() {
        let owner = object_of(node);
        if owner != node {
            add(owner, node);
        }
        let object = objects.iter().find(|object| object_name(object) == owner);
        for parent in object.into_iter().flat_map(parents) {
            add(&parent, owner);
            // What is below a ListenerSet is below its Gateway.
            let set = objects
                .iter()
                .find(|object| object_name(object) == object_of(&parent));
            let gateways = set.into_iter().flat_map(parents);
            gateways.for_each(|gateway| add(&gateway, object_of(&parent)));
            if object_of(&parent) != parent {
                add(object_of(&parent), &parent);
            }
        }
    }
    below
}

/// Adds everything below a node.
fn descend(below: &Below, node: &str, found: &mut BTreeSet<String>) {
    for one in below.get(node).into_iter().flatten() {
        if found.insert(one.clone()) && !is_route(one) {
            descend(below, one, found);
        }
    }
}

/// The nodes that a Route or a ListenerSet names as its parents.
fn parents(object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let listed = spec["parentRefs"].as_array().into_iter().flatten();
    let of = |parent: &Value| {
        let text = |field: &str| parent[field].as_str();
        let namespace = text("namespace").or(object["metadata"]["namespace"].as_str());
        let section = text("sectionName").map(|name| format!("#{name}"));
        format!(
            "{}/{}/{}{}",
            text("kind").unwrap_or("Gateway"),
            namespace.unwrap_or_default(),
            text("name").unwrap_or_default(),
            section.unwrap_or_default()
        )
    };
    listed.chain(spec.get("parentRef")).map(of).collect()
}

/// Whether a node is a Route.
fn is_route(node: &str) -> bool {
    let kind = node.split('/').next().unwrap_or_default();
    kind.ends_with("Route")
}

/// A node without its section.
fn object_of(node: &str) -> &str {
    node.split('#').next().unwrap_or_default()
}

/// Adds the accepted references of a policy.
fn attach(status: &v1::PolicyStatus, objects: &[Value], nodes: &mut ByNode) {
    let policy = status.policy.clone().unwrap_or_default();
    let kind = status.kind.split('.').next().unwrap_or_default();
    let object = objects
        .iter()
        .find(|object| is(object, kind, &policy.namespace, &policy.name));
    let merges = object.is_some_and(|object| object["spec"]["mergeType"].is_string());
    let accepted = status.conditions.first();
    let attached = Attached {
        name: super::answers::policy_name(status),
        merges,
        is_accepted: accepted.is_some_and(|accepted| accepted.status == "True"),
    };
    let references = status.references.iter();
    let accepted = references.filter(|reference| reference.outcome == "Accepted");
    for node in accepted.flat_map(|reference| &reference.nodes) {
        nodes.insert(node.clone(), attached.clone());
    }
}

/// The nodes of a path from the Gateway to the listener, from the least to the most specific.
fn above(listener: &ListenerPlace) -> Vec<String> {
    let gateway: Vec<&str> = listener.name.split('/').take(2).collect();
    let gateway = format!("Gateway/{}", gateway.join("/"));
    let owner = format!(
        "{}/{}/{}",
        listener.owner, listener.namespace, listener.owner_name
    );
    let section = format!("{owner}#{}", listener.section);
    let mut nodes = vec![gateway, owner, section];
    nodes.dedup();
    nodes
}
