//! Kubernetes objects: a key, the metadata that rules need, and the body.

use std::fmt;
use std::num::NonZero;

use serde_json::{Map, Value};

use super::{Body, GroupKind, MetadataMap, ObjectKey, Str};

/// The fields of `spec` with target references.
const TARGET_FIELDS: [&str; 3] = ["targetRef", "targetRefs", "targetSelectors"];

/// The field of an object that [`Object::targets_only`] reduced. It is part of the body, so that a checkpoint keeps it. A
/// source removes it from what others wrote: an object with it makes its kind one without a profile.
pub const TARGETS_ONLY: &str = "entail.dev/targets-only";

/// A time in whole seconds since the Unix epoch, the precision at which creation times are compared
/// (specification 4.4). An optional one is as small as this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(NonZero<u64>);

/// A place in a file. Its text is `file.yaml:12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The name of the file; the objects in it share it.
    pub file: Str,
    /// The line, from 1.
    pub line: u32,
}

/// An object as a source delivers it.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Identity.
    pub key: ObjectKey,
    /// `metadata.labels`.
    pub labels: MetadataMap,
    /// `metadata.annotations`.
    pub annotations: MetadataMap,
    /// `metadata.creationTimestamp`; `None` counts as newest (specification 4.4).
    pub created: Option<Timestamp>,
    /// `metadata.generation`, if the source has it: API servers count from 1.
    pub generation: Option<NonZero<i64>>,
    /// The whole object.
    pub body: Body,
    /// Where the object was read. For messages only, never part of an answer.
    pub location: Option<Location>,
    /// Why parts of the object could not be read, which are not in `body`; `None` if it is whole. A policy is Invalid
    /// then.
    pub unreadable: Option<Str>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Object {
    /// Whether the object was read from another file than an earlier version of it.
    pub fn is_moved_from(&self, before: &Self) -> bool {
        let [before, now] = [before, self].map(|object| object.location.as_ref());
        let files = before.zip(now);
        files.is_some_and(|(before, now)| before.file != now.file)
    }

    /// Creates an object without labels, annotations, creation time and generation.
    pub fn new(key: ObjectKey, body: impl Into<Body>) -> Self {
        Self {
            key,
            labels: MetadataMap::default(),
            annotations: MetadataMap::default(),
            created: None,
            generation: None,
            body: body.into(),
            location: None,
            unreadable: None,
        }
    }

    /// Whether the object has a target reference as policies have (specification 2.7).
    pub fn has_target_reference(&self) -> bool {
        TARGET_FIELDS
            .iter()
            .any(|field| self.body.is_set_at(["spec", field]))
    }

    /// Reduces the object to what is read of a policy without a profile: identity, creation time, and target
    /// references (specification 2.7). Such an object is not evaluated as a policy.
    #[must_use]
    pub fn targets_only(self) -> Self {
        let spec = self.body.get("spec");
        let spec = spec.as_ref();
        let references = TARGET_FIELDS.into_iter().filter_map(|field| {
            let value = spec?.get(field)?;
            Some((field.to_owned(), value.clone()))
        });
        let metadata = self.body.get("metadata");
        let metadata = metadata.as_ref();
        let metadata = ["name", "namespace", "creationTimestamp"]
            .into_iter()
            .filter_map(|field| {
                let value = metadata?.get(field)?;
                Some((field.to_owned(), value.clone()))
            });
        let mut body = Map::new();
        for field in ["apiVersion", "kind"] {
            let value = self.body.get(field);
            body.extend(value.map(|value| (field.to_owned(), value)));
        }
        body.insert("metadata".to_owned(), Value::Object(metadata.collect()));
        body.insert("spec".to_owned(), Value::Object(references.collect()));
        body.insert(TARGETS_ONLY.to_owned(), Value::Bool(true));
        Self {
            labels: MetadataMap::default(),
            annotations: MetadataMap::default(),
            generation: None,
            body: Value::Object(body).into(),
            ..self
        }
    }

    /// Drops the status.
    #[must_use]
    pub fn without_status(mut self) -> Self {
        if self.body.has("status") {
            self.body.edit(|body| {
                if let Value::Object(fields) = body {
                    fields.remove("status");
                }
            });
        }
        self
    }

    /// Whether the object was reduced to its target references.
    pub fn is_targets_only(&self) -> bool {
        self.body.has(TARGETS_ONLY)
    }

    /// Whether the object is a CustomResourceDefinition whose objects have target references as policies have:
    /// `spec.targetRef` or `spec.targetRefs` with a `group` and a `kind` (specification 2.7).
    pub fn defines_target_reference(&self) -> bool {
        if !self.key.kind.is_crd() {
            return false;
        }
        let versions = self.body.pointer("/spec/versions");
        let versions = versions.as_ref().and_then(Value::as_array);
        let mut schemas = versions.into_iter().flatten().filter_map(|version| {
            version.pointer("/schema/openAPIV3Schema/properties/spec/properties")
        });
        let is_reference = |schema: &Value| {
            let properties = schema.get("properties");
            let has = |name: &str| properties.is_some_and(|fields| fields.get(name).is_some());
            has("group") && has("kind")
        };
        schemas.any(|spec| {
            let one = spec.get("targetRef");
            let many = spec.pointer("/targetRefs/items");
            one.into_iter().chain(many).any(is_reference)
        })
    }

    /// Returns the kind that a CustomResourceDefinition defines; `None` for any other object, or if
    /// the definition names no kind.
    pub fn defined_kind(&self) -> Option<GroupKind> {
        if !self.key.kind.is_crd() {
            return None;
        }
        let text = |path: &str| Some(self.body.pointer(path)?.as_str()?.to_owned());
        Some(GroupKind::new(
            text("/spec/group")?,
            text("/spec/names/kind")?,
        ))
    }
}

impl Timestamp {
    /// Later than all others.
    pub const LATEST: Self = Self(NonZero::<u64>::MAX);

    /// Creates a time from seconds since the Unix epoch.
    pub fn from_seconds(seconds: i64) -> Self {
        // Without the sign, in the same order.
        let ordered = seconds.cast_unsigned() ^ (1 << 63);
        Self(NonZero::new(ordered).unwrap_or(NonZero::<u64>::MIN))
    }

    /// Returns the seconds since the Unix epoch.
    pub fn seconds(self) -> i64 {
        (self.0.get() ^ (1 << 63)).cast_signed()
    }

    /// Parses an RFC 3339 time and drops fractions of a second. Returns `None` if the text is
    /// malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let time: jiff::Timestamp = text.parse().ok()?;
        // Whole seconds towards the past, as the clock showed them.
        let towards_the_past = i64::from(time.subsec_nanosecond() < 0);
        Some(Self::from_seconds(time.as_second() - towards_the_past))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_reduced_to_their_targets() {
        let body = serde_json::json!({
            "apiVersion": "f.io/v1", "kind": "Foo",
            "metadata": {"name": "a", "namespace": "ns", "resourceVersion": "7", "annotations": {"x": "y"}},
            "spec": {"targetRefs": [{"kind": "Gateway", "name": "gw"}], "big": [1, 2, 3]},
            "status": {"conditions": []},
        });
        let mut whole = Object::new(
            ObjectKey::new(GroupKind::parse("Foo.f.io"), "ns", "a"),
            body,
        );
        whole.annotations.insert("x", "y");
        assert!(!whole.is_targets_only());
        let reduced = whole.clone().targets_only();
        assert!(reduced.is_targets_only() && reduced.has_target_reference());
        assert!(reduced.annotations.is_empty() && reduced.key == whole.key);
        assert_eq!(
            reduced.body.value(),
            serde_json::json!({
                "apiVersion": "f.io/v1", "kind": "Foo",
                "metadata": {"name": "a", "namespace": "ns"},
                "spec": {"targetRefs": [{"kind": "Gateway", "name": "gw"}]},
                "entail.dev/targets-only": true,
            })
        );
    }

    #[test]
    fn timestamps_compare_to_the_second() {
        assert_eq!(
            Timestamp::parse("1970-01-01T00:00:00Z"),
            Some(Timestamp::from_seconds(0))
        );
        assert_eq!(
            Timestamp::parse("2026-01-01T00:01:00.999Z"),
            Timestamp::parse("2026-01-01T00:01:00Z")
        );
        assert_eq!(
            Timestamp::parse("2026-01-01T02:00:00+02:00"),
            Timestamp::parse("2026-01-01T00:00:00Z")
        );
        assert_eq!(
            Timestamp::parse("2000-02-29T12:00:00Z"),
            Some(Timestamp::from_seconds(951_825_600))
        );
    }

    #[test]
    fn timestamps_are_in_the_order_of_their_seconds() {
        let seconds = [i64::MIN + 1, -377_705_023_201, -1, 0, 1, i64::MAX];
        let times = seconds.map(Timestamp::from_seconds);
        assert!(times.is_sorted());
        assert_eq!(times.map(Timestamp::seconds), seconds);
        assert_eq!(times.last(), Some(&Timestamp::LATEST));
        let least = Timestamp::from_seconds(i64::MIN);
        assert_eq!(least.seconds(), i64::MIN + 1);
        assert_eq!(size_of::<Option<Timestamp>>(), 8);
    }

    #[test]
    fn malformed_timestamps_are_none() {
        for text in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2026-01-01",
            "é026-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
