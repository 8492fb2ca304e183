//! What Envoy is told of a path, made once for each distinct answer.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::{Map, Value as Json};

use super::settings::{EnvoySettings, HeaderRule};
use crate::api::envoy::{HeaderValue, HeaderValueOption};
use crate::api::{decode_policies, v1};
use crate::snapshot::PathAnswer;
use entail_core::model::{GroupKind, at_path, is_unset};

/// Bytes of JSON in the answers that are kept.
const MAX_CACHE_BYTES: usize = 4 * 1024 * 1024;
/// Most bytes of a header's value.
const MAX_HEADER_BYTES: usize = 4_096;

/// What Envoy is told of an answer.
#[derive(Debug)]
pub(in crate::server) struct EnvoyAnswer {
    /// By kind: spec, etag, and the spec as exact JSON.
    pub policies: Value,
    /// The specs by kind, for rules.
    pub specs: Json,
    /// Headers to set.
    pub headers: Vec<HeaderValueOption>,
    /// Headers to take away: configured ones that have no value here.
    pub removed: Vec<String>,
    /// Whether it is larger than metadata and headers may be.
    pub is_too_large: bool,
    /// Bytes of its JSON.
    bytes: usize,
}

/// What was made, by the etag of the answer.
#[derive(Debug, Default)]
pub(in crate::server) struct AnswerCache {
    known: RwLock<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    answers: HashMap<String, Arc<EnvoyAnswer>>,
    bytes: usize,
}

impl AnswerCache {
    /// What Envoy is told of some kinds of an answer.
    pub fn of(
        &self,
        body: &PathAnswer,
        kinds: &[GroupKind],
        settings: &EnvoySettings,
    ) -> Arc<EnvoyAnswer> {
        let etag = body.etag_of(kinds);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(told) = known.answers.get(&etag) {
            return Arc::clone(told);
        }
        drop(known);
        let told = Arc::new(EnvoyAnswer::of(body, kinds, settings));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.bytes > MAX_CACHE_BYTES {
            *known = CacheEntries::default();
        }
        // An answer of nothing takes room as well.
        known.bytes += told.bytes + 1024;
        known.answers.insert(etag, Arc::clone(&told));
        told
    }
}

impl EnvoyAnswer {
    fn of(body: &PathAnswer, kinds: &[GroupKind], settings: &EnvoySettings) -> Self {
        let policies = decode_policies(body.policies(kinds));
        let mut specs = Map::new();
        let mut told = BTreeMap::new();
        let mut length = 0;
        for policy in &policies {
            let kind = GroupKind::new(&*policy.group, &*policy.kind).to_string();
            let json = policy.spec_json();
            length += json.len();
            let spec: Json = serde_json::from_str(json).unwrap_or_default();
            if length <= settings.max_bytes {
                told.insert(kind.clone(), of_policy(policy, &spec));
            }
            specs.insert(kind, spec);
        }
        let specs = Json::Object(specs);
        let mut headers = Vec::new();
        let mut removed = Vec::new();
        let mut is_too_large = length > settings.max_bytes;
        for header in &settings.headers {
            match value_of(header, &specs) {
                None => removed.push(header.name.to_string()),
                Some(value) if value.len() > MAX_HEADER_BYTES => is_too_large = true,
                Some(value) => headers.push(option(header, value)),
            }
        }
        Self {
            bytes: length,
            policies: object(told),
            specs,
            headers,
            removed,
            is_too_large,
        }
    }
}

fn of_policy(policy: &v1::EffectivePolicy, spec: &Json) -> Value {
    let mut fields = BTreeMap::from([
        ("spec".to_owned(), value(spec)),
        // Numbers of metadata are doubles; here they are exact.
        ("json".to_owned(), text(policy.spec_json())),
        ("etag".to_owned(), text(&policy.etag)),
    ]);
    if !policy.not_computed.is_empty() {
        fields.insert("notComputed".to_owned(), text(&policy.not_computed));
    }
    if !policy.rejected.is_empty() {
        let rejected = policy.rejected.iter().map(|rejected| {
            let policy = rejected.policy.clone().unwrap_or_default();
            text(&format!(
                "{}/{}: {}",
                policy.namespace, policy.name, rejected.reason
            ))
        });
        fields.insert("rejected".to_owned(), list(rejected.collect()));
    }
    object(fields)
}

/// The value of a header, if the spec has one: text as it is, all else as JSON.
fn value_of(header: &HeaderRule, specs: &Json) -> Option<String> {
    let spec = specs.get(header.kind.to_string())?;
    let found = at_path(spec, &header.value, None).filter(|found| !is_unset(Some(found)))?;
    let value = match found {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    // Envoy refuses the whole answer for a header that cannot be sent.
    let is_sound = !value.chars().any(char::is_control) && value.is_ascii();
    is_sound.then_some(value)
}

/// A header that replaces what the request has. Envoys differ in what they do where `append` is not
/// said.
fn option(header: &HeaderRule, value: String) -> HeaderValueOption {
    HeaderValueOption {
        header: Some(HeaderValue {
            key: header.name.to_string(),
            value,
        }),
        append: Some(false),
    }
}

/// JSON as protobuf has it.
fn value(json: &Json) -> Value {
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(bool) => Kind::BoolValue(*bool),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Kind::StringValue(text.clone()),
        Json::Array(items) => return list(items.iter().map(value).collect()),
        Json::Object(fields) => {
            let fields = fields.iter();
            return object(
                fields
                    .map(|(name, json)| (name.clone(), value(json)))
                    .collect(),
            );
        }
    };
    Value { kind: Some(kind) }
}

/// A text.
pub(in crate::server) fn text(text: &str) -> Value {
    Value {
        kind: Some(Kind::StringValue(text.to_owned())),
    }
}

/// A list.
pub(in crate::server) fn list(values: Vec<Value>) -> Value {
    Value {
        kind: Some(Kind::ListValue(ListValue { values })),
    }
}

/// Fields.
pub(in crate::server) fn object(fields: BTreeMap<String, Value>) -> Value {
    Value {
        kind: Some(Kind::StructValue(Struct { fields })),
    }
}
