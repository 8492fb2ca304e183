//! From a JSON value to an object: what every Kubernetes object has to have.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use entail_core::model::{GroupKind, Object, ObjectKey, Str, Timestamp, groups};

/// As in the API server: names become segments of URLs.
const MAX_NAME: usize = 253;

type Fields = Map<String, Value>;

/// Why a value is no object, and of which object it says so.
#[derive(Debug)]
pub(super) struct InvalidObject {
    /// What is wrong and what to do.
    pub message: String,
    /// Whose fault, where that much can be read.
    pub key: Option<ObjectKey>,
}

/// The object that a value describes, its namespace as written; `None` for a core Secret, which
/// is not looked at.
///
/// # Errors
/// A value that no API server would take for an object.
pub(super) fn parse_object(
    value: Value,
    location: Option<Str>,
) -> Result<Option<Object>, InvalidObject> {
    if is_secret(&value) {
        return Ok(None);
    }
    let Value::Object(mut body) = value else {
        return Err(anonymous(
            "this is no object: write a mapping with `apiVersion`, `kind` and `metadata`",
        ));
    };
    let key = key(&body).map_err(anonymous)?;
    let about = |message: String| InvalidObject {
        message,
        key: Some(key.clone()),
    };
    let metadata = fields_of(&body, "metadata").map_err(about)?;
    let labels = strings(metadata, "labels").map_err(about)?;
    let annotations = strings(metadata, "annotations").map_err(about)?;
    let created = created(metadata).map_err(about)?;
    let generation = metadata.get("generation").and_then(Value::as_i64);
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        // Bookkeeping of the API server, and often the larger half of an exported object.
        metadata.remove("managedFields");
    }
    Ok(Some(Object {
        key,
        labels,
        annotations,
        created,
        generation,
        body: Value::Object(body),
        location,
    }))
}

fn anonymous(message: impl Into<String>) -> InvalidObject {
    InvalidObject {
        message: message.into(),
        key: None,
    }
}

/// Whether it may be a core Secret. In doubt it is one.
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
        return Err("`apiVersion` is not `group/version` or `version`: correct it".to_owned());
    }
    if !letters(kind, &['-']) {
        return Err("`kind` has characters that no kind has: correct it".to_owned());
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
    Ok(ObjectKey::new(GroupKind::new(group, kind), namespace, name))
}

fn text<'b>(fields: &'b Fields, field: &str, path: &str) -> Result<&'b str, String> {
    match fields.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        None | Some(Value::Null | Value::String(_)) => {
            Err(format!("`{path}` is missing: write one"))
        }
        Some(_) => Err(not_text(path)),
    }
}

fn not_text(path: &str) -> String {
    format!("`{path}` is not text: quote it")
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
            "`{path}` is no name (`/`, `%`, `.` and `..` are not allowed): correct it"
        ));
    }
    Ok(())
}

fn fields_of<'b>(fields: &'b Fields, name: &str) -> Result<&'b Fields, String> {
    match fields.get(name) {
        Some(Value::Object(inner)) => Ok(inner),
        None | Some(Value::Null) => Err(format!("`{name}` is missing: write one")),
        Some(_) => Err(format!("`{name}` is not a mapping: correct it")),
    }
}

/// Labels and annotations. As in the API server, null is an empty text.
fn strings(metadata: &Fields, name: &str) -> Result<BTreeMap<String, String>, String> {
    let entries = match metadata.get(name) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(entries)) => entries,
        Some(_) => return Err(format!("`metadata.{name}` is not a mapping: correct it")),
    };
    let pairs = entries.iter().map(|(key, value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        Value::Null => Ok((key.clone(), String::new())),
        _ => Err(format!(
            "`metadata.{name}` has a value that is not text: quote it"
        )),
    });
    pairs.collect()
}

fn created(metadata: &Fields) -> Result<Option<Timestamp>, String> {
    match metadata.get("creationTimestamp") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => match Timestamp::parse(text) {
            Some(created) => Ok(Some(created)),
            None => Err("`metadata.creationTimestamp` is no RFC 3339 time: correct it".to_owned()),
        },
        Some(_) => Err(not_text("metadata.creationTimestamp")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Option<Object>, InvalidObject> {
        parse_object(value, Some("a.yaml:1".into()))
    }

    #[test]
    fn metadata_is_read_and_bookkeeping_dropped() {
        let object = read(json!({
            "apiVersion": "g.io/v1", "kind": "P",
            "metadata": {
                "name": "p", "namespace": "ns", "labels": {"a": "b", "c": null}, "generation": 3,
                "creationTimestamp": "1970-01-01T00:00:01Z", "managedFields": [{}],
            },
            "spec": {}, "status": {"conditions": []},
        }));
        let object = object.unwrap().unwrap();
        assert_eq!(object.key.to_string(), "P.g.io/ns/p");
        assert_eq!(object.labels.len(), 2);
        assert_eq!(object.created, Some(Timestamp(1)));
        assert_eq!(object.generation, Some(3));
        assert!(object.body.pointer("/metadata/managedFields").is_none());
        assert!(object.body.get("status").is_some());
    }

    #[track_caller]
    fn refused(value: Value, word: &str, known: bool) {
        let defect = read(value).unwrap_err();
        assert!(defect.message.contains(word), "{}", defect.message);
        assert_eq!(defect.key.is_some(), known, "{}", defect.message);
    }

    #[test]
    fn what_has_no_identity_says_why() {
        refused(json!([1]), "no object", false);
        refused(json!({}), "apiVersion", false);
        refused(json!({"apiVersion": "v1"}), "kind", false);
        refused(json!({"apiVersion": "v1", "kind": "a/b"}), "kind", false);
        refused(
            json!({"apiVersion": "a/b/c", "kind": "K"}),
            "apiVersion",
            false,
        );
        refused(json!({"apiVersion": "v1", "kind": "K"}), "metadata", false);
        for (metadata, word) in [
            (json!({}), "metadata.name"),
            (json!({"name": 1}), "quote"),
            (json!({"name": "a/b"}), "no name"),
            (json!({"name": "x".repeat(254)}), "longer"),
            (json!({"name": "a", "namespace": "a/b"}), "namespace"),
        ] {
            let value = json!({"apiVersion": "v1", "kind": "K", "metadata": metadata});
            refused(value, word, false);
        }
    }

    #[test]
    fn what_has_bad_metadata_says_whose() {
        for (field, bad, word) in [
            ("labels", json!({"a": 1}), "labels"),
            ("annotations", json!([]), "annotations"),
            ("creationTimestamp", json!("x"), "RFC 3339"),
        ] {
            let metadata = json!({"name": "a", field: bad});
            let value = json!({"apiVersion": "v1", "kind": "K", "metadata": metadata});
            refused(value, word, true);
        }
    }

    #[test]
    fn secrets_are_not_looked_at() {
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
