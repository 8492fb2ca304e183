//! Kubernetes objects: a key, the metadata that rules need, and the body.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::{Body, MetadataMap};

/// A shared, immutable string. Its size is one pointer, because there are a hundred for each route; an empty one has no
/// copy of its own.
pub type Str = arcstr::ArcStr;

/// API groups with kinds that entail knows.
pub mod groups {
    /// The Gateway API.
    pub const GATEWAY: &str = "gateway.networking.k8s.io";
    /// The group of experimental kinds of the Gateway API.
    pub const GATEWAY_X: &str = "gateway.networking.x-k8s.io";
    /// The core group.
    pub const CORE: &str = "";
    /// The Multi-Cluster Services API.
    pub const MULTICLUSTER: &str = "multicluster.x-k8s.io";
    /// Custom resource definitions.
    pub const APIEXTENSIONS: &str = "apiextensions.k8s.io";
    /// Resources of entail.
    pub const ENTAIL: &str = "entail.dev";
}

/// The kinds of assertions.
const ASSERTIONS: [&str; 2] = [
    "ClusterEffectivePolicyAssertion",
    "EffectivePolicyAssertion",
];

/// The fields of `spec` with target references.
const TARGET_FIELDS: [&str; 3] = ["targetRef", "targetRefs", "targetSelectors"];

/// The field of an object that [`Object::targets_only`] reduced. It is part of the body, so that a checkpoint keeps it. A
/// source removes it from what others wrote: an object with it makes its kind one without a profile.
pub const TARGETS_ONLY: &str = "entail.dev/targets-only";

/// A resource kind, independent of its version. Nearly everything has one, so it is a pointer to the names, which
/// clones share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupKind(Arc<KindNames>);

/// The names of a [`GroupKind`].
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindNames {
    /// API group; empty for the core group.
    pub group: Str,
    /// Kind, as in `HTTPRoute`.
    pub kind: Str,
}

/// The identity of an object. The kind is always part of it (specification 1.5).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Group and kind.
    pub kind: GroupKind,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Str,
    /// Name.
    pub name: Str,
}

/// A time in whole seconds since the Unix epoch, the precision at which creation times are compared
/// (specification 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

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
    /// `metadata.generation`, if the source has it.
    pub generation: Option<i64>,
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

impl Deref for GroupKind {
    type Target = KindNames;

    fn deref(&self) -> &KindNames {
        &self.0
    }
}

impl Ord for GroupKind {
    fn cmp(&self, other: &Self) -> Ordering {
        match Arc::ptr_eq(&self.0, &other.0) {
            true => Ordering::Equal,
            false => self.0.cmp(&other.0),
        }
    }
}

impl PartialOrd for GroupKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl GroupKind {
    /// Creates a kind from its parts.
    pub fn new(group: impl Into<Str>, kind: impl Into<Str>) -> Self {
        Self(Arc::new(KindNames {
            group: group.into(),
            kind: kind.into(),
        }))
    }

    /// Parses `Kind.group`, or `Kind` for the core group.
    pub fn parse(text: &str) -> Self {
        match text.split_once('.') {
            Some((kind, group)) => Self::new(group, kind),
            None => Self::new("", text),
        }
    }

    /// The policy kind of a section of this resource kind, `Kind:section` (specification 2.14).
    #[must_use]
    pub fn with_section(&self, section: &str) -> Self {
        Self::new(self.group.clone(), format!("{}:{section}", self.kind))
    }

    /// The resource kind: the kind itself, or that of which it is a section (specification 2.14).
    #[must_use]
    pub fn resource(&self) -> Self {
        match self.kind.split_once(':') {
            Some((kind, _)) => Self::new(self.group.clone(), kind),
            None => self.clone(),
        }
    }

    /// Whether this kind, as it is named in a request, means another: the same, or a section of this resource kind
    /// (specification 2.14).
    pub fn names(&self, other: &GroupKind) -> bool {
        let rest = other.kind.strip_prefix(&*self.kind);
        self.group == other.group
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    }

    /// Returns the kind Service, with shared names: that of most backends.
    pub fn service() -> Self {
        static SERVICE: LazyLock<GroupKind> =
            LazyLock::new(|| GroupKind::new(groups::CORE, "Service"));
        SERVICE.clone()
    }

    /// Returns the kind Gateway, with shared names: that of most parents.
    pub fn gateway() -> Self {
        static GATEWAY: LazyLock<GroupKind> =
            LazyLock::new(|| GroupKind::new(groups::GATEWAY, "Gateway"));
        GATEWAY.clone()
    }

    /// Returns the kind Secret.
    pub fn secret() -> Self {
        Self::new(groups::CORE, "Secret")
    }

    /// Returns the kind CustomResourceDefinition.
    pub fn crd() -> Self {
        Self::new(groups::APIEXTENSIONS, "CustomResourceDefinition")
    }

    /// Reports whether this is the kind CustomResourceDefinition.
    pub fn is_crd(&self) -> bool {
        self.is(groups::APIEXTENSIONS, "CustomResourceDefinition")
    }

    /// Returns the kinds of assertions: those of the whole cluster, and those of a namespace. No answer depends on them.
    pub fn assertions() -> [Self; 2] {
        ASSERTIONS.map(|kind| Self::new(groups::ENTAIL, kind))
    }

    /// Reports whether this is a kind of assertions.
    pub fn is_assertion(&self) -> bool {
        &*self.group == groups::ENTAIL && ASSERTIONS.contains(&&*self.kind)
    }

    /// Reports whether objects of this kind define policy kinds: CRDs and PolicyProfiles.
    pub fn defines_kinds(&self) -> bool {
        self.is_crd() || self.is(groups::ENTAIL, "PolicyProfile")
    }

    /// Reports whether this is `kind` of `group`.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        &*self.kind == kind && &*self.group == group
    }

    /// Returns the kind that stands for this one everywhere: ListenerSet for XListenerSet (specification
    /// 11.47), and for any other kind itself.
    pub fn canonical(self) -> Self {
        if self.is(groups::GATEWAY_X, "XListenerSet") {
            Self::new(groups::GATEWAY, "ListenerSet")
        } else {
            self
        }
    }

    /// Returns the name used in paths and object keys: `Kind` in the standard groups, else
    /// `Kind.group` (specification 11.16).
    pub fn short(&self) -> String {
        if is_standard(&self.group, &self.kind) {
            self.kind.to_string()
        } else {
            self.to_string()
        }
    }

    /// Like [`GroupKind::short`], without a copy for kinds of the standard groups.
    pub fn short_name(&self) -> Str {
        if is_standard(&self.group, &self.kind) {
            self.kind.clone()
        } else {
            self.to_string().into()
        }
    }

    /// Parses the output of [`GroupKind::short`].
    pub fn parse_short(text: &str) -> Self {
        if text.contains('.') {
            return Self::parse(text);
        }
        let group = match text {
            "Service" | "Namespace" => groups::CORE,
            "ServiceImport" => groups::MULTICLUSTER,
            _ if is_standard(groups::GATEWAY, text) => groups::GATEWAY,
            _ => groups::CORE,
        };
        Self::new(group, text)
    }
}

/// Reports whether a kind is written without its group.
fn is_standard(group: &str, kind: &str) -> bool {
    match group {
        groups::CORE => true,
        groups::GATEWAY => true,
        groups::MULTICLUSTER => kind == "ServiceImport",
        _ => false,
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

impl fmt::Display for GroupKind {
    /// Writes `Kind.group`, or `Kind` for the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

impl ObjectKey {
    /// Creates a key from its parts. An empty namespace means cluster-scoped.
    pub fn new(kind: GroupKind, namespace: impl Into<Str>, name: impl Into<Str>) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns `namespace/name`, or `name` for cluster-scoped objects: the string that orders
    /// policies of the same age (specification 4.2).
    pub fn qualified_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.to_string()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Display for ObjectKey {
    /// Writes `Kind/ns/name` with the short kind (specification 11.16).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.short(), self.qualified_name())
    }
}

impl Timestamp {
    /// Parses an RFC 3339 time and drops fractions of a second. Returns `None` if the text is
    /// malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let time: jiff::Timestamp = text.parse().ok()?;
        // Whole seconds towards the past, as the clock showed them.
        Some(Self(
            time.as_second() - i64::from(time.subsec_nanosecond() < 0),
        ))
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
        whole.annotations.insert("x".to_owned(), "y".to_owned());
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
    fn a_resource_kind_names_its_sections() {
        let part = GroupKind::parse("Part.foo.example");
        let section = part.with_section("in");
        assert_eq!(section.to_string(), "Part:in.foo.example");
        assert_eq!(GroupKind::parse("Part:in.foo.example"), section);
        assert_eq!(
            (section.resource(), part.resource()),
            (part.clone(), part.clone())
        );
        assert!(part.names(&section) && part.names(&part) && section.names(&section));
        for (kind, other) in [
            (&section, &part),
            (&section, &part.with_section("inner")),
            (&part, &GroupKind::parse("Parts.foo.example")),
            (&part, &GroupKind::parse("Part:in.bar.example")),
        ] {
            assert!(!kind.names(other), "{kind} {other}");
        }
    }

    #[test]
    fn timestamps_compare_to_the_second() {
        assert_eq!(Timestamp::parse("1970-01-01T00:00:00Z"), Some(Timestamp(0)));
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
            Some(Timestamp(951_825_600))
        );
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

    #[test]
    fn short_kinds_round_trip() {
        for text in [
            "HTTPRoute",
            "Service",
            "ServiceImport",
            "Backend.gateway.kgateway.dev",
        ] {
            assert_eq!(GroupKind::parse_short(text).short(), text);
        }
    }
}
