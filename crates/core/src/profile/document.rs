//! PolicyProfile documents as written: all fields except `policy` are optional.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::{
    Ancestor, Checked, ConflictScope, CrossNamespace, DelegationPreference, EffectiveTarget,
    EmptyBehavior, FoldOrder, ListOrder, ListenerField, OwnFieldMode, PolicyClass, ReduceFunction,
    SameTarget, TlsMode, Vocabulary, WaypointNamespace,
};
use crate::model::{GroupKind, Level, nearest};

/// A PolicyProfile document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ProfileDocument {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    /// Only the name is used.
    pub(super) metadata: Metadata,
    pub(super) spec: Spec,
    /// Written by API servers; ignored.
    #[serde(default)]
    #[allow(
        dead_code,
        reason = "accepted, so that objects of a cluster parse unchanged"
    )]
    status: Option<Value>,
}

/// The error of a profile that is refused, or of an alias of a controller that is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// File and line, or the name of the object.
    pub location: String,
    /// What is wrong and how to fix it.
    pub reason: String,
    /// What becomes of it.
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Metadata {
    pub(super) name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) preset: Option<String>,
    pub(super) policy: PolicyDoc,
    pub(super) scope: Option<Scope>,
    pub(super) controllers: Option<Vec<String>>,
    pub(super) mesh: Option<bool>,
    pub(super) class: Option<PolicyClass>,
    pub(super) targets: Option<Vec<TargetDoc>>,
    #[serde(default, deserialize_with = "effective_target")]
    pub(super) effective_target: Option<EffectiveTarget>,
    #[serde(default, deserialize_with = "namespace_reaches")]
    pub(super) namespace_reaches: Option<Vec<Level>>,
    pub(super) virtual_targets: Option<Vec<KindDoc>>,
    pub(super) attach: Option<Vec<AttachmentForm>>,
    pub(super) root_namespace: Option<String>,
    pub(super) workload_selector: Option<String>,
    pub(super) unnamed_rules: Option<String>,
    pub(super) cross_namespace: Option<CrossNamespace>,
    pub(super) max_targets: Option<usize>,
    pub(super) listener_sets: Option<ListenerSetsDoc>,
    pub(super) conflicts: Option<ConflictScope>,
    pub(super) rules: Option<RulesDoc>,
    pub(super) strategies: Option<Vec<String>>,
    pub(super) strategy: Option<StrategyDoc>,
    pub(super) rule_maps: Option<Vec<String>>,
    pub(super) list_keys: Option<BTreeMap<String, String>>,
    pub(super) list_order: Option<ListOrder>,
    pub(super) delegation: Option<DelegationDoc>,
    pub(super) route_kinds: Option<Vec<RouteKindDoc>>,
    pub(super) atomic_paths: Option<Vec<String>>,
    pub(super) reducers: Option<Vec<ReducerDoc>>,
    pub(super) instances: Option<Vec<InstanceDoc>>,
    pub(super) fold: Option<FoldOrder>,
    pub(super) span: Option<SpanDoc>,
    pub(super) same_target: Option<SameTarget>,
    pub(super) order: Option<Vec<OrderDoc>>,
    pub(super) empty: Option<EmptyBehavior>,
    pub(super) empty_unless: Option<Vec<String>>,
    pub(super) field_defaults: Option<Vec<FieldDefaultDoc>>,
    pub(super) own_fields: Option<Vec<OwnFieldDoc>>,
    pub(super) references: Option<Vec<ReferenceDoc>>,
    pub(super) exclusive: Option<Vec<ExclusiveDoc>>,
    pub(super) trust_status: Option<bool>,
    pub(super) limits: Option<Vec<LimitDoc>>,
    pub(super) waypoints: Option<WaypointsDoc>,
    #[serde(default)]
    pub(super) while_deleting: WhileDeleting,
    pub(super) status: Option<StatusDoc>,
    pub(super) checked: Option<Checked>,
}

/// A Route kind of the project.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteKindDoc {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) like: String,
    #[serde(default)]
    pub(super) generates: bool,
    pub(super) backend: Option<KindDoc>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KindDoc {
    #[serde(default)]
    pub(super) group: String,
    pub(super) kind: String,
}

/// The policy kind that a profile describes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyDoc {
    #[serde(default)]
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) section: Option<SectionDoc>,
}

/// The section of the resource kind that a profile describes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SectionDoc {
    pub(super) name: String,
    pub(super) field: Option<String>,
    #[serde(rename = "where")]
    pub(super) condition: Option<SectionWhereDoc>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SectionWhereDoc {
    pub(super) field: String,
    pub(super) values: Option<Vec<String>>,
    pub(super) not: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TargetDoc {
    #[serde(default)]
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) sections: Option<bool>,
    #[serde(default)]
    pub(super) ports: bool,
    #[serde(default)]
    pub(super) fields: Vec<String>,
    #[serde(default)]
    pub(super) without: Vec<String>,
    #[serde(default)]
    pub(super) validations: Vec<ValidationDoc>,
    #[serde(default)]
    pub(super) merged: bool,
    #[serde(default)]
    pub(super) namespaces: TargetNamespaces,
}

/// A condition of the rules, named as in `x-kubernetes-validations` of a CRD.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ValidationDoc {
    pub(super) rule: String,
    pub(super) message: String,
}

/// Whether policies that are being deleted count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum WhileDeleting {
    #[default]
    Counts,
    Ignored,
}

/// The namespaces whose policies can name a target kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum TargetNamespaces {
    #[default]
    Any,
    Root,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ListenerSetsDoc {
    pub(super) from_gateway: Option<bool>,
    pub(super) gateway_sections: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RulesDoc {
    pub(super) path: Option<String>,
    pub(super) exclude: Option<Vec<String>>,
    pub(super) defaults: Option<Vec<String>>,
    pub(super) overrides: Option<Vec<String>>,
    pub(super) both_blocks: Option<bool>,
    pub(super) mix_with_bare: Option<bool>,
    pub(super) when: Option<String>,
    pub(super) unset: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct StrategyDoc {
    pub(super) field: Option<OneOrMany>,
    pub(super) owner: Option<StrategyOwner>,
    pub(super) annotation: Option<String>,
    pub(super) values: Option<BTreeMap<String, String>>,
    pub(super) default: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReducerDoc {
    pub(super) path: String,
    pub(super) reduce: ReduceDoc,
    pub(super) strategies: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstanceDoc {
    pub(super) path: String,
    pub(super) key: Option<String>,
    pub(super) disable: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum ReduceDoc {
    Name(ReduceFunction),
    Cel {
        /// The expression.
        cel: String,
    },
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct DelegationDoc {
    pub(super) prefer: Option<DelegationPreference>,
    pub(super) annotation: Option<String>,
    pub(super) values: Option<BTreeMap<String, DelegationPreference>>,
    pub(super) other_values: Option<DelegationPreference>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderDoc {
    pub(super) annotation: Option<String>,
    pub(super) field: Option<String>,
    #[serde(default)]
    pub(super) descending: bool,
    pub(super) values: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FieldDefaultDoc {
    pub(super) path: String,
    #[serde(default)]
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnFieldDoc {
    pub(super) object: String,
    pub(super) policy: String,
    pub(super) mode: Option<OwnFieldMode>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ReferenceDoc {
    pub(super) path: String,
    #[serde(default)]
    pub(super) group: String,
    pub(super) kind: Option<String>,
    pub(super) one_is_enough: Option<bool>,
    pub(super) fail_open: Option<String>,
    pub(super) reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ExclusiveDoc {
    pub(super) fields: Vec<String>,
    pub(super) fail_open: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct LimitDoc {
    pub(super) routes: Vec<String>,
    pub(super) protocols: Vec<String>,
    pub(super) tls_modes: Vec<TlsMode>,
    pub(super) listeners_without: Vec<ListenerField>,
    pub(super) listener_sets: bool,
    pub(super) classes: Vec<String>,
    pub(super) classes_other_than: Vec<String>,
    pub(super) controllers: Vec<String>,
    pub(super) mesh: Option<bool>,
    pub(super) waypoint_namespace: Option<WaypointNamespace>,
    pub(super) replaced_by: Option<ReplacedByDoc>,
    pub(super) targets: Vec<String>,
    pub(super) fields: Vec<String>,
    pub(super) ignored: Vec<IgnoredDoc>,
    pub(super) fieldwise: bool,
}

/// Policies of another kind that take the place of less specific ones.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplacedByDoc {
    pub(super) group: String,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) fields: Vec<String>,
}

/// Values that are left out of what the fields of a limit allow.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IgnoredDoc {
    pub(super) path: String,
    pub(super) beside: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WaypointsDoc {
    pub(super) label: String,
    pub(super) namespace_label: Option<String>,
    pub(super) opt_out: Option<String>,
    pub(super) canary: Option<CanaryDoc>,
    pub(super) traffic: Option<LabelValuesDoc>,
    pub(super) listener: Option<WaypointListenerDoc>,
    #[serde(default)]
    pub(super) controllers: Vec<String>,
    pub(super) except: Option<LabelValuesDoc>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CanaryDoc {
    pub(super) label: String,
    pub(super) namespace_label: Option<String>,
    pub(super) weight: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LabelValuesDoc {
    pub(super) label: String,
    pub(super) values: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WaypointListenerDoc {
    pub(super) protocol: String,
    pub(super) port: u16,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusDoc {
    pub(super) vocabulary: Option<Vocabulary>,
    pub(super) ancestor: Option<Ancestor>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum SpanDoc {
    Name(SpanName),
    #[serde(rename_all = "camelCase")]
    Levels {
        #[serde(deserialize_with = "closest_parent")]
        closest_parent: Vec<Level>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Scope {
    Namespaced,
    Cluster,
}

/// The policy of a pair whose strategy applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum StrategyOwner {
    Higher,
    Lower,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum SpanName {
    AllLevels,
    ClosestParent,
}

/// A form of attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AttachmentForm {
    Refs,
    Filter,
    Namespace,
}

/// Returns the level with a name that is among `allowed`.
fn level<E: de::Error>(name: &str, allowed: &'static [&'static str]) -> Result<Level, E> {
    Level::parse(name)
        .filter(|level| allowed.contains(&level.as_str()))
        .ok_or_else(|| E::unknown_variant(name, allowed))
}

fn effective_target<'de, D>(deserializer: D) -> Result<Option<EffectiveTarget>, D::Error>
where
    D: Deserializer<'de>,
{
    const LEVELS: [&str; 8] = [
        "GatewayClass",
        "Gateway",
        "Listener",
        "Route",
        "RouteRule",
        "Backend",
        "BackendPort",
        "Every",
    ];
    Ok(
        match Option::<String>::deserialize(deserializer)?.as_deref() {
            None => None,
            Some("Every") => Some(EffectiveTarget::Every),
            Some(name) => Some(EffectiveTarget::Level(level::<D::Error>(name, &LEVELS)?)),
        },
    )
}

fn namespace_reaches<'de, D>(deserializer: D) -> Result<Option<Vec<Level>>, D::Error>
where
    D: Deserializer<'de>,
{
    const LEVELS: [&str; 4] = ["Gateway", "ListenerSet", "Route", "Backend"];
    let names = Option::<Vec<String>>::deserialize(deserializer)?;
    names
        .map(|names| names.iter().map(|name| level(name, &LEVELS)).collect())
        .transpose()
}

fn closest_parent<'de, D>(deserializer: D) -> Result<Vec<Level>, D::Error>
where
    D: Deserializer<'de>,
{
    const LEVELS: [&str; 9] = [
        "GatewayClass",
        "Namespace",
        "Gateway",
        "ListenerSet",
        "Listener",
        "Route",
        "RouteRule",
        "Backend",
        "BackendPort",
    ];
    let names = Vec::<String>::deserialize(deserializer)?;
    names.iter().map(|name| level(name, &LEVELS)).collect()
}

impl PolicyDoc {
    /// The policy kind, with its section.
    pub(super) fn kind(&self) -> GroupKind {
        let resource = super::read::normalize_kind(&self.group, &self.kind);
        match &self.section {
            Some(section) => resource.with_section(&section.name),
            None => resource,
        }
    }
}

impl ProfileDocument {
    /// The entries of `controllers`.
    pub fn controllers(&self) -> impl Iterator<Item = &str> {
        self.spec.controllers.iter().flatten().map(String::as_str)
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns the policy kind that the document describes.
    pub fn policy(&self) -> GroupKind {
        self.spec.policy.kind()
    }

    /// Checks `apiVersion` and `kind`.
    fn check_kind(&self) -> Result<(), String> {
        if self.kind != "PolicyProfile" {
            return Err(format!("kind is `{}`, expected `PolicyProfile`", self.kind));
        }
        if self.api_version != "entail.dev/v1alpha1" {
            return Err(format!(
                "apiVersion is `{}`, expected `entail.dev/v1alpha1`",
                self.api_version
            ));
        }
        Ok(())
    }
}

/// Parses the PolicyProfile documents of a YAML text. Documents are independent: a malformed one is
/// an error with its location, and the others are parsed.
///
/// # Errors
/// One error for each document that is refused, with file, line and reason.
pub fn parse_documents(
    text: &str,
    file: &str,
) -> Vec<Result<(String, ProfileDocument), ProfileError>> {
    let mut documents = Vec::new();
    for (line, part) in split_documents(text) {
        // A part with only comments is not a document.
        if part
            .lines()
            .all(|l| l.trim().is_empty() || l.trim_start().starts_with('#'))
        {
            continue;
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: 64, max_nodes: 100_000 },
            emit_comments: false,
        };
        let parsed = serde_saphyr::from_str_with_options::<ProfileDocument>(part, options);
        documents.push(match parsed {
            Ok(document) => match document.check_kind() {
                Ok(()) => Ok((format!("{file}:{}", first_line(line, part)), document)),
                Err(reason) => Err(ProfileError::new(format!("{file}:{line}"), reason)),
            },
            Err(error) => Err(unreadable(&error, file, line)),
        });
    }
    documents
}

/// Returns the error of a document that starts at a line of a file and cannot be parsed.
fn unreadable(error: &serde_saphyr::Error, file: &str, line: usize) -> ProfileError {
    let reason = first_sentence(&error.without_snippet().to_string());
    let Some(at) = error.location() else {
        return ProfileError::new(format!("{file}:{line}"), with_nearest(&reason));
    };
    // The parser counts lines from the beginning of the document.
    let in_document = format!(" at line {}, column {}", at.line(), at.column());
    let reason = reason.strip_suffix(&in_document).unwrap_or(&reason);
    let in_file = line + at.line() as usize - 1;
    ProfileError::new(format!("{file}:{in_file}"), with_nearest(reason))
}

/// Names the field that a misspelt one probably means, in place of all that a profile has.
fn with_nearest(reason: &str) -> String {
    /// So many names can be read at a glance.
    const FEW: usize = 8;
    let Some((problem, expected)) = reason.split_once(", expected one of ") else {
        return reason.to_owned();
    };
    let names = expected
        .split(", ")
        .map(|name| name.trim_matches('`').to_owned());
    let names: Vec<String> = names.collect();
    if names.len() <= FEW {
        return reason.to_owned();
    }
    let misspelt = problem.split('`').nth(1).unwrap_or_default();
    match nearest(misspelt, names) {
        Some(name) => format!("{problem}: did you mean `{name}`?"),
        None => format!("{problem}: docs/profiles-reference.md lists the fields"),
    }
}

/// Parses a PolicyProfile from an object of a cluster or a manifest.
///
/// # Errors
/// The document is malformed. The error has `location` and the reason.
pub fn parse_value(value: &Value, location: &str) -> Result<ProfileDocument, ProfileError> {
    let refuse = |reason: String| ProfileError::new(location.to_owned(), reason);
    let document: ProfileDocument =
        serde_json::from_value(value.clone()).map_err(|e| refuse(with_nearest(&e.to_string())))?;
    document.check_kind().map_err(refuse)?;
    Ok(document)
}

/// Splits a text into documents, each with the number of its first line.
fn split_documents(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 1, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            parts.push((start_line, text.get(start..at).unwrap_or_default()));
            start = at + line.len();
            start_line = index + 2;
        }
        at += line.len();
    }
    parts.push((start_line, text.get(start..).unwrap_or_default()));
    parts
}

/// Returns the number of the first line of a document that is not a comment.
fn first_line(line: usize, part: &str) -> usize {
    let comments = part
        .lines()
        .take_while(|l| l.trim().is_empty() || l.trim_start().starts_with('#'))
        .count();
    line + comments
}

/// Returns the first line of an error message of the YAML parser; hints follow on other lines.
fn first_sentence(text: &str) -> String {
    text.lines().next().unwrap_or(text).to_owned()
}

impl ProfileError {
    /// Creates an error of a profile, with a location and a reason.
    pub fn new(location: String, reason: String) -> Self {
        Self {
            location,
            reason,
            result: "profile refused",
        }
    }

    /// Creates an error of an alias of a controller.
    pub fn of_alias(location: String, reason: String) -> Self {
        Self {
            result: "alias ignored",
            ..Self::new(location, reason)
        }
    }

    /// What becomes of the document, and why.
    pub fn message(&self) -> String {
        format!("{}: {}", self.result, self.reason)
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message())
    }
}

impl std::error::Error for ProfileError {}

#[cfg(test)]
mod tests {
    use super::parse_documents;

    #[test]
    fn an_error_has_one_position_and_that_in_the_file() {
        let text = "# Another document.\n---\napiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\n\
                    metadata: {name: as.example.com}\nspec:\n\
                    \x20 policy: {group: example.com, kind: A}\n\x20 sameTaget: RejectAll\n";
        let error = parse_documents(text, "f.yaml").remove(0).unwrap_err();
        assert_eq!(error.location, "f.yaml:8");
        let reason = "unknown field `sameTaget`: did you mean `sameTarget`?";
        assert_eq!(error.reason, reason);
    }

    #[test]
    fn a_name_that_resembles_no_field_is_explained() {
        let text = "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {name: as.example.com}\n\
                    spec:\n\x20 policy: {group: example.com, kind: A}\n\x20 unheardOf: 1\n";
        let error = parse_documents(text, "f.yaml").remove(0).unwrap_err();
        let reason = "unknown field `unheardOf`: docs/profiles-reference.md lists the fields";
        assert_eq!(error.reason, reason);
    }
}
