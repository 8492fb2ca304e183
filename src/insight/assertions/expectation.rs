//! What an assertion expects of the effective policies of a path.

use serde_json::{Map, Value, json};

use super::filter::PathContext;
use super::verdict::PolicyView;
use entail_core::effective::World;
use entail_core::expr::Expression;
use entail_core::model::{
    GroupKind, InternalError, Level, NodeKey, ObjectKey, OrInternal, Section, Str,
};
use entail_core::topology::NodeId;

/// What is expected of each path.
#[derive(Clone, Debug)]
pub(super) enum Expectation {
    /// The expression is true.
    Cel {
        expression: Expression,
        /// The objects of the path that it reads.
        objects: Vec<ObjectVariable>,
    },
    /// The effective policies contain all of the patterns.
    Match(Vec<Pattern>),
}

/// A part that the effective policy of a variable contains.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub variable: String,
    pub tree: Value,
}

/// An object of the path that an expression can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectVariable {
    Gateway,
    Listener,
    Namespace,
    Route,
    Rule,
    Backend,
}

/// The objects of a path.
#[derive(Clone, Copy)]
pub(super) struct PathObjects<'w> {
    pub world: &'w World,
    pub context: PathContext,
    /// The namespace of the assertion: of backends in others, only the names are known to it.
    pub own_namespace: Option<&'w Str>,
}

/// Maximum length of a value in a message, in characters.
const MAX_SHOWN: usize = 120;

impl ObjectVariable {
    const ALL: [Self; 6] = [
        Self::Gateway,
        Self::Listener,
        Self::Namespace,
        Self::Route,
        Self::Rule,
        Self::Backend,
    ];

    /// The variable with a name.
    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|variable| variable.as_str() == name)
    }

    /// The names of all variables, for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Listener => "listener",
            Self::Namespace => "namespace",
            Self::Route => "route",
            Self::Rule => "rule",
            Self::Backend => "backend",
        }
    }

    /// The least specific level of the paths that have the object.
    fn level(self) -> Level {
        match self {
            Self::Gateway | Self::Namespace => Level::Gateway,
            Self::Listener => Level::Listener,
            Self::Route => Level::Route,
            Self::Rule => Level::RouteRule,
            Self::Backend => Level::Backend,
        }
    }

    /// The value on a path, with what an expression reads of it; null if the path lacks the object, as mesh paths lack a
    /// listener.
    fn value(self, objects: PathObjects<'_>, expression: &Expression) -> Value {
        let reads_spec = expression.reads(self.as_str(), "spec");
        let PathObjects { world, context, .. } = objects;
        let key = |node: Option<NodeId>| node.map(|node| world.topology().key(node));
        match self {
            Self::Gateway => {
                // The paths of meshes begin at Services.
                let root = key(context.root);
                let gateway = GroupKind::gateway();
                object_value(
                    world,
                    root.filter(|root| root.object.kind == gateway),
                    reads_spec,
                )
            }
            Self::Route => object_value(world, key(context.route), reads_spec),
            Self::Backend => {
                let key = key(context.backend);
                let is_own = |key: &NodeKey| {
                    let own = objects.own_namespace;
                    own.is_none_or(|own| *own == key.object.namespace)
                };
                match key.is_none_or(is_own) {
                    true => object_value(world, key, reads_spec),
                    false => key.map_or(Value::Null, |key| Value::Object(named(&key.object))),
                }
            }
            Self::Listener => listener_value(world, key(context.listener)),
            Self::Rule => rule_value(world, key(context.rule)),
            Self::Namespace => {
                // The namespace of the path is that of its last object before the backend.
                let last = context.route.or(context.listener).or(context.root);
                namespace_value(world, key(last))
            }
        }
    }
}

impl Expectation {
    /// Whether the expectation reads an object.
    pub fn reads(&self, variable: ObjectVariable) -> bool {
        self.objects().contains(&variable)
    }

    /// The objects that the expectation reads.
    pub fn objects(&self) -> &[ObjectVariable] {
        match self {
            Self::Cel { objects, .. } => objects,
            Self::Match(_) => &[],
        }
    }

    /// The name of an object that the expectation reads and that paths of a level end above.
    pub fn variable_below(&self, level: Level) -> Option<&'static str> {
        let mut objects = self.objects().iter();
        let below = objects.find(|object| object.level() > level);
        below.map(|object| object.as_str())
    }

    /// Checks the effective policies of a path, each with the name of its variable. Adds the steps of the evaluation to
    /// `work`.
    ///
    /// # Errors
    /// The path is not as expected. The message says why.
    pub fn check(
        &self,
        policies: &[(&str, Value)],
        path: PathObjects<'_>,
        work: &mut u64,
    ) -> Result<(), String> {
        match self {
            Self::Match(patterns) => patterns.iter().try_for_each(|pattern| {
                let mut policies = policies.iter();
                let policy = policies.find(|(name, _)| *name == pattern.variable);
                let value = policy.map_or(&Value::Null, |(_, value)| value);
                match contains(value, &pattern.tree, work) {
                    true => Ok(()),
                    false => Err(difference(value, &pattern.tree, &pattern.variable, work)),
                }
            }),
            Self::Cel {
                expression,
                objects,
            } => {
                let objects: Vec<(&str, Value)> = objects
                    .iter()
                    .map(|object| (object.as_str(), object.value(path, expression)))
                    .collect();
                let variables = policies.iter().chain(&objects);
                let variables: Vec<(&str, &Value)> =
                    variables.map(|(name, value)| (*name, value)).collect();
                match expression.evaluate_counting(&variables, work) {
                    Ok(Value::Bool(true)) => Ok(()),
                    Ok(Value::Bool(false)) => Err(shown(policies)),
                    Ok(other) => Err(format!("`expect.cel` is {}, not true", short(&other))),
                    Err(error) => Err(format!("`expect.cel`: {error}; {}", shown(policies))),
                }
            }
        }
    }
}

/// The effective policy as the value of a variable: the merged rules, or the list of the rules if policies are listed. If
/// there is none, `is_listed` is whether policies of the kind are listed everywhere.
///
/// # Errors
/// The rules are not JSON.
pub(super) fn policy_value(
    policy: Option<&PolicyView>,
    is_listed: bool,
) -> Result<Value, InternalError> {
    let Some(policy) = policy else {
        return Ok(match is_listed {
            true => json!([]),
            false => json!({}),
        });
    };
    let parse = |text: &str| {
        let parsed = serde_json::from_str(text).ok();
        parsed.or_internal("the rules of a policy")
    };
    // Set if and only if policies are listed.
    if !policy.not_computed.is_empty() {
        let listed = policy.listed.iter();
        return listed.map(|listed| parse(&listed.spec_json)).collect();
    }
    policy
        .spec_json
        .as_deref()
        .map_or_else(|| Ok(json!({})), parse)
}

/// Whether a value contains a pattern: the fields of a map, for each item of a list an item, and else the same. Null means
/// that the field is absent. Each comparison is a step of the work.
fn contains(value: &Value, pattern: &Value, work: &mut u64) -> bool {
    *work += 1;
    match (value, pattern) {
        (Value::Object(fields), Value::Object(patterns)) => {
            patterns
                .iter()
                .all(|(name, pattern)| match fields.get(name) {
                    None => pattern.is_null(),
                    Some(value) => contains(value, pattern, work),
                })
        }
        (Value::Array(items), Value::Array(patterns)) => patterns
            .iter()
            .all(|pattern| items.iter().any(|item| contains(item, pattern, work))),
        _ => value == pattern,
    }
}

/// Where a value first differs from a pattern that it does not contain.
fn difference(value: &Value, pattern: &Value, at: &str, work: &mut u64) -> String {
    match (value, pattern) {
        (Value::Object(fields), Value::Object(patterns)) => {
            for (name, pattern) in patterns {
                let at = format!("{at}.{name}");
                match fields.get(name) {
                    None if pattern.is_null() => {}
                    None => return format!("`{at}` is absent"),
                    Some(value) if contains(value, pattern, work) => {}
                    Some(value) => return difference(value, pattern, &at, work),
                }
            }
        }
        (Value::Array(items), Value::Array(patterns)) => {
            for pattern in patterns {
                if !items.iter().any(|item| contains(item, pattern, work)) {
                    return format!("`{at}` has no item like {}", short(pattern));
                }
            }
        }
        _ => {}
    }
    format!("`{at}` is {}, expected {}", short(value), short(pattern))
}

/// The effective policies, for a message.
fn shown(policies: &[(&str, Value)]) -> String {
    let shown: Vec<String> = policies
        .iter()
        .map(|(name, value)| match value {
            Value::Object(fields) if fields.is_empty() => format!("`{name}` is not set"),
            value => format!("`{name}` is {}", short(value)),
        })
        .collect();
    shown.join(", ")
}

/// A value as JSON, cut if it is long.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn object_value(world: &World, key: Option<&NodeKey>, reads_spec: bool) -> Value {
    let Some(NodeKey { object: key, .. }) = key else {
        return Value::Null;
    };
    let mut value = named(key);
    // Of an object that is not read, labels and spec are absent, so that no condition about them is true.
    if let Some(entry) = world.store().get(key) {
        value.insert("labels".to_owned(), json!(entry.object.labels));
        if reads_spec {
            let spec = entry.object.body.get("spec");
            value.insert("spec".to_owned(), spec.unwrap_or_else(|| json!({})));
        }
    }
    Value::Object(value)
}

fn named(key: &ObjectKey) -> Map<String, Value> {
    let fields = [
        ("group", &key.kind.group),
        ("kind", &key.kind.kind),
        ("namespace", &key.namespace),
        ("name", &key.name),
    ];
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name.to_owned(), json!(&**value)))
        .collect()
}

/// The entry of `spec.listeners`.
fn listener_value(world: &World, key: Option<&NodeKey>) -> Value {
    let Some((key, Section::Listener(name))) =
        key.and_then(|key| Some((key, key.section.as_ref()?)))
    else {
        return Value::Null;
    };
    let entry = world.store().get(&key.object);
    let listeners = entry.and_then(|entry| entry.object.body.pointer("/spec/listeners"));
    let Some(Value::Array(listeners)) = listeners else {
        return Value::Null;
    };
    let is_named = |listener: &Value| listener.get("name") == Some(&json!(&**name));
    listeners.into_iter().find(is_named).unwrap_or_default()
}

/// The entry of `spec.rules`.
fn rule_value(world: &World, key: Option<&NodeKey>) -> Value {
    let Some((key, Section::Rule(index))) = key.and_then(|key| Some((key, key.section.as_ref()?)))
    else {
        return Value::Null;
    };
    let entry = world.store().get(&key.object);
    let rule = entry.and_then(|entry| {
        let body = &entry.object.body;
        body.pointer(&format!("/spec/rules/{index}"))
    });
    rule.unwrap_or_else(|| json!({}))
}

fn namespace_value(world: &World, key: Option<&NodeKey>) -> Value {
    let Some(NodeKey { object, .. }) = key else {
        return Value::Null;
    };
    let name = &object.namespace;
    let is_known = world
        .store()
        .get(&NodeKey::namespace(&**name).object)
        .is_some();
    let labels = world.topology().namespace_labels().get(name);
    match labels.filter(|_| is_known) {
        Some(labels) => json!({ "name": &**name, "labels": labels }),
        None => json!({ "name": &**name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_part_of_a_value() {
        let value =
            json!({"jwt": {"providers": [{"name": "a", "issuer": "i"}, {"name": "b"}]}, "n": 1});
        for (pattern, expected) in [
            (json!({}), Ok(())),
            (json!({"n": 1, "x": null}), Ok(())),
            (json!({"jwt": {"providers": [{"name": "b"}]}}), Ok(())),
            (json!({"jwt": {"providers": []}}), Ok(())),
            (json!({"n": 2}), Err("`auth.n` is 1, expected 2")),
            (json!({"n": null}), Err("`auth.n` is 1, expected null")),
            (json!({"x": {}}), Err("`auth.x` is absent")),
            (
                json!({"jwt": {"providers": [{"name": "c"}]}}),
                Err("`auth.jwt.providers` has no item like {\"name\":\"c\"}"),
            ),
            (
                json!({"jwt": 1}),
                Err(
                    "`auth.jwt` is {\"providers\":[{\"issuer\":\"i\",\"name\":\"a\"},{\"name\":\"b\"}]}, expected 1",
                ),
            ),
        ] {
            let found = match contains(&value, &pattern, &mut 0) {
                true => Ok(()),
                false => Err(difference(&value, &pattern, "auth", &mut 0)),
            };
            assert_eq!(found, expected.map_err(str::to_owned), "{pattern}");
        }
    }

    #[test]
    fn long_values_are_cut_at_a_character() {
        let text = short(&json!("\u{e4}".repeat(200)));
        assert_eq!(text.chars().count(), MAX_SHOWN + 3);
        assert_eq!(short(&json!({"a": 1})), "{\"a\":1}");
    }
}
