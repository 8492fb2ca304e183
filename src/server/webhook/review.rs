//! The messages of `admission.k8s.io/v1`.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::bounded_value::{BoundedValue, Cut};
use crate::insight::{ObjectChange, shortened};
use entail_core::model::GroupKind;

/// The version of the messages.
const API_VERSION: &str = "admission.k8s.io/v1";
/// Maximum number of bytes of a `uid`, which the answer repeats. Those of API servers have 36.
const MAX_UID: usize = 256;

/// A change that an API server asks about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Review {
    /// Identifies the review; the answer repeats it.
    pub uid: String,
    pub kind: GroupKind,
    /// Whether a part of the object changes, such as its status.
    pub is_subresource: bool,
    /// How the object changes; `None` for other operations.
    pub change: Option<ObjectChange>,
    /// The object after the change, or before it is deleted.
    pub object: Value,
    /// Why not all of the object was read, if something was left out.
    pub cut: Option<Cut>,
    /// Whether such an object is deleted, or was so while it was being deleted before: it must be able to end.
    pub is_ending: bool,
    /// The namespace of the object; its own for a Namespace, and empty for other kinds without one.
    pub namespace: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview {
    api_version: String,
    kind: String,
    request: Option<AdmissionRequest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionRequest {
    uid: String,
    kind: AdmissionKind,
    #[serde(default)]
    sub_resource: String,
    #[serde(default)]
    namespace: String,
    operation: String,
}

/// A part of the request of a review.
#[derive(Deserialize)]
struct Requested<T> {
    request: T,
}

/// The object after the change.
#[derive(Deserialize)]
struct NewObject {
    #[serde(default)]
    object: BoundedValue,
}

/// The object before the change.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldObject {
    #[serde(default)]
    old_object: BoundedValue,
}

#[derive(Deserialize)]
struct AdmissionKind {
    #[serde(default)]
    group: String,
    kind: String,
}

impl Review {
    /// Parses a review. `now` is the time of a new object that has none, as an RFC 3339 text.
    ///
    /// # Errors
    /// The text is no review of this version.
    pub fn parse(text: &[u8], now: &str) -> Result<Self, String> {
        // The error repeats texts of the review.
        let malformed = |error: serde_json::Error| shortened(&error.to_string()).into_owned();
        let review: AdmissionReview = serde_json::from_slice(text).map_err(malformed)?;
        if review.api_version != API_VERSION || review.kind != "AdmissionReview" {
            return Err(format!("not an AdmissionReview of {API_VERSION}"));
        }
        let request = review.request.ok_or("the AdmissionReview has no request")?;
        if request.uid.len() > MAX_UID {
            return Err(format!("the uid has more than {MAX_UID} bytes"));
        }
        let change = match request.operation.as_str() {
            "CREATE" => Some(ObjectChange::Created),
            "UPDATE" => Some(ObjectChange::Updated),
            "DELETE" => Some(ObjectChange::Deleted),
            _ => None,
        };
        let kind = GroupKind::new(request.kind.group.as_str(), request.kind.kind.as_str());
        let old = || {
            serde_json::from_slice(text).map(|read: Requested<OldObject>| read.request.old_object)
        };
        // Of the two objects, the other one would take memory for nothing.
        let object = match change {
            Some(ObjectChange::Deleted) => old(),
            _ => serde_json::from_slice(text).map(|read: Requested<NewObject>| read.request.object),
        };
        let BoundedValue {
            value: mut object,
            cut,
        } = object.map_err(malformed)?;
        // Its finalizers can be removed, or a namespace with it would never end.
        let ends = |old: BoundedValue| {
            let ending = old.value.pointer("/metadata/deletionTimestamp");
            old.cut.is_some() && ending.is_some_and(Value::is_string)
        };
        let is_ending = cut.is_some()
            && match change {
                Some(ObjectChange::Deleted) => true,
                Some(ObjectChange::Updated) => old().is_ok_and(ends),
                _ => false,
            };
        // The request about a Namespace names it as its own namespace.
        if !kind.is("", "Namespace") {
            complete(&mut object, "namespace", || request.namespace.clone());
        }
        if change == Some(ObjectChange::Created) {
            let generated = object.pointer("/metadata/generateName");
            let generated = generated
                .and_then(Value::as_str)
                .map(|name| format!("{name}new"));
            complete(&mut object, "name", || generated.unwrap_or_default());
            complete(&mut object, "creationTimestamp", || now.to_owned());
        }
        Ok(Self {
            uid: request.uid,
            kind,
            is_subresource: !request.sub_resource.is_empty(),
            change,
            object,
            cut,
            is_ending,
            namespace: request.namespace,
        })
    }

    /// The answer to the review with the given `uid`. `denial` is why the change is denied.
    pub fn answer(uid: &str, warnings: &[String], denial: Option<&str>) -> String {
        let mut response = Map::new();
        response.insert("uid".to_owned(), json!(uid));
        response.insert("allowed".to_owned(), json!(denial.is_none()));
        if let Some(message) = denial {
            let status = json!({"code": 403, "reason": "Forbidden", "message": message});
            response.insert("status".to_owned(), status);
        }
        if !warnings.is_empty() {
            response.insert("warnings".to_owned(), json!(warnings));
        }
        json!({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})
            .to_string()
    }
}

/// Sets a field of the metadata that is missing or empty, unless the value is empty, too.
fn complete(object: &mut Value, field: &str, value: impl FnOnce() -> String) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return;
    };
    let is_set = metadata.get(field).and_then(Value::as_str);
    if is_set.is_none_or(str::is_empty) {
        let value = value();
        if !value.is_empty() {
            metadata.insert(field.to_owned(), value.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, an object that was being deleted could be made too large to be checked.
    #[test]
    fn only_what_was_too_large_before_may_end_unchecked() {
        let object = |depth: usize, is_ending: bool| {
            let spec = (0..depth).fold(json!(1), |inner, _| json!({ "a": inner }));
            let mut object = json!({"apiVersion": "p.io/v1", "kind": "P", "spec": spec, "metadata": {"name": "p"}});
            if is_ending {
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            object
        };
        let (deep, flat) = (110, 1);
        for (operation, now, before, expected) in [
            ("CREATE", object(deep, true), Value::Null, (true, false)),
            (
                "UPDATE",
                object(deep, true),
                object(flat, true),
                (true, false),
            ),
            (
                "UPDATE",
                object(deep, true),
                object(deep, false),
                (true, false),
            ),
            (
                "UPDATE",
                object(deep, true),
                object(deep, true),
                (true, true),
            ),
            (
                "UPDATE",
                object(flat, false),
                object(deep, false),
                (false, false),
            ),
            ("DELETE", Value::Null, object(deep, false), (true, true)),
        ] {
            let read = review(operation, json!({"object": now, "oldObject": before})).unwrap();
            assert_eq!(
                (read.cut.is_some(), read.is_ending),
                expected,
                "{operation}"
            );
        }
    }

    fn review(operation: &str, request: Value) -> Result<Review, String> {
        let mut all = json!({
            "uid": "1", "kind": {"group": "p.io", "version": "v1", "kind": "P"},
            "namespace": "shop", "operation": operation,
        });
        for (field, value) in request.as_object().unwrap() {
            all[field] = value.clone();
        }
        let review = json!({"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": all});
        Review::parse(review.to_string().as_bytes(), "2026-01-01T00:00:00Z")
    }

    #[test]
    fn what_the_api_server_adds_later_is_added() {
        let object = json!({"metadata": {"generateName": "retries-"}});
        let created = review("CREATE", json!({"object": object})).unwrap();
        let expected = json!({"metadata": {
            "generateName": "retries-", "name": "retries-new", "namespace": "shop",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }});
        assert_eq!(created.change, Some(ObjectChange::Created));
        assert_eq!(created.object, expected);
        let named = json!({"metadata": {"name": "a", "namespace": "b", "creationTimestamp": null}});
        let updated = review("UPDATE", json!({"object": named})).unwrap();
        assert_eq!(updated.object, named);
    }

    #[test]
    fn a_deleted_object_is_the_old_one() {
        let old = json!({"metadata": {"name": "a", "namespace": "shop"}});
        let request = json!({"object": null, "oldObject": old, "subResource": ""});
        let deleted = review("DELETE", request).unwrap();
        assert_eq!(deleted.change, Some(ObjectChange::Deleted));
        assert_eq!((deleted.object, deleted.is_subresource), (old, false));
        assert_eq!(deleted.kind, GroupKind::new("p.io", "P"));
    }

    #[test]
    fn a_namespace_is_in_no_namespace() {
        let object = json!({"metadata": {"name": "shop"}});
        let kind = json!({"group": "", "version": "v1", "kind": "Namespace"});
        let request = json!({"kind": kind, "object": object, "subResource": "status"});
        let updated = review("UPDATE", request).unwrap();
        assert_eq!((updated.object, updated.is_subresource), (object, true));
        assert_eq!(review("CONNECT", json!({})).unwrap().change, None);
    }

    #[test]
    fn other_texts_are_no_reviews() {
        for text in [
            "",
            "{}",
            "[1]",
            r#"{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}"#,
            r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#,
        ] {
            assert!(Review::parse(text.as_bytes(), "").is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_long_is_repeated() {
        let long = "x".repeat(10_000);
        for request in [json!({"uid": long}), json!({"kind": long})] {
            let error = review("CREATE", request).unwrap_err();
            assert!(error.len() < 400, "{error}");
        }
        assert!(review("CREATE", json!({"uid": "x".repeat(MAX_UID)})).is_ok());
    }

    #[test]
    fn answers_repeat_the_uid() {
        let answer = |warnings: &[String]| -> Value {
            serde_json::from_str(&Review::answer("7", warnings, None)).unwrap()
        };
        assert_eq!(
            answer(&[])["response"],
            json!({"uid": "7", "allowed": true})
        );
        let warned = answer(&["entail: x".to_owned()]);
        let expected = json!({"uid": "7", "allowed": true, "warnings": ["entail: x"]});
        assert_eq!(warned["response"], expected);
        assert_eq!(warned["apiVersion"], API_VERSION);
        let denied = Review::answer("7", &[], Some("why"));
        let denied: Value = serde_json::from_str(&denied).unwrap();
        assert_eq!(denied["response"]["allowed"], json!(false));
        assert_eq!(denied["response"]["status"]["message"], "why");
    }
}
