//! What the judge of Envoy Gateway replies.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::judge::{Judge, JudgeError};

/// The world as the API server would hold it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldReply {
    /// The objects with the defaults of their CRDs.
    pub objects: Vec<Value>,
    /// Objects that the API server would refuse.
    pub refused: Vec<Refusal>,
}

/// An object that is not part of a world.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Kind, namespace and name.
    pub object: String,
    /// The message of the validation.
    pub reason: String,
}

/// What the translator makes of a world.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    /// Policies of the request that the API server would refuse.
    pub refused: Vec<Refusal>,
    /// The statuses of policies.
    pub policies: Vec<PolicyReply>,
    /// The rules of routes, on each listener.
    pub rules: Vec<RuleReply>,
    /// The listeners.
    pub listeners: Vec<ListenerReply>,
}

/// The status of a policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyReply {
    /// The kind.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The conditions for each ancestor.
    pub ancestors: Vec<Ancestor>,
}

/// The status of a policy for one ancestor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(
    dead_code,
    reason = "fields that are not compared are read so that unknown ones are refused"
)]
pub struct Ancestor {
    /// The object above the target, or the target.
    pub ancestor_ref: Value,
    /// The controller that wrote it.
    pub controller_name: String,
    /// The conditions.
    pub conditions: Vec<Condition>,
}

/// A condition.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(
    dead_code,
    reason = "fields that are not compared are read so that unknown ones are refused"
)]
pub struct Condition {
    /// Its type, such as `Accepted`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason.
    pub reason: String,
    /// The message.
    #[serde(default)]
    pub message: String,
    /// The generation of the policy.
    #[serde(default)]
    pub observed_generation: i64,
    /// The time of the translation.
    #[serde(default)]
    pub last_transition_time: Value,
}

/// The intermediate representation of a rule on a listener.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(
    dead_code,
    reason = "fields that are not compared are read so that unknown ones are refused"
)]
pub struct RuleReply {
    /// The representation that it is part of: a Gateway, or a class whose Gateways are merged.
    pub gateway: String,
    /// The name of the listener: `namespace/gateway[/namespace/listenerset]/listener`.
    pub listener: String,
    /// The route: `kind/namespace/name`, the kind in lower case.
    pub route: String,
    /// The index of the rule.
    pub rule: String,
    /// One value for each match and hostname.
    pub ir: Vec<Map<String, Value>>,
}

/// The intermediate representation of a listener.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(
    dead_code,
    reason = "fields that are not compared are read so that unknown ones are refused"
)]
pub struct ListenerReply {
    /// As in a rule.
    pub gateway: String,
    /// As in a rule.
    pub listener: String,
    /// The fields.
    pub ir: Map<String, Value>,
}

impl Translation {
    /// The representation of a rule on a listener, if a listener has it.
    pub fn rule(&self, listener: &str, route: &str, index: usize) -> Option<&[Map<String, Value>]> {
        let index = index.to_string();
        let found = self
            .rules
            .iter()
            .find(|rule| rule.listener == listener && rule.route == route && rule.rule == index);
        found.map(|rule| rule.ir.as_slice())
    }

    /// The representation of a listener. Envoy has one listener for all HTTP listeners of a port without TLS, and makes
    /// it from the first of them.
    pub fn listener(&self, name: &str) -> Option<&Map<String, Value>> {
        let named = |listener: &&ListenerReply| listener.listener == name;
        let found = self.listeners.iter().find(named)?;
        let mut all = self.listeners.iter();
        let shared = all.find(|other| other.is_clear_http() && other.port() == found.port());
        let served = shared.filter(|_| found.is_clear_http()).unwrap_or(found);
        Some(&served.ir)
    }

    /// The status of a policy; a policy without one has no ancestors.
    pub fn ancestors(&self, kind: &str, namespace: &str, name: &str) -> &[Ancestor] {
        let found = self.policies.iter().find(|policy| {
            policy.kind == kind && policy.namespace == namespace && policy.name == name
        });
        found.map_or(&[], |policy| policy.ancestors.as_slice())
    }
}

impl ListenerReply {
    /// Whether it is an HTTP listener without TLS.
    fn is_clear_http(&self) -> bool {
        self.ir.contains_key("path") && self.ir.get("tls").is_none_or(Value::is_null)
    }

    /// The port of Envoy.
    fn port(&self) -> (&str, Option<&Value>) {
        (&self.gateway, self.ir.get("port"))
    }
}

impl Ancestor {
    /// The condition of a type.
    pub fn condition(&self, name: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.r#type == name)
    }

    /// Whether the condition of a type is true.
    pub fn is_true(&self, name: &str) -> bool {
        self.condition(name)
            .is_some_and(|condition| condition.status == "True")
    }
}

/// The names of the module's own test inputs.
///
/// # Errors
/// Returns an error if the judge does not know where they are.
pub fn golden_names(judge: &mut Judge) -> Result<Vec<String>, JudgeError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Names {
        names: Vec<String>,
    }
    let reply: Names = judge.ask(&json!({"op": "golden"}))?;
    Ok(reply.names)
}

/// Translates the world as it is.
///
/// # Errors
/// Returns an error if the translator crashed or the judge ended.
pub fn translate(judge: &mut Judge) -> Result<Translation, JudgeError> {
    judge.ask(&json!({"op": "translate"}))
}

/// Translates the world with other policies, and with more objects.
///
/// # Errors
/// Returns an error if the translator crashed or the judge ended.
pub fn replay(
    judge: &mut Judge,
    policies: &[Value],
    extra: &[Value],
) -> Result<Translation, JudgeError> {
    judge.ask(&json!({"op": "translate", "policies": policies, "extra": extra}))
}
