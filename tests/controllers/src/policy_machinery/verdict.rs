//! The replies of the judge.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

/// What Kuadrant makes of a world.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The effective policies, for each merged kind and each path that has one.
    pub paths: Vec<PathVerdict>,
    /// The policies of direct kinds on each listener.
    pub listeners: Vec<ListenerVerdict>,
    /// The statuses of policies that are not being deleted.
    pub policies: Vec<PolicyVerdict>,
}

/// A path down to a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathKey {
    /// `namespace/name` of the Gateway.
    pub gateway: String,
    /// The name of the listener.
    pub listener: String,
    /// The kind of the route.
    pub route_kind: String,
    /// `namespace/name` of the route.
    pub route: String,
    /// The index of the rule.
    pub rule: usize,
}

impl fmt::Display for PathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            gateway,
            listener,
            route_kind,
            route,
            rule,
        } = self;
        write!(f, "{gateway}#{listener} {route_kind} {route}#{rule}")
    }
}

/// The effective policy of one kind on one path.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathVerdict {
    gateway: String,
    listener: String,
    route_kind: String,
    route: String,
    rule: usize,
    /// The policy kind.
    pub kind: String,
    /// The rules by their place: a dotted path of fields, or that of a map, `#` and a name.
    pub rules: BTreeMap<String, RuleVerdict>,
    /// The policies of the kind on the path, from the least to the most specific.
    pub attached: Vec<String>,
    /// Why the gateway is configured otherwise.
    pub unconfigured: Vec<String>,
}

/// A rule of an effective policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleVerdict {
    /// The rule.
    pub value: Value,
    /// The policy that it comes from.
    pub source: String,
}

/// The policies of a direct kind on a listener.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerVerdict {
    /// `namespace/name` of the Gateway.
    pub gateway: String,
    /// The name of the listener.
    pub listener: String,
    /// The policy kind.
    pub kind: String,
    /// The accepted policies that cover the listener.
    pub policies: Vec<String>,
    /// Why the listener is passed over; empty if it is not.
    pub passed: String,
}

/// The status of a policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyVerdict {
    /// The policy kind.
    pub kind: String,
    /// `namespace/name`.
    pub policy: String,
    /// The reason of the condition Accepted.
    pub accepted: String,
    /// The outcome of the condition Enforced.
    pub enforced: String,
    /// The policies that override it, if all of its rules are overridden.
    #[serde(default)]
    pub overridden_by: Option<Vec<String>>,
    /// The number of paths that the status takes into account.
    pub ready: u64,
}

impl PathVerdict {
    /// The path.
    pub fn key(&self) -> PathKey {
        PathKey {
            gateway: self.gateway.clone(),
            listener: self.listener.clone(),
            route_kind: self.route_kind.clone(),
            route: self.route.clone(),
            rule: self.rule,
        }
    }

    /// The rules as one object, as entail returns them.
    pub fn spec(&self) -> Value {
        let mut spec = Value::Object(Map::new());
        for (place, rule) in &self.rules {
            set(&mut spec, &segments(place), &rule.value);
        }
        spec
    }
}

/// The fields on the way to a rule.
pub fn segments(place: &str) -> Vec<&str> {
    match place.split_once('#') {
        Some((map, name)) => map.split('.').chain([name]).collect(),
        None => place.split('.').collect(),
    }
}

fn set(object: &mut Value, path: &[&str], value: &Value) {
    match path {
        [] => *object = value.clone(),
        [first, rest @ ..] => {
            if let Some(fields) = object.as_object_mut() {
                let empty = || Value::Object(Map::new());
                set(fields.entry(*first).or_insert_with(empty), rest, value);
            }
        }
    }
}
