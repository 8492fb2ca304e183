//! The PolicyProfile document as it is written: every field optional but `policy`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::model::GroupKind;

/// A PolicyProfile document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ProfileDocument {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    /// Only the name is read.
    pub(super) metadata: Metadata,
    pub(super) spec: Spec,
    /// Written by API servers; not read.
    #[serde(default)]
    #[allow(
        dead_code,
        reason = "accepted, so that objects of a cluster are read as they are"
    )]
    status: Option<Value>,
}

/// Why a profile is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// File and line, or the object.
    pub place: String,
    /// What is wrong and what to do.
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Metadata {
    pub(super) name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) preset: Option<String>,
    pub(super) policy: KindDoc,
    pub(super) scope: Option<ScopeDoc>,
    pub(super) controllers: Option<Vec<String>>,
    pub(super) mesh: Option<bool>,
    pub(super) class: Option<ClassDoc>,
    pub(super) targets: Option<Vec<TargetDoc>>,
    pub(super) effective_target: Option<EffectiveTargetDoc>,
    pub(super) namespace_reaches: Option<Vec<NamespaceReachDoc>>,
    pub(super) virtual_targets: Option<Vec<KindDoc>>,
    pub(super) attach: Option<Vec<AttachDoc>>,
    pub(super) root_namespace: Option<String>,
    pub(super) workload_selector: Option<String>,
    pub(super) unnamed_rules: Option<String>,
    pub(super) cross_namespace: Option<CrossNamespaceDoc>,
    pub(super) max_targets: Option<usize>,
    pub(super) rules: Option<RulesDoc>,
    pub(super) strategies: Option<Vec<String>>,
    pub(super) strategy: Option<StrategyDoc>,
    pub(super) rule_maps: Option<Vec<String>>,
    pub(super) list_keys: Option<BTreeMap<String, String>>,
    pub(super) atomic_paths: Option<Vec<String>>,
    pub(super) reducers: Option<Vec<ReducerDoc>>,
    pub(super) fold: Option<FoldDoc>,
    pub(super) span: Option<SpanDoc>,
    pub(super) same_target: Option<SameTargetDoc>,
    pub(super) order: Option<Vec<OrderDoc>>,
    pub(super) empty: Option<EmptyDoc>,
    pub(super) empty_unless: Option<Vec<String>>,
    pub(super) own_fields: Option<Vec<OwnFieldDoc>>,
    pub(super) trust_status: Option<bool>,
    pub(super) status: Option<StatusDoc>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KindDoc {
    #[serde(default)]
    pub(super) group: String,
    pub(super) kind: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TargetDoc {
    #[serde(default)]
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) sections: Option<bool>,
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
    pub(super) owner: Option<OwnerDoc>,
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
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum ReduceDoc {
    Name(ReduceName),
    Cel {
        /// The expression.
        cel: String,
    },
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
pub(super) struct OwnFieldDoc {
    pub(super) object: String,
    pub(super) policy: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusDoc {
    pub(super) vocabulary: Option<VocabularyDoc>,
    pub(super) ancestor: Option<AncestorDoc>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum SpanDoc {
    Word(SpanName),
    #[serde(rename_all = "camelCase")]
    Levels {
        closest_parent: Vec<SpanLevel>,
    },
}

/// Declares an enum of the words that a field may hold.
macro_rules! words {
    ($($name:ident { $($word:ident),+ $(,)? })+) => {$(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        pub(super) enum $name { $($word),+ }
    )+};
}

words! {
    ScopeDoc { Namespaced, Cluster }
    ClassDoc { Direct, Inherited, Listed }
    EffectiveTargetDoc {
        GatewayClass, Gateway, Listener, Route, RouteRule, Backend, BackendPort, Every,
    }
    NamespaceReachDoc { Gateway, ListenerSet, Route, Backend }
    CrossNamespaceDoc { Never, ReferenceGrant, Any, Clients }
    OwnerDoc { Higher, Lower }
    FoldDoc { BottomUp, TopDown }
    SpanName { AllLevels, ClosestParent }
    SpanLevel {
        GatewayClass, Namespace, Gateway, ListenerSet, Listener, Route, RouteRule, Backend,
        BackendPort,
    }
    SameTargetDoc { Established, OldestWins, RejectNewer, UnionOrReject }
    EmptyDoc { Transparent, Blocking }
    VocabularyDoc { Programmed, Enforced, EnforcedWithAdditions }
    AncestorDoc { Gateway, Target, None }
}

/// Forms of attachment, lower case as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AttachDoc {
    Refs,
    Filter,
    Namespace,
}

/// Reducers by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReduceName {
    Min,
    Max,
    And,
    Or,
    Union,
    Intersection,
    Append,
    Prepend,
}

impl ProfileDocument {
    /// `metadata.name`.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The kind that it describes.
    pub fn policy(&self) -> GroupKind {
        super::read::normalize_kind(&self.spec.policy.group, &self.spec.policy.kind)
    }

    /// Checks the two fields that make it a PolicyProfile.
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

/// Reads the PolicyProfile documents of a YAML text. Each document stands for itself: a bad one
/// is refused with its place and the others are read.
///
/// # Errors
/// File, line and reason, one for each document that is refused.
pub fn parse_documents(
    text: &str,
    file: &str,
) -> Vec<Result<(String, ProfileDocument), ProfileError>> {
    let mut found = Vec::new();
    for (line, part) in split_documents(text) {
        // A part of comments only is no document.
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
        found.push(match parsed {
            Ok(document) => match document.check_kind() {
                Ok(()) => Ok((format!("{file}:{}", first_line(line, part)), document)),
                Err(reason) => Err(ProfileError::new(format!("{file}:{line}"), reason)),
            },
            Err(error) => {
                let at = error
                    .location()
                    .map_or(line, |l| line + l.line() as usize - 1);
                let reason = error.without_snippet().to_string();
                Err(ProfileError::new(
                    format!("{file}:{at}"),
                    first_sentence(&reason),
                ))
            }
        });
    }
    found
}

/// Reads a PolicyProfile from an object of a cluster or a manifest.
///
/// # Errors
/// The place and the reason.
pub fn parse_value(value: &Value, place: &str) -> Result<ProfileDocument, ProfileError> {
    let refuse = |reason: String| ProfileError::new(place.to_owned(), reason);
    let document: ProfileDocument =
        serde_json::from_value(value.clone()).map_err(|e| refuse(e.to_string()))?;
    document.check_kind().map_err(refuse)?;
    Ok(document)
}

/// The documents of a text with the line that each begins at.
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

/// The line of the first thing in a document that is no comment.
fn first_line(line: usize, part: &str) -> usize {
    let comments = part
        .lines()
        .take_while(|l| l.trim().is_empty() || l.trim_start().starts_with('#'))
        .count();
    line + comments
}

/// Error texts of the reader end with hints on other lines.
fn first_sentence(text: &str) -> String {
    text.lines().next().unwrap_or(text).to_owned()
}

impl ProfileError {
    /// An error at a place.
    pub fn new(place: String, reason: String) -> Self {
        Self { place, reason }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: profile refused: {}", self.place, self.reason)
    }
}

impl std::error::Error for ProfileError {}
