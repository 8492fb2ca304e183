//! Kubernetes objects as entail sees them: a key, the metadata that rules need, and the body.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// A shared, immutable string.
pub type Str = Arc<str>;

/// API groups that rules name.
pub mod groups {
    /// The Gateway API.
    pub const GATEWAY: &str = "gateway.networking.k8s.io";
    /// Experimental kinds of the Gateway API.
    pub const GATEWAY_X: &str = "gateway.networking.x-k8s.io";
    /// The core group is the empty string.
    pub const CORE: &str = "";
    /// Multi-cluster services.
    pub const MULTICLUSTER: &str = "multicluster.x-k8s.io";
    /// Custom resource definitions.
    pub const APIEXTENSIONS: &str = "apiextensions.k8s.io";
    /// Our own resources.
    pub const ENTAIL: &str = "entail.dev";
}

/// A resource kind without its version: versions of one kind are one kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// API group; the core group is empty.
    pub group: Str,
    /// Kind, as in `HTTPRoute`.
    pub kind: Str,
}

/// Identity of an object. The kind is always part of it (specification 1.5).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Group and kind.
    pub kind: GroupKind,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Str,
    /// Name.
    pub name: Str,
}

/// A moment, in whole seconds since the Unix epoch: creation times compare to the second
/// (specification 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

/// One object, as a source delivers it.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Identity.
    pub key: ObjectKey,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// `metadata.creationTimestamp`; `None` counts as newest (specification 4.4).
    pub created: Option<Timestamp>,
    /// `metadata.generation`, where the source knows it.
    pub generation: Option<i64>,
    /// The whole object as JSON.
    pub body: Value,
    /// Where it was read, for messages: `file.yaml:12`. Never part of an answer.
    pub location: Option<Str>,
}

impl GroupKind {
    /// A group and kind from parts.
    pub fn new(group: impl Into<Str>, kind: impl Into<Str>) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
        }
    }

    /// Reads `Kind.group` (or `Kind` for the core group).
    pub fn parse(text: &str) -> Self {
        match text.split_once('.') {
            Some((kind, group)) => Self::new(group, kind),
            None => Self::new("", text),
        }
    }

    /// The kind of CustomResourceDefinitions.
    pub fn crd() -> Self {
        Self::new(groups::APIEXTENSIONS, "CustomResourceDefinition")
    }

    /// Whether this is the kind of CustomResourceDefinitions.
    pub fn is_crd(&self) -> bool {
        self.is(groups::APIEXTENSIONS, "CustomResourceDefinition")
    }

    /// Whether its objects say which kinds there are, and what their policies mean.
    pub fn defines_kinds(&self) -> bool {
        self.is_crd() || self.is(groups::ENTAIL, "PolicyProfile")
    }

    /// Whether this is `group`/`kind`.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        &*self.kind == kind && &*self.group == group
    }

    /// The name used in paths and object keys: the bare kind inside the standard groups, else
    /// `Kind.group` (specification 11.16).
    pub fn short(&self) -> String {
        if is_standard(&self.group, &self.kind) {
            self.kind.to_string()
        } else {
            self.to_string()
        }
    }

    /// The same, shared where it is the kind's own word.
    pub fn short_name(&self) -> Str {
        if is_standard(&self.group, &self.kind) {
            self.kind.clone()
        } else {
            self.to_string().into()
        }
    }

    /// Reads what [`GroupKind::short`] writes.
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

/// Whether the kind is written without its group.
fn is_standard(group: &str, kind: &str) -> bool {
    match group {
        groups::CORE => true,
        groups::GATEWAY => true,
        groups::MULTICLUSTER => kind == "ServiceImport",
        _ => false,
    }
}

impl Object {
    /// The kind that a CustomResourceDefinition defines; `None` if it is none, or names none.
    pub fn defined_kind(&self) -> Option<GroupKind> {
        if !self.key.kind.is_crd() {
            return None;
        }
        let text = |path: &str| self.body.pointer(path)?.as_str();
        Some(GroupKind::new(
            text("/spec/group")?,
            text("/spec/names/kind")?,
        ))
    }
}

impl fmt::Display for GroupKind {
    /// `Kind.group`, or `Kind` for the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

impl ObjectKey {
    /// A key from parts; an empty namespace means cluster-scoped.
    pub fn new(kind: GroupKind, namespace: impl Into<Str>, name: impl Into<Str>) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// `namespace/name`, or `name` for cluster-scoped objects: the string that orders policies of
    /// one age (specification 4.2).
    pub fn qualified_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.to_string()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Display for ObjectKey {
    /// `Kind/ns/name` with the short kind (specification 11.16).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.short(), self.qualified_name())
    }
}

impl Timestamp {
    /// Reads an RFC 3339 time, fractions of a second dropped. `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let number = |from: usize, to: usize| -> Option<i64> {
            let part = text.get(from..to)?;
            part.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
            part.parse().ok()
        };
        let mark = |at: usize, allowed: &[u8]| bytes.get(at).filter(|b| allowed.contains(b));
        mark(4, b"-")?;
        mark(7, b"-")?;
        mark(10, b"Tt ")?;
        mark(13, b":")?;
        mark(16, b":")?;
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let mut rest = text.get(19..)?;
        if let Some(fraction) = rest.strip_prefix('.') {
            rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        let offset = zone_offset(rest)?;
        let days = days_from_civil(year, month, day);
        Some(Self(
            days * 86_400 + hour * 3_600 + minute * 60 + second - offset,
        ))
    }
}

/// Seconds east of UTC of `Z` or `+hh:mm`.
fn zone_offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 3_600 + minutes.parse::<i64>().ok()? * 60))
}

/// Days since 1970-01-01 of a date of the Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years are counted from March, so that the leap day is the last of the year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_no_timestamp_is_none() {
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
