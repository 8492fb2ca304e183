//! Which rule a request takes, as the data plane tells it. What clients send is never looked at.

use prost_types::value::Kind;
use prost_types::{Struct, Value};
use regex::{Captures, Regex};
use serde_json::Value as Json;
use tonic::metadata::MetadataMap;

use super::settings::{EnvoyDialect, EnvoySettings, MetadataField};
use crate::api::envoy::AttributeContext;
use crate::insight::{RuleName, RuleRef};

/// The context extension that names the path.
const PATH: &str = "entail.path";

/// How a data plane names rules.
#[derive(Clone, Debug)]
pub(in crate::server) struct Dialect {
    metadata: Option<MetadataField>,
    route_name: Option<Regex>,
}

/// What is said of a request's rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) enum RuleIdentity {
    /// Its path.
    Path(String),
    /// The rule, and perhaps where it serves.
    Rule(RuleRef),
    /// No rule; perhaps where the request came in.
    Unknown {
        gateway: Option<(String, String)>,
        listener: Option<String>,
    },
}

/// Things that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct Contradiction(pub String);

/// An object, as metadata names it.
#[derive(Debug, Default)]
struct NamedObject {
    kind: String,
    namespace: String,
    name: String,
    section: Option<String>,
}

impl Dialect {
    pub fn read(parts: &EnvoyDialect) -> Result<Self, String> {
        let wrong = |why: String| format!("`dialects`, `{}`: {why}", parts.name);
        if parts.metadata.is_none() && parts.route_name.is_none() {
            return Err(wrong("it needs `metadata` or `routeName`".to_owned()));
        }
        let compile = |text: &String| {
            let regex = Regex::new(&format!("^(?:{text})$")).map_err(|error| {
                let last = error.to_string();
                wrong(last.lines().last().unwrap_or_default().to_owned())
            })?;
            let has = |name| regex.capture_names().flatten().any(|known| known == name);
            match has("namespace") && has("name") {
                true => Ok(regex),
                false => Err(wrong(
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

/// What is said of a request's rule: a context extension first, then the route's identity.
///
/// # Errors
/// Metadata and name of a route are those of different routes.
pub(in crate::server) fn identify_rule(
    settings: &EnvoySettings,
    attributes: &AttributeContext,
    metadata: &MetadataMap,
) -> Result<RuleIdentity, Contradiction> {
    if let Some(path) = attributes.context_extensions.get(PATH) {
        return Ok(RuleIdentity::Path(path.clone()));
    }
    let text = |name: &str| metadata.get(name).and_then(|value| value.to_str().ok());
    let hosts = text(&settings.grpc_metadata.gateway).map(of_json);
    let mut gateway_objects = hosts.unwrap_or_default();
    let route_name = text(&settings.grpc_metadata.route).unwrap_or_default();
    let mut rule = None;
    for dialect in settings.dialects.iter() {
        let place = dialect.metadata.as_ref();
        let objects = place.map(|place| of_metadata(attributes, place));
        let (gateways, routes): (Vec<_>, Vec<_>) = objects
            .unwrap_or_default()
            .into_iter()
            .partition(|named| is_gateway(&named.kind));
        gateway_objects.extend(gateways);
        let by_name = dialect.route_name.as_ref();
        let by_name = by_name.and_then(|regex| of_name(&regex.captures(route_name)?));
        let by_metadata = routes.into_iter().next().map(NamedObject::rule);
        rule = agreed(by_metadata, by_name)?;
        if rule.is_some() {
            break;
        }
    }
    let gateway_object = gateway_objects
        .into_iter()
        .find(|named| named.kind == "Gateway");
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

/// One rule of two descriptions: metadata lacks the index of a rule that has no name.
fn agreed(
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
            "the metadata of the route is of {}/{}, its name of {}/{}",
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

/// The rule that a route's name tells.
fn of_name(groups: &Captures<'_>) -> Option<RuleRef> {
    let group = |name: &str| groups.name(name).map(|found| found.as_str().to_owned());
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

/// The objects that the metadata of the route names.
fn of_metadata(attributes: &AttributeContext, place: &MetadataField) -> Vec<NamedObject> {
    let context = attributes.route_metadata_context.as_ref();
    let namespace = context.and_then(|context| context.filter_metadata.get(&place.namespace));
    let list = match namespace.and_then(|fields| fields.fields.get(&place.field)?.kind.as_ref()) {
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
        .filter_map(|object| named(|field| text(object, field)))
        .collect()
}

/// The objects of a list in JSON.
fn of_json(text: &str) -> Vec<NamedObject> {
    let Ok(Json::Array(list)) = serde_json::from_str(text) else {
        return Vec::new();
    };
    let text = |object: &Json, field: &str| Some(object.get(field)?.as_str()?.to_owned());
    let objects = list.iter();
    objects
        .filter_map(|object| named(|field| text(object, field)))
        .collect()
}

fn named(field: impl Fn(&str) -> Option<String>) -> Option<NamedObject> {
    Some(NamedObject {
        kind: field("kind").unwrap_or_default(),
        namespace: field("namespace")?,
        name: field("name")?,
        section: field("sectionName").filter(|section| !section.is_empty()),
    })
}
