//! The metadata and headers that Envoy gets for a path, computed once per distinct answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};

use hashbrown::HashMap;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::{Map, Value as Json};

use super::settings::{EnvoySettings, HeaderRule};
use crate::api::envoy::{HeaderValue, HeaderValueOption};
use crate::api::{decode_policies, v1};
use crate::snapshot::PathAnswer;
use entail_core::expr::Variable;
use entail_core::model::{GroupKind, at_path, is_unset};

/// Maximum size of the cache, in bytes of JSON. Then the answers that were not used for longest are
/// converted again.
const MAX_CACHE_BYTES: usize = 64 * 1024 * 1024;
/// Maximum size of the specs of an answer that is converted, in bytes of JSON; an expression takes
/// no larger variable either.
const MAX_CONVERTED_BYTES: usize = 256 * 1024;
/// Maximum size of an answer that is converted on the async worker, in bytes. A larger one would
/// delay other requests.
const MAX_INLINE_BYTES: usize = 8 * 1024;
/// Number of new entries after which those of old snapshots are removed.
const SWEEP_AFTER: usize = 64;
/// Maximum size of the value of a header, in bytes.
const MAX_HEADER_BYTES: usize = 4_096;

/// The metadata and headers for an answer.
#[derive(Debug)]
pub(in crate::server) struct EnvoyAnswer {
    /// Metadata by kind: the spec, its etag, and the spec as exact JSON.
    pub policies: Value,
    /// The specs by kind, for deny rules; or why there are none.
    pub specs: Result<Variable, String>,
    /// Headers to set.
    pub headers: Vec<HeaderValueOption>,
    /// Headers to remove: configured headers without a value in this answer.
    pub removed: Vec<String>,
    /// The limit that the answer exceeds.
    pub too_large: Option<String>,
}

/// Counts what the service for Envoy converts.
#[derive(Debug, Default)]
pub struct EnvoyCounters {
    /// Number of conversions: one for each distinct answer that is asked for.
    pub conversions: AtomicU64,
    /// Number of requests whose answer exceeds a limit.
    pub too_large: AtomicU64,
}

/// Cache of converted answers, by etag. Answers that are in no snapshot any longer are dropped.
#[derive(Debug, Default)]
pub(in crate::server) struct AnswerCache {
    entries: RwLock<CacheEntries>,
    counters: Arc<EnvoyCounters>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    recent: HashMap<String, CacheEntry>,
    /// Entries that were not used since `recent` was emptied.
    older: HashMap<String, CacheEntry>,
    /// Size of the answers in `recent`.
    bytes: usize,
    /// Number of entries since answers of old snapshots were removed.
    added: usize,
}

#[derive(Clone, Debug)]
struct CacheEntry {
    source: Weak<PathAnswer>,
    /// Set by the first request. Others wait for it on their threads.
    answer: Arc<OnceLock<Arc<EnvoyAnswer>>>,
    /// Estimated size of the answer, and a fixed cost.
    bytes: usize,
}

impl AnswerCache {
    pub fn new(counters: Arc<EnvoyCounters>) -> Self {
        Self {
            entries: RwLock::default(),
            counters,
        }
    }

    /// Returns the metadata and headers for some kinds of an answer. They are converted once. Returns
    /// `None` if `fast_only` is set and a large answer must be converted.
    pub fn of(
        &self,
        body: &Arc<PathAnswer>,
        kinds: &[GroupKind],
        (settings, fast_only): (&EnvoySettings, bool),
    ) -> Option<Arc<EnvoyAnswer>> {
        let etag = body.etag_of(kinds);
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let known = entries.recent.get(&etag);
        if let Some(answer) = known.and_then(|entry| entry.answer.get()) {
            return Some(Arc::clone(answer));
        }
        drop(entries);
        let size = body.policies(kinds).map(|part| part.len()).sum::<usize>();
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get_or_insert(etag, body, size);
        drop(entries);
        if fast_only && size > MAX_INLINE_BYTES && entry.answer.get().is_none() {
            return None;
        }
        let answer = entry.answer.get_or_init(|| {
            self.counters.conversions.fetch_add(1, Ordering::Relaxed);
            Arc::new(EnvoyAnswer::of(body, kinds, settings))
        });
        Some(Arc::clone(answer))
    }

    /// Counts a request whose answer exceeds a limit.
    pub fn count_too_large(&self) {
        self.counters.too_large.fetch_add(1, Ordering::Relaxed);
    }
}

impl CacheEntries {
    fn get_or_insert(&mut self, etag: String, body: &Arc<PathAnswer>, size: usize) -> CacheEntry {
        if let Some(entry) = self.recent.get(&etag) {
            return entry.clone();
        }
        if self.added >= SWEEP_AFTER {
            self.sweep();
        }
        self.added += 1;
        let entry = self.older.remove(&etag).unwrap_or_else(|| CacheEntry {
            source: Arc::downgrade(body),
            answer: Arc::default(),
            // What is not converted costs little.
            bytes: size.min(MAX_CONVERTED_BYTES) + 1024,
        });
        if self.bytes + entry.bytes > MAX_CACHE_BYTES / 2 {
            self.sweep();
        }
        if self.bytes + entry.bytes > MAX_CACHE_BYTES / 2 {
            self.older = std::mem::take(&mut self.recent);
            self.bytes = 0;
        }
        self.bytes += entry.bytes;
        self.recent.insert(etag, entry.clone());
        entry
    }

    /// Removes the answers that are in no snapshot any longer.
    fn sweep(&mut self) {
        let is_alive = |entry: &CacheEntry| entry.source.strong_count() > 0;
        self.recent.retain(|_, entry| is_alive(entry));
        self.older.retain(|_, entry| is_alive(entry));
        self.bytes = self.recent.values().map(|entry| entry.bytes).sum();
        self.added = 0;
    }
}

impl EnvoyAnswer {
    fn of(body: &PathAnswer, kinds: &[GroupKind], settings: &EnvoySettings) -> Self {
        let policies = decode_policies(body.policies(kinds));
        let mut specs = Map::new();
        let mut metadata = BTreeMap::new();
        let mut length = 0;
        let sizes = policies.iter().map(|policy| policy.spec_json().len());
        let size = sizes.sum::<usize>();
        if size > MAX_CONVERTED_BYTES.max(settings.max_bytes) {
            let limit = MAX_CONVERTED_BYTES.max(settings.max_bytes);
            return Self::unusable(larger_than(size, limit));
        }
        for policy in &policies {
            let kind = GroupKind::new(&*policy.group, &*policy.kind).to_string();
            let json = policy.spec_json();
            length += json.len();
            let spec = match serde_json::from_str(json) {
                Ok(spec) => spec,
                Err(_) if json.is_empty() => Json::Null,
                Err(error) => {
                    tracing::error!(%kind, %error, "internal error: a spec is not JSON");
                    return Self::unusable(format!(
                        "internal error: the spec of {kind} is not JSON"
                    ));
                }
            };
            if length <= settings.max_bytes {
                metadata.insert(kind.clone(), policy_metadata(policy, &spec));
            }
            specs.insert(kind, spec);
        }
        let specs = Json::Object(specs);
        let mut headers = Vec::new();
        let mut removed = Vec::new();
        let mut too_large =
            (length > settings.max_bytes).then(|| larger_than(length, settings.max_bytes));
        for header in &settings.headers {
            match header_value(header, &specs) {
                None => removed.push(header.name.to_string()),
                Some(value) if value.len() > MAX_HEADER_BYTES => {
                    too_large = Some(format!(
                        "the header {} has {} bytes, maximum {MAX_HEADER_BYTES}",
                        header.name,
                        value.len()
                    ));
                }
                Some(value) => headers.push(option(header, value)),
            }
        }
        Self {
            policies: object(metadata),
            specs: Variable::of(&specs),
            headers,
            removed,
            too_large,
        }
    }

    /// An answer that is not converted.
    fn unusable(message: String) -> Self {
        Self {
            policies: object(BTreeMap::new()),
            specs: Err(message.clone()),
            headers: Vec::new(),
            removed: Vec::new(),
            too_large: Some(message),
        }
    }
}

fn larger_than(size: usize, limit: usize) -> String {
    format!("the policies have {size} bytes of JSON, maximum {limit}")
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
