//! Cases: objects, and what is expected of them (docs/testing.md).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name, unique among all cases.
    pub name: String,
    /// Where it comes from.
    #[serde(default)]
    pub source: String,
    /// The rules that it is about.
    #[serde(default)]
    pub sections: Vec<Value>,
    /// PolicyProfile documents, or names of built-in ones.
    #[serde(default)]
    pub profiles: Vec<Value>,
    /// Complete Kubernetes objects.
    pub objects: Vec<Value>,
    /// What is expected.
    pub expect: Expectations,
}

/// What is expected; what is not named is not checked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// Effective policies of paths.
    #[serde(default)]
    pub effective: Vec<ExpectedPath>,
    /// Paths that are, and that are none.
    #[serde(default)]
    pub paths: ExpectedPaths,
    /// Statuses of policies.
    #[serde(default)]
    pub status: Vec<ExpectedStatus>,
    /// Objects and the policies that contribute to a path through them.
    #[serde(default)]
    pub affected: BTreeMap<String, Vec<String>>,
    /// Path to kind to the units that the result lacks.
    #[serde(default)]
    pub losses: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// Effective policies of a path, by `Kind.group`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedPath {
    /// The path.
    pub path: String,
    /// The rules; null for no effective policy of the kind.
    #[serde(default)]
    pub policies: BTreeMap<String, Value>,
    /// Unit to the policies that say it.
    #[serde(default)]
    pub origins: BTreeMap<String, BTreeMap<String, OneOrMany>>,
    /// Policies that are attached but not accepted.
    #[serde(default)]
    pub rejected: BTreeMap<String, Vec<ExpectedRejection>>,
    /// Kinds for which there is no profile.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Policies of listed kinds in order.
    #[serde(default)]
    pub listed: BTreeMap<String, Vec<String>>,
}

/// One name or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

/// A policy that is not accepted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedRejection {
    /// `namespace/name`.
    pub policy: String,
    /// The reason.
    pub reason: String,
}

/// Paths that are, and that are none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedPaths {
    /// Paths.
    #[serde(default)]
    pub valid: Vec<String>,
    /// What is no path.
    #[serde(default)]
    pub invalid: Vec<ExpectedInvalidPath>,
}

/// What is no path, and why.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedInvalidPath {
    /// The name.
    pub path: String,
    /// The reason, if it matters.
    pub reason: Option<String>,
}

/// The status of a policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ExpectedStatus {
    /// `Kind.group/namespace/name`.
    pub policy: String,
    /// Whether it is accepted.
    pub accepted: Option<ExpectedAcceptance>,
    /// How far it is in force.
    pub in_force: Option<String>,
    /// `namespace/name` of the policies that beat it.
    pub overridden_by: Option<Vec<String>>,
    /// `Kind/namespace/name` of its ancestors.
    pub ancestors: Option<Vec<String>>,
}

/// The Accepted condition.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedAcceptance {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Its reason.
    pub reason: String,
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(value: &Value) -> Result<Self, String> {
        serde_json::from_value(value.clone()).map_err(|e| e.to_string())
    }

    /// All objects of the case, its profiles among them.
    pub fn inputs(&self) -> Vec<Value> {
        let profiles = self.profiles.iter().filter(|p| p.is_object());
        profiles.chain(&self.objects).cloned().collect()
    }

    /// The names of built-in profiles that it relies on.
    pub fn built_in(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().filter_map(Value::as_str)
    }
}

impl OneOrMany {
    /// All of them, sorted.
    pub fn sorted(&self) -> Vec<String> {
        let mut all = match self {
            OneOrMany::One(one) => vec![one.clone()],
            OneOrMany::Many(many) => many.clone(),
        };
        all.sort();
        all
    }
}
