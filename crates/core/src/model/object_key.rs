//! The identity of Kubernetes objects: their kinds and keys.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

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

    /// Reports whether this is the kind Namespace.
    pub fn is_namespace(&self) -> bool {
        self.is(groups::CORE, "Namespace")
    }

    /// Whether objects of the kind are above all Routes of a path: GatewayClasses, Gateways and ListenerSets.
    pub fn is_above_routes(&self) -> bool {
        *self.group == *groups::GATEWAY
            && matches!(&*self.kind, "GatewayClass" | "Gateway" | "ListenerSet")
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

#[cfg(test)]
mod tests {
    use super::*;

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
