//! Compares answers with the expected results of a case.

use std::collections::BTreeSet;

use serde_json::Value;

use super::case::{Case, ExpectedPath, ExpectedStatus};
use super::diff::DiffLine;
use crate::api::v1;
use crate::insight::{PAGE_SIZE, QueryBackend, QueryError};
use entail_core::model::{Unit, UnknownReason};

/// A difference between an expected and an actual result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The subject: a path and a kind, a policy, or an object.
    pub about: String,
    /// The expected result.
    pub expected: String,
    /// The actual result.
    pub found: String,
}

impl std::fmt::Display for Mismatch {
    /// Writes the subject and the difference: `-` is expected, `+` is found.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "  {}", self.about)?;
        for line in super::diff::lines(&self.expected, &self.found) {
            match line {
                DiffLine::Same(text) => writeln!(f, "      {text}")?,
                DiffLine::Expected(text) => writeln!(f, "    - {text}")?,
                DiffLine::Found(text) => writeln!(f, "    + {text}")?,
            }
        }
        Ok(())
    }
}

/// Checks a case against the answers of a backend.
pub fn check(case: &Case, backend: &mut dyn QueryBackend) -> Vec<Mismatch> {
    let mut checker = Checker {
        backend,
        mismatches: Vec::new(),
    };
    for path in &case.expect.effective {
        checker.path(path);
    }
    for path in &case.expect.paths.valid {
        if let Err(error) = checker.get(path, &[]) {
            checker.differ(path, "a path", &error.to_string());
        }
    }
    for invalid in &case.expect.paths.invalid {
        let reason = invalid.reason.as_deref();
        match checker.get(&invalid.path, &[]) {
            Ok(_) => checker.differ(&invalid.path, reason.unwrap_or("not a path"), "a path"),
            Err(QueryError::Failure(failure)) => {
                if reason.is_some_and(|reason| reason != failure.reason) {
                    checker.differ(&invalid.path, reason.unwrap_or_default(), &failure.reason);
                }
            }
            Err(error) => checker.differ(&invalid.path, "an answer", &error.to_string()),
        }
    }
    checker.statuses(case);
    for (object, policies) in &case.expect.affected {
        checker.affected(object, policies);
    }
    for (path, kinds) in &case.expect.losses {
        for (kind, units) in kinds {
            checker.losses(path, kind, units);
        }
    }
    checker.mismatches
}

/// Whether nothing is known of a kind on a path.
fn is_unknown(policy: &v1::EffectivePolicy) -> bool {
    let partial = UnknownReason::PARTIAL.map(UnknownReason::as_str);
    let unknown = policy.unknown.as_ref();
    unknown.is_some_and(|unknown| !partial.contains(&&*unknown.reason))
}

struct Checker<'a> {
    backend: &'a mut dyn QueryBackend,
    mismatches: Vec<Mismatch>,
}

impl Checker<'_> {
    fn differ(&mut self, about: &str, expected: &str, found: &str) {
        self.mismatches.push(Mismatch {
            about: about.to_owned(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        });
    }

    fn equal(&mut self, about: &str, expected: &Value, found: &Value) {
        if expected != found {
            let text = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
            self.differ(about, &text(expected), &text(found));
        }
    }

    fn get(
        &mut self,
        path: &str,
        kinds: &[String],
    ) -> Result<v1::GetEffectivePoliciesResponse, QueryError> {
        self.backend.get(v1::GetEffectivePoliciesRequest {
            target: Some(v1::get_effective_policies_request::Target::Path(
                path.to_owned(),
            )),
            kinds: kinds.to_vec(),
            if_none_match: String::new(),
        })
    }

    fn statuses(&mut self, case: &Case) {
        if case.expect.status.is_empty() {
            return;
        }
        let request = v1::ListPoliciesRequest {
            page_size: PAGE_SIZE,
            ..v1::ListPoliciesRequest::default()
        };
        match self.backend.list_policies(request) {
            Err(error) => self.differ("status", "an answer", &error.to_string()),
            Ok(found) => {
                for expect in &case.expect.status {
                    self.status(expect, &found.policies);
                }
            }
        }
    }

    fn status(&mut self, expect: &ExpectedStatus, all: &[v1::PolicyStatus]) {
        let name = |s: &v1::PolicyStatus| format!("{}/{}", s.kind, policy_name(s.policy.as_ref()));
        let Some(found) = all.iter().find(|s| name(s) == expect.policy) else {
            return self.differ(&expect.policy, "a status", "no such policy");
        };
        let about = |what: &str| format!("{} {what}", expect.policy);
        if let Some(accepted) = &expect.accepted {
            let condition = found.conditions.first().cloned().unwrap_or_default();
            let expected = format!("{}/{}", accepted.status, accepted.reason);
            let actual = format!("{}/{}", condition.status, condition.reason);
            self.equal(&about("accepted"), &expected.into(), &actual.into());
        }
        if let Some(in_force) = &expect.in_force {
            self.equal(
                &about("in force"),
                &in_force.clone().into(),
                &found.in_force.clone().into(),
            );
        }
        if let Some(by) = &expect.overridden_by {
            let actual = found
                .overridden_by
                .iter()
                .map(|p| policy_name(Some(p)))
                .collect();
            self.equal(
                &about("overridden by"),
                &sorted(by.clone()),
                &sorted(actual),
            );
        }
        if let Some(ancestors) = &expect.ancestors {
            let actual = found.ancestors.clone();
            self.equal(
                &about("ancestors"),
                &sorted(ancestors.clone()),
                &sorted(actual),
            );
        }
    }

    fn affected(&mut self, object: &str, policies: &[String]) {
        let subject = v1::list_affected_request::Subject::Object(object.to_owned());
        let request = v1::ListAffectedRequest {
            subject: Some(subject),
            unit: String::new(),
            ..v1::ListAffectedRequest::default()
        };
        match self.backend.all_affected(request) {
            Err(error) => self.differ(object, "an answer", &error.to_string()),
            Ok(found) => {
                let name = |p: &v1::AffectingPolicy| {
                    format!("{}/{}", p.kind, policy_name(p.policy.as_ref()))
                };
                let actual = sorted(found.policies.iter().map(name).collect());
                self.equal(
                    &format!("{object} affected"),
                    &sorted(policies.to_vec()),
                    &actual,
                );
            }
        }
    }

    fn losses(&mut self, path: &str, kind: &str, units: &[String]) {
        let request = v1::ExplainRequest {
            name: path.to_owned(),
            kinds: vec![kind.to_owned()],
            ..Default::default()
        };
        match self.backend.all_explained(request) {
            Err(error) => self.differ(path, "an answer", &error.to_string()),
            Ok(found) => {
                let kinds = found.paths.into_iter().flat_map(|p| p.kinds);
                let actual = sorted(kinds.flat_map(|k| k.lost_units).collect());
                self.equal(
                    &format!("{path} {kind} losses"),
                    &sorted(units.to_vec()),
                    &actual,
                );
            }
        }
    }

    fn all_unknown(&mut self, path: &str, expected: &[String]) {
        match self.get(path, &[]) {
            Err(error) => self.differ(path, "an answer", &error.to_string()),
            Ok(response) => {
                let policies = response.result.unwrap_or_default().policies;
                let unknown = policies.iter().filter(|policy| is_unknown(policy));
                let found = sorted(unknown.map(name_of).collect());
                let about = format!("{path} unknown kinds");
                self.equal(&about, &sorted(expected.to_vec()), &found);
            }
        }
    }

    fn path(&mut self, expect: &ExpectedPath) {
        if let Some(expected) = &expect.all_unknown {
            self.all_unknown(&expect.path, expected);
        }
        let kinds: Vec<String> = expect
            .policies
            .keys()
            .chain(expect.origins.keys())
            .chain(expect.rejected.keys())
            .chain(expect.listed.keys())
            .chain(expect.undecided.keys())
            .chain(&expect.unknown)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .cloned()
            .collect();
        let response = match self.get(&expect.path, &kinds) {
            Ok(response) => response,
            Err(error) => return self.differ(&expect.path, "an answer", &error.to_string()),
        };
        let policies = response.result.unwrap_or_default().policies;
        let unknown: Vec<&str> = response
            .kinds
            .iter()
            .filter(|k| k.state() == v1::kind_state::State::Unknown)
            .map(|k| k.kind.as_str())
            .collect();
        for kind in &kinds {
            let about = format!("{} {kind}", expect.path);
            let found = policies.iter().find(|p| name_of(p) == *kind);
            let is_unknown = unknown.contains(&kind.as_str()) || found.is_some_and(is_unknown);
            if expect.unknown.contains(kind) != is_unknown {
                let state = |unknown| if unknown { "unknown" } else { "a known kind" };
                self.differ(&about, state(!is_unknown), state(is_unknown));
            }
            let no_policy = v1::EffectivePolicy::default();
            self.policy(expect, kind, &about, found.unwrap_or(&no_policy));
        }
    }

    fn policy(
        &mut self,
        expect: &ExpectedPath,
        kind: &str,
        about: &str,
        found: &v1::EffectivePolicy,
    ) {
        if let Some(expected) = expect.policies.get(kind) {
            let is_listed = expect.listed.contains_key(kind);
            if !found.not_computed.is_empty() && !is_listed && found.listed.is_empty() {
                self.differ(about, "an answer", &found.not_computed);
                return;
            }
            let spec = found.spec_json.as_deref();
            let spec = spec.and_then(|json| serde_json::from_str(json).ok());
            self.equal(about, expected, &spec.unwrap_or(Value::Null));
        }
        for (unit, policies) in expect.origins.get(kind).into_iter().flatten() {
            let actual = origins_of(found, unit);
            let about = format!("{about} origin of {unit}");
            self.equal(&about, &policies.sorted().into(), &actual.into());
        }
        if let Some(expected) = expect.rejected.get(kind) {
            let mut expected: Vec<String> = expected
                .iter()
                .map(|r| format!("{}: {}", r.policy, r.reason))
                .collect();
            expected.sort();
            let mut rejected: Vec<String> = found
                .rejected
                .iter()
                .map(|r| format!("{}: {}", policy_name(r.policy.as_ref()), r.reason))
                .collect();
            rejected.sort();
            let about = format!("{about} rejected");
            self.equal(&about, &expected.into(), &rejected.into());
        }
        if let Some(expected) = expect.undecided.get(kind) {
            let unknown = found.unknown.iter().filter(|_| !is_unknown(found));
            let policies = unknown.flat_map(|unknown| &unknown.policies);
            let actual = policies.map(|policy| policy_name(Some(policy))).collect();
            let about = format!("{about} undecided");
            self.equal(&about, &sorted(expected.clone()), &sorted(actual));
        }
        if let Some(expected) = expect.listed.get(kind) {
            let listed: Vec<String> = found
                .listed
                .iter()
                .map(|l| policy_name(l.policy.as_ref()))
                .collect();
            let about = format!("{about} listed");
            self.equal(&about, &expected.clone().into(), &listed.into());
        }
    }
}

fn sorted(mut texts: Vec<String>) -> Value {
    texts.sort();
    texts.into()
}

/// The names of the policies that set a unit: those of the origin that covers it, or of the origins
/// below it.
fn origins_of(policy: &v1::EffectivePolicy, unit: &str) -> Vec<String> {
    let Some(wanted) = Unit::parse(unit) else {
        return vec![format!("malformed unit `{unit}`")];
    };
    let covers = |a: &Unit, b: &Unit| a.covers(b);
    let names: BTreeSet<String> = policy
        .origins
        .iter()
        .filter(|origin| {
            Unit::parse(&origin.unit)
                .is_some_and(|own| covers(&own, &wanted) || covers(&wanted, &own))
        })
        .flat_map(|origin| {
            let object = (!origin.object.is_empty()).then(|| origin.object.clone());
            let policies = origin.policies.iter().map(|p| policy_name(Some(p)));
            policies.chain(object).collect::<Vec<_>>()
        })
        .collect();
    names.into_iter().collect()
}

fn name_of(policy: &v1::EffectivePolicy) -> String {
    if policy.group.is_empty() {
        policy.kind.clone()
    } else {
        format!("{}.{}", policy.kind, policy.group)
    }
}

fn policy_name(policy: Option<&v1::PolicyRef>) -> String {
    match policy {
        None => String::new(),
        Some(policy) if policy.namespace.is_empty() => policy.name.clone(),
        Some(policy) => format!("{}/{}", policy.namespace, policy.name),
    }
}
