//! Parses a JSON value into an object and checks the fields that every Kubernetes object has.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZero;

use serde_json::{Value, json};

use entail_core::model::{
    Body, Encoded, GroupKind, Location, Object, ObjectKey, TARGETS_ONLY, Timestamp, did_you_mean,
    groups, shared_name,
};

/// Maximum length of a name in bytes, as in the API server.
const MAX_NAME: usize = 253;

/// The annotation in which `kubectl apply` keeps a copy of the object for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields of `metadata` that only the API server and kubectl use. They are often more than half of an object, and the
/// version changes with each write.
const NOT_KEPT: [&str; 2] = ["managedFields", "resourceVersion"];

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
    parse_body(body_of(value), location)
}

/// Encodes a value, without what is not kept of an object.
pub(super) fn body_of(mut value: Value) -> Body {
    strip(&mut value);
    value.into()
}

/// Parses an encoded value into an object, as [`parse_object`].
///
/// # Errors
/// Returns an error if the value is not an object that an API server would accept.
pub(super) fn parse_body(
    mut body: Body,
    location: Option<Location>,
) -> Result<Option<Object>, InvalidObject> {
    let value = body.encoded();
    if is_secret(value) {
        return Ok(None);
    }
    if !value.is_object() {
        return Err(anonymous(
            "not a Kubernetes object: `apiVersion`, `kind` and `metadata` are required",
        ));
    }
    let key = key(value).map_err(anonymous)?;
    let with_key = |message: String| InvalidObject {
        message,
        key: Some(key.clone()),
    };
    let metadata = fields_of(value, "metadata").map_err(with_key)?;
    let labels = strings(metadata, "labels").map_err(with_key)?;
    let mut annotations = strings(metadata, "annotations").map_err(with_key)?;
    annotations.remove(LAST_APPLIED);
    let created = created(metadata).map_err(with_key)?;
    let generation = metadata.get("generation").and_then(Encoded::signed);
    if has_unkept(value, metadata) {
        body.edit(strip);
    }
    Ok(Some(Object {
        key,
        labels: labels.into(),
        annotations: annotations.into(),
        created,
        generation: generation.and_then(NonZero::new),
        body,
        location,
        unreadable: None,
    }))
}

/// Removes what is not kept of an object.
fn strip(value: &mut Value) {
    let Value::Object(body) = value else { return };
    body.remove(TARGETS_ONLY);
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        for field in NOT_KEPT {
            metadata.remove(field);
        }
        // Any other value is an error of the object.
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
            && let Some(Value::String(_) | Value::Null) = annotations.get(LAST_APPLIED)
        {
            annotations.remove(LAST_APPLIED);
        }
    }
}

/// Whether there is something in an object that is not kept.
fn has_unkept(value: Encoded<'_>, metadata: Encoded<'_>) -> bool {
    let annotations = metadata.get("annotations");
    value.get(TARGETS_ONLY).is_some()
        || NOT_KEPT.iter().any(|field| metadata.get(field).is_some())
        || annotations.is_some_and(|annotations| annotations.get(LAST_APPLIED).is_some())
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
pub(super) fn secret_name(value: Encoded<'_>, location: &Location) -> Option<Object> {
    if !is_secret(value) {
        return None;
    }
    let metadata = value.get("metadata")?;
    let name = metadata.text_of("name")?;
    let namespace = metadata.text_of("namespace").unwrap_or_default();
    let named = Body::from(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
    }));
    Some(Object {
        location: Some(location.clone()),
        ..Object::new(key(named.encoded()).ok()?, named)
    })
}

/// Reports whether the value may be a core Secret; true if `apiVersion` is missing.
fn is_secret(value: Encoded<'_>) -> bool {
    let version = value.text_of("apiVersion");
    value.text_of("kind") == Some("Secret") && !version.is_some_and(|version| version.contains('/'))
}

fn key(body: Encoded<'_>) -> Result<ObjectKey, String> {
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
    let namespace = match non_null(metadata, "namespace") {
        None => "",
        Some(namespace) => namespace
            .text()
            .ok_or_else(|| not_text("metadata.namespace"))?,
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

/// The value of a field, if it is not null.
fn non_null<'v>(value: Encoded<'v>, field: &str) -> Option<Encoded<'v>> {
    value.get(field).filter(|value| !value.is_null())
}

fn text<'v>(value: Encoded<'v>, field: &str, path: &str) -> Result<&'v str, String> {
    let missing = || format!("`{path}` is missing");
    let found = non_null(value, field).ok_or_else(missing)?;
    let text = found.text().ok_or_else(|| not_text(path))?;
    Some(text)
        .filter(|text| !text.is_empty())
        .ok_or_else(missing)
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

fn fields_of<'v>(value: Encoded<'v>, name: &str) -> Result<Encoded<'v>, String> {
    let found = non_null(value, name).ok_or_else(|| format!("`{name}` is missing"))?;
    let found = Some(found).filter(|found| found.is_object());
    found.ok_or_else(|| format!("`{name}` is not a mapping"))
}

/// Parses labels or annotations. As in the API server, null is an empty string.
fn strings(metadata: Encoded<'_>, name: &str) -> Result<BTreeMap<String, String>, String> {
    let Some(entries) = non_null(metadata, name) else {
        return Ok(BTreeMap::new());
    };
    if !entries.is_object() {
        return Err(format!("`metadata.{name}` is not a mapping"));
    }
    let pairs = entries.fields().map(|(key, value)| {
        let text = value.text().or_else(|| value.is_null().then_some(""));
        let text = text.ok_or_else(|| {
            format!("`metadata.{name}` has a value that is not a string: quote it")
        })?;
        Ok((key.to_owned(), text.to_owned()))
    });
    pairs.collect()
}

fn created(metadata: Encoded<'_>) -> Result<Option<Timestamp>, String> {
    let Some(written) = non_null(metadata, "creationTimestamp") else {
        return Ok(None);
    };
    let text = written.text();
    let text = text.ok_or_else(|| not_text("metadata.creationTimestamp"))?;
    let created = Timestamp::parse(text);
    let wrong = || "`metadata.creationTimestamp` is not an RFC 3339 time".to_owned();
    created.ok_or_else(wrong).map(Some)
}

#[cfg(test)]
mod tests {

    use super::*;

    fn read(value: Value) -> Result<Option<Object>, InvalidObject> {
        let encoded = parse_body(Body::new(&value), None);
        let found = parse_object(value, None);
        match (&found, &encoded) {
            (Ok(found), Ok(encoded)) => assert_eq!(found, encoded),
            (Err(found), Err(encoded)) => {
                assert_eq!(
                    (&found.message, &found.key),
                    (&encoded.message, &encoded.key)
                );
            }
            _ => panic!("{found:?}, encoded {encoded:?}"),
        }
        found
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
    fn an_annotation_of_kubectl_is_dropped_also_if_it_is_null() {
        for value in [json!("{}"), json!(null)] {
            let object = json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "a", "annotations": {(LAST_APPLIED): value}},
            });
            let object = read(object).unwrap().unwrap();
            assert_eq!(
                object.body.get("metadata").unwrap()["annotations"],
                json!({})
            );
            assert_eq!(object.annotations.names().count(), 0);
        }
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
            ("annotations", json!({LAST_APPLIED: {}}), "annotations"),
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
