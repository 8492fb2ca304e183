//! Identification of the rule that a request takes, from data that Envoy sets. Data that clients
//! send is never used.

use prost_types::value::Kind;
use prost_types::{Struct, Value};
use regex::{Captures, Regex};
use serde_json::Value as Json;
use tonic::metadata::MetadataMap;

use super::settings::{EnvoyDialect, EnvoySettings, MetadataField};
use crate::api::envoy::AttributeContext;
use crate::insight::{RuleName, RuleRef};

/// Context extension with the name of the path.
const PATH: &str = "entail.path";

/// How a controller identifies rules in Envoy's configuration.
#[derive(Clone, Debug)]
pub(in crate::server) struct Dialect {
    metadata: Option<MetadataField>,
    route_name: Option<Regex>,
}

/// The identity of the rule that a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) enum RuleIdentity {
    /// The name of the path.
    Path(String),
    /// The rule, and its Gateway and listener if known.
    Rule(RuleRef),
    /// The rule is unknown. Gateway and listener may be known.
    Unknown {
        gateway: Option<(String, String)>,
        listener: Option<String>,
    },
}

/// Error for identities that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct Contradiction(pub String);

/// An object that metadata refers to.
#[derive(Debug, Default)]
struct NamedObject {
    kind: String,
    namespace: String,
    name: String,
    section: Option<String>,
}

impl Dialect {
    /// Compiles a dialect.
    ///
    /// # Errors
    /// Returns the problem, with the name of the dialect.
    pub fn read(parts: &EnvoyDialect) -> Result<Self, String> {
        let problem = |why: String| format!("`dialects`, `{}`: {why}", parts.name);
        if parts.metadata.is_none() && parts.route_name.is_none() {
            return Err(problem("it needs `metadata` or `routeName`".to_owned()));
        }
        let compile = |text: &String| {
            let regex = Regex::new(&format!("^(?:{text})$")).map_err(|error| {
                let message = error.to_string();
                problem(message.lines().last().unwrap_or_default().to_owned())
            })?;
            let has = |name| regex.capture_names().flatten().any(|group| group == name);
            match has("namespace") && has("name") {
                true => Ok(regex),
                false => Err(problem(
                    "`routeName` needs groups `namespace` and `name`".to_owned(),
                )),
            }
        };
        Ok(Self {
            metadata: parts.metadata.clone(),
            route_name: parts.route_name.as_ref().map(compile).transpose()?,
        })
    }
}

/// Identifies the rule that a request takes: by the context extension, otherwise by the metadata
/// and the name of the Envoy route.
///
/// # Errors
/// Returns an error if metadata and name of the Envoy route identify different routes.
pub(in crate::server) fn identify_rule(
    settings: &EnvoySettings,
    attributes: &AttributeContext,
    metadata: &MetadataMap,
) -> Result<RuleIdentity, Contradiction> {
    if let Some(path) = attributes.context_extensions.get(PATH) {
        return Ok(RuleIdentity::Path(path.clone()));
    }
    let text = |name: &str| metadata.get(name).and_then(|value| value.to_str().ok());
    let virtual_host = text(&settings.grpc_metadata.gateway).map(objects_of_json);
    let mut gateway_objects = virtual_host.unwrap_or_default();
    let route_name = text(&settings.grpc_metadata.route).unwrap_or_default();
    let mut rule = None;
    for dialect in settings.dialects.iter() {
        let field = dialect.metadata.as_ref();
        let objects = field.map(|field| objects_of_metadata(attributes, field));
        let (gateways, routes): (Vec<_>, Vec<_>) = objects
            .unwrap_or_default()
            .into_iter()
            .partition(|object| is_gateway(&object.kind));
        gateway_objects.extend(gateways);
        let by_name = dialect.route_name.as_ref();
        let by_name = by_name.and_then(|regex| rule_of_captures(&regex.captures(route_name)?));
        let by_metadata = routes.into_iter().next().map(NamedObject::rule);
        rule = merge(by_metadata, by_name)?;
        if rule.is_some() {
            break;
        }
    }
    let gateway_object = gateway_objects
        .into_iter()
        .find(|object| object.kind == "Gateway");
    let (gateway, listener) = match gateway_object {
        Some(gateway_object) => (
            Some((gateway_object.namespace, gateway_object.name)),
            gateway_object.section,
        ),
        None => (settings.gateway.clone(), settings.listener.clone()),
    };
    Ok(match rule {
        Some(rule) => RuleIdentity::Rule(RuleRef {
            gateway,
            listener,
            ..rule
        }),
        None => RuleIdentity::Unknown { gateway, listener },
    })
}

/// Merges two identities of a rule. Metadata lacks the index of a rule without a name, so the name
/// of the Envoy route adds it.
fn merge(
    by_metadata: Option<RuleRef>,
    by_name: Option<RuleRef>,
) -> Result<Option<RuleRef>, Contradiction> {
    let (mut rule, other) = match (by_metadata, by_name) {
        (Some(rule), Some(other)) => (rule, other),
        (one, other) => return Ok(one.or(other)),
    };
    let kind = |rule: &RuleRef| rule.kind.clone().unwrap_or_default().to_ascii_lowercase();
    let same_kind = rule.kind.is_none() || other.kind.is_none() || kind(&rule) == kind(&other);
    if !same_kind || (&rule.namespace, &rule.name) != (&other.namespace, &other.name) {
        return Err(Contradiction(format!(
            "the metadata of the Envoy route identifies {}/{}, its name {}/{}",
            rule.namespace, rule.name, other.namespace, other.name
        )));
    }
    rule.kind = rule.kind.or(other.kind);
    rule.rule = rule.rule.or(other.rule);
    Ok(Some(rule))
}

fn is_gateway(kind: &str) -> bool {
    matches!(kind, "Gateway" | "ListenerSet")
}

impl NamedObject {
    fn rule(self) -> RuleRef {
        RuleRef {
            kind: (!self.kind.is_empty()).then_some(self.kind),
            namespace: self.namespace,
            name: self.name,
            rule: self.section.map(RuleName::Name),
            gateway: None,
            listener: None,
        }
    }
}

/// Returns the rule of the capture groups of a route name.
fn rule_of_captures(groups: &Captures<'_>) -> Option<RuleRef> {
    let group = |name: &str| groups.name(name).map(|text| text.as_str().to_owned());
    let index = group("rule").and_then(|index| index.parse().ok());
    let name = group("ruleName").filter(|name| !name.is_empty());
    Some(RuleRef {
        kind: group("kind").filter(|kind| !kind.is_empty()),
        namespace: group("namespace")?,
        name: group("name")?,
        rule: name.map(RuleName::Name).or(index.map(RuleName::Index)),
        gateway: None,
        listener: None,
    })
}

/// Returns the objects that a field of the route metadata lists.
fn objects_of_metadata(attributes: &AttributeContext, field: &MetadataField) -> Vec<NamedObject> {
    let context = attributes.route_metadata_context.as_ref();
    let namespace = context.and_then(|context| context.filter_metadata.get(&field.namespace));
    let list = match namespace.and_then(|fields| fields.fields.get(&field.field)?.kind.as_ref()) {
        Some(Kind::ListValue(list)) => &list.values[..],
        _ => &[],
    };
    let objects = list.iter().filter_map(|value| match &value.kind {
        Some(Kind::StructValue(object)) => Some(object),
        _ => None,
    });
    let text = |object: &Struct, field: &str| match object.fields.get(field) {
        Some(Value {
            kind: Some(Kind::StringValue(text)),
        }) => Some(text.clone()),
        _ => None,
    };
    objects
        .filter_map(|object| named_object(|field| text(object, field)))
        .collect()
}

/// Returns the objects of a JSON list; none if the text is not one.
fn objects_of_json(text: &str) -> Vec<NamedObject> {
    let Ok(Json::Array(list)) = serde_json::from_str(text) else {
        return Vec::new();
    };
    let text = |object: &Json, field: &str| Some(object.get(field)?.as_str()?.to_owned());
    let objects = list.iter();
    objects
        .filter_map(|object| named_object(|field| text(object, field)))
        .collect()
}

fn named_object(field: impl Fn(&str) -> Option<String>) -> Option<NamedObject> {
    Some(NamedObject {
        kind: field("kind").unwrap_or_default(),
        namespace: field("namespace")?,
        name: field("name")?,
        section: field("sectionName").filter(|section| !section.is_empty()),
    })
}
