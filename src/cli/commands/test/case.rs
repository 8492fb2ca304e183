//! The format of test cases: objects, and their expected results (`docs/testing.md`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A test case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name, unique among all cases of a run.
    pub name: String,
    /// The origin of the case, such as a document or a test of a controller.
    #[serde(default)]
    pub source: String,
    /// The rules of the specification that the case covers.
    #[serde(default)]
    pub sections: Vec<Value>,
    /// PolicyProfile documents, or names of built-in profiles or profiles of `--profiles`. Fixtures are expanded.
    #[serde(default)]
    pub profiles: Vec<Value>,
    /// Complete Kubernetes objects. Fixtures are expanded.
    pub objects: Vec<Value>,
    /// The expected results.
    pub expect: Expectations,
}

/// The expected results of a case. Results that are not listed are not checked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// Effective policies of paths.
    #[serde(default)]
    pub effective: Vec<ExpectedPath>,
    /// Valid and invalid path names.
    #[serde(default)]
    pub paths: ExpectedPaths,
    /// Statuses of policies.
    #[serde(default)]
    pub status: Vec<ExpectedStatus>,
    /// By object, the policies that contribute to any path through it.
    #[serde(default)]
    pub affected: BTreeMap<String, Vec<String>>,
    /// By path and kind, the units that are missing in the result.
    #[serde(default)]
    pub losses: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// The expected effective policies of a path, by `Kind.group`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedPath {
    /// The path name.
    pub path: String,
    /// The effective spec; null if there is none.
    #[serde(default)]
    pub policies: BTreeMap<String, Value>,
    /// By unit, the policies that set it.
    #[serde(default)]
    pub origins: BTreeMap<String, BTreeMap<String, OneOrMany>>,
    /// Policies that are attached but not accepted.
    #[serde(default)]
    pub rejected: BTreeMap<String, Vec<ExpectedRejection>>,
    /// Kinds that are unknown on the path.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// All kinds that are unknown on the path, with profile or without.
    #[serde(default, rename = "allUnknown")]
    pub all_unknown: Option<Vec<String>>,
    /// The policies that a partly known answer names: they select workloads, or their references were not checked.
    #[serde(default)]
    pub undecided: BTreeMap<String, Vec<String>>,
    /// Policies of listed kinds in order.
    #[serde(default)]
    pub listed: BTreeMap<String, Vec<String>>,
}

/// One name or a list of names.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One name.
    One(String),
    /// A list of names.
    Many(Vec<String>),
}

/// A policy that is expected not to be accepted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedRejection {
    /// `namespace/name`.
    pub policy: String,
    /// The reason.
    pub reason: String,
}

/// Expected valid and invalid path names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedPaths {
    /// Names of existing paths.
    #[serde(default)]
    pub valid: Vec<String>,
    /// Names that are malformed or not found.
    #[serde(default)]
    pub invalid: Vec<ExpectedInvalidPath>,
}

/// A name that is expected to be malformed or not found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedInvalidPath {
    /// The path name.
    pub path: String,
    /// The expected reason, if it is checked.
    pub reason: Option<String>,
}

/// The expected status of a policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ExpectedStatus {
    /// `Kind.group/namespace/name`.
    pub policy: String,
    /// The Accepted condition.
    pub accepted: Option<ExpectedAcceptance>,
    /// How far the policy is in force.
    pub in_force: Option<String>,
    /// `namespace/name` of the policies that override it.
    pub overridden_by: Option<Vec<String>>,
    /// `Kind/namespace/name` of the ancestors in its status.
    pub ancestors: Option<Vec<String>>,
}

/// An expected Accepted condition.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedAcceptance {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason of the condition.
    pub reason: String,
}

impl Case {
    /// Parses a case that names no fixtures.
    ///
    /// # Errors
    /// The field that is missing, unknown or of another type.
    pub fn read(value: &Value) -> Result<Self, String> {
        let case: Self = serde_json::from_value(value.clone()).map_err(|e| e.to_string())?;
        match case.objects.iter().find_map(Value::as_str) {
            // It is most likely the name of a fixture without the prefix.
            Some(name) => Err(format!(
                "objects: `{name}` is not an object: a fixture is `fixture:NAME`"
            )),
            None => Ok(case),
        }
    }

    /// All objects of the case, including its profiles.
    pub fn inputs(&self) -> Vec<Value> {
        let profiles = self.profiles.iter().filter(|p| p.is_object());
        profiles.chain(&self.objects).cloned().collect()
    }

    /// The names of the built-in profiles of the case.
    pub fn built_in(&self) -> impl Iterator<Item = &str> {
        self.profiles.iter().filter_map(Value::as_str)
    }
}

impl OneOrMany {
    /// All names, sorted.
    pub fn sorted(&self) -> Vec<String> {
        let mut all = match self {
            OneOrMany::One(one) => vec![one.clone()],
            OneOrMany::Many(many) => many.clone(),
        };
        all.sort();
        all
    }
}
