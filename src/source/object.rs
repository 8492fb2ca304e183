//! Parses a JSON value into an object and checks the fields that every Kubernetes object has.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZero;

use serde_json::{Map, Value, json};

use entail_core::model::{
    GroupKind, Location, Object, ObjectKey, TARGETS_ONLY, Timestamp, did_you_mean, groups,
    shared_name,
};

/// Maximum length of a name in bytes, as in the API server.
const MAX_NAME: usize = 253;

/// The annotation in which `kubectl apply` keeps a copy of the object for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

type Fields = Map<String, Value>;

/// Why a value is not a valid object.
#[derive(Debug)]
pub(super) struct InvalidObject {
    /// The problem and how to fix it.
    pub message: String,
    /// The key of the object, if it could be read.
    pub key: Option<ObjectKey>,
}

/// Parses a value into an object. The namespace stays as written, also for cluster-scoped kinds.
///
/// Returns `None` for a core Secret: the contents of Secrets are never stored.
///
/// # Errors
/// Returns an error if the value is not an object that an API server would accept.
pub(super) fn parse_object(
    value: Value,
    location: Option<Location>,
) -> Result<Option<Object>, InvalidObject> {
    if is_secret(&value) {
        return Ok(None);
    }
    let Value::Object(mut body) = value else {
        return Err(anonymous(
            "not a Kubernetes object: `apiVersion`, `kind` and `metadata` are required",
        ));
    };
    let key = key(&body).map_err(anonymous)?;
    let with_key = |message: String| InvalidObject {
        message,
        key: Some(key.clone()),
    };
    let metadata = fields_of(&body, "metadata").map_err(with_key)?;
    let labels = strings(metadata, "labels").map_err(with_key)?;
    let mut annotations = strings(metadata, "annotations").map_err(with_key)?;
    annotations.remove(LAST_APPLIED);
    let created = created(metadata).map_err(with_key)?;
    let generation = metadata.get("generation").and_then(Value::as_i64);
    let generation = generation.and_then(NonZero::new);
    body.remove(TARGETS_ONLY);
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        // Only the API server and kubectl use these, and they are often more than half of an object. The version changes
        // with each write.
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(LAST_APPLIED);
        }
    }
    Ok(Some(Object {
        key,
        labels: labels.into(),
        annotations: annotations.into(),
        created,
        generation,
        body: Value::Object(body).into(),
        location,
        unreadable: None,
    }))
}

fn anonymous(message: impl Into<String>) -> InvalidObject {
    InvalidObject {
        message: message.into(),
        key: None,
    }
}

/// What stands for an object that is not valid: its key alone, with the reason.
pub(super) fn unreadable_object(key: ObjectKey, version: &str, reason: &str) -> Object {
    let body = json!({
        "apiVersion": version, "kind": &*key.kind.kind,
        "metadata": {"name": &*key.name, "namespace": &*key.namespace},
    });
    Object {
        unreadable: Some(reason.into()),
        ..Object::new(key, body)
    }
}

/// Returns a core Secret without anything but its name and namespace; `None` for any other value, and for a Secret
/// without a valid name.
pub(super) fn secret_name(value: &Value, location: &Location) -> Option<Object> {
    if !is_secret(value) {
        return None;
    }
    let metadata = value.get("metadata")?;
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    let (name, namespace) = (text("name")?, text("namespace").unwrap_or_default());
    let named = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
    });
    let Value::Object(body) = named else {
        return None;
    };
    Some(Object {
        location: Some(location.clone()),
        ..Object::new(key(&body).ok()?, Value::Object(body))
    })
}

/// Reports whether the value may be a core Secret; true if `apiVersion` is missing.
fn is_secret(value: &Value) -> bool {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    text("kind") == Some("Secret")
        && !text("apiVersion").is_some_and(|version| version.contains('/'))
}

fn key(body: &Fields) -> Result<ObjectKey, String> {
    let version = text(body, "apiVersion", "apiVersion")?;
    let kind = text(body, "kind", "kind")?;
    let group = version
        .rsplit_once('/')
        .map_or(groups::CORE, |(group, _)| group);
    let letters = |text: &str, more: &[char]| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
    };
    if !letters(group, &['-', '.']) || version.ends_with('/') || version.starts_with('/') {
        return Err("`apiVersion` is not `group/version` or `version`".to_owned());
    }
    if !letters(kind, &['-']) {
        return Err("`kind` contains invalid characters".to_owned());
    }
    if let Some(problem) = misnamed(version, group, kind) {
        return Err(problem);
    }
    let metadata = fields_of(body, "metadata")?;
    let name = text(metadata, "name", "metadata.name")?;
    segment(name, "metadata.name")?;
    let namespace = match metadata.get("namespace") {
        None | Some(Value::Null) => "",
        Some(Value::String(namespace)) => namespace.as_str(),
        Some(_) => return Err(not_text("metadata.namespace")),
    };
    if !namespace.is_empty() {
        segment(namespace, "metadata.namespace")?;
    }
    let kind = shared_kind(group, kind);
    Ok(ObjectKey::new(kind, shared_name(namespace), name))
}

/// The kinds of entail's own API group.
const OWN_KINDS: [&str; 4] = [
    "PolicyProfile",
    "ControllerAlias",
    "EffectivePolicyAssertion",
    "ClusterEffectivePolicyAssertion",
];
/// Kinds of the Gateway API that no other group has.
const GATEWAY_KINDS: [&str; 10] = [
    "BackendTLSPolicy",
    "GRPCRoute",
    "Gateway",
    "GatewayClass",
    "HTTPRoute",
    "ListenerSet",
    "ReferenceGrant",
    "TCPRoute",
    "TLSRoute",
    "UDPRoute",
];

/// Why an object is of a kind that does not exist, though its name is nearly one that does; `None` if it may exist. Such an
/// object would read as one that has no part in any answer.
fn misnamed(version: &str, group: &str, kind: &str) -> Option<String> {
    let in_other_case = |known: &&&str| known.eq_ignore_ascii_case(kind) && **known != kind;
    match group {
        groups::CORE if version.contains('.') => Some(format!(
            "`apiVersion: {version}` has no version: it ends with one, as in `{version}/v1`"
        )),
        groups::ENTAIL if !OWN_KINDS.contains(&kind) => Some(format!(
            "the API group `{group}` has no kind `{kind}`{}",
            did_you_mean(kind, OWN_KINDS.map(str::to_owned).to_vec())
        )),
        groups::GATEWAY => GATEWAY_KINDS.iter().find(in_other_case).map(|known| {
            format!("the API group `{group}` has no kind `{kind}`; did you mean `{known}`?")
        }),
        // Gateway is also a kind of others.
        groups::CORE | "networking.k8s.io" | "gateway.k8s.io" | "k8s.io"
            if kind != "Gateway" && GATEWAY_KINDS.contains(&kind) =>
        {
            Some(format!(
                "`{kind}` is a kind of the API group `{}`: correct `apiVersion`",
                groups::GATEWAY
            ))
        }
        _ => None,
    }
}

/// The number of kinds that [`shared_kind`] remembers on each thread.
const MAX_KINDS: usize = 64;

/// Returns a kind of which all objects share one copy.
fn shared_kind(group: &str, kind: &str) -> GroupKind {
    thread_local! {
        static KINDS: RefCell<Vec<GroupKind>> = RefCell::default();
    }
    KINDS.with_borrow_mut(|kinds| {
        if let Some(known) = kinds.iter().find(|known| known.is(group, kind)) {
            return known.clone();
        }
        if kinds.len() >= MAX_KINDS {
            kinds.clear();
        }
        let new = GroupKind::new(group, kind);
        kinds.push(new.clone());
        new
    })
}

fn text<'b>(fields: &'b Fields, field: &str, path: &str) -> Result<&'b str, String> {
    match fields.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        None | Some(Value::Null | Value::String(_)) => Err(format!("`{path}` is missing")),
        Some(_) => Err(not_text(path)),
    }
}

fn not_text(path: &str) -> String {
    format!("`{path}` is not a string: quote it")
}

fn segment(name: &str, path: &str) -> Result<(), String> {
    if name.len() > MAX_NAME {
        return Err(format!(
            "`{path}` is longer than {MAX_NAME} bytes: shorten it"
        ));
    }
    let bad = name.contains(|c: char| matches!(c, '/' | '%') || c.is_control());
    if bad || matches!(name, "." | "..") {
        return Err(format!(
            "`{path}` is not a valid name: `/`, `%`, `.` and `..` are not allowed"
        ));
    }
    Ok(())
}

fn fields_of<'b>(fields: &'b Fields, name: &str) -> Result<&'b Fields, String> {
    match fields.get(name) {
        Some(Value::Object(inner)) => Ok(inner),
        None | Some(Value::Null) => Err(format!("`{name}` is missing")),
        Some(_) => Err(format!("`{name}` is not a mapping")),
    }
}

/// Parses labels or annotations. As in the API server, null is an empty string.
fn strings(metadata: &Fields, name: &str) -> Result<BTreeMap<String, String>, String> {
    let entries = match metadata.get(name) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(entries)) => entries,
        Some(_) => return Err(format!("`metadata.{name}` is not a mapping")),
    };
    let pairs = entries.iter().map(|(key, value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        Value::Null => Ok((key.clone(), String::new())),
        _ => Err(format!(
            "`metadata.{name}` has a value that is not a string: quote it"
        )),
    });
    pairs.collect()
}

fn created(metadata: &Fields) -> Result<Option<Timestamp>, String> {
    match metadata.get("creationTimestamp") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => match Timestamp::parse(text) {
            Some(created) => Ok(Some(created)),
            None => Err("`metadata.creationTimestamp` is not an RFC 3339 time".to_owned()),
        },
        Some(_) => Err(not_text("metadata.creationTimestamp")),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn read(value: Value) -> Result<Option<Object>, InvalidObject> {
        parse_object(value, None)
    }

    #[test]
    fn metadata_is_parsed_and_fields_of_the_server_are_dropped() {
        let object = read(json!({
            "apiVersion": "g.io/v1", "kind": "P",
            "metadata": {
                "name": "p", "namespace": "ns", "labels": {"a": "b", "c": null}, "generation": 3,
                "creationTimestamp": "1970-01-01T00:00:01Z", "managedFields": [{}], "resourceVersion": "7",
                "annotations": {LAST_APPLIED: "{}", "d": "e"},
            },
            "spec": {}, "status": {"conditions": []},
        }));
        let object = object.unwrap().unwrap();
        assert_eq!(object.key.to_string(), "P.g.io/ns/p");
        assert_eq!(object.labels.iter().count(), 2);
        assert_eq!(object.created, Some(Timestamp::from_seconds(1)));
        assert_eq!(object.generation, NonZero::new(3));
        assert_eq!(object.annotations.names().collect::<Vec<_>>(), ["d"]);
        let metadata = object.body.get("metadata").unwrap();
        assert_eq!(metadata["annotations"], json!({"d": "e"}));
        for field in ["managedFields", "resourceVersion"] {
            assert!(metadata.get(field).is_none(), "{field}");
        }
        assert!(object.body.has("status"));
    }

    #[test]
    fn kinds_that_are_nearly_known_ones_are_refused() {
        let read_kind = |version: &str, kind: &str| {
            let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
            read(object).err().map(|invalid| invalid.message)
        };
        for (version, kind, expected) in [
            ("gateway.networking.k8s.io", "HTTPRoute", "has no version"),
            ("gateway.networking.k8s.io/v1", "HttpRoute", "`HTTPRoute`?"),
            (
                "networking.k8s.io/v1",
                "HTTPRoute",
                "`gateway.networking.k8s.io`",
            ),
            ("v1", "GRPCRoute", "`gateway.networking.k8s.io`"),
            ("entail.dev/v1alpha1", "PolicyProfil", "`PolicyProfile`?"),
            ("entail.dev/v1alpha1", "Other", "no kind `Other`"),
        ] {
            let message = read_kind(version, kind).unwrap();
            assert!(message.contains(expected), "{version} {kind}: {message}");
        }
        for (version, kind) in [
            ("v1", "Service"),
            ("gateway.networking.k8s.io/v1", "HTTPRoute"),
            ("gateway.networking.k8s.io/v2", "NewRoute"),
            ("networking.istio.io/v1", "Gateway"),
            ("networking.k8s.io/v1", "Ingress"),
            ("entail.dev/v1alpha1", "ControllerAlias"),
        ] {
            assert_eq!(read_kind(version, kind), None);
        }
    }

    #[test]
    fn nobody_else_marks_an_object_as_reduced_to_its_targets() {
        let object = read(json!({
            "apiVersion": "g.io/v1", "kind": "P", "metadata": {"name": "p"}, (TARGETS_ONLY): null,
        }));
        assert!(!object.unwrap().unwrap().is_targets_only());
    }

    #[track_caller]
    fn assert_invalid(value: Value, expected: &str, has_key: bool) {
        let invalid = read(value).unwrap_err();
        assert!(invalid.message.contains(expected), "{}", invalid.message);
        assert_eq!(invalid.key.is_some(), has_key, "{}", invalid.message);
    }

    #[test]
    fn values_without_an_object_key_are_rejected() {
        assert_invalid(json!([1]), "not a Kubernetes object", false);
        assert_invalid(json!({}), "apiVersion", false);
        assert_invalid(json!({"apiVersion": "v1"}), "kind", false);
        assert_invalid(json!({"apiVersion": "v1", "kind": "a/b"}), "kind", false);
        assert_invalid(
            json!({"apiVersion": "a/b/c", "kind": "K"}),
            "apiVersion",
            false,
        );
        assert_invalid(json!({"apiVersion": "v1", "kind": "K"}), "metadata", false);
        for (metadata, expected) in [
            (json!({}), "metadata.name"),
            (json!({"name": 1}), "quote"),
            (json!({"name": "a/b"}), "not a valid name"),
            (json!({"name": "x".repeat(254)}), "longer"),
            (json!({"name": "a", "namespace": "a/b"}), "namespace"),
        ] {
            let value = json!({"apiVersion": "v1", "kind": "K", "metadata": metadata});
            assert_invalid(value, expected, false);
        }
    }

    #[test]
    fn errors_in_metadata_have_the_key_of_the_object() {
        for (field, bad, expected) in [
            ("labels", json!({"a": 1}), "labels"),
            ("annotations", json!([]), "annotations"),
            ("creationTimestamp", json!("x"), "RFC 3339"),
        ] {
            let metadata = json!({"name": "a", field: bad});
            let value = json!({"apiVersion": "v1", "kind": "K", "metadata": metadata});
            assert_invalid(value, expected, true);
        }
    }

    #[test]
    fn core_secrets_are_dropped_without_checks() {
        assert!(
            read(json!({"apiVersion": "v1", "kind": "Secret", "metadata": 1}))
                .unwrap()
                .is_none()
        );
        assert!(read(json!({"kind": "Secret"})).unwrap().is_none());
        let other = json!({"apiVersion": "x.io/v1", "kind": "Secret", "metadata": {"name": "a"}});
        assert!(read(other).unwrap().is_some());
    }
}
