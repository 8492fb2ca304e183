//! The metadata and headers that Envoy gets for a path, computed once per distinct answer.

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

/// Size of the cache, in bytes of JSON; the cache is cleared when it is exceeded.
const MAX_CACHE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum size of the value of a header, in bytes.
const MAX_HEADER_BYTES: usize = 4_096;

/// The metadata and headers for an answer.
#[derive(Debug)]
pub(in crate::server) struct EnvoyAnswer {
    /// Metadata by kind: the spec, its etag, and the spec as exact JSON.
    pub policies: Value,
    /// The specs by kind, for deny rules.
    pub specs: Json,
    /// Headers to set.
    pub headers: Vec<HeaderValueOption>,
    /// Headers to remove: configured headers without a value in this answer.
    pub removed: Vec<String>,
    /// Whether the answer exceeds the limits of metadata and headers.
    pub is_too_large: bool,
    /// Size of the specs, in bytes of JSON.
    bytes: usize,
}

/// Cache of computed answers, by etag.
#[derive(Debug, Default)]
pub(in crate::server) struct AnswerCache {
    entries: RwLock<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    answers: HashMap<String, Arc<EnvoyAnswer>>,
    bytes: usize,
}

impl AnswerCache {
    /// Returns the metadata and headers for some kinds of an answer.
    pub fn of(
        &self,
        body: &PathAnswer,
        kinds: &[GroupKind],
        settings: &EnvoySettings,
    ) -> Arc<EnvoyAnswer> {
        let etag = body.etag_of(kinds);
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = entries.answers.get(&etag) {
            return Arc::clone(answer);
        }
        drop(entries);
        let answer = Arc::new(EnvoyAnswer::of(body, kinds, settings));
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.bytes > MAX_CACHE_BYTES {
            *entries = CacheEntries::default();
        }
        // A fixed cost per entry bounds the number of empty answers.
        entries.bytes += answer.bytes + 1024;
        entries.answers.insert(etag, Arc::clone(&answer));
        answer
    }
}

impl EnvoyAnswer {
    fn of(body: &PathAnswer, kinds: &[GroupKind], settings: &EnvoySettings) -> Self {
        let policies = decode_policies(body.policies(kinds));
        let mut specs = Map::new();
        let mut metadata = BTreeMap::new();
        let mut length = 0;
        for policy in &policies {
            let kind = GroupKind::new(&*policy.group, &*policy.kind).to_string();
            let json = policy.spec_json();
            length += json.len();
            let spec: Json = serde_json::from_str(json).unwrap_or_default();
            if length <= settings.max_bytes {
                metadata.insert(kind.clone(), policy_metadata(policy, &spec));
            }
            specs.insert(kind, spec);
        }
        let specs = Json::Object(specs);
        let mut headers = Vec::new();
        let mut removed = Vec::new();
        let mut is_too_large = length > settings.max_bytes;
        for header in &settings.headers {
            match header_value(header, &specs) {
                None => removed.push(header.name.to_string()),
                Some(value) if value.len() > MAX_HEADER_BYTES => is_too_large = true,
                Some(value) => headers.push(option(header, value)),
            }
        }
        Self {
            bytes: length,
            policies: object(metadata),
            specs,
            headers,
            removed,
            is_too_large,
        }
    }
}

fn policy_metadata(policy: &v1::EffectivePolicy, spec: &Json) -> Value {
    let mut fields = BTreeMap::from([
        ("spec".to_owned(), value(spec)),
        // Numbers in `spec` are doubles; in this text they are exact.
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

/// Returns the value of a header, if the spec has one: a string as it is, any other value as JSON.
fn header_value(header: &HeaderRule, specs: &Json) -> Option<String> {
    let spec = specs.get(header.kind.to_string())?;
    let field = at_path(spec, &header.value, None).filter(|field| !is_unset(Some(field)))?;
    let value = match field {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    // Envoy rejects the whole response if a header is not valid.
    let is_valid = !value.chars().any(char::is_control) && value.is_ascii();
    is_valid.then_some(value)
}

/// Returns a header that replaces the header of the request. `append` is set explicitly because its
/// default differs between versions of Envoy.
fn option(header: &HeaderRule, value: String) -> HeaderValueOption {
    HeaderValueOption {
        header: Some(HeaderValue {
            key: header.name.to_string(),
            value,
        }),
        append: Some(false),
    }
}

/// Converts JSON to a protobuf `Value`.
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

/// Returns a string as a protobuf `Value`.
pub(in crate::server) fn text(text: &str) -> Value {
    Value {
        kind: Some(Kind::StringValue(text.to_owned())),
    }
}

/// Returns a list as a protobuf `Value`.
pub(in crate::server) fn list(values: Vec<Value>) -> Value {
    Value {
        kind: Some(Kind::ListValue(ListValue { values })),
    }
}

/// Returns a struct as a protobuf `Value`.
pub(in crate::server) fn object(fields: BTreeMap<String, Value>) -> Value {
    Value {
        kind: Some(Kind::StructValue(Struct { fields })),
    }
}
